"""Kernels of the size that people write: attention, layer norm, persistent and split products."""

# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportArgumentType=false

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.frontend.python.harness import RunTime, run
from tilewright.language import device_function


@device_function
def attention_step(
    acc, l_i, m_i, q, k_ptr, v_ptr, lo, hi, offs_m, offs_d,
    N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    offs_n = tl.arange(0, N)
    for start in tl.range(lo, hi, N, num_stages=2):
        start = tl.multiple_of(start, N)
        k = tl.load(k_ptr + (start + offs_n)[None, :] * D + offs_d[:, None])
        qk = tl.dot(q, k)
        if CAUSAL:
            mask = offs_m[:, None] >= (start + offs_n[None, :])
            qk = qk + tl.where(mask, 0, -1.0e6)
            m_ij = tl.maximum(m_i, tl.max(qk, 1))
            qk -= m_ij[:, None]
        else:
            m_ij = tl.maximum(m_i, tl.max(qk, 1))
            qk = qk - m_ij[:, None]
        p = tl.exp(qk)
        alpha = tl.exp(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptr + (start + offs_n)[:, None] * D + offs_d[None, :])
        acc = tl.dot(p, v, acc)
        m_i = m_ij
    return acc, l_i, m_i


@device_function
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, seq,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, STAGE: tl.constexpr,
):  # fmt: skip
    tl.static_assert(N <= D, f"N={N} is larger than D={D}")
    pid = tl.program_id(0)
    offs_m = pid * M + tl.arange(0, M)
    offs_d = tl.arange(0, D)
    m_i = tl.zeros([M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([M], dtype=tl.float32)
    acc = tl.zeros([M, D], dtype=tl.float32)
    q = tl.load(q_ptr + offs_m[:, None] * D + offs_d[None, :])
    if STAGE & 1:
        lo, hi = 0, pid * M
        acc, l_i, m_i = attention_step(
            acc, l_i, m_i, q, k_ptr, v_ptr, lo, hi, offs_m, offs_d, N, D, CAUSAL=False
        )
    if STAGE & 2:
        lo, hi = pid * M, (pid + 1) * M
        acc, l_i, m_i = attention_step(
            acc, l_i, m_i, q, k_ptr, v_ptr, lo, hi, offs_m, offs_d, N, D, CAUSAL=True
        )
    acc = acc / l_i[:, None]
    tl.store(out_ptr + offs_m[:, None] * D + offs_d[None, :], acc.to(out_ptr.dtype.element_ty))


def test_causal_attention():
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 32, 16)).astype(np.float32)
    out = np.zeros_like(q)
    meta = {"M": 16, "N": 8, "D": 16, "STAGE": 3}
    run(attention, (2,), q_ptr=q, k_ptr=k, v_ptr=v, out_ptr=out, seq=RunTime(32), **meta)
    scores = np.where(np.tril(np.ones((32, 32), bool)), q.astype(np.float64) @ k.T, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(
        out, weights @ v / weights.sum(1, keepdims=True), rtol=1e-4, atol=1e-5
    )


@device_function
def layer_norm(X, Y, W, B, stride, N, eps, BLOCK: tl.constexpr, HAS_BIAS: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    mean = 0
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        a = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        total += a
    mean = tl.sum(total, axis=0) / N
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        x = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(X + cols, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * tl.load(W + cols, mask=mask)
        if HAS_BIAS:
            y += tl.load(B + cols, mask=mask)
        tl.store(Y + cols, y, mask=mask)


@pytest.mark.parametrize("bias", [False, True])
def test_layer_norm(bias):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 50)).astype(np.float32)
    w, b = rng.standard_normal((2, 50)).astype(np.float32)
    y = np.zeros_like(x)
    run(
        layer_norm, (3,), X=x, Y=y, W=w, B=b if bias else None, stride=RunTime(50), N=RunTime(50),
        eps=RunTime(1e-5, "f32"), BLOCK=16, HAS_BIAS=bias,
    )  # fmt: skip
    normal = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, normal * w + (b if bias else 0), rtol=1e-4, atol=1e-5)


@device_function
def tile_of(tile_id, tiles_in_row):
    return tile_id // tiles_in_row, tile_id % tiles_in_row


@device_function
def persistent_scale(src, dst, rows, columns, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    tiles_in_row = tl.cdiv(columns, BLOCK)
    for tile_id in tl.range(tl.program_id(0), rows * tiles_in_row, PROGRAMS, flatten=True):
        row, column = tile_of(tile_id, tiles_in_row)
        window = tl.make_block_ptr(
            src, shape=(rows, columns), strides=(columns, 1), offsets=(row, column * BLOCK),
            block_shape=(1, BLOCK), order=(1, 0),
        )  # fmt: skip
        x = tl.load(window, boundary_check=(1,), padding_option="zero")
        offsets = column * BLOCK + tl.arange(0, BLOCK)
        tl.store(dst + row * columns + offsets, 2 * x.reshape(BLOCK), mask=offsets < columns)


def test_a_persistent_kernel_with_block_pointers():
    src = np.arange(3 * 13, dtype=np.float32).reshape(3, 13)
    dst = np.zeros_like(src)
    meta = {"PROGRAMS": 2, "BLOCK": 8}
    run(persistent_scale, (2,), src=src, dst=dst, rows=RunTime(3), columns=RunTime(13), **meta)
    assert np.array_equal(dst, 2 * src)


@device_function
def dropout(src, dst, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(src + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(dst + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def test_dropout():
    src = np.ones(256, np.float32)
    dst = np.zeros_like(src)
    run(
        dropout, (2,), src=src, dst=dst, n=RunTime(256), p=RunTime(0.5, "f32"),
        seed=RunTime(123), BLOCK=128,
    )  # fmt: skip
    assert set(dst) == {0.0, 2.0}
    assert 80 < np.count_nonzero(dst) < 176


@device_function
def binary_search(keys, values, out, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    wanted = tl.load(values + offsets)
    low = tl.zeros([BLOCK], tl.int32)
    high = tl.zeros([BLOCK], tl.int32) + n
    while tl.max(high - low, axis=0) > 0:
        middle = (low + high) // 2
        found = tl.load(keys + middle, mask=low < high, other=0)
        right = (found < wanted) & (low < high)
        low = tl.where(right, middle + 1, low)
        high = tl.where(right, high, middle)
    tl.store(out + offsets, low)


def test_while_over_tiles():
    keys = np.array([1, 3, 5, 7, 9, 11], np.int32)
    values = np.array([0, 3, 4, 12], np.int32)
    out = np.zeros(4, np.int32)
    run(binary_search, keys=keys, values=values, out=out, n=RunTime(6), BLOCK=4)
    assert out.tolist() == np.searchsorted(keys, values).tolist()
