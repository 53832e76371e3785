"""The lock around every call of LLVM.

A fork takes it too. Otherwise a child that was forked while another thread compiled would find
LLVM half way through that; so a fork waits until the call of LLVM that is under way has ended.
"""

from tilewright.support import ForkLock, hold_across_forks

__all__ = ["LLVM_LOCK"]

LLVM_LOCK = ForkLock()
"""Reentrant. Hold it around calls that a fork, or another thread, must not come between."""

hold_across_forks(LLVM_LOCK)
