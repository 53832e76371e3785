"""Operands of a matmul: checks, and packing into rows that tensor cores load fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import tilewright.language as tl
from tilewright.kernels.arrays import Array, address, dtype_name, empty, strides
from tilewright.runtime import cdiv, jit
from tilewright.support import cached_property

COPY_BYTES = 16
"""Bytes of an asynchronous copy to shared memory, which must be aligned to them."""

FACT = 16
"""The divisor on which launches specialize integers."""

WORTH_PACKING = 2 * 768**3
"""Least operations of a matmul of 16 bits or more whose operands are worth packing."""

ACTIVATIONS = ("", "relu", "leaky_relu", "gelu_tanh", "silu")
"""gelu_tanh is 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); silu is x * sigmoid(x)."""


PLAIN = {
    "bias_ptr": None,
    "ACTIVATION": "",
    "PARTS": 1,
    "UNITS": None,
    "WIDE": False,
    "WRAP": False,
}
"""The constants of `matmul_kernel` besides blocks, for a matmul without an epilogue."""


@jit
def pack_kernel(
    source_ptr, target_ptr, rows_count, length, pitch, stride_row, stride_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Copy rows of `length` elements to rows at a pitch, padded by zeros."""
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None].to(tl.int64)
    columns = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    inside = (rows < rows_count) & (columns < length)
    source = source_ptr + rows * stride_row + columns.to(tl.int64) * stride_column
    values = tl.load(source, mask=inside, other=0)
    tl.store(
        target_ptr + rows * pitch + columns, values, mask=(rows < rows_count) & (columns < pitch)
    )


