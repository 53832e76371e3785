"""sm_75 has fewer instructions: smaller products, no asynchronous copies, no arithmetic of bf16."""

# pyright: reportArgumentType=false, reportAssignmentType=false

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import EmulatedAmpere, EmulatedNvidia
from tests.unit.backends.nvidia.compiled import compiled, count
from tests.unit.backends.nvidia.gpu_tiles import matmul
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import jit


class Turing(EmulatedNvidia):
    name = "emulated_turing"


def numbers(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    low = 0 if np.dtype(dtype).kind == "u" else -8
    return rng.integers(low, 9, shape).astype(dtype)


PRODUCTS = {
    # element type -> the instruction, if any
    "float16": "m16n8k8.row.col.f32.f16.f16.f32",
    "int8": "m8n8k16.row.col.s32.s8.s8.s32",
    "uint8": "m8n8k16.row.col.s32.u8.u8.s32",
    "bfloat16": None,
    "float32": None,
    "float64": None,
}
NAMES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
         "int8": "i8", "uint8": "u8"}  # fmt: skip


@jit
def product(a, b, out, K, N: tl.constexpr, STEP: tl.constexpr, SUM: tl.constexpr):
    """out = a @ b for row-major (N, K) @ (K, N)."""
    i = tl.arange(0, N)
    acc = tl.zeros((N, N), SUM)
    for k in range(0, K, STEP):
        d = k + tl.arange(0, STEP)
        x = tl.load(a + i[:, None] * K + d[None, :])
        y = tl.load(b + d[:, None] * N + i[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * N + i[None, :], acc)


def sum_of(dtype: str) -> Any:
    return {"i": tl.int32, "u": tl.int32}.get(dtype[0], tl.float64 if "64" in dtype else tl.float32)


@pytest.mark.parametrize("dtype", PRODUCTS)
def test_products(dtype: str) -> None:
    device, n, k = Turing(), 32, 96
    element = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    a, b = numbers((n, k), element), numbers((k, n), element)
    total = sum_of(dtype)
    out = device.array(np.zeros((n, n), {"int32": "i4", "fp64": "f8"}.get(str(total), "f4")))
    device.run(product, (1,), device.array(a), device.array(b), out, k, N=n, STEP=32, SUM=total)
    wide = np.int64 if a.dtype.kind in "iu" else np.float64
    assert np.array_equal(out, a.astype(wide) @ b.astype(wide))


@needs_ptxas
@pytest.mark.parametrize("dtype", PRODUCTS)
def test_instructions_of_products(dtype: str) -> None:
    types, sums = [f"*{NAMES[dtype]}"] * 2, sum_of(dtype)
    kernel = compiled(product, " ".join([*types, f"*{sums}", "i32"]), 75, N=32, STEP=32, SUM=sums)
    expected = PRODUCTS[dtype]
    found = {re.sub("^mma.sync.aligned.", "", name) for name in instructions_of(kernel)}
    assert found == ({expected} if expected else set())
    assert count(kernel, "cp.async") == 0
    assert kernel.asm["cubin"].startswith(b"\x7fELF")


def instructions_of(kernel: Any) -> set[str]:
    return set(re.findall(r"mma\.sync\.[\w.]+", str(kernel.asm["ptx"])))


@needs_ptxas
def test_loops_are_not_copied_ahead() -> None:
    ahead, plain = (
        compiled(matmul, "*fp16/16 *fp16/16 *fp32/16 i32/16", capability, N=64, STEP=64)
        for capability in (80, 75)
    )
    assert count(ahead, "cp.async") > 0 and count(plain, "cp.async") == 0
    assert "nvidia.async_copy" in str(ahead.asm["ttgir"])
    assert "nvidia.async_copy" not in str(plain.asm["ttgir"])


@jit
def add_all(out, old, x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(old + i, tl.atomic_add(out + i // 2, tl.load(x + i, i < n), i < n), i < n)


@pytest.mark.parametrize("device", [Turing, EmulatedAmpere])
def test_atomic_sums_of_bf16_touch_only_what_the_mask_lets_through(device: Any) -> None:
    here, n = device(), 37
    x = numbers((n,), ml_dtypes.bfloat16)
    out = here.array(np.zeros((n + 1) // 2, ml_dtypes.bfloat16))
    old = here.empty(n, ml_dtypes.bfloat16)
    here.run(add_all, (1,), out, old, here.array(x), n, BLOCK=64)
    pairs = np.append(x.astype("f"), np.float32(0)).reshape(-1, 2)
    assert np.array_equal(out.astype("f"), pairs.sum(axis=1))


@jit
def extrema(out, x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    nan: tl.constexpr = tl.PropagateNan.ALL
    tl.store(out + i, tl.maximum(a, b, propagate_nan=nan))
    tl.store(out + BLOCK + i, tl.minimum(a, b, propagate_nan=nan))
    tl.store(out + 2 * BLOCK + i, a * b + a)


@needs_ptxas
@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16"])
def test_arithmetic_is_assembled(name: str) -> None:
    kernel = compiled(extrema, f"*{name} *{name} *{name}", 75, BLOCK=256)
    assert kernel.asm["cubin"].startswith(b"\x7fELF")
    assert not re.search(r"(min|max)\.NaN|fma\.rn\.bf16", str(kernel.asm["ptx"]))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_arithmetic(dtype: str) -> None:
    device, n = Turing(), 64
    element = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    x, y = numbers((2, n), element)
    x[3], y[5] = np.nan, np.nan
    out = device.empty(3 * n, element)
    device.run(extrema, (1,), out, device.array(x), device.array(y), BLOCK=n)
    a, b = x.astype("f"), y.astype("f")
    expected = np.concatenate([np.maximum(a, b), np.minimum(a, b), a * b + a])
    assert np.array_equal(out.astype("f"), expected, equal_nan=True)
