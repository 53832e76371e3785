"""Products of matrices as memory holds them: which are kept column by column, and the results."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
import tilewright.language as tl
from tilewright.llvm import host_cpu


@tw.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, am, ak, bk, bn,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SCALE: tl.constexpr, TWICE: tl.constexpr,
):  # fmt: skip
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * am + k[None, :] * ak)
    b = tl.load(b_ptr + k[:, None] * bk + n[None, :] * bn)
    if SCALE:
        b = b * 2
    c = tl.dot(a, b)
    if TWICE:
        c += tl.dot(tl.trans(b), tl.trans(a)).T
    tl.store(c_ptr + m[:, None] * N + n[None, :], c)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("majors", ["rr", "rc", "cr", "cc"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_products_of_both_majors(dtype: str, majors: str, scale: bool, twice: bool):
    m, n, k = 32, 64, 64
    random = np.random.default_rng(3)
    a, b = (random.integers(-60, 60, shape).astype(dtype) for shape in ((m, k), (k, n)))
    a = np.asfortranarray(a) if majors[0] == "c" else a
    b = np.asfortranarray(b) if majors[1] == "c" else b
    out = np.zeros((m, n), np.int32 if dtype == "int8" else dtype)
    size = a.itemsize
    product_kernel[(1,)](
        a, b, out, *(s // size for s in a.strides), *(s // size for s in b.strides),
        M=m, N=n, K=k, SCALE=scale, TWICE=twice,
    )  # fmt: skip
    right = (b * 2 if scale else b).astype(np.float64)
    expected = a.astype(np.float64) @ right * (2 if twice else 1)
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_a_column_major_operand_is_neither_gathered_nor_scattered():
    a = np.ones((32, 64), np.float32)
    b = np.asfortranarray(np.ones((64, 64), np.float32))
    out = np.zeros((32, 64), np.float32)
    kernel = product_kernel[(1,)](
        a, b, out, 64, 1, 1, 64, M=32, N=64, K=64, SCALE=False, TWICE=False
    )
    assert (out == 64).all()
    assert "masked.gather" not in kernel.asm["llir"]
    assert "masked.scatter" not in kernel.asm["llir"]


@pytest.mark.skipif("bf16" not in host_cpu().dots, reason="needs AVX512-BF16")
def test_bf16_is_multiplied_as_it_is():
    a, b = (np.ones((64, 64), ml_dtypes.bfloat16) for _ in range(2))
    out = np.zeros((64, 64), np.float32)
    kernel = product_kernel[(1,)](
        a, b, out, 64, 1, 1, 64, M=64, N=64, K=64, SCALE=False, TWICE=False
    )
    assert (out == 64).all()
    assert "vdpbf16ps" in kernel.asm["asm"]
