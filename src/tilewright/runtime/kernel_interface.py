"""The interface of kernels, and of wrappers around them, to launches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

from tilewright.runtime.arguments.mock_tensor import mocked


class KernelInterface:
    """Something that is launched by `kernel[grid](*args, **keywords)`, which calls `run`.

    A subclass defines `run` and inherits the rest. If it overrides the `run` of a class with a
    faster `__getitem__`, it is launched by its own `run`.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        own = vars(cls)
        if "run" in own and "__getitem__" not in own:
            type.__setattr__(cls, "__getitem__", KernelInterface.__getitem__)

    def __class_getitem__(cls, parameters: object) -> type[Self]:
        """The class itself, in annotations and bases such as `KernelInterface[T]`."""
        return cls

    def __getitem__(self, grid: object) -> Callable[..., Any]:
        """`kernel[grid]`, to be called with the arguments."""
        return partial(self.run, grid=grid, warmup=False)

    def run(self, *args: Any, grid: Any, warmup: bool, **keywords: Any) -> Any:
        """Launch over a grid; with `warmup`, only compile."""
        raise NotImplementedError("run not implemented")

    def warmup(self, *args: Any, grid: Any = None, **keywords: Any) -> Any:
        """Compile what a launch would run; dtypes stand for arrays."""
        return self.run(*map(mocked, args), grid=grid, warmup=True, **keywords)
