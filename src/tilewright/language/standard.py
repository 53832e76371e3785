"""Reductions, scans, dots, and helpers on sizes."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from tilewright.language.compile_time import constexpr, constexpr_function
from tilewright.language.core import Operand
from tilewright.language.dtypes import dtype, float32
from tilewright.language.stub_dispatch import ACTIVE, DeviceFunction, builtin, host_builtin
from tilewright.language.tensors import member, tensor

Axis = int | constexpr


@member
@host_builtin
def cdiv(x: Any, div: Any) -> Any:
    """x / div rounded up: `(x + div - 1) // div`; on the host, on constexprs and on tensors."""
    # First, and without a context variable, which `torch.compile` cannot trace. In the grid of each
    # launch: a general wrapper of arguments would take four times as long.
    if type(x) is int and type(div) is int:
        return (x + div - 1) // div
    dispatcher = ACTIVE.get()
    return (x + div - 1) // div if dispatcher is None else dispatcher.call(cdiv, (x, div), {})


ceil_div = cdiv
"""The name in the announcement of 2021."""


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not below `n`; 0 for n < 1. Host and compile time."""
    # bit_length(n - 1) bits are needed for the numbers below the result.
    return 0 if n < 1 else 1 << (n - 1).bit_length()


@constexpr_function
def _is_power_of_two(n: int) -> bool:  # pyright: ignore[reportUnusedFunction] -- imported by Inductor
    return n > 0 and n & (n - 1) == 0


@constexpr_function
def _log2(n: int) -> int:  # pyright: ignore[reportUnusedFunction] -- imported by Inductor
    return n.bit_length() - 1


@member
@builtin
def reduce(
    input: tensor | Sequence[tensor],
    axis: Axis | None,
    combine_fn: DeviceFunction,
    keep_dims: bool | constexpr = False,
) -> Any:
    """Fold `input` along `axis` (None: all) by `combine_fn`, an associative, commutative @jit
    function.

    With a tuple of n tiles of one shape `combine_fn` takes n left and n right scalars and returns
    n.
    The result has no such axis, or extent 1 there with keep_dims; a full reduction gives a scalar.
    A function that prints, asserts or accesses memory is called on tiles, once for each pair.
    """
    ...


@member
@builtin
def associative_scan(
    input: tensor | Sequence[tensor],
    axis: Axis,
    combine_fn: DeviceFunction,
    reverse: bool | constexpr = False,
) -> Any:
    """Inclusive prefix fold of `input` (a tile or a tuple) along `axis` by `combine_fn`."""
    ...


@member
@builtin
def sum(
    input: tensor,
    axis: Axis | None = None,
    keep_dims: bool | constexpr = False,
    dtype: dtype | None = None,
) -> tensor:
    """Sum along `axis` (None: all). Integers below 32 bits widen to int32, or uint32 if unsigned.

    16- and 8-bit floats are added in fp32 and rounded once. dtype: that of the operands, to which
    `input` is converted first.
    """
    ...


@member
@builtin
def max(
    input: tensor,
    axis: Axis | None = None,
    return_indices: bool | constexpr = False,
    return_indices_tie_break_left: bool | constexpr = True,
    keep_dims: bool | constexpr = False,
) -> Any:
    """Maximum along `axis` (None: all); NaNs are ignored.

    Integers below 32 bits widen to int32, floats below to fp32, unless return_indices requests the
    pair (value in the input's dtype, int32 index); among equals the leftmost index with
    tie_break_left.
    """
    ...


@member
@builtin
def min(
    input: tensor,
    axis: Axis | None = None,
    return_indices: bool | constexpr = False,
    return_indices_tie_break_left: bool | constexpr = True,
    keep_dims: bool | constexpr = False,
) -> Any:
    """Minimum along `axis`; otherwise as `max`."""
    ...


@member
@builtin
def argmax(
    input: tensor,
    axis: Axis | None,
    tie_break_left: bool | constexpr = True,
    keep_dims: bool | constexpr = False,
) -> tensor:
    """int32 index of the maximum along `axis`; None: in the flattened tile. NaNs are ignored."""
    ...


@member
@builtin
def argmin(
    input: tensor,
    axis: Axis | None,
    tie_break_left: bool | constexpr = True,
    keep_dims: bool | constexpr = False,
) -> tensor:
    """int32 index of the minimum along `axis`; None: in the flattened tile. NaNs are ignored."""
    ...


@member
@builtin
def xor_sum(input: tensor, axis: Axis | None = None, keep_dims: bool | constexpr = False) -> tensor:
    """Bitwise xor along `axis` of integers. Errors: InvalidOperation for floats."""
    ...


@member
@builtin
def reduce_or(input: tensor, axis: Axis | None, keep_dims: bool | constexpr = False) -> tensor:
    """Bitwise or along `axis` of integers. Errors: InvalidOperation for floats."""
    ...


