"""Panels of B that stay for the next product."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.backends.cpu.microkernel.test_products_from_memory import (
    AMX,
    KEEPS_NOTHING,
    module,
    spec_of,
)
from tilewright.backends.cpu.microkernel import kept_bytes
from tilewright.llvm import compile_ir, host_target, load_object


@pytest.mark.parametrize("b_columns", [False, True])
def test_panels_are_kept_for_the_same_columns(b_columns: bool):
    """B is changed between two products, which shows in the second if its panels are copied."""
    spec = replace(spec_of("i8", AMX, b_columns, 48, 80), accumulate=False)
    size, depth = kept_bytes(spec), 2 * spec.k + 68
    text = module(spec).replace(KEEPS_NOTHING, "ptr @key, ptr @kept, i1 %keep")
    text = text.replace("i1 %adds) {\n", "i1 %adds, i1 %keep) {\n")
    text = text.replace("@dot(ptr noalias", "@dot_(ptr noalias").replace("@dot(", "@dot_(")
    text += f"""
@key = internal global [4 x i64] zeroinitializer
@kept = internal global [{size} x i8] zeroinitializer, align 64
"""
    loaded = load_object(compile_ir(text, host_target()).obj, ["run"])
    kinds = *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 5, *[ctypes.c_bool] * 2
    run = ctypes.CFUNCTYPE(None, *kinds)(loaded["run"])
    random = np.random.default_rng(1)
    a = random.integers(-9, 10, (48, depth)).astype(np.int8)
    first, second = (random.integers(-9, 10, (depth, 80)).astype(np.int8) for _ in range(2))
    b = np.asfortranarray(first) if b_columns else first.copy()
    memory = np.zeros(48 * 80 * 4 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    c = memory[start : start + 48 * 80 * 4].view(np.int32).reshape(48, 80)

    def product(columns: int, keep: bool) -> np.ndarray:
        places = (x.ctypes.data for x in (c, a, b))
        run(*places, depth, max(b.strides), depth, 48, columns, False, keep)
        return c[:, :columns].copy()

    old, new = (a.astype(np.int32) @ x for x in (first, second))
    np.testing.assert_array_equal(product(80, False), old)
    np.testing.assert_array_equal(product(80, True), old)
    b[:] = second
    np.testing.assert_array_equal(product(80, False), old)
    np.testing.assert_array_equal(product(70, False), new[:, :70])
    np.testing.assert_array_equal(product(80, False), new)
    np.testing.assert_array_equal(product(80, True), new)
