"""The oracle: runs tile IR with NumPy, independent of every transformation and back end."""

from tilewright.interp import (
    numpy_rules_dot,
    numpy_rules_math,
    numpy_rules_shape,
)
from tilewright.interp.dtypes import (
    ADDRESS,
    NUMPY_DTYPES,
    Array,
    dtype_of_array,
    numpy_dtype,
)
from tilewright.interp.numpy_rules import evaluate
from tilewright.interp.rounding import convert, round_float

__all__ = [
    "ADDRESS",
    "NUMPY_DTYPES",
    "Array",
    "convert",
    "dtype_of_array",
    "evaluate",
    "numpy_dtype",
    "numpy_rules_dot",
    "numpy_rules_math",
    "numpy_rules_shape",
    "round_float",
]
