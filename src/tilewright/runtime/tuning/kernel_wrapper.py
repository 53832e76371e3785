"""The base of `autotune` and `heuristics`: wrappers around a kernel."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import update_wrapper
from typing import Any, cast

from tilewright.language import PickledByName
from tilewright.runtime.jit import JITFunction
from tilewright.runtime.kernel_interface import KernelInterface
from tilewright.support import errors

Launchable = Any
"""A kernel or a wrapper around one: a `KernelInterface`, also of other packages."""


def kernel_under(fn: Launchable) -> JITFunction:
    """The innermost kernel: `fn`, or its attribute `fn`, and so on."""
    while not isinstance(fn, JITFunction):
        fn = fn.fn
    return fn


class KernelWrapper(PickledByName, KernelInterface):
    """A wrapper that launches as the kernel, or wrapper, `fn` does.

    base_fn: the innermost kernel; arg_names: its parameters.
    """

    __name__: str
    decorator = "the decorator"
    """Name of the decorator, for messages."""

    def __init__(self, fn: Launchable, arg_names: Sequence[str]) -> None:
        check_kernel(type(self).decorator, fn)
        self.fn = fn
        self.base_fn = kernel_under(fn)
        self.arg_names = list(arg_names)
        update_wrapper(cast("Callable[..., Any]", self), self.base_fn.fn)

    def launch_values(self, *args: object, grid: object, **keywords: object) -> Hashable:
        """The values of a launch; see `JITFunction.launch_values`."""
        raise NotImplementedError

    def named_arguments(
        self, args: tuple[object, ...], keywords: Mapping[str, object]
    ) -> dict[str, Any]:
        """Arguments and keywords by name; defaults are not filled in."""
        return {**dict(zip(self.arg_names, args, strict=False)), **keywords}


def check_kernel(decorator: str, fn: object) -> None:
    """Raise NotAKernel for a decorated object that cannot be launched."""
    if not isinstance(fn, KernelInterface):
        instead = "put @jit below it, right above the function"
        raise errors.NotAKernel(
            decorator, "a kernel", errors.with_article(type(fn).__name__), instead
        )
