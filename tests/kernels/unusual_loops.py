"""Loops of products that do more than multiply what they have loaded: each as a user writes it."""

# ruff: noqa: N803 -- names of the field

import tilewright.language as tl
from tilewright import jit


@jit
def with_norm(a, b, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A is multiplied and normalized: its squares are summed up."""
    i, j, r = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    squares = tl.zeros((BM,), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + i[:, None] * K + k + r[None, :])
        y = tl.load(b + (k + r[:, None]) * N + j[None, :])
        acc = tl.dot(x, y, acc)
        wide = x.to(tl.float32)
        squares += tl.sum(wide * wide, 1)
    tl.store(c + i[:, None] * N + j[None, :], acc * tl.rsqrt(squares)[:, None])


@jit
def scaled_columns(a, b, s, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Weights of one byte, with a scale for each column of each block of K."""
    i, j, r = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + i[:, None] * K + k + r[None, :])
        w = tl.load(b + (k + r[:, None]) * N + j[None, :])
        scale = tl.load(s + (k // BK) * N + j)
        acc = tl.dot(x, (w.to(tl.float32) * scale[None, :]).to(tl.float16), acc)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@jit
def scaled_sums(
    a, b, sa, sb, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    PERIOD: tl.constexpr,
):  # fmt: skip
    """Operands of one byte; the product of each block of K is scaled, by a row and by a column,
    whose factors change every PERIOD blocks."""
    i, j, r = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    groups = tl.cdiv(K, BK * PERIOD)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + i[:, None] * K + k + r[None, :])
        y = tl.load(b + (k + r[:, None]) + j[None, :] * K)
        group = k // (BK * PERIOD)
        rows = tl.load(sa + i * groups + group)
        columns = tl.load(sb + group * N + j)
        acc += tl.dot(x, y).to(tl.float32) * rows[:, None] * columns[None, :]
    tl.store(c + i[:, None] * N + j[None, :], acc)


@jit
def paged(a, b, table, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Which rows of B a block of K has is said by a table."""
    i, j, r = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + i[:, None] * K + k + r[None, :])
        page = tl.load(table + k // BK)
        y = tl.load(b + (page * BK + r[:, None]) * N + j[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@jit
def gathered(a, b, table, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """As `paged`, with a number for each row."""
    i, j, r = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + i[:, None] * K + k + r[None, :])
        rows = tl.load(table + k + r)
        y = tl.load(b + rows[:, None] * N + j[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@jit
def gated(
    a, b, d, c, e, K, N, W, BM: tl.constexpr, BN: tl.constexpr, BW: tl.constexpr, BK: tl.constexpr
):
    """Two products of one A, of different widths."""
    i, j, r, w = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK), tl.arange(0, BW)
    wide, narrow = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BW), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + i[:, None] * K + k + r[None, :])
        y = tl.load(b + (k + r[:, None]) * N + j[None, :])
        z = tl.load(d + (k + r[:, None]) * W + w[None, :])
        wide = tl.dot(x, y, wide)
        narrow = tl.dot(x, z, narrow)
    tl.store(c + i[:, None] * N + j[None, :], wide)
    tl.store(e + i[:, None] * W + w[None, :], narrow)


@jit
def flat(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr
):
    """One loop over the blocks of K of all tiles of a program, as in the tutorials' persistent
    product."""
    start = tl.program_id(0)
    columns = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * columns
    blocks = tl.cdiv(K, BK)
    count = tiles // PROGRAMS
    if start < tiles % PROGRAMS:
        count += 1
    tile = start - PROGRAMS
    ki = -1
    r = tl.arange(0, BK)
    rows, cols = tl.arange(0, BM), tl.arange(0, BN)
    row, column = 0, 0
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, blocks * count):
        ki = tl.where(ki == blocks - 1, 0, ki + 1)
        if ki == 0:
            tile += PROGRAMS
            row, column = tile // columns, tile % columns
            rows = row * BM + tl.arange(0, BM)
            cols = column * BN + tl.arange(0, BN)
            rows = tl.where(rows < M, rows, 0)
            cols = tl.where(cols < N, cols, 0)
            rows = tl.max_contiguous(tl.multiple_of(rows, BM), BM)
            cols = tl.max_contiguous(tl.multiple_of(cols, BN), BN)
        k = ki * BK + r
        x = tl.load(a + rows[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
        y = tl.load(b + k[:, None] * N + cols[None, :], mask=k[:, None] < K, other=0.0)
        acc = tl.dot(x, y, acc)
        if ki == blocks - 1:
            i, j = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
            inside = (i[:, None] < M) & (j[None, :] < N)
            tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16), mask=inside)
            acc = tl.zeros((BM, BN), tl.float32)


@jit
def flat_select(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr
):
    """As `flat`, with addresses from a few scalars and a sum that a `where` starts again."""
    start = tl.program_id(0)
    columns = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * columns
    blocks = tl.cdiv(K, BK)
    count = tl.cdiv(tiles - start, PROGRAMS)
    tile, ki = start, 0
    r = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, blocks * count):
        i = (tile // columns) * BM + tl.arange(0, BM)
        j = (tile % columns) * BN + tl.arange(0, BN)
        x = tl.load(a + i[:, None] * K + ki * BK + r[None, :])
        y = tl.load(b + (ki * BK + r[:, None]) * N + j[None, :])
        acc = tl.where(ki == 0, 0.0, acc)
        acc = tl.dot(x, y, acc)
        if ki == blocks - 1:
            inside = (i[:, None] < M) & (j[None, :] < N)
            tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16), mask=inside)
        last = ki == blocks - 1
        tile = tl.where(last, tile + PROGRAMS, tile)
        ki = tl.where(last, 0, ki + 1)


@jit
def flat_keep(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr
):
    """As `flat_select`, where the branch of the last block starts the sum again, by a product."""
    start = tl.program_id(0)
    columns = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * columns
    blocks = tl.cdiv(K, BK)
    count = tl.cdiv(tiles - start, PROGRAMS)
    tile, ki = start, 0
    r = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, blocks * count):
        i = (tile // columns) * BM + tl.arange(0, BM)
        j = (tile % columns) * BN + tl.arange(0, BN)
        x = tl.load(a + i[:, None] * K + ki * BK + r[None, :])
        y = tl.load(b + (ki * BK + r[:, None]) * N + j[None, :])
        acc = tl.dot(x, y, acc)
        if ki == blocks - 1:
            inside = (i[:, None] < M) & (j[None, :] < N)
            tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16), mask=inside)
            acc *= 0.0
        last = ki == blocks - 1
        tile = tl.where(last, tile + PROGRAMS, tile)
        ki = tl.where(last, 0, ki + 1)


@jit
def with_bias(a, b, bias, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A small tile of one dim is subtracted from A, as for zero points."""
    i, j, r = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + i[:, None] * K + k + r[None, :])
        y = tl.load(b + (k + r[:, None]) * N + j[None, :])
        zero = tl.load(bias + k + r)
        acc = tl.dot(x - zero[None, :], y, acc)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@jit
def prefetched(
    a, b, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr
):
    """The source itself loads for the next iteration."""
    i, j, r = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    pa = a + i[:, None] * K + r[None, :]
    pb = b + r[:, None] * N + j[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    x = tl.load(pa, mask=r[None, :] < K, other=0.0)
    y = tl.load(pb, mask=r[:, None] < K, other=0.0)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        acc = tl.dot(x, y, acc)
        pa += BK
        pb += BK * N
        more = k + BK < K
        x = tl.load(pa, mask=more & (r[None, :] < K), other=0.0)
        y = tl.load(pb, mask=more & (r[:, None] < K), other=0.0)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@jit
def prefetched_for_behind(
    a, b, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr
):
    """As `prefetched`, where the last product stands behind the loop, and B^T is stored."""
    i, j, r = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    pa = a + i[:, None] * K + r[None, :]
    pb = b + j[:, None] * K + r[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    x, y = tl.load(pa), tl.load(pb)
    for k in tl.range(BK, K, BK, num_stages=STAGES):
        acc = tl.dot(x, y.T, acc)
        x, y = tl.load(pa + k), tl.load(pb + k)
    acc = tl.dot(x, y.T, acc)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@jit
def prefetched_in_part(
    a, b, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr
):
    """As `prefetched`, for B only, whose first tile is computed."""
    i, j, r = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    pb = b + r[:, None] * N + j[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    y = (r[:, None] - j[None, :]).to(tl.float16)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        x = tl.load(a + i[:, None] * K + k + r[None, :])
        acc = tl.dot(x, y, acc)
        y = tl.load(pb)
        pb += BK * N
    tl.store(c + i[:, None] * N + j[None, :], acc)


@jit
def prefetched_and_overwritten(
    a, b, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr
):
    """What was loaded for the next iteration is then negated, which that must not see."""
    i, j, r = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    pb = b + r[:, None] * N + j[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    y = tl.load(pb)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        x = tl.load(a + i[:, None] * K + k + r[None, :])
        acc = tl.dot(x, y, acc)
        pb += BK * N
        y = tl.load(pb, mask=r[:, None] < K - k - BK, other=0.0)
        tl.store(pb, (r[:, None] - j[None, :]).to(tl.float16), mask=r[:, None] < K - k - BK)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@jit
def paged_ahead(a, b, table, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """As `paged`, where the source itself loads the number of the next page."""
    i, j, r = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    page = tl.load(table)
    for k in range(0, K, BK):
        x = tl.load(a + i[:, None] * K + k + r[None, :])
        y = tl.load(b + (page * BK + r[:, None]) * N + j[None, :])
        acc = tl.dot(x, y, acc)
        page = tl.load(table + (k + BK) // BK, mask=k + BK < K, other=0)
    tl.store(c + i[:, None] * N + j[None, :], acc)
