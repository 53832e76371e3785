"""Compilation by an executor: inside an `AsyncCompileMode`, `warmup` only starts it.

    with ThreadPoolExecutor() as pool, tilewright.AsyncCompileMode(pool):
        for block in (32, 64, 128):
            kernel.warmup(tl.float32, n, BLOCK=block, grid=(1,))

At the end of the block every kernel that was started is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from contextvars import ContextVar
from typing import Any, Self

from tilewright import compiler
from tilewright.support import errors
from tilewright.support.asynchronous_exceptions import synchronous

active_mode: ContextVar[AsyncCompileMode | None] = ContextVar("tilewright_async", default=None)
"""The mode that this thread is in."""


class FutureKernel:
    """A kernel that is being compiled."""

    def __init__(
        self, finalize_compile: Callable[[Any], object] | None, future: Future[Any]
    ) -> None:
        self.finalize_compile = finalize_compile
        self.future = future
        self.kernel: Any = None

    def result(self, ignore_errors: bool = False) -> Any:
        """Wait for the kernel and return it; None for one with an error, if errors are ignored."""
        if self.kernel is None:
            try:
                kernel = self.future.result()
            except synchronous(Exception):
                if ignore_errors:
                    return None
                raise
            if self.finalize_compile is not None:
                self.finalize_compile(kernel)
            self.kernel = kernel
        return self.kernel


class AsyncCompileMode:
    """A block in which `warmup` compiles by an executor and returns FutureKernels.

    executor: threads, or any other, see `compile_many`; ignore_errors: at the end of the block,
    ignore those of kernels whose result was not requested.
    """

    def __init__(self, executor: Executor, *, ignore_errors: bool = False) -> None:
        self.executor = executor
        self.ignore_errors = ignore_errors
        self.future_kernels: dict[Hashable, FutureKernel] = {}

    @property
    def raw_futures(self) -> list[Future[Any]]:
        """The futures that the executor has returned."""
        return [kernel.future for kernel in self.future_kernels.values()]

    def submit(
        self,
        key: Hashable,
        compile_fn: Callable[[], Any],
        finalize_fn: Callable[[Any], object] | None = None,
    ) -> FutureKernel:
        """Start a compilation; an equal key returns the same kernel. finalize_fn(kernel) is called
        in the thread that first requests the result."""
        if key not in self.future_kernels:
            # with the context of this thread, which holds settings and recorders
            (future,) = compiler.start_compilations([compile_fn], self.executor)
            self.future_kernels[key] = FutureKernel(finalize_fn, future)
        return self.future_kernels[key]

    def __enter__(self) -> Self:
        """Activate the mode. Errors: InvalidOption inside another such block."""
        if active_mode.get() is not None:
            expected = "used outside of another one: a mode is active already"
            raise errors.InvalidOption("AsyncCompileMode", expected, "one inside another")
        active_mode.set(self)
        return self

    def __exit__(self, _kind: object, error: object, _traceback: object) -> None:
        """Wait for all kernels."""
        active_mode.set(None)
        for kernel in self.future_kernels.values():
            kernel.result(self.ignore_errors or error is not None)
