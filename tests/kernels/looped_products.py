"""Products of tiles that a program takes one after the other, by tensor descriptors."""

import tilewright.language as tl
from tilewright import jit


@jit
def nested(
    x, y, c, M, N, K,
    PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """A loop over blocks of K in a loop over tiles."""
    a = tl.make_tensor_descriptor(x, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(y, [K, N], [N, 1], [BK, BN])
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), rows * columns, PROGRAMS):
        row, column = tile // columns * BM, tile % columns * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
        i, j = row + tl.arange(0, BM), column + tl.arange(0, BN)
        inside = (i[:, None] < M) & (j[None, :] < N)
        tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16), inside)


@jit
def flat(
    x, y, c, M, N, K,
    PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """One loop over the blocks of all tiles."""
    a = tl.make_tensor_descriptor(x, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(y, [K, N], [N, 1], [BK, BN])
    rows, columns, steps = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    first = tl.program_id(0)
    tiles = (rows * columns - first + PROGRAMS - 1) // PROGRAMS
    tile, step = first - PROGRAMS, steps - 1
    row, column = 0, 0
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, tiles * steps):
        step = tl.where(step == steps - 1, 0, step + 1)
        if step == 0:
            tile += PROGRAMS
            row, column = tile // columns * BM, tile % columns * BN
        acc = tl.dot(a.load([row, step * BK]), b.load([step * BK, column]), acc)
        if step == steps - 1:
            i, j = row + tl.arange(0, BM), column + tl.arange(0, BN)
            inside = (i[:, None] < M) & (j[None, :] < N)
            tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16), inside)
            acc = tl.zeros((BM, BN), tl.float32)


@jit
def twice(
    x, y, c, M, N, K,
    PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Two loops, of which the second runs for every second tile: their product is doubled."""
    a = tl.make_tensor_descriptor(x, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(y, [K, N], [N, 1], [BK, BN])
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), rows * columns, PROGRAMS):
        row, column = tile // columns * BM, tile % columns * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
        if tile % 2 == 1:
            for k in range(0, K, BK):
                acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
        i, j = row + tl.arange(0, BM), column + tl.arange(0, BN)
        inside = (i[:, None] < M) & (j[None, :] < N)
        tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16), inside)


@jit
def chained(
    x, y, c, M, N, K,
    PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """(x yT) y: no product goes on while the next iteration starts. N is BN."""
    a = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BM, BN])
    b = tl.make_tensor_descriptor(y, [K, N], [N, 1], [BK, BN])
    for row in range(tl.program_id(0) * BM, M, PROGRAMS * BM):
        left = a.load([row, 0])
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            right = b.load([k, 0])
            acc = tl.dot(tl.dot(left, right.T).to(tl.float16), right, acc)
        i, j = row + tl.arange(0, BM), tl.arange(0, BN)
        inside = (i[:, None] < M) & (j[None, :] < N)
        tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16), inside)


@jit
def batched(x, y, c, M, N, K, ROWS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Programs of all three axes, the last of them batches of M of all rows; each tile also holds
    their number."""
    batch = tl.program_id(2)
    a = tl.make_tensor_descriptor(x, [ROWS, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(y, [K, N], [N, 1], [BK, BN])
    row, column = tl.program_id(1) * BM, tl.program_id(0) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([batch * M + row, k]), b.load([k, column]), acc)
    i, j = row + tl.arange(0, BM), column + tl.arange(0, BN)
    inside = (i[:, None] < M) & (j[None, :] < N)
    acc += (batch * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0)
    tl.store(c + (batch * M + i[:, None]) * N + j[None, :], acc, inside)


@jit
def stored_by_descriptor(
    x, y, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """One tile, stored by the copy engine."""
    a = tl.make_tensor_descriptor(x, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(y, [K, N], [N, 1], [BK, BN])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    row, column = tl.program_id(1) * BM, tl.program_id(0) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
    out.store([row, column], acc.to(tl.float16))


@jit
def shifted(x, y, c, M, K, B: tl.constexpr):
    """The product of each block of y by x is multiplied by the next block; blocks of B x B."""
    a = tl.make_tensor_descriptor(x, [M, B], [B, 1], [B, B])
    b = tl.make_tensor_descriptor(y, [K, B], [B, 1], [B, B])
    row = tl.program_id(0) * B
    left = a.load([row, 0])
    acc, last = tl.zeros((B, B), tl.float32), tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        right = b.load([k, 0])
        following = tl.dot(left, right.T)
        acc = tl.dot(last.to(tl.float16), right, acc)
        last = following
    i, j = row + tl.arange(0, B), tl.arange(0, B)
    tl.store(c + i[:, None] * B + j[None, :], acc + last)
