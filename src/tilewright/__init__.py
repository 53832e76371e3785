"""Tilewright: write tile-level kernels in Python; run them on CPUs, GPUs or in an interpreter.

    import tilewright
    import tilewright.language as tl

    @tilewright.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

    add[(tilewright.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)

Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

_MODULES = ("language", "runtime", "compiler", "testing")
_PLACES = {"jit": "runtime", "JITFunction": "runtime", "compile": "compiler"}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    module = importlib.import_module(f"{__name__}.{_PLACES.get(name, 'language')}")
    found = getattr(module, name, None)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
