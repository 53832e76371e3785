"""NumPy dtypes of the elements of tile IR types, and of their arithmetic.

An i1 is a `bool_`, a pointer the `uint64` of its byte address. NumPy's own dtypes compute in
themselves; bf16, f16 and fp8 compute in float32 and are rounded back by `rounding`.

No library has Triton's f8e4b15. Its arrays are bytes without a type, so that NumPy refuses to
compute with them: `wide` and `rounding` decode and encode them.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tilewright.ir.types import ARRAY_NAMES, DType, PointerType, Type, element_of, f8e4b15

Array = npt.NDArray[Any]
"""Elements of a tile, or the 0-d array of a scalar."""

NumpyDType = np.dtype[Any]

E4B15: NumpyDType = np.dtype("V1")
"""Codes of f8e4b15."""

E4B15_MAGNITUDES: Array = np.arange(128).astype(np.uint8).view(ml_dtypes.float8_e4m3b11fnuz).astype(
    np.float32
) / np.float32(16)
"""The values of the positive codes of f8e4b15, whose bias is 15."""

_E4B15_NUMBERS = np.concatenate([E4B15_MAGNITUDES, -E4B15_MAGNITUDES])

NUMPY_DTYPES: dict[DType, NumpyDType] = {
    dtype: E4B15 if dtype is f8e4b15 else np.dtype(getattr(ml_dtypes, name, name))
    for dtype, name in ARRAY_NAMES.items()
}

ADDRESS: NumpyDType = np.dtype(np.uint64)
"""The dtype of an address, the content of a pointer."""

_UNSIGNED_BITS: dict[int, NumpyDType] = {
    8: np.dtype(np.uint8),
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
}

_FROM_NUMPY: dict[NumpyDType, DType] = {
    numpy: dtype for dtype, numpy in NUMPY_DTYPES.items() if numpy != E4B15
}


def numpy_dtype(type_: Type) -> NumpyDType:
    """The NumPy dtype of the elements of a scalar, pointer or tile type."""
    element = element_of(type_)
    return ADDRESS if isinstance(element, PointerType) else NUMPY_DTYPES[element]


def dtype_of_array(dtype: NumpyDType) -> DType | None:
    """The tile IR type of a NumPy dtype in native byte order; None if there is none."""
    # Other byte orders would be read as other numbers; bytes without a type are ambiguous.
    return _FROM_NUMPY.get(dtype) if dtype.isnative else None


def bits_dtype(bits: int) -> NumpyDType:
    """The unsigned integer of that many bits."""
    return _UNSIGNED_BITS[bits]


def bits_of(x: Array) -> Array:
    """The bits of an array as unsigned integers."""
    return x.view(_UNSIGNED_BITS[x.dtype.itemsize * 8])


def wide(x: Array) -> Array:
    """A float array in its compute dtype: float32 or float64."""
    if x.dtype == E4B15:
        return as_array(_E4B15_NUMBERS[x.view(np.uint8)])
    return x if x.dtype.itemsize >= 4 else x.astype(np.float32)


def as_array(x: object) -> Array:
    """The result of a ufunc (which is a NumPy scalar for 0-d operands) as an array."""
    return np.asarray(x)