@dataclass(frozen=True)
class MatmulArrays:
    """The arrays of a launch; sizes are those of a (m, k) and c (m, n)."""

    a: Array
    b: Array
    c: Array
    bias: Array | None
    slope: float
    activation: str

    @cached_property
    def sizes(self) -> tuple[int, int, int]:
        """m, n and k."""
        return int(self.c.shape[0]), int(self.c.shape[1]), int(self.a.shape[1])

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """m, n and k, and all strides."""
        return (*self.sizes, *strides(self.a), *strides(self.b), *strides(self.c))

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of `matmul_kernel` without constants."""
        return (self.a, self.b, self.c, *self.numbers, self.slope)

    @property
    def constants(self) -> dict[str, Any]:
        """The constants of `matmul_kernel` without blocks."""
        return {
            **PLAIN, "bias_ptr": self.bias, "ACTIVATION": self.activation,
            "WIDE": is_wide(self.numbers),
        }  # fmt: skip

    @property
    def grid(self) -> Callable[[Mapping[str, int]], tuple[int, int]]:
        """One program per block and part of K."""
        return grid_of(*self.sizes[:2])


def grid_of(m: int, n: int) -> Callable[[Mapping[str, int]], tuple[int, int]]:
    """The grid for a result of (m, n) from the constants of a launch."""
    return lambda meta: (
        cdiv(m, meta["BLOCK_M"]) * cdiv(n, meta["BLOCK_N"]),
        meta.get("PARTS", 1),
    )


def checked_arrays(
    a: Array, b: Array, out: Array | None, bias: Array | None, activation: str, slope: float | None
) -> MatmulArrays:
    """The checked operands with their output."""
    if len(a.shape) != 2 or len(b.shape) != 2 or int(a.shape[1]) != int(b.shape[0]):
        raise ValueError(f"mismatched shapes: {tuple(a.shape)} and {tuple(b.shape)}")
    shape = int(a.shape[0]), int(b.shape[1])
    result = empty(a, shape, RESULTS.get(dtype_name(a))) if out is None else out
    check_epilogue(result, shape, bias, "leaky_relu" if slope is not None else activation)
    kind = "leaky_relu" if slope is not None else activation
    return MatmulArrays(a, b, result, bias, 0.01 if slope is None else slope, kind)


RESULTS = {
    "int8": "int32", "uint8": "int32", "float8_e4m3fn": "float32", "float8_e5m2": "float32",
}  # fmt: skip
"""Element types of results that differ from those of the operands."""


def check_epilogue(
    result: Array, shape: tuple[int, int], bias: Array | None, activation: str
) -> None:
    """Raise ValueError as `matmul` documents."""
    if tuple(result.shape) != shape:
        raise ValueError(f"out has the shape {tuple(result.shape)}, not {shape}")
    if bias is not None and tuple(bias.shape) != shape[1:]:
        raise ValueError(f"bias has the shape {tuple(bias.shape)}, not {shape[1:]}")
    if bias is not None and strides(bias) != (1,):
        raise ValueError("bias is not contiguous")
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"unknown activation {activation!r}: expected one of {', '.join(ACTIVATIONS[1:])}"
        )
    if "int" in dtype_name(result) and activation not in ("", "relu"):
        raise ValueError(f"{activation} of integers: give an out of floating-point numbers")


def is_wide(numbers: tuple[int, ...]) -> bool:
    """Whether an offset may exceed 31 bits; numbers: those of `MatmulArrays.numbers`."""
    m, n, _, row_of_a, _, _, column_of_b, row_of_c, column_of_c = numbers
    furthest = max(m * abs(row_of_a), n * abs(column_of_b), m * abs(row_of_c), n * abs(column_of_c))
    return furthest >= 1 << 31


def units_of(arrays: MatmulArrays) -> tuple[int, ...] | None:
    """The divisors of m, n, k and the strides, where copies of 16 bytes need them and launches do
    not specialize on them; None if nowhere."""
    unit = COPY_BYTES // int(arrays.a.itemsize)
    found = tuple(unit if v > 1 and v % FACT and not v % unit else 1 for v in arrays.numbers)
    return found if any(u > 1 for u in found) else None


def packed(arrays: MatmulArrays) -> MatmulArrays:
    """The same matmul with unaligned operands packed into aligned rows along K.

    MMAs of 8-bit elements need K-major operands; others support both, and only large matmuls are
    worth packing.
    """
    m, n, k = arrays.sizes
    narrow = int(arrays.a.itemsize) == 1
    if not narrow and 2 * m * n * k < WORTH_PACKING:
        return arrays
    a_fits, b_fits = fits(arrays.a, narrow), fits(arrays.b.T, narrow)
    if a_fits and b_fits:
        return arrays
    pads = bool(k * int(arrays.a.itemsize) % COPY_BYTES)  # then both are longer
    a = arrays.a if a_fits and not pads else _rows(arrays.a, pads)
    b = arrays.b if b_fits and not pads else _rows(arrays.b.T, pads).T
    return replace(arrays, a=a, b=b)


def is_aligned(arrays: MatmulArrays) -> bool:
    """Whether 16 bytes of both operands can be copied at once everywhere."""
    return fits(arrays.a) and fits(arrays.b.T)


def fits(x: Array, along_rows: bool = False) -> bool:
    """Whether rows, or columns unless rows are required, can be copied in units of 16 bytes."""
    return _is_fast(x, 1) or (not along_rows and _is_fast(x, 0))


def _is_fast(x: Array, along: int) -> bool:
    """Whether 16 bytes along an axis can be copied at once everywhere."""
    item, steps = int(x.itemsize), strides(x)
    return steps[along] == 1 and not any(
        byte % COPY_BYTES
        for byte in (address(x), int(x.shape[along]) * item, steps[1 - along] * item)
    )


def _rows(x: Array, pads: bool) -> Array:
    """A copy with contiguous rows, padded by zeros."""
    count, length = (int(e) for e in x.shape)
    pitch = cdiv(length, FACT) * FACT
    rows = empty(x, (count, pitch))
    block = {"BLOCK_M": 64, "BLOCK_N": 64}
    pack_kernel[cdiv(count, 64), cdiv(pitch, 64)](
        x, rows, count, length, pitch, *strides(x), **block
    )
    return rows if pads else rows[:, :length]
