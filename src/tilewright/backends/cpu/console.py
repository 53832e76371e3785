"""What running kernels tell their host: `device_print` lines and failed `device_assert`s.

Generated code calls through a table of two C function pointers, whose address it gets as its last
argument. The functions take the GIL; they are called only when something is printed or fails.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading

from tilewright.support import errors

_I32, _I64, _TEXT = ctypes.c_int32, ctypes.c_int64, ctypes.c_char_p
_CALL = ctypes.CFUNCTYPE(None, _TEXT, _I32, _I64, *[_I32] * 6)

_HEX = 8
PRINT_KINDS = ("bool", "int", "uint", "float", "pointer", "text")
"""What the bits of a printed element mean; generated code passes the position."""


class Console:
    """One table for all kernels of the process."""

    def __init__(self) -> None:
        self.failures: list[tuple[str, tuple[int, int, int]]] = []
        self._lock = threading.Lock()
        self._functions = (_CALL(self._fail), _CALL(self._print))
        addresses = [ctypes.cast(f, ctypes.c_void_p).value for f in self._functions]
        self._table = (ctypes.c_void_p * 2)(*addresses)
        self.address = ctypes.addressof(self._table)

    def _fail(
        self, text: bytes, kind: int, bits: int, i: int, j: int, k: int, x: int, y: int, z: int
    ) -> None:
        with self._lock:
            if not self.failures:
                self.failures.append((f"{text.decode()}{_index(i, j, k)}", (x, y, z)))

    def _print(
        self, text: bytes, kind: int, bits: int, i: int, j: int, k: int, x: int, y: int, z: int
    ) -> None:
        where = f"pid ({x}, {y}, {z}){_index(i, j, k)} {text.decode()}"
        shown = _show(PRINT_KINDS[kind % _HEX], bits, kind >= _HEX)
        with self._lock:
            sys.stdout.write(f"{where}{shown}\n")

    def check(self) -> None:
        """Raise the first failure since the last check."""
        with self._lock:
            if self.failures:
                detail, program = self.failures.pop(0)
                raise errors.DeviceAssertionFailure(detail, program)


def _index(*indices: int) -> str:
    known = [str(n) for n in indices if n >= 0]
    return f" idx ({', '.join(known)})" if known else " idx ()"


def _show(kind: str, bits: int, hexadecimal: bool) -> str:
    unsigned = bits & 0xFFFFFFFFFFFFFFFF
    match kind:
        case "text":
            return ""
        case "float" if not hexadecimal:
            return f"{struct.unpack('<d', struct.pack('<Q', unsigned))[0]:g}"
        case "int" if not hexadecimal:
            return str(bits)
        case "uint" | "bool" if not hexadecimal:
            return str(unsigned)
        case _:
            return f"0x{unsigned:x}"


_console: list[Console] = []


def console() -> Console:
    """The process's console, made when the first kernel is loaded."""
    if not _console:
        _console.append(Console())
    return _console[0]
