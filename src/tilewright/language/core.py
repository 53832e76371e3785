"""Grid, creation, shape and casts: the stubs that most kernels begin with.

Notation of the docstrings: a *tile* has a static shape, a *scalar* has none; a *literal* is a
Python number or a constexpr and is weak: it takes the dtype of the other operand unless its kind
(bool < int < float) is higher. Tiles broadcast as NumPy arrays do.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from tilewright.language.compile_time import constexpr, unwrap
from tilewright.language.dtypes import dtype
from tilewright.language.stub_dispatch import builtin
from tilewright.language.tensors import member, tensor

Literal = constexpr | int | float | bool
"""A compile-time number."""
Operand = tensor | Literal
"""An operand of arithmetic."""
Shape = Sequence[int | constexpr] | constexpr
"""A shape; each extent is at least 1."""

TRITON_MAX_TENSOR_NUMEL = 1048576
"""Most elements that one tile may have (Triton's limit)."""

CONSTEXPR_0 = constexpr(0)
"""A default of parameters that are compile-time values, in kernels that follow Triton's own."""

_unwrap_if_constexpr = unwrap  # pyright: ignore[reportUnusedVariable] -- imported by third parties


@builtin
def program_id(axis: int | constexpr) -> tensor:
    """Index of this program instance along `axis` (0, 1 or 2) of the grid, as int32."""
    ...


@builtin
def num_programs(axis: int | constexpr) -> tensor:
    """Extent of the grid along `axis` (0, 1 or 2), as int32."""
    ...


@builtin
def arange(start: int | constexpr, end: int | constexpr | None = None) -> tensor:
    """The int32 tile `[start, start + 1, ..., end - 1]`; with one argument `[0, ..., start - 1]`.

    Both are compile-time integers. Errors: NotConstexpr; InvalidValue unless start < end.
    """
    ...


@builtin
def full(shape: Shape, value: Operand, dtype: dtype | None = None) -> tensor:
    """A tile of `shape` with `value` (a literal or scalar) in every element, converted to `dtype`.

    Without `dtype` the result has the value's: int32, or float32. An empty shape gives a scalar.
    """
    ...


@builtin
def zeros(shape: Shape, dtype: dtype) -> tensor:
    """A tile of `shape` filled with zero."""
    ...


@builtin
def zeros_like(input: tensor) -> tensor:
    """Zeros in the shape and dtype of `input`."""
    ...


@builtin
def to_tensor(x: Operand) -> tensor:
    """A literal as a scalar: int32 (else uint32, int64, uint64), float32 (else float64), int1."""
    ...


@member
@builtin
def to(
    input: Operand,
    dtype: dtype,
    fp_downcast_rounding: str | None = None,
    bitcast: bool | constexpr = False,
) -> tensor:
    """`cast` as a method."""
    ...


@member
@builtin
def cast(
    input: Operand,
    dtype: dtype,
    fp_downcast_rounding: str | None = None,
    bitcast: bool | constexpr = False,
) -> tensor:
    """`input` converted to `dtype`, element by element.

    Floats round to nearest even, or toward zero with fp_downcast_rounding="rtz" (float to narrower
    float only); float to integer truncates; to int1 is `!= 0`; integers wrap. `bitcast` keeps the
    bits and needs types of one width. Pointers convert to and from 64-bit integers and other
    pointers.
    Errors: InvalidOperation for a conversion that does not exist.
    """
    ...


@member
@builtin
def broadcast_to(input: Operand, *shape: Any) -> tensor:
    """`input` broadcast to `shape` (one sequence, or its items). Errors: ShapeMismatch."""
    ...


@builtin
def broadcast(input: Operand, other: Operand) -> builtins.tuple[tensor, tensor]:
    """Both operands in their common shape. Errors: ShapeMismatch."""
    ...


@member
@builtin
def expand_dims(input: Operand, axis: int | constexpr | Sequence[int]) -> tensor:
    """`input` with an extent of 1 at each `axis` of the result; `x[:, None]` does the same."""
    ...


@builtin
def unsqueeze(x: tensor, dim: int | constexpr) -> tensor:
    """`x` with an extent of 1 at dimension `dim`."""
    ...


@builtin
def squeeze(x: tensor, dim: int | constexpr) -> tensor:
    """`x` without its dimension `dim`, whose extent must be 1."""
    ...


@member
@builtin
def reshape(input: tensor, *shape: Any, can_reorder: bool | constexpr = False) -> tensor:
    """The elements of `input` in row-major order in another shape of equal size.

    `can_reorder` would allow any order; the order is always kept.
    """
    ...


@member
@builtin
def view(input: tensor, *shape: Any) -> tensor:
    """Older name of `reshape`."""
    ...


@member
@builtin
def ravel(x: tensor, can_reorder: bool | constexpr = False) -> tensor:
    """`x` as one dimension, in row-major order."""
    ...


@member
@builtin
def trans(input: tensor, *dims: Any) -> tensor:
    """The last two dimensions exchanged; with `dims`, as `permute`."""
    ...


@member
@builtin
def permute(input: tensor, *dims: Any) -> tensor:
    """Dimensions permuted: `result.shape[k] = input.shape[dims[k]]`."""
    ...


@builtin
def join(a: Operand, b: Operand) -> tensor:
    """`a` and `b`, broadcast to one shape, along a new last dimension of extent 2."""
    ...


@member
@builtin
def split(a: tensor) -> builtins.tuple[tensor, tensor]:
    """`(a[..., 0], a[..., 1])` of a tile whose last extent is 2; the inverse of `join`."""
    ...


@builtin
def interleave(a: Operand, b: Operand) -> tensor:
    """`[a[..., 0], b[..., 0], a[..., 1], b[..., 1], ...]` along the last dimension."""
    ...


@builtin
def cat(
    input: tensor, other: tensor, can_reorder: bool | constexpr = False, dim: int | constexpr = 0
) -> tensor:
    """`input` followed by `other` along `dim`; all other extents and the dtypes are equal."""
    ...


@member
@builtin
def flip(x: tensor, dim: int | constexpr | None = None) -> tensor:
    """`x` with dimension `dim` (default: the last) in reverse order."""
    ...


@member
@builtin
def gather(src: tensor, index: tensor, axis: int | constexpr) -> tensor:
    """`result[i, j] = src[index[i, j], j]` for axis 0, and so on; extents off the axis are equal.

    `index` is an integer tile of the rank of `src`, 0 <= index < extent.
    """
    ...


@member
@builtin
def item(input: tensor) -> tensor:
    """The only element of a tile, as a scalar."""
    ...


@builtin
def where(condition: Operand, x: Operand, y: Operand) -> tensor:
    """`x` where `condition` holds, else `y`; all three broadcast, `x` and `y` promote.

    A condition of another dtype than int1 is compared with zero. Both sides are evaluated.
    """
    ...


@builtin
def multiple_of(input: Operand, values: Any) -> Any:
    """`input`, with the promise that the first element of each run is divisible by `values`.

    One number for each dimension. A wrong promise gives wrong results.
    """
    ...


@builtin
def max_contiguous(input: Operand, values: Any) -> Any:
    """`input`, with the promise that each `values[d]` elements along d count up by one."""
    ...


@builtin
def max_constancy(input: Operand, values: Any) -> Any:
    """`input`, with the promise that each `values[d]` elements along d are equal."""
    ...


@builtin
def assume(cond: Operand) -> None:
    """Promise that the scalar `cond` holds; the compiler may optimize by it."""
    ...
