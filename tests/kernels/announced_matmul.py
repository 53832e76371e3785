"""The matrix product of the announcement: `**META`, a loop that counts down, moving pointers."""

# ruff: noqa: B007 -- the loop variable of the announcement

import tilewright.language as tl
from tilewright import jit


@jit
def matmul(
    A, B, C, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn, **META
):
    BLOCK_M, GROUP_M = META["BLOCK_M"], META["GROUP_M"]
    BLOCK_N = META["BLOCK_N"]
    BLOCK_K = META["BLOCK_K"]
    # neighbours in one group share rows of B in the cache
    _pid_m = tl.program_id(0)
    _pid_n = tl.program_id(1)
    pid_m = _pid_m // GROUP_M
    pid_n = (_pid_n * GROUP_M) + (_pid_m % GROUP_M)
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    A = A + (rm[:, None] * stride_am + rk[None, :] * stride_ak)
    B = B + (rk[:, None] * stride_bk + rn[None, :] * stride_bn)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(K, 0, -BLOCK_K):
        a = tl.load(A)
        b = tl.load(B)
        acc += tl.dot(a, b)
        A += BLOCK_K * stride_ak
        B += BLOCK_K * stride_bk
    # a leaky ReLU costs nothing extra here
    if "alpha" in META:
        alpha = META["alpha"]
        acc = tl.where(acc >= 0, acc, alpha * acc)
    C = C + (rm[:, None] * stride_cm + rn[None, :] * stride_cn)
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(C, acc, mask=mask)
