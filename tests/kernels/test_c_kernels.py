"""Kernels in Triton-C, tuned, on every device, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.devices import Array, Device
from tilewright.c import kernel
from tilewright.runtime import cdiv

ADD = """
__global__ void add(int N, TYPE *a, TYPE *b, TYPE *c) {
    int id = get_program_id(0);
    int off[SIZE] = id * SIZE + (0 ... SIZE);
    bool there[SIZE] = off < N;
    *?(there) (c + off) = *?(there) (a + off) + *?(there) (b + off);
}
"""

TRANSPOSE = """
__global__ void transpose(TYPE *X, TYPE *Y, int M, int N, int ldx, int ldy) {
    int pidm = get_program_id(0);
    int pidn = get_program_id(1);
    int rm[TM] = pidm * TM + 0 ... TM;
    int rn[TN] = pidn * TN + 0 ... TN;
    TYPE *px[TM, TN] = X + rm[:, newaxis] + rn[newaxis, :] * ldx;
    TYPE *py[TN, TM] = Y + rm[newaxis, :] * ldy + rn[:, newaxis];
#ifdef CHECKED
    bool checkx[TM, TN] = (rm[:, newaxis] < M) && (rn[newaxis, :] < N);
    bool checky[TN, TM] = (rm[newaxis, :] < M) && (rn[:, newaxis] < N);
    *?(checky) py = ^(*?(checkx) px);
#else
    *py = ^(*px);
#endif
}
"""

MATMUL = """
__global__ void dot(TYPE *A, TYPE *B, float *C, int M, int N, int K,
                    int lda __multipleof(8), int ldb __multipleof(8), int ldc __multipleof(8)) {
    int pm = get_program_id(0);
    int pn = get_program_id(1);
    int rm[TM] = pm * TM + 0 ... TM;
    int rn[TN] = pn * TN + 0 ... TN;
    int rk[TK] = 0 ... TK;
    float c[TM, TN] = 0;
    TYPE *pa[SHAPE_A] = A + rk[BROADCAST_AK] * STRIDE_AK + rm[BROADCAST_AM] * STRIDE_AM;
    TYPE *pb[SHAPE_B] = B + rk[BROADCAST_BK] * STRIDE_BK + rn[BROADCAST_BN] * STRIDE_BN;
#ifdef PREFETCH
    TYPE a[SHAPE_A] = *pa;
    TYPE b[SHAPE_B] = *pb;
#endif
    for (int k = K; k > 0; k -= TK) {
#ifndef PREFETCH
        TYPE a[SHAPE_A] = *pa;
        TYPE b[SHAPE_B] = *pb;
#endif
        c += USE_A @ USE_B;
        pa = pa + TK * STRIDE_AK;
        pb = pb + TK * STRIDE_BK;
#ifdef PREFETCH
        bool check = k > TK;
        a = check ? *pa : 0;
        b = check ? *pb : 0;
#endif
    }
#ifdef REMATERIALIZED
    int rcm[TM] = pm * TM + 0 ... TM;
    int rcn[TN] = pn * TN + 0 ... TN;
    float *pc[TM, TN] = C + rcn[newaxis, :] + rcm[:, newaxis] * ldc;
#else
    float *pc[TM, TN] = C + rn[newaxis, :] + rm[:, newaxis] * ldc;
#endif
    *pc = c;
}
"""
ROW, COLUMN = "newaxis, :", ":, newaxis"
PLAIN_A = dict(
    USE_A="a", STRIDE_AK=1, STRIDE_AM="lda", BROADCAST_AK=ROW, BROADCAST_AM=COLUMN, SHAPE_A="TM,TK"
)
TRANSPOSED_A = dict(
    USE_A="^a", STRIDE_AK="lda", STRIDE_AM=1, BROADCAST_AK=COLUMN, BROADCAST_AM=ROW, SHAPE_A="TK,TM"
)
PLAIN_B = dict(
    USE_B="b", STRIDE_BK="ldb", STRIDE_BN=1, BROADCAST_BK=COLUMN, BROADCAST_BN=ROW, SHAPE_B="TK,TN"
)
TRANSPOSED_B = dict(
    USE_B="^b", STRIDE_BK=1, STRIDE_BN="ldb", BROADCAST_BK=ROW, BROADCAST_BN=COLUMN, SHAPE_B="TN,TK"
)

SOFTMAX = """
__global__ void softmax(const float *x, float *y, int columns, int stride) {
    int i[SIZE] = 0 ... SIZE;
    bool there[SIZE] = i < columns;
    float row[SIZE] = there ? *(x + get_program_id(0) * stride + i) : -INFINITY;
    float powers[SIZE] = exp(row - row[max]);
    *?(there) (y + get_program_id(0) * stride + i) = powers / powers[+];
}
"""

CONVOLUTION = """
// Y[n, k, p, q] = sum over c, r, s of X[n, c, p + r, q + s] * W[k, c, r, s], as a product of
// matrices with the rows (n, p, q), the columns k, and the inner dimension (c, r, s).
__global__ void convolve(float *X, float *W, float *Y, int N, int C, int H, int Wd, int K) {
    const int R = SIZE_R, S = SIZE_S;
    int P = H - R + 1, Q = Wd - S + 1;
    int row[TM] = get_program_id(0) * TM + 0 ... TM;
    int k[TN] = get_program_id(1) * TN + 0 ... TN;
    int n[TM] = row / (P * Q), p[TM] = row / Q % P, q[TM] = row % Q;
    int image[TM] = (n * C * H + p) * Wd + q;
    float acc[TM, TN] = 0;
    for (int inner = 0; inner < C * R * S; inner += TK) {
        int i[TK] = inner + 0 ... TK;
        int c[TK] = i / (R * S), r[TK] = i / S % R, s[TK] = i % S;
        bool inside[TK] = i < C * R * S;
        int filter[TK] = (c * H + r) * Wd + s;
        bool left[TM, TK] = (row < N * P * Q)[:, newaxis] && inside[newaxis, :];
        bool right[TK, TN] = inside[:, newaxis] && (k < K)[newaxis, :];
        float x[TM, TK] = left ? *(X + image[:, newaxis] + filter[newaxis, :]) : 0;
        float w[TK, TN] = right ? *(W + i[:, newaxis] + k[newaxis, :] * (C * R * S)) : 0;
        acc += x @ w;
    }
    float *to[TM, TN] = Y + (n * K * P * Q + p * Q + q)[:, newaxis] + k[newaxis, :] * (P * Q);
    *?((row < N * P * Q)[:, newaxis] && (k < K)[newaxis, :]) to = acc;
}
"""


def launch(
    device: Device, source: str, grid: Any, *args: Any, defines: dict[str, Any], **tuned: list[int]
) -> Any:
    """Run a kernel, tuned where the device is fast enough for that."""
    interpreted = device.name == "interpreter"
    values = {n: v[0] for n, v in tuned.items()} if device.is_slow else tuned
    k = kernel(source, {**defines, **values}, interpret=interpreted, warmup=1, rep=2)
    if interpreted:  # the device would interpret a Python function
        k[grid](*args)
        device.check_guards()
    else:
        device.run(k, grid, *args)
    return k


def assert_close(found: Array, expected: Array, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("word", "dtype"), [("float", np.float32), ("half", np.float16)])
def test_add(device: Device, rng: np.random.Generator, word: str, dtype: Any) -> None:
    n = device.pick(300, 10_000)
    a, b = (device.array(rng.standard_normal(n), dtype) for _ in range(2))
    c = device.empty(n, dtype)

    def grid(meta: Any) -> tuple[int, ...]:
        return (cdiv(n, meta["SIZE"]),)

    k = launch(device, ADD, grid, n, a, b, c, defines={"TYPE": word}, SIZE=[64, 256])
    assert_close(c, a.astype(np.float64) + b, 1e-3 if word == "half" else 1e-6)
    assert len(k.configs) == device.pick(2, 4)  # times two numbers of warps


@pytest.mark.parametrize("checked", [False, True])
def test_transpose(device: Device, rng: np.random.Generator, checked: bool) -> None:
    m, n = device.pick((100, 60), (300, 200)) if checked else (64, 128)
    x = device.array(rng.standard_normal((n, m)), np.float32)
    y = device.empty((m, n), np.float32)

    def grid(meta: Any) -> tuple[int, ...]:
        return cdiv(m, meta["TM"]), cdiv(n, meta["TN"])

    defines: dict[str, Any] = {"TYPE": "float", **({"CHECKED": None} if checked else {})}
    args = (x, y, m, n, m, n)
    launch(device, TRANSPOSE, grid, *args, defines=defines, TM=[32, 64], TN=[32])
    np.testing.assert_array_equal(y, x.T)


def multiply(
    device: Device, rng: np.random.Generator, word: str, defines: dict[str, Any]
) -> tuple[Array, Array]:
    """What the kernel and what float64 give."""
    m, n, k = device.pick((32, 128, 64), (64, 128, 96))
    dtype = {"float": np.float32, "half": np.float16}[word]
    a = device.array(rng.standard_normal((k, m) if defines["USE_A"] == "^a" else (m, k)), dtype)
    b = device.array(rng.standard_normal((n, k) if defines["USE_B"] == "^b" else (k, n)), dtype)
    c = device.empty((m, n), np.float32)

    def grid(meta: Any) -> tuple[int, ...]:
        return cdiv(m, meta["TM"]), cdiv(n, meta["TN"])

    args = (a, b, c, m, n, k, a.shape[1], b.shape[1], n)
    macros = {"TYPE": word, **defines}
    launch(device, MATMUL, grid, *args, defines=macros, TM=[32, 64], TN=[64], TK=[32])
    left = a.T if defines["USE_A"] == "^a" else a
    right = b.T if defines["USE_B"] == "^b" else b
    return c, left.astype(np.float64) @ right.astype(np.float64)


@pytest.mark.parametrize("word", ["float", "half"])
@pytest.mark.parametrize("variant", ["", "PREFETCH", "REMATERIALIZED", "PREFETCH REMATERIALIZED"])
def test_matmul(device: Device, rng: np.random.Generator, word: str, variant: str) -> None:
    extra = dict.fromkeys(variant.split())
    found, expected = multiply(device, rng, word, {**PLAIN_A, **PLAIN_B, **extra})
    assert_close(found, expected, 1e-4 if device.name != "nvidia" else 2e-2)


@pytest.mark.parametrize("a", [PLAIN_A, TRANSPOSED_A], ids=["a", "at"])
@pytest.mark.parametrize("b", [PLAIN_B, TRANSPOSED_B], ids=["b", "bt"])
def test_fused_transpositions(
    device: Device, rng: np.random.Generator, a: dict[str, Any], b: dict[str, Any]
) -> None:
    defines = {**a, **b, "PREFETCH": None, "REMATERIALIZED": None}
    found, expected = multiply(device, rng, "float", defines)
    assert_close(found, expected, 1e-4 if device.name != "nvidia" else 2e-2)


@pytest.mark.parametrize("inner", [4, 8])
def test_matmul_with_a_short_inner_dimension(
    device: Device, rng: np.random.Generator, inner: int
) -> None:
    a = device.array(rng.standard_normal((32, 24)), np.float16)
    b = device.array(rng.standard_normal((24, 32)), np.float16)
    c = device.empty((32, 32), np.float32)
    macros = {"TYPE": "half", **PLAIN_A, **PLAIN_B, "TM": 32, "TN": 32, "TK": inner}
    launch(device, MATMUL, (1, 1), a, b, c, 32, 32, 24, 24, 32, 32, defines=macros)
    assert_close(c, a.astype(np.float64) @ b.astype(np.float64), 1e-4)


def test_softmax(device: Device, rng: np.random.Generator) -> None:
    rows, columns = device.pick((3, 100), (20, 700))
    x = device.array(rng.standard_normal((rows, columns)) * 5, np.float32)
    y = device.empty((rows, columns), np.float32)
    sizes = device.pick([128], [1024, 2048])
    launch(device, SOFTMAX, (rows,), x, y, columns, columns, defines={}, SIZE=sizes)
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    assert_close(y, powers / powers.sum(axis=1, keepdims=True))


def test_convolution(device: Device, rng: np.random.Generator) -> None:
    n, c, h, w, k, r, s = device.pick((1, 3, 9, 8, 5, 3, 2), (2, 7, 20, 17, 20, 3, 3))
    p, q = h - r + 1, w - s + 1
    x = device.array(rng.standard_normal((n, c, h, w)), np.float32)
    weights = device.array(rng.standard_normal((k, c, r, s)), np.float32)
    y = device.empty((n, k, p, q), np.float32)

    def grid(meta: Any) -> tuple[int, ...]:
        return cdiv(n * p * q, meta["TM"]), cdiv(k, meta["TN"])

    defines = {"SIZE_R": r, "SIZE_S": s}
    args = (x, weights, y, n, c, h, w, k)
    launch(device, CONVOLUTION, grid, *args, defines=defines, TM=[32, 64], TN=[16], TK=[16, 32])
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (r, s), axis=(2, 3))
    assert_close(y, np.einsum("ncpqrs,kcrs->nkpq", windows, weights), 1e-4)


def test_tuning_runs_anew_for_new_sizes() -> None:
    k = kernel(ADD, {"TYPE": "float", "SIZE": [64, 128]}, warmup=1, rep=1)
    for n in (1000, 1000, 2000):
        a = np.ones(n, np.float32)
        c = np.zeros(n, np.float32)
        k[lambda meta: (cdiv(1000, meta["SIZE"]) * 2,)](n, a, a, c)
        assert (c == 2).all()
    assert {key[0] for key in k.cache} == {1000, 2000}
    assert k.best_config is not None and k.best_config.kwargs["SIZE"] in (64, 128)


PARTS = """
__global__ void parts(TYPE *X, TYPE *Y) {
    int rows[16] = 0 ... 16, columns[8] = 0 ... 8;
    TYPE *px[16, 8] = X + rows[:, newaxis] * 8 + columns[newaxis, :];
    TYPE z[16, 8] = *px;
    *Y = z[3, 2];
    *(Y + 1) = z[-1, 0x7];
    *(Y + 2 + 0 ... 8) = z[N - 1, :];
    *(Y + 10 + 0 ... 16) = z[:, 5];
    *(Y + 26 + rows[0:8, newaxis] * 8 + columns[newaxis, :]) = z[0:8, :];
    *(Y + 90 + (0 ... 4)[:, newaxis] * 2 + (0 ... 2)[newaxis, :]) = z[5:9, -3:-1];
    *(Y + 98 + 0 ... 8) = z[8:, 6][:, newaxis][:, 0];
    *(Y + 106 + 0 ... 2) = z[:2, max];
    *(Y + 108) = *px[15, 7];
    *(Y + 109 + 0 ... 2) = *(px[14:, 0]);
    bool odd[8] = columns % 2 == 1;
    *(Y + 111) = odd[3] && !odd[4];
}
"""


@pytest.mark.parametrize(
    ("word", "dtype"), [("float", np.float32), ("char", np.int8), ("double", np.float64)]
)
def test_indexing_and_slicing_with_constants(device: Device, word: str, dtype: Any) -> None:
    x = device.array(np.arange(128).reshape(16, 8) - 5, dtype)
    y = device.array(np.zeros(112), dtype)
    launch(device, PARTS, (1,), x, y, defines={"TYPE": word, "N": 10})
    expected = [
        x[3, 2], x[-1, 7], x[9], x[:, 5], x[:8], x[5:9, -3:-1], x[8:, 6],
        x[:2].max(axis=1), x[15, 7], x[14:, 0], 1,
    ]  # fmt: skip
    np.testing.assert_array_equal(y, np.concatenate([np.ravel(part) for part in expected]))
