"""Panels of B and rows of A that stay for the next products."""

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.unit.backends.cpu.microkernel.test_matmuls_from_memory import (
    AMX,
    BURSTS,
    KEEPS_NOTHING,
    SUMS,
    TYPES,
    module,
    spec_of,
)
from tilewright.backends.cpu.microkernel import AVX512, GENERIC, KEY_NUMBERS, VectorUnit, kept_bytes
from tilewright.llvm import compile_ir, host_target, load_object

ROWS, COLUMNS, DEPTH = 48, 80, 2 * 1024 + 72

Product = Callable[[int, int, bool], Any]


def matrices(*shape: int) -> tuple[Any, Any]:
    """Two of them: what a matrix is first, and what it is changed to."""
    random = np.random.default_rng(1)
    first, second = (random.integers(-9, 10, shape).astype(np.int8) for _ in range(2))
    return first, second


def product_of(a: Any, b: Any, element: str = "i8", unit: VectorUnit = AMX) -> Product:
    """A function of rows, columns, and whether to keep panels, that keeps what it may."""
    b_columns = b.flags.f_contiguous
    spec = replace(spec_of(element, unit, b_columns, ROWS, COLUMNS), accumulate=False)
    text = module(spec).replace(KEEPS_NOTHING, "ptr @key, ptr @kept, i1 %keep")
    text = text.replace("i1 %adds) {\n", "i1 %adds, i1 %keep) {\n")
    text = text.replace("@dot(ptr noalias", "@dot_(ptr noalias").replace("@dot(", "@dot_(")
    text += f"""
@key = internal global [{KEY_NUMBERS} x i64] zeroinitializer
@kept = internal global [{kept_bytes(spec)} x i8] zeroinitializer, align 64
"""
    loaded = load_object(compile_ir(text, host_target()), ["run"])
    kinds = *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 5, *[ctypes.c_bool] * 2
    run = ctypes.CFUNCTYPE(None, *kinds)(loaded["run"])
    size, summed = ROWS * COLUMNS * spec.type.bytes, SUMS.get(element, np.int32)
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    c = memory[start : start + size].view(summed).reshape(ROWS, COLUMNS)

    def product(rows: int, columns: int, keep: bool) -> Any:
        assert loaded  # whose code runs
        places = (x.ctypes.data for x in (c, a, b))
        run(*places, max(a.strides), max(b.strides), DEPTH, rows, columns, False, keep)
        return c[:rows, :columns].copy()

    return product


@pytest.mark.parametrize("b_columns", [False, True])
@pytest.mark.parametrize(
    ("element", "unit"),
    [("i8", AMX), ("float", GENERIC), ("double", AVX512), ("u8", AVX512), ("float", BURSTS)],
)
def test_panels_are_kept_for_the_same_columns(element: str, unit: VectorUnit, b_columns: bool):
    """B is changed between two products, which shows in the second if its panels are copied."""
    a, (first, second) = abs(matrices(ROWS, DEPTH)[0]), matrices(DEPTH, COLUMNS)
    kind = np.int8 if element == "u8" else TYPES[element]
    a, b = a.astype(kind), (np.asfortranarray(first) if b_columns else first).astype(kind)
    product = product_of(a, b, element, unit)
    old, new = (a.astype(np.int32) @ x for x in (first, second))
    for keep in (False, True):
        np.testing.assert_array_equal(product(ROWS, COLUMNS, keep), old)
    b[:] = second
    for columns, expected in ((80, old), (70, new), (80, new)):
        np.testing.assert_array_equal(product(ROWS, columns, False), expected[:, :columns])
    np.testing.assert_array_equal(product(ROWS, COLUMNS, True), new)


@pytest.mark.parametrize(("columns", "times"), [(80, 1), (40, 2)])
def test_rows_that_are_multiplied_again_are_kept(columns: int, times: int):
    """They do not begin with cache lines; a few columns are too few for copies the first time."""
    (first, second), b = matrices(ROWS, DEPTH), matrices(DEPTH, COLUMNS)[0]
    old, new = (x.astype(np.int32) @ b for x in (first, second))
    for calls, expected in ((times - 1, new), (times, old)):
        a = first.copy()
        product = product_of(a, b)
        for _ in range(calls):
            np.testing.assert_array_equal(product(ROWS, columns, False), old[:, :columns])
        a[:] = second
        np.testing.assert_array_equal(product(ROWS, columns, False), expected[:, :columns])
    # four other groups of rows take the place
    for rows in (47, 46, 33, 32, ROWS):
        np.testing.assert_array_equal(product(rows, columns, False), new[:rows, :columns])
