"""`import triton` is Tilewright for one test, and nothing afterwards."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType

from tilewright import as_triton
from tilewright.support import errors
from tilewright.triton_alias.alias_finder import AliasFinder


def _remove_modules() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == "triton" or name.startswith("triton.")]
    return {name: sys.modules.pop(name) for name in names}


@contextmanager
def triton_alias() -> Generator[ModuleType]:
    """The module triton, which is ours inside the block."""
    before, path = _remove_modules(), sys.meta_path[:]
    try:
        yield as_triton()
    finally:
        _remove_modules()
        sys.meta_path[:] = path
        errors.triton_words.shown = False
        sys.modules.update(before)
        assert not any(isinstance(finder, AliasFinder) for finder in sys.meta_path)