@member
@builtin
def cumsum(
    input: tensor,
    axis: Axis = 0,
    reverse: bool | constexpr = False,
    dtype: dtype | None = None,
) -> tensor:
    """Inclusive prefix sum along `axis`, from the end if reversed; widens as `sum`."""
    ...


@member
@builtin
def cumprod(
    input: tensor,
    axis: Axis = 0,
    reverse: bool | constexpr = False,
    dtype: dtype | None = None,
) -> tensor:
    """Inclusive prefix product along `axis`, from the end if reversed; widens as `sum`."""
    ...


@member
@builtin
def sort(x: tensor, dim: Axis | None = None, descending: bool | constexpr = False) -> tensor:
    """The numbers of `x` in order along `dim` (default: the last).

    -0.0 comes before 0.0, a NaN after all numbers. The sort is not stable.
    """
    ...


@builtin
def topk(
    x: tensor,
    k: int | constexpr,
    dim: Axis | None = None,
    descending: bool | constexpr = True,
) -> tensor:
    """The `k` largest numbers of `x` along `dim` (default: the last), in descending order; or, with
    `descending` false, the `k` smallest, in ascending order.

    `k` is rounded down to a power of two, as in Triton. The order is that of `sort`.
    Errors: InvalidValue for k < 1, or beyond the extent.
    """
    ...


@builtin
def bitonic_merge(
    x: tensor, dim: Axis | None = None, descending: bool | constexpr = False
) -> tensor:
    """`sort` for a bitonic sequence along `dim`: one that rises, then falls, or the reverse."""
    ...


@member
@builtin
def histogram(input: tensor, num_bins: int | constexpr, mask: tensor | None = None) -> tensor:
    """int32 of shape (num_bins,): how many elements of `input` are 0, 1, ..., where `mask`.

    input: integers, rank 1; those outside of the bins are not counted.
    """
    ...


@member
@builtin
def softmax(
    x: tensor,
    dim: Axis | None = None,
    keep_dims: bool | constexpr = False,
    ieee_rounding: bool | constexpr = False,
) -> tensor:
    """exp(x - max) / sum along `dim` (default 0), in x's shape; fp32, or fp64 for fp64.

    keep_dims is accepted and changes nothing: the result always broadcasts back.
    """
    ...


@builtin
def dot(
    input: tensor,
    other: tensor,
    acc: tensor | None = None,
    input_precision: str | constexpr | None = None,
    allow_tf32: bool | constexpr | None = None,
    max_num_imprecise_acc: int | constexpr | None = None,
    out_dtype: dtype | None = None,
) -> tensor:
    """Matrix product (M, K) x (K, N), plus `acc`, for each index of the leading dimensions.

    Operands have one dtype out of int8, uint8, fp16, bf16, fp32, fp64, or are any two fp8 types.
    Result: int8 gives int32, or int8 that wraps if acc is int8; fp32 and bf16 fp32; fp64 fp64; fp16
    and fp8 out_dtype (fp32 or fp16), which the others ignore.
    input_precision: how fp32 operands may be rounded: "ieee", "tf32", "tf32x3", "bf16x3", "bf16x6";
    the default is the target's. allow_tf32 is the older spelling. max_num_imprecise_acc: longest
    run of fp8 products summed in less than fp32.
    Errors: ShapeMismatch, DTypeMismatch; InvalidOperation for other dtypes.
    """
    ...


@builtin
def dot_scaled(
    lhs: tensor,
    lhs_scale: tensor | None,
    lhs_format: str | constexpr,
    rhs: tensor,
    rhs_scale: tensor | None,
    rhs_format: str | constexpr,
    acc: tensor | None = None,
    fast_math: bool | constexpr = False,
    lhs_k_pack: bool | constexpr = True,
    rhs_k_pack: bool | constexpr = True,
    out_dtype: dtype = float32,
) -> tensor:
    """Matrix product (M, K) x (K, N) of operands with scales along K, plus `acc`; fp32.

    Formats: "e2m1", "e4m3", "e5m2" (as uint8, or fp8 tiles), "bf16", "fp16". e2m1 has two numbers a
    byte, the first in the low bits, along K, or along M or N without k_pack. Scales: (M, K / 32)
    and (N, K / 32) uint8, 2^(s - 127), 255 a NaN; or fp8e4nv for each 16; None for 1. The operands
    are multiplied by them exactly in bf16, or in tf32 if one is fp16. fast_math has no effect.
    Errors: InvalidValue, ShapeMismatch.
    """
    ...


@builtin
def swizzle2d(
    i: Operand, j: Operand, size_i: Operand, size_j: Operand, size_g: Operand
) -> builtins.tuple[Any, Any]:
    """Indices (i, j) of a size_i x size_j grid, renumbered in groups of size_g rows."""
    ...
