"""Running tile IR text on arrays, for tests of the interpreter."""

from __future__ import annotations

from typing import Any

from tilewright.interp import run_function
from tilewright.ir import parse_function


def run_text(text: str, *args: Any, grid: tuple[int, ...] = (1,), **options: Any) -> None:
    """Parse one function and run it; arrays change in place."""
    run_function(parse_function(text), list(args), grid, **options)
