"""Samples of program counters of all threads, by a native handler of SIGPROF (`sampler.c`)."""

from __future__ import annotations

import ctypes
import platform
import signal
from collections import Counter
from pathlib import Path
from typing import ClassVar

from tilewright.llvm import LoadedObject
from tilewright.native import NativeProgram, constant
from tilewright.support import operating_system

_CAPACITY = 1 << 20
"""Samples of a buffer of 8 MB: a quarter of an hour of one CPU."""
_COUNTERS = {"x86_64": 168, "aarch64": 440}
"""Offset of the program counter in Linux's ucontext_t: <sys/ucontext.h> of glibc and musl."""


class SampleBuffer(ctypes.Structure):
    """A buffer of samples. count: of all, also of those without room"""

    _fields_ = (
        ("count", ctypes.c_uint64),
        ("capacity", ctypes.c_uint64),
        ("counters", ctypes.c_void_p),  # of 64 bits each
    )


SAMPLER = NativeProgram(
    source=Path(__file__).with_name("sampler.c"),
    exports=["tw_start_samples", "tw_stop_samples"],
    structures=[SampleBuffer],
    definitions={
        "counter_at": constant("counter_at", _COUNTERS.get(platform.machine(), 0)),
        # SA_SIGINFO, SA_RESTART, SA_ONSTACK; sa_flags follows the handler and a sigset_t
        "sigaction_flags": constant("sigaction_flags", 0x04 | 0x10000000 | 0x08000000, 32),
        "sigaction_flags_at": constant("sigaction_flags_at", 136),
        "sigprof": constant("sigprof", int(getattr(signal, "SIGPROF", 27)), 32),
    },
)


class Sampler:
    """Takes samples of the program counter while it is entered as a context.

    hertz: samples of a second of CPU time, at most the system's ticks; counters: how often each
    address was found, afterwards; lost: samples without room in the buffer
    """

    _code: ClassVar[list[LoadedObject]] = []
    _buffers: ClassVar[list[object]] = []

    @staticmethod
    def is_available() -> bool:
        """Whether this system is one whose handlers see the program counter: Linux."""
        return operating_system.IS_LINUX and platform.machine() in _COUNTERS

    def __init__(self, hertz: int = 1000) -> None:
        self._interval = 1 / hertz
        self._memory = (ctypes.c_uint64 * _CAPACITY)()
        self._buffer = SampleBuffer(0, _CAPACITY, ctypes.addressof(self._memory))
        self.counters: Counter[int] = Counter()
        self.lost = 0

    def __enter__(self) -> Sampler:
        code = SAMPLER.load()
        # never unloaded or freed: a handler may be running until the process ends
        self._code.append(code)
        self._buffers.extend((self._buffer, self._memory))
        start = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(code["tw_start_samples"])
        if start(ctypes.addressof(self._buffer)):
            raise OSError("cannot install a handler of SIGPROF")
        signal.setitimer(signal.ITIMER_PROF, self._interval, self._interval)
        return self

    def __exit__(self, *_error: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        ctypes.CFUNCTYPE(None)(self._code[-1]["tw_stop_samples"])()
        taken = min(self._buffer.count, _CAPACITY)
        self.counters = Counter(self._memory[:taken])
        self.lost = self._buffer.count - taken
