"""The lock around every call of LLVM.

A fork acquires it as well: it waits for the current call of LLVM to return, so that a child never
finds LLVM in the middle of another thread's compilation.
"""

from tilewright.support import ForkLock, hold_across_forks

LLVM_LOCK = ForkLock()
"""Reentrant. Hold it around calls that a fork or another thread must not interrupt."""

hold_across_forks(LLVM_LOCK)
