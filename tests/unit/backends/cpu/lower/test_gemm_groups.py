"""Programs whose products are done at once, and those that each do their own."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilewright as tw
import tilewright.language as tl
from tests.unit.backends.cpu.amx_functions import without_amx
from tests.unit.backends.cpu.textual import function_of
from tilewright.backends.cpu.driver.cpu_launcher import CpuLauncher
from tilewright.backends.cpu.lower.cpu_function import lower_function
from tilewright.backends.cpu.microkernel import AVX512
from tilewright.backends.cpu.passes.legalize import Legalize
from tilewright.llvm import compile_ir, host_cpu, host_target

GROUPED = "begin.group:"
FROM_MEMORY = not host_cpu().is_arm64


@tw.jit
def ordered_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ORDER: tl.constexpr,
):  # fmt: skip
    """c = a @ b + bias of row-major matrices; ORDER: of the blocks."""
    pid, down, across = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    if ORDER == "groups":
        first = pid // (3 * across) * 3
        height = min(down - first, 3)
        inside = pid % (3 * across)
        pid_m, pid_n = first + inside % height, inside // height
    elif ORDER == "rows":
        pid_m, pid_n = pid // across, pid % across
    elif ORDER == "grid":
        pid_m, pid_n = tl.program_id(1), pid
    else:
        pid_m, pid_n = down - 1 - pid % down, pid // down
    rows, columns = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_ptrs = a_ptr + (rows % M)[:, None] * K + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * N + (columns % N)[None, :]
    acc = tl.zeros((BM, BN), tl.int32 if a_ptr.dtype.element_ty.is_int() else tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptrs, mask=(depth < K - k)[None, :], other=0)
        b = tl.load(b_ptrs, mask=(depth < K - k)[:, None], other=0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    acc += tl.load(bias_ptr + columns, mask=columns < N, other=0)[None, :]
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc, mask=mask)


@pytest.mark.parametrize(
    ("dtype", "order"),
    [("int8", "groups"), ("int8", "upwards"), ("float32", "rows"), ("float32", "upwards")],
)
def test_products_in_every_order_of_programs(dtype: str, order: str):
    random = np.random.default_rng(1)
    for m, n, k in ((97, 70, 40), (256, 48, 33), (5, 3, 7), (321, 32, 300)):
        a, b = (random.integers(-9, 10, shape).astype(dtype) for shape in ((m, k), (k, n)))
        summed = np.int32 if dtype == "int8" else np.float32
        bias = random.integers(-9, 10, n).astype(summed)
        c = np.full((m, n), -1, summed)
        grid = -(-m // 16) * -(-n // 32)
        kernel = ordered_kernel[(grid,)](
            a, b, bias, c, m, n, k, BM=16, BN=32, BK=64 if dtype == "int8" else 16, ORDER=order
        )
        np.testing.assert_array_equal(c, a.astype(np.float64) @ b + bias)
    native = dtype == "float32" or "int8" in (*host_cpu().dots, *host_cpu().tile_dots)
    assert (GROUPED in kernel.asm["llir"]) == (native and FROM_MEMORY)


@pytest.mark.parametrize(
    ("emulate", "order"), [(True, "groups"), (False, "groups"), (True, "upwards")], ids=str
)
def test_products_of_halves_that_tiles_cannot_do_are_left_to_the_loop(emulate: bool, order: str):
    """Infinities and NaN in some of the rows of a group, on AMX, or what does its instructions."""
    random = np.random.default_rng(2)
    m, n, k = 112, 40, 70
    a, b = (random.integers(-9, 10, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    a[37, 3], a[38, 4], b[60, 17] = np.inf, -np.inf, np.nan
    bias, c = np.ones(n, np.float32), np.full((m, n), -1, np.float32)
    grid = 7 * 2
    options = {"BM": 16, "BN": 32, "BK": 32, "ORDER": order}
    kernel = ordered_kernel[(grid,)](a, b, bias, c, m, n, k, **options)
    if emulate:
        c[:] = -1
        launch_by_tiles(kernel.asm["ttir"], (grid,), a, b, bias, c, m, n, k)
    with np.errstate(invalid="ignore"):
        expected = a.astype(np.float32) @ b.astype(np.float32) + bias
    assert np.isnan(expected).sum() > m
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("order", ["groups", "grid"])
def test_groups_of_tiles_are_as_wide_as_tall_in_every_order_of_programs(order: str):
    """Bands of 3 of the 18 rows of blocks, a group of 16 x 16 and what is left, beside each other
    and below."""
    random = np.random.default_rng(3)
    m, n, k = 285, 519, 34
    a, b = (random.integers(-9, 10, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    bias, c = random.integers(-9, 10, n).astype(np.float32), np.full((m, n), -1, np.float32)
    grid = (17, 18) if order == "grid" else (17 * 18,)
    kernel = ordered_kernel[grid](a, b, bias, c, m, n, k, BM=16, BN=32, BK=32, ORDER=order)
    expected = a.astype(np.float32) @ b.astype(np.float32) + bias
    np.testing.assert_array_equal(c, expected)
    c[:] = -1
    launch_by_tiles(kernel.asm["ttir"], grid, a, b, bias, c, m, n, k)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.skipif("int8" not in host_cpu().dots, reason="no vectors do the rest of a product")
def test_programs_of_fewer_rows_than_a_tile_are_multiplied_by_tiles_together():
    random = np.random.default_rng(4)
    m, n, k = 9, 40, 150
    a, b = (random.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    bias, c = np.zeros(n, np.int32), np.full((m, n), -1, np.int32)
    kernel = ordered_kernel[(6,)](a, b, bias, c, m, n, k, BM=4, BN=32, BK=64, ORDER="rows")
    expected = a.astype(np.int32) @ b
    np.testing.assert_array_equal(c, expected)
    c[:] = -1
    launch_by_tiles(kernel.asm["ttir"], (6,), a, b, bias, c, m, n, k)
    np.testing.assert_array_equal(c, expected)


def launch_by_tiles(text: str, grid: tuple[int, ...], *args: Any) -> None:
    function, cpu = function_of(text), replace(host_cpu(), vector_bits=512)
    Legalize(cpu.has_fma, cpu.dots, ("bf16", "int8")).run(function)
    unit = AVX512._replace(tiles=frozenset(["bfloat", "half", "i8"]))
    kernel = lower_function(function, unit, cpu.function_attributes)
    assert re.search("tdpbf16ps|tdpbssd", kernel.text) and GROUPED in kernel.text
    metadata = {"name": kernel.symbol, "scratch_bytes": kernel.scratch_bytes}
    types = [str(a.type) for a in function.args]
    obj = compile_ir(without_amx(kernel.text), host_target())
    launcher = CpuLauncher(obj, metadata, types, 1)
    words = [x if isinstance(x, int) else x.ctypes.data for x in args]
    launcher.launch((grid[0], grid[1] if len(grid) > 1 else 1, 1), words)


@tw.jit
def guarded_kernel(a_ptr, b_ptr, c_ptr, K, FORM: tl.constexpr):
    """Blocks of 16 rows of a @ b, 32 columns; FORM: what else a program does, and when."""
    pid = tl.program_id(0)
    rows, columns, depth = pid * 16 + tl.arange(0, 16), tl.arange(0, 32), tl.arange(0, 16)
    acc = tl.zeros((16, 32), tl.float32)
    if FORM == "stores before":
        tl.store(c_ptr + rows[:, None] * 32 + columns[None, :], acc + 7)
    elif FORM == "adds before":
        acc += tl.load(c_ptr + rows[:, None] * 32 + columns[None, :])
    elif FORM == "stops before":
        if pid == 1:
            return
    for k in range(0, K, 16):
        a = tl.load(a_ptr + rows[:, None] * K + (k + depth)[None, :])
        b = tl.load(b_ptr + (k + depth)[:, None] * 32 + columns[None, :])
        acc = tl.dot(a, b, acc)
    if FORM == "next rows after":
        tl.store(a_ptr + (rows + 16)[:, None] * K + depth[None, :], tl.zeros((16, 16), tl.float32))
    if FORM == "again after":
        for k in range(0, K, 16):
            a = tl.load(a_ptr + rows[:, None] * K + (k + depth)[None, :])
            b = tl.load(b_ptr + (k + depth)[:, None] * 32 + columns[None, :])
            acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * 32 + columns[None, :], acc)


def blocks_of_rows(form: str, programs: int, k: int) -> tuple[Any, Any, str]:
    """What `guarded_kernel` makes of ones and random numbers, the product, and its LLVM IR."""
    random = np.random.default_rng(k)
    a = random.integers(-9, 10, (16 * programs + 16, k)).astype(np.float32)
    b = random.integers(-9, 10, (k, 32)).astype(np.float32)
    c, expected = np.ones((16 * programs, 32), np.float32), a[: 16 * programs] @ b
    kernel = guarded_kernel[(programs,)](a, b, c, k, FORM=form)
    return c, expected, kernel.asm["llir"]


@pytest.mark.parametrize("form", ["stores before", "adds before", "stops before"])
def test_programs_that_do_something_before_their_product_are_not_asked_for_it(form: str):
    c, expected, text = blocks_of_rows(form, 20, 48)
    expected += form == "adds before"
    if form == "stops before":
        expected[16:32] = 1
    np.testing.assert_array_equal(c, expected)
    assert GROUPED not in text


def test_only_the_first_product_of_a_program_is_done_with_others():
    c, expected, text = blocks_of_rows("again after", 20, 48)
    np.testing.assert_array_equal(c, 2 * expected)
    assert (text.count(GROUPED) == 1) == FROM_MEMORY


def test_programs_behind_each_other_are_multiplied_before_the_first_one_stores(
    monkeypatch: pytest.MonkeyPatch,
):
    """One thread, whose programs spoil A for the next: of a group, the sums are there by then."""
    monkeypatch.setenv("TILEWRIGHT_CPU_THREADS", "1")
    c, expected, text = blocks_of_rows("next rows after", 40, 16)
    assert (GROUPED in text) == FROM_MEMORY
    kept = [bool((c[i : i + 16] == expected[i : i + 16]).all()) for i in range(0, 640, 16)]
    assert kept == [i == 0 or (FROM_MEMORY and i % 8 != 0) for i in range(40)]
