"""Loads object files into this process and gives the addresses of their functions.

Objects may come from `compile_ir` or, compiled by another process, from a cache on disk. One
in-memory linker (LLVM's ORC) serves the process; linking one object takes about 0.06 ms.

An object may use what it defines, symbols of this process (the C library: memcpy, memset, printf,
fmaf, ...), and the float conversions of `conversions`. Any other symbol raises LlvmError.
"""

import ctypes
import functools
import itertools
import os
import re
from collections.abc import Mapping, Sequence

from llvmlite import binding

from .conversions import CONVERSION_SYMBOLS, conversions_ir
from .lock import LLVM_LOCK
from .optimize import LlvmError, compile_ir
from .target import host_target, target_machine

__all__ = ["LoadedObject", "load_object"]

_CONVERSIONS_LIBRARY = "tilewright.conversions"
_numbers = itertools.count()


class LoadedObject:
    """Functions of an object file in memory; unloads them when it is collected or closed.

    Whoever keeps an address keeps this object too. At interpreter exit nothing is unloaded, so
    threads that still run such code come to no harm.
    """

    def __init__(self, tracker: binding.ResourceTracker, symbols: Sequence[str]) -> None:
        self._tracker = tracker
        self.addresses: Mapping[str, int] = {name: tracker[name] for name in symbols}

    def __getitem__(self, symbol: str) -> int:
        """The address of one of the symbols that were asked for."""
        return self.addresses[symbol]

    def close(self) -> None:
        """Unload the code now; its addresses are invalid from here on."""
        self.addresses = {}
        self._tracker.close()


def load_object(obj: bytes, symbols: Sequence[str]) -> LoadedObject:
    """Link the object file `obj` into this process and look up `symbols`.

    Raises LlvmError if `obj` is damaged, lacks one of `symbols`, or needs a symbol that nobody
    defines; the message names it. The process is unharmed then.
    """
    with LLVM_LOCK:  # a linker of LLVM is not made for several threads
        jit = _linker()
        if any(name.encode() in obj for name in CONVERSION_SYMBOLS):
            _link_conversions()
            return LoadedObject(_link(jit, obj, symbols, [_CONVERSIONS_LIBRARY]), symbols)
        return LoadedObject(_link(jit, obj, symbols, []), symbols)


def _link(
    jit: binding.LLJIT, obj: bytes, symbols: Sequence[str], libraries: Sequence[str], name: str = ""
) -> binding.ResourceTracker:
    builder = binding.JITLibraryBuilder().add_object_img(obj).add_current_process()
    for library in libraries:
        builder.add_jit_library(library)
    for symbol in symbols:
        builder.export_symbol(symbol)
    try:
        return builder.link(jit, name or f"tilewright.{next(_numbers)}")
    except RuntimeError as error:
        raise LlvmError(_explain(str(error), obj)) from None


@functools.cache
def _linker() -> binding.LLJIT:
    machine = target_machine(host_target())
    on_windows = os.name == "nt"
    return binding.create_lljit_compiler(machine, use_jit_link=not on_windows, suppress_errors=True)


@functools.cache
def _link_conversions() -> binding.ResourceTracker:
    """Float conversions that the code generator calls by name; kept for the process's life."""
    obj = compile_ir(conversions_ir(), host_target(), level=1).obj
    return _link(_linker(), obj, CONVERSION_SYMBOLS, [], _CONVERSIONS_LIBRARY)


def _explain(message: str, obj: bytes) -> str:
    """Add which symbol is missing: ORC says only which of the exports it could not provide."""
    if "Failed to materialize" not in message:
        return message
    names = [name.decode() for name in re.findall(rb"\0([A-Za-z_]\w*)(?=\0)", obj)]
    missing = [name for name in names if not _in_process(name) and name not in message]
    return f"{message}; perhaps undefined in this process: {', '.join(missing) or 'nothing'}"


def _in_process(name: str) -> bool:
    return os.name != "nt" and hasattr(ctypes.CDLL(None), name)
