"""Kernels of the suite on each machine, some of every kind.

    KERNEL_TEST_DEVICES="aarch64 aarch64-sve256" pytest tests/kernels      # all of them

The tests are those of `tests/kernels`, where the same ones run on the interpreter.
"""

from tests.kernels.test_atomics import test_lanes_and_programs_that_meet
from tests.kernels.test_casts import test_every_byte_becomes_a_float
from tests.kernels.test_dot import test_extremes_of_int8, test_fused_epilogue
from tests.kernels.test_elementwise import test_float_remainder
from tests.kernels.test_ready_made import (
    test_add,
    test_dropout,
    test_layer_norm,
    test_matmul,
    test_softmax,
)
from tests.kernels.test_reductions import test_extrema_pass_over_signaling_nans
from tests.kernels.test_scans import test_cumprod, test_stream_compaction

__all__ = [
    "test_add",
    "test_cumprod",
    "test_dropout",
    "test_every_byte_becomes_a_float",
    "test_extrema_pass_over_signaling_nans",
    "test_extremes_of_int8",
    "test_float_remainder",
    "test_fused_epilogue",
    "test_lanes_and_programs_that_meet",
    "test_layer_norm",
    "test_matmul",
    "test_softmax",
    "test_stream_compaction",
]
