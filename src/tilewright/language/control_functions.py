"""Loops with hints, and prints and assertions at compile time and at run time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.language.compile_time import base_value, constexpr, unwrap
from tilewright.language.core import Operand
from tilewright.language.stub_dispatch import builtin, dispatch_operator
from tilewright.language.tensors import tensor
from tilewright.support import errors

Count = int | constexpr | None


class range(base_value):
    """`for i in tl.range(...)`: a loop of the kernel, with hints that change speed only.

    arg1, arg2, step: as Python's range, scalars or literals. num_stages: iterations in flight, at
    most: no more than memory holds, nor than stores, atomics and barriers of the loop allow;
    loop_unroll_factor: copies of the body; flatten: fuse with the loop inside; warp_specialize,
    disallow_acc_multi_buffer, disable_licm: as Triton.
    """

    def __init__(
        self,
        arg1: Operand,
        arg2: Operand | None = None,
        step: Operand | None = None,
        num_stages: Count = None,
        loop_unroll_factor: Count = None,
        disallow_acc_multi_buffer: bool | constexpr = False,
        flatten: bool | constexpr = False,
        warp_specialize: bool | constexpr = False,
        disable_licm: bool | constexpr = False,
    ) -> None:
        self.start: Operand = 0 if arg2 is None else arg1
        self.end: Operand = arg1 if arg2 is None else arg2
        self.step: Operand = 1 if step is None else step
        self.num_stages: int | None = unwrap(num_stages)
        self.loop_unroll_factor: int | None = unwrap(loop_unroll_factor)
        self.disallow_acc_multi_buffer = bool(unwrap(disallow_acc_multi_buffer))
        self.flatten = bool(unwrap(flatten))
        self.warp_specialize = bool(unwrap(warp_specialize))
        self.disable_licm = bool(unwrap(disable_licm))

    def __iter__(self) -> Iterator[tensor]:
        """While interpreting: the int scalars one by one."""
        return dispatch_operator("range", self)


class condition(base_value):
    """`while tl.condition(c, disable_licm=True)`: the condition of a loop, with a hint for speed.

    arg1: an int1 scalar; disable_licm: as in Triton, where it keeps loop-invariant code in the
    loop; here it has no effect.
    """

    def __init__(self, arg1: Any, disable_licm: bool | constexpr = False) -> None:
        self.condition: Any = arg1
        self.disable_licm = bool(unwrap(disable_licm))

    def __bool__(self) -> bool:
        """While interpreting."""
        return bool(self.condition)


class static_range(base_value):
    """`for i in tl.static_range(...)`: unrolled while compiling; `i` is a constexpr."""

    def __init__(
        self, arg1: int | constexpr, arg2: int | constexpr | None = None, step: Any = None
    ) -> None:
        bounds = [0, arg1] if arg2 is None else [arg1, arg2]
        # `step or 1`: only whether it is a tensor matters here; 0 is refused below.
        for name, value in zip(("start", "end", "step"), [*bounds, step or 1], strict=True):
            if isinstance(value, tensor):
                raise errors.NotConstexpr(f"'{name}' of static_range", value.type)
        self.start, self.end = int(bounds[0]), int(bounds[1])
        self.step = 1 if step is None else int(step)
        if not self.step:
            raise errors.InvalidValue("range", "step", "a number other than 0", 0)

    def __iter__(self) -> Iterator[constexpr]:
        value = self.start
        # Not Python's range: each index has to be a constexpr.
        while value < self.end if self.step > 0 else value > self.end:
            yield constexpr(value)
            value += self.step


@builtin
def static_print(
    *values: Any,
    sep: str | constexpr = " ",
    end: str | constexpr = "\n",
    file: Any = None,
    flush: bool | constexpr = False,
) -> None:
    """Print while compiling; a tensor shows as its type."""
    ...


@builtin
def static_assert(cond: Any, msg: Any = "") -> None:
    """Check a compile-time condition. Errors: CompileTimeAssertionFailure, which skips an autotuned
    configuration."""
    ...


@builtin
def device_print(prefix: str | constexpr, *args: Operand, hex: bool | constexpr = False) -> None:
    """Print the prefix and tensors at run time, each element with its index. Prefix: ASCII."""
    ...


@builtin
def expect_zero(x: Operand, mask: Operand) -> tensor:
    """`x`, which is 0 wherever `mask` holds: asserted in debug mode."""
    ...


@builtin
def device_assert(cond: Operand, msg: str | constexpr = "", mask: Operand | None = None) -> None:
    """In debug mode: stop the launch with `msg` unless `cond` holds wherever `mask` does."""
    ...
