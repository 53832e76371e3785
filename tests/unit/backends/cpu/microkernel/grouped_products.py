"""Products of bf16 and bytes by a micro-kernel, compared with float64."""

import ctypes

import ml_dtypes
import numpy as np

from tilewright.backends.cpu.microkernel import DotSpec
from tilewright.llvm import compile_ir, host_target, load_object

KINDS = {
    "bfloat": (ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32),
    "i8": (np.int8, np.int8, np.int32),
    "u8": (np.uint8, np.int8, np.int32),
}


def aligned(array: np.ndarray) -> np.ndarray:
    memory = np.zeros(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    placed = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    placed[:] = array
    return placed


def operand(rows: int, columns: int, stride: int, dtype: type, seed: int) -> np.ndarray:
    """Random numbers, the extremes among them; behind them in each row what must not be read."""
    random = np.random.default_rng(seed)
    if dtype is ml_dtypes.bfloat16:
        array = np.full((rows, stride), np.nan, dtype)
        array[:, :columns] = random.standard_normal((rows, columns))
        return aligned(array)
    info = np.iinfo(dtype)
    array = np.full((rows, stride), 77, dtype)
    array[:, :columns] = random.integers(info.min, info.max + 1, (rows, columns))
    array[0, 0] = info.min
    return aligned(array)


def assert_product(spec: DotSpec, text: str) -> None:
    """The text's `run` gives the product; what pads the rows of A and B has not leaked into it."""
    shape, element, accumulate = (spec.m, spec.n, spec.k), spec.element, spec.accumulate
    left, right, summed = KINDS[element]
    (m, n, k), (lda, ldb, ldc) = shape, spec.strides
    a = operand(m, k, lda, left, m)
    b = operand(n, k, ldb, right, n) if spec.b_columns else operand(k, n, ldb, right, n)
    c = aligned(np.full((m, ldc), 3, summed))
    loaded = load_object(compile_ir(text, host_target()), ["run"])
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(loaded["run"])(
        *(x.ctypes.data for x in (c, a, b))
    )
    a, b = a[:, :k].astype(np.float64), (b[:, :k].T if spec.b_columns else b[:, :n])
    wide = a @ b.astype(np.float64) + (3 if accumulate else 0)
    if summed is np.int32:
        np.testing.assert_array_equal(c[:, :n], wide)
    else:
        magnitude = np.abs(a) @ np.abs(b).astype(float) + 3
        assert (np.abs(c[:, :n] - wide) <= (k + 2) * 2.0**-23 * magnitude).all()
