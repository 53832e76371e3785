"""Loads object files into this process and gives the addresses of their functions.

Objects may come from `compile_ir` or, compiled by another process, from a cache on disk. On Linux
for x86-64, objects without variables are linked here (`elf_linker`): 0.1 ms, and the pages that
the code takes. All others go to one in-memory linker of LLVM (ORC), which serves the process.

An object may use what it defines, symbols of this process (the C library: memcpy, memset, printf,
fmaf, ...), and the functions of `float_conversions`. Any other symbol raises LlvmError.
"""

import ctypes
import functools
import itertools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from llvmlite import binding

from tilewright.llvm.code_generation import LlvmError, compile_ir
from tilewright.llvm.code_pages import executable_pages
from tilewright.llvm.code_targets import host_target, target_machine
from tilewright.llvm.elf_linker import laid_out
from tilewright.llvm.float_conversions import CONVERSION_SYMBOLS, conversions_ir
from tilewright.llvm.llvm_lock import LLVM_LOCK
from tilewright.support import operating_system

__all__ = ["LoadedObject", "load_object"]

_CONVERSIONS_LIBRARY = "tilewright.conversions"
_LINKS_HERE = operating_system.IS_LINUX and binding.get_process_triple().startswith("x86_64-")
_numbers = itertools.count()


class LoadedObject:
    """Functions of an object file in memory; unloads them when it is collected or closed.

    Whoever keeps an address keeps this object too. At interpreter exit nothing is unloaded, so
    threads may still run such code.
    """

    __slots__ = ("__weakref__", "_unload", "addresses")

    def __init__(self, addresses: Mapping[str, int], unload: Callable[[], object]) -> None:
        self.addresses = addresses
        self._unload: Callable[[], object] | None = unload

    # Bound here: at exit this module's globals may have been set to None already.
    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if self._unload is not None and not is_finalizing():
            self._unload()

    def __getitem__(self, symbol: str) -> int:
        """The address of one of the symbols given to `load_object`."""
        return self.addresses[symbol]

    def close(self) -> None:
        """Unload the code now; its addresses are invalid from here on."""
        self.addresses = dict[str, int]()
        if self._unload is not None:
            self._unload()
        self._unload = None


def load_object(obj: bytes, symbols: Sequence[str]) -> LoadedObject:
    """Link the object file `obj` into this process and look up `symbols`.

    Raises LlvmError if `obj` is damaged, lacks one of `symbols`, or needs a symbol that nobody
    defines; the message names it. The process is unharmed then.
    """
    with LLVM_LOCK:  # neither LLVM's linker nor `ExecutablePages` is thread-safe
        linked = _linked_here(obj, symbols) if _LINKS_HERE else None
        if linked is not None:
            return linked
        libraries: list[str] = []
        # A search in the bytes needs no parser; a false hit only links one library too many.
        if any(name.encode() in obj for name in CONVERSION_SYMBOLS):
            # Linked first: the library must exist when an object refers to it.
            _conversions()
            libraries.append(_CONVERSIONS_LIBRARY)
        tracker = _link(_linker(), obj, symbols, libraries)
        return LoadedObject({name: tracker[name] for name in symbols}, tracker.close)


# --- here -----------------------------------------------------------------------------------------


def _linked_here(obj: bytes, symbols: Sequence[str]) -> LoadedObject | None:
    """The object linked by `elf_linker`; None if it has to be left to LLVM."""
    image = laid_out(obj, symbols, _lookup)
    if image is None:
        return None
    pages = executable_pages()
    address_range = pages.reserve(image.size)
    if address_range is None:
        return None
    data = image.at(address_range[0])
    # Too far from a symbol, or forbidden by the system: LLVM's linker may still manage.
    if data is None or not pages.fill(address_range, data):
        pages.release(address_range)
        return None
    addresses = {name: address_range[0] + offset for name, offset in image.exports.items()}
    return LoadedObject(addresses, partial(pages.release, address_range))


@functools.cache
def _lookup(name: str) -> int | None:
    """The address of a float conversion, or of a function of this process."""
    if name in CONVERSION_SYMBOLS:
        return _conversions()[name]
    try:
        function = getattr(_process(), name)
    except AttributeError:
        return None
    return ctypes.cast(function, ctypes.c_void_p).value


@functools.cache
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None)


# --- by LLVM --------------------------------------------------------------------------------------


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
    linked = not operating_system.IS_WINDOWS
    return binding.create_lljit_compiler(machine, use_jit_link=linked, suppress_errors=True)


@functools.cache
def _conversions() -> binding.ResourceTracker:
    """Float conversions that the code generator calls by name; kept for the process's life."""
    obj = compile_ir(conversions_ir(), host_target(), level=1).obj
    return _link(_linker(), obj, CONVERSION_SYMBOLS, [], _CONVERSIONS_LIBRARY)


def _explain(message: str, obj: bytes) -> str:
    """Add which symbol is missing: ORC names only the exports that it could not provide."""
    if "Failed to materialize" not in message:
        return message
    # The names of a string table stand between zero bytes.
    names = [name.decode() for name in re.findall(rb"\0([A-Za-z_]\w*)(?=\0)", obj)]
    missing = [name for name in names if not _in_process(name) and name not in message]
    return f"{message}; perhaps undefined in this process: {', '.join(missing) or 'nothing'}"


def _in_process(name: str) -> bool:
    return not operating_system.IS_WINDOWS and hasattr(_process(), name)
