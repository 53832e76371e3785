"""The NumPy interpreter of tile IR, for `tilewright run` and goldens, not for `interpret=True`.

It is the reference of the project, so it is independent of every transformation and back end.
Package `eager`, which executes `interpret=True`, uses its memory and the NumPy rule of each op. A
kernel in Triton-C is not Python, so its `interpret=True` does run its tile IR here.
"""

from tilewright.interp import (
    access_errors,
    descriptor_rules,
    numpy_rules_dot,
    numpy_rules_math,
    numpy_rules_shape,
    numpy_rules_sorting,
)
from tilewright.interp.access_checks import AccessChecks
from tilewright.interp.access_errors import BOUND, CONDITION
from tilewright.interp.concrete_value import ConcreteValue
from tilewright.interp.foreign_memory import mapped_range, mapped_ranges
from tilewright.interp.grid_execution import array_value, program_id, run_function, scalar_value
from tilewright.interp.interpreter import Interpreter, program_ids
from tilewright.interp.kernel_memory import Memory, bytes_at
from tilewright.interp.numpy_dtypes import NUMPY_DTYPES, Array, dtype_of_array, numpy_dtype
from tilewright.interp.numpy_rules import evaluate
from tilewright.interp.program_state import (
    MACHINE_RULES,
    Machine,
    write_to_stdout,
)
from tilewright.interp.rounding import convert, round_float

__all__ = [
    "BOUND",
    "CONDITION",
    "MACHINE_RULES",
    "NUMPY_DTYPES",
    "Array",
    "ConcreteValue",
    "Interpreter",
    "AccessChecks",
    "access_errors",
    "mapped_range",
    "mapped_ranges",
    "Machine",
    "Memory",
    "array_value",
    "bytes_at",
    "convert",
    "descriptor_rules",
    "dtype_of_array",
    "evaluate",
    "numpy_dtype",
    "numpy_rules_dot",
    "numpy_rules_math",
    "numpy_rules_shape",
    "numpy_rules_sorting",
    "program_id",
    "program_ids",
    "round_float",
    "run_function",
    "scalar_value",
    "write_to_stdout",
]
