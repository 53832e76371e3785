"""LLVM's in-memory linker (ORC), for systems other than Linux on x86-64 and for objects that
`elf_linker` does not support."""

import ctypes
import functools
import itertools
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import cast

from llvmlite import binding

from tilewright.llvm.code_generation import LlvmError, compile_ir
from tilewright.llvm.code_targets import host_target
from tilewright.llvm.float_conversions import conversions_ir
from tilewright.llvm.llvm_lock import LLVM_LOCK
from tilewright.llvm.object_loader import CONVERSION_SYMBOLS
from tilewright.llvm.target_machines import machine_options, register_targets
from tilewright.support import hold_across_forks, operating_system
from tilewright.support.asynchronous_exceptions import synchronous

_CONVERSIONS_LIBRARY = "tilewright.conversions"
_numbers = itertools.count()

# llvmlite's own lock, which its wrappers take; private, and its version is pinned
hold_across_forks(cast("AbstractContextManager[object]", binding.ffi.lib._lock))


def linked(obj: bytes, symbols: Sequence[str], with_conversions: bool) -> binding.ResourceTracker:
    """The addresses of `symbols`. Errors: see `load_object`."""
    with LLVM_LOCK:  # the linker is not thread-safe
        libraries: list[str] = []
        if with_conversions:
            # Linked first: the library must exist when an object refers to it.
            conversions()
            libraries.append(_CONVERSIONS_LIBRARY)
        return _link(obj, symbols, libraries)


def _link(
    obj: bytes, symbols: Sequence[str], libraries: Sequence[str], name: str = ""
) -> binding.ResourceTracker:
    builder = binding.JITLibraryBuilder().add_object_img(obj).add_current_process()
    for library in libraries:
        builder.add_jit_library(library)
    for symbol in symbols:
        builder.export_symbol(symbol)
    try:
        return builder.link(_linker(), name or f"tilewright.{next(_numbers)}")
    except synchronous(RuntimeError) as error:
        raise LlvmError(_explain(str(error), obj)) from None


@functools.cache
def _linker() -> binding.LLJIT:
    register_targets()
    spec = host_target()
    machine = binding.Target.from_triple(spec.triple).create_target_machine(**machine_options(spec))
    linked = not operating_system.IS_WINDOWS
    return binding.create_lljit_compiler(machine, use_jit_link=linked, suppress_errors=True)


@functools.cache
def conversions() -> binding.ResourceTracker:
    """Float conversions that the code generator calls by name; kept until the process exits."""
    obj = compile_ir(conversions_ir(), host_target())
    return _link(obj, CONVERSION_SYMBOLS, [], _CONVERSIONS_LIBRARY)


def _explain(message: str, obj: bytes) -> str:
    """Add the missing symbol: ORC names only the exports that it could not provide."""
    if "Failed to materialize" not in message:
        return message
    # The names of a string table are separated by zero bytes.
    names = [name.decode() for name in re.findall(rb"\0([A-Za-z_]\w*)(?=\0)", obj)]
    missing = [name for name in names if not _in_process(name) and name not in message]
    return f"{message}; perhaps undefined in this process: {', '.join(missing) or 'nothing'}"


def _in_process(name: str) -> bool:
    return not operating_system.IS_WINDOWS and hasattr(ctypes.CDLL(None), name)
