"""Runs what the CPU backend compiles for another machine: under Linux, by QEMU's user mode.

A kernel is linked with a runner into a program without a C library (`program.py`), which gets the
arrays over a pipe and gives them back (`device.py`). Code for this machine's own processor runs the
same way without QEMU, which tests all of it but the other processor.
"""

from tests.qemu.device import ForeignCpu
from tests.qemu.program import MACHINES, missing

__all__ = ["MACHINES", "ForeignCpu", "missing"]
