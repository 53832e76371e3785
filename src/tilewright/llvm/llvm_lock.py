"""llvmlite's lock: it has one for all of LLVM, and every call of LLVM takes it.

A fork takes it too. Otherwise a child that was forked while another thread compiled would wait for
it for ever; so a fork waits until the call of LLVM that is under way has ended.
"""

from contextlib import AbstractContextManager
from typing import cast

from llvmlite import binding

from tilewright.support import hold_across_forks

__all__ = ["LLVM_LOCK"]

LLVM_LOCK = cast("AbstractContextManager[object]", binding.ffi.lib._lock)
"""Reentrant. Hold it around calls that a fork, or another thread, must not come between. Private to
llvmlite, whose version is pinned; that it is the right one is shown by
tests/unit/llvm/test_llvm_lock.py."""

hold_across_forks(LLVM_LOCK)
