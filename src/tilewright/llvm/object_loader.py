"""Load object files into this process, and look up the addresses of their functions.

Objects may come from `compile_ir` or, compiled by another process, from a cache on disk. On Linux
for x86-64, objects without variables are linked by `elf_linker` in 0.1 ms, and take only the pages
of their code. All others are linked by one in-memory linker of LLVM (ORC) per process.

An object may use what it defines, symbols of this process (the C library: memcpy, memset, printf,
fmaf, ...), and the functions of `float_conversions`. Any other symbol raises LlvmError.
"""

import ctypes
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tilewright.llvm.code_pages import executable_pages
from tilewright.llvm.elf_linker import laid_out
from tilewright.support import fork_waits, import_late, operating_system

CONVERSION_SYMBOLS = (
    "__truncdfhf2",
    "__truncsfhf2",
    "__truncdfbf2",
    "__truncsfbf2",
    "__extendhfsf2",
)
"""The symbols that `float_conversions` defines."""


class LoadedObject:
    """Functions of an object file in memory; unloads them when it is collected or closed.

    A user of an address must keep this object alive. At interpreter exit nothing is unloaded, so
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

    Raises LlvmError if `obj` is damaged, lacks one of `symbols`, or needs an undefined
    symbol, which the message names. The process is unharmed then.
    """
    linked = _link_by_elf_linker(obj, symbols) if operating_system.IS_LINUX_X86_64 else None
    if linked is not None:
        return linked
    tracker = _orc_linker().linked(obj, symbols, _used_conversions(obj))
    return LoadedObject({name: tracker[name] for name in symbols}, tracker.close)


def _orc_linker() -> Any:
    # at the first use: it imports LLVM
    return import_late("tilewright.llvm.orc_linker")


def _used_conversions(obj: bytes) -> bool:
    """Whether an object may call float conversions: a search in its bytes; a false positive only
    links an unneeded library."""
    return any(name.encode() in obj for name in CONVERSION_SYMBOLS)


# --- by elf_linker --------------------------------------------------------------------------------


def _link_by_elf_linker(obj: bytes, symbols: Sequence[str]) -> LoadedObject | None:
    """The object linked by `elf_linker`; None if it is left to LLVM."""
    # `ExecutablePages` is not thread-safe
    with fork_waits():
        return _placed(obj, symbols)


def _placed(obj: bytes, symbols: Sequence[str]) -> LoadedObject | None:
    image = laid_out(obj, symbols, _lookup)
    if image is None:
        return None
    pages = executable_pages()
    address_range = pages.reserve(image.size)
    if address_range is None:
        return None
    data = image.at(address_range[0])
    # Too far from a symbol, or forbidden by the system: LLVM's linker may still succeed.
    if data is None or not pages.fill(address_range, data):
        pages.release(address_range)
        return None
    addresses = {name: address_range[0] + offset for name, offset in image.exports.items()}
    return LoadedObject(addresses, partial(pages.release, address_range))


@functools.cache
def _lookup(name: str) -> int | None:
    """The address of a float conversion, or of a function of this process."""
    if name in CONVERSION_SYMBOLS:
        return _orc_linker().conversions()[name]
    try:
        function = getattr(_process(), name)
    except AttributeError:
        return None
    return ctypes.cast(function, ctypes.c_void_p).value


@functools.cache
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None)
