"""A kernel in Triton-C and its twin in Python are the same tile IR."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import time
from typing import Any

import tilewright.language as tl
from tests.unit.frontend.c.harness import canonical
from tilewright.c import CSource
from tilewright.frontend.python import ArgSpec, KernelSignature, lower_kernel
from tilewright.frontend.semantics import FrontendOptions
from tilewright.ir import parse_module
from tilewright.language import device_function

ADD = """
__global__ void add(float *a, float *b, float *c, int N) {
    int off[SIZE] = get_program_id(0) * SIZE + 0 ... SIZE;
    bool mask[SIZE] = off < N;
    float x[SIZE] = *?(mask) (a + off);
    float y[SIZE] = *?(mask) (b + off);
    *?(mask) (c + off) = x + y;
}
"""


@device_function
def add(a, b, c, N, SIZE):
    off = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    mask = off < N
    x = tl.load(a + off, mask)
    y = tl.load(b + off, mask)
    tl.store(c + off, x + y, mask)


TRANSPOSE = """
__global__ void transpose(float *X, float *Y, int M, int N, int ldx, int ldy) {
    int rm[TM] = get_program_id(0) * TM + 0 ... TM;
    int rn[TN] = get_program_id(1) * TN + 0 ... TN;
    float *px[TM, TN] = X + rm[:, newaxis] + rn[newaxis, :] * ldx;
    float *py[TN, TM] = Y + rm[newaxis, :] * ldy + rn[:, newaxis];
    bool checkx[TM, TN] = (rm[:, newaxis] < M) && (rn[newaxis, :] < N);
    bool checky[TN, TM] = (rm[newaxis, :] < M) && (rn[:, newaxis] < N);
    *?(checky) py = ^(*?(checkx) px);
}
"""


@device_function
def transpose(X, Y, M, N, ldx, ldy, TM, TN):
    rm = tl.program_id(0) * TM + tl.arange(0, TM)
    rn = tl.program_id(1) * TN + tl.arange(0, TN)
    px = X + rm[:, None] + rn[None, :] * ldx
    py = Y + rm[None, :] * ldy + rn[:, None]
    checkx = (rm[:, None] < M) & (rn[None, :] < N)
    checky = (rm[None, :] < M) & (rn[:, None] < N)
    tl.store(py, tl.trans(tl.load(px, checkx)), checky)


MATMUL = """
__global__ void dot(float *A, float *B, float *C, int M, int N, int K, int lda, int ldb, int ldc) {
    int pm = get_program_id(0);
    int pn = get_program_id(1);
    int rm[TM] = pm * TM + 0 ... TM;
    int rn[TN] = pn * TN + 0 ... TN;
    int rk[TK] = 0 ... TK;
    float c[TM, TN] = 0;
    float *pa[TM, TK] = A + rk[newaxis, :] * 1 + rm[:, newaxis] * lda;
    float *pb[TK, TN] = B + rk[:, newaxis] * ldb + rn[newaxis, :] * 1;
    for (int k = K; k > 0; k -= TK) {
        float a[TM, TK] = *pa;
        float b[TK, TN] = *pb;
        c += a @ b;
        pa = pa + TK * 1;
        pb = pb + TK * ldb;
    }
    float *pc[TM, TN] = C + rn[newaxis, :] + rm[:, newaxis] * ldc;
    *pc = c;
}
"""


@device_function
def dot(A, B, C, M, N, K, lda, ldb, ldc, TM, TN, TK):
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    rm = pm * TM + tl.arange(0, TM)
    rn = pn * TN + tl.arange(0, TN)
    rk = tl.arange(0, TK)
    c = tl.zeros((TM, TN), tl.float32)
    pa = A + rk[None, :] * 1 + rm[:, None] * lda
    pb = B + rk[:, None] * ldb + rn[None, :] * 1
    for _ in range(K, 0, -TK):
        a = tl.load(pa)
        b = tl.load(pb)
        c = tl.dot(a, b, c)
        pa = pa + TK * 1
        pb = pb + TK * ldb
    pc = C + rn[None, :] + rm[:, None] * ldc
    tl.store(pc, c)


def assert_same_ir(source: str, twin: Any, **macros: int) -> None:
    ours = CSource(source, macros)
    constants = [ArgSpec(name, "constexpr", value=value) for name, value in macros.items()]
    signature = KernelSignature((*ours.arguments.args, *constants))
    theirs = lower_kernel(twin, signature, FrontendOptions())
    found = canonical(ours.lower(FrontendOptions()))
    assert found == canonical(theirs)
    assert canonical(parse_module(found)) == found


def test_add() -> None:
    assert_same_ir(ADD, add, SIZE=64)


def test_transpose() -> None:
    assert_same_ir(TRANSPOSE, transpose, TM=32, TN=64)


def test_matmul() -> None:
    assert_same_ir(MATMUL, dot, TM=64, TN=32, TK=16)


def test_parsing_and_lowering_the_matmul_takes_little_time() -> None:
    best = 1.0
    for _ in range(5):
        start = time.process_time()
        CSource(MATMUL, {"TM": 64, "TN": 64, "TK": 16}).lower(FrontendOptions())
        best = min(best, time.process_time() - start)
    assert best < 0.06
