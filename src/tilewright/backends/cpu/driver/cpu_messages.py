"""Messages of running kernels to their host: `device_print` lines and failed `device_assert`s.

Generated code calls through a table of two C function pointers, whose address is its last argument.
The functions take the GIL; they are called only for a print or a failure.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

from tilewright.backends.device_messages import index_text, unpacked
from tilewright.support import ForkLock, errors
from tilewright.support.printed_lines import PRINT_KINDS, printed_line

_I32, _I64, _TEXT = ctypes.c_int32, ctypes.c_int64, ctypes.c_char_p
# (text, kind, bits, three indices, three program ids), as generated code calls both.
_CALL = ctypes.CFUNCTYPE(None, _TEXT, _I32, _I64, *[_I32] * 6)

# `lower_print` (lower/non_fusible.py) adds it to the kind of a value printed in hexadecimal.
_HEX = 8


class Console:
    """One table for all kernels of the process."""

    def __init__(self) -> None:
        self.failures: list[BaseException] = []
        """Failed assertions, and exceptions that Python raised in a call from a kernel."""
        self._lock = ForkLock()
        # Kept alive, since ctypes frees the C function with its object; the order is that of the
        # indices in `_call_console` (lower/non_fusible.py).
        self._functions = (_CALL(self._keeping(self._fail)), _CALL(self._keeping(self._print)))
        addresses = [ctypes.cast(f, ctypes.c_void_p).value for f in self._functions]
        self._table = (ctypes.c_void_p * 2)(*addresses)
        self.address = ctypes.addressof(self._table)

    def _keeping(self, function: Callable[..., None]) -> Callable[..., None]:
        """The function with its exceptions kept for `check`: ctypes would print and ignore them."""

        def call(*values: Any) -> None:
            try:
                function(*values)
            except BaseException as problem:  # also those of signal handlers
                with self._lock:
                    self._keep(problem)

        return call

    def _keep(self, problem: BaseException) -> None:
        # further exceptions of the same launch add nothing
        if not self.failures:
            self.failures.append(problem)

    def _fail(
        self, text: bytes, kind: int, bits: int, i: int, j: int, k: int, x: int, y: int, z: int
    ) -> None:
        with self._lock:
            message, loc = unpacked(text.decode())
            where = "" if i < 0 else f", at {index_text(i, j, k)}"
            failure = errors.DeviceAssertionFailure(f"{message}{where}", (x, y, z))
            self._keep(failure.with_loc(loc))

    def _print(
        self, text: bytes, kind: int, bits: int, i: int, j: int, k: int, x: int, y: int, z: int
    ) -> None:
        what = PRINT_KINDS[kind % _HEX]
        line = printed_line(text.decode(), what, kind >= _HEX, bits, (i, j, k), (x, y, z))
        with self._lock:
            # Looked up for each line, since Python code may redirect it.
            sys.stdout.write(line)

    def check(self) -> None:
        """Raise the first failure since the last check."""
        with self._lock:
            if self.failures:
                raise self.failures.pop(0)


_console: list[Console] = []


def console() -> Console:
    """The process's console, made when the first kernel is loaded."""
    if not _console:
        _console.append(Console())
    return _console[0]
