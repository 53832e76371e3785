"""`triton.profiler.viewer`: the names of the viewer of profiles, so that programs run without
it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from tilewright.support import TilewrightWarning


def parse(
    metrics: Sequence[str],
    filename: str,
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
) -> tuple[None, list[str]]:
    """No tree, and the requested metrics, with a warning that nothing was measured."""
    warnings.warn(
        f"triton.profiler measures nothing in Tilewright: there is no profile '{filename}'",
        TilewrightWarning,
        stacklevel=2,
    )
    return None, list(metrics)


def print_tree(
    gf: object,
    metrics: Sequence[str],
    depth: int = 100,
    format: str | None = None,
    print_sorted: bool = False,
) -> None:
    """Warn that there is nothing to show."""
    print(f"nothing was measured: {', '.join(metrics)}")
