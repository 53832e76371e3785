"""What running kernels tell their host: `device_print` lines and failed `device_assert`s.

Generated code calls through a table of two C function pointers, whose address it gets as its last
argument. The functions take the GIL; they are called only when something is printed or fails.
"""

from __future__ import annotations

import ctypes
import json
import math
import struct
import sys
import threading

from tilewright.support import SourceLoc, errors

_I32, _I64, _TEXT = ctypes.c_int32, ctypes.c_int64, ctypes.c_char_p
_CALL = ctypes.CFUNCTYPE(None, _TEXT, _I32, _I64, *[_I32] * 6)

_HEX = 8
PRINT_KINDS = ("bool", "int", "uint", "float", "pointer", "text", "double")
"""What the bits of a printed element mean; generated code passes the position."""


class Console:
    """One table for all kernels of the process."""

    def __init__(self) -> None:
        self.failures: list[errors.DeviceAssertionFailure] = []
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
                message, loc = _unpacked(text.decode())
                where = "" if i < 0 else f", at{_index(i, j, k).removeprefix(' idx')}"
                failure = errors.DeviceAssertionFailure(f"{message}{where}", (x, y, z))
                self.failures.append(failure.with_loc(loc))

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
                raise self.failures.pop(0)


def packed(message: str, loc: SourceLoc | None) -> str:
    """A message and the place that it is about, as one text."""
    frames = [] if loc is None else [frame[:-1] for frame in loc.frames()]
    return json.dumps([message, frames])


def _unpacked(text: str) -> tuple[str, SourceLoc | None]:
    message, frames = json.loads(text)
    loc: SourceLoc | None = None
    for frame in reversed(frames):
        loc = SourceLoc._make([*frame, loc])
    return message, loc


def _index(*indices: int) -> str:
    known = [str(n) for n in indices if n >= 0]
    return f" idx ({', '.join(known)})" if known else " idx ()"


def _show(kind: str, bits: int, hexadecimal: bool) -> str:
    unsigned = bits & 0xFFFFFFFFFFFFFFFF
    match kind:
        case "text":
            return ""
        case "float" | "double" if not hexadecimal:
            (number,) = struct.unpack("<d", struct.pack("<Q", unsigned))
            return repr(number if kind == "double" else _shortest(number))
        case "int" if not hexadecimal:
            return str(bits)
        case "uint" if not hexadecimal:
            return str(unsigned)
        case "bool" if not hexadecimal:
            return str(bool(unsigned))
        case _:
            return f"0x{unsigned:x}"


def _shortest(number: float) -> float:
    """The number of fewest digits that is the same in fp32."""
    if not math.isfinite(number):
        return number
    single = struct.Struct("<f").pack
    rounded = (float(f"{number:.{digits}g}") for digits in range(1, 9))
    found = (r for r in rounded if abs(r) < 3.4e38 and single(r) == single(number))
    return next(found, number)


_console: list[Console] = []


def console() -> Console:
    """The process's console, made when the first kernel is loaded."""
    if not _console:
        _console.append(Console())
    return _console[0]
