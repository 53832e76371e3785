"""What `autotune` and `heuristics` have in common: they stand in front of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial, update_wrapper
from typing import Any, cast

from tilewright.language import PickledByName
from tilewright.runtime.jit import JITFunction
from tilewright.support import errors


class KernelWrapper(PickledByName):
    """Behaves as the kernel, or the wrapper, `fn` to those who launch it.

    base_fn: the innermost kernel; arg_names: its parameters.
    """

    __name__: str
    decorator = "the decorator"
    """What makes these, for messages."""

    def __init__(self, fn: JITFunction | KernelWrapper) -> None:
        if not isinstance(cast("object", fn), JITFunction | KernelWrapper):
            name, found = type(self).decorator, f"a {type(fn).__name__}"
            instead = "put @jit below it, right above the function"
            raise errors.NotAKernel(name, "a kernel", found, instead)
        self.fn = fn
        self.base_fn: JITFunction = fn.base_fn if isinstance(fn, KernelWrapper) else fn
        self.arg_names = self.base_fn.arg_names
        update_wrapper(cast("Callable[..., Any]", self), self.base_fn.fn)

    def __getitem__(self, grid: object) -> Callable[..., Any]:
        """`kernel[grid]`, to be called with the arguments."""
        return partial(self.run, grid=grid)

    def run(self, *args: object, grid: object, **keywords: object) -> Any:
        """Launch."""
        raise NotImplementedError

    def warmup(self, *args: object, grid: object = None, **keywords: object) -> Any:
        """Compile what a launch would run."""
        raise NotImplementedError

    def launch_values(self, *args: object, grid: object, **keywords: object) -> Hashable:
        """As `JITFunction.launch_values`."""
        raise NotImplementedError

    def named_arguments(
        self, args: tuple[object, ...], keywords: Mapping[str, object]
    ) -> dict[str, Any]:
        """Arguments and keywords by name; defaults are not filled in."""
        return {**dict(zip(self.arg_names, args, strict=False)), **keywords}
