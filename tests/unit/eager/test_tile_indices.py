"""Tile indices below zero under `%`, which compiled kernels assume that there are none of."""

# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false

import numpy as np
import pytest

import tilewright.language as tl
from tilewright.eager import run_kernel
from tilewright.language import device_function
from tilewright.support import errors

X = np.arange(128, dtype=np.float32)


@device_function
def grouped(x, out, tiles, n, B: tl.constexpr, REST: tl.constexpr):
    """Programs in groups of four, as many as there are tiles of the last group."""
    pid = tl.program_id(0)
    first = pid // 4 * 4
    height = min(tiles - first, 4)
    rest = pid % 4 if REST else pid - first
    index = rest // height
    at = (index * B + tl.arange(0, B)) % n
    tl.store(out + tl.arange(0, B), tl.load(x + at, mask=at >= 0, other=-1.0))


def run(kernel, programs=1, **arguments):
    out = np.zeros(16, np.float32)
    run_kernel(kernel, (programs,), {"x": X, "out": out, "B": 16, **arguments})
    return out


@pytest.mark.parametrize("rest", [False, True])
def test_more_programs_than_tiles(rest: bool):
    """The groups after the last one have a negative height."""
    np.testing.assert_array_equal(run(grouped, 4, tiles=4, n=128, REST=rest), X[:16])
    with pytest.raises(errors.NegativeTileIndex) as caught:
        run(grouped, 12, tiles=6, n=128, REST=rest)
    text = str(caught.value)
    assert "a tile index under % is -16" in text
    assert "at = (index * B + tl.arange(0, B)) % n" in text and "in grouped" in text
    assert "launch no more programs than there are tiles" in text


@device_function
def of_argument(x, out, index, n, B: tl.constexpr):
    at = (index * B + tl.arange(0, B)) % n
    tl.store(out + tl.arange(0, B), tl.load(x + (at + n)))


@device_function
def of_loop(x, out, start, by, n, B: tl.constexpr):
    for k in range(tl.program_id(0), 2):
        at = ((start + k) // by * B + tl.arange(0, B)) % n
        tl.store(out + tl.arange(0, B), tl.load(x + (at + n)))


def test_arguments_below_zero_are_fine():
    np.testing.assert_array_equal(run(of_argument, index=-1, n=64), X[64 - 16 : 64])
    np.testing.assert_array_equal(run(of_loop, start=-8, by=4, n=64), X[64 - 16 : 64])


def test_indices_of_loops():
    np.testing.assert_array_equal(run(of_loop, start=3, by=4, n=64), X[64 + 16 : 64 + 32])
    with pytest.raises(errors.NegativeTileIndex):
        run(of_loop, start=3, by=-4, n=64)


@device_function
def of_shares(x, out, steps, per_tile, n, B: tl.constexpr):
    """Each program takes as many steps of the work, which may belong to several tiles."""
    step = tl.program_id(0) * steps
    end = step + steps
    while step < end:
        tile, first = step // per_tile, step % per_tile
        at = (tile * B + tl.arange(0, B)) % n
        tl.store(out + tl.arange(0, B), tl.load(x + at, mask=at >= 0, other=-1.0))
        step += min(per_tile, first + end - step) - first


def test_steps_that_programs_share():
    np.testing.assert_array_equal(run(of_shares, 3, steps=2, per_tile=2, n=64), X[32:48])
    with pytest.raises(errors.NegativeTileIndex):
        run(of_shares, 3, steps=2**30 + 16, per_tile=2**30, n=64)


@device_function
def of_groups(x, out, steps, size, n, B: tl.constexpr):
    first = tl.program_id(0) * steps
    for step in range(first, first + steps):
        left = size - step % size
        at = (left * B + tl.arange(0, B)) % n
        tl.store(out + tl.arange(0, B), tl.load(x + at, mask=at >= 0, other=-1.0))


def test_remainders_by_negative_sizes():
    np.testing.assert_array_equal(run(of_groups, 2, steps=2, size=2, n=64), X[16:32])
    with pytest.raises(errors.NegativeTileIndex):
        run(of_groups, 2, steps=2, size=-2, n=64)


@device_function
def of_hash(x, out, n, B: tl.constexpr):
    at = (tl.program_id(0) * 1103515245 + tl.arange(0, B)) % n
    tl.store(out + tl.arange(0, B), tl.load(x + (at + n)))


def test_hashes_below_zero_are_fine():
    start = np.int64(2 * 1103515245 - 2**32)
    expected = X[np.fmod(start + np.arange(16), 64) + 64]
    np.testing.assert_array_equal(run(of_hash, 3, n=64), expected)


@device_function
def one_by_one(x, out, by, n, B: tl.constexpr):
    scattered = (tl.program_id(0) + 5) // by + tl.arange(0, B) * 0
    tl.store(out + tl.arange(0, B), tl.load(x + (scattered % n + n)))


def test_tiles_that_do_not_count_up_are_fine():
    np.testing.assert_array_equal(run(one_by_one, by=-2, n=64), np.full(16, 62.0))


@device_function
def by_many(x, out, by, n, B: tl.constexpr):
    quotient = 100 // (by - tl.arange(0, B))
    tl.store(out + tl.arange(0, B), tl.load(x + (quotient % n + n)))


def test_quotients_by_different_numbers_that_count_up_by_chance_are_fine():
    """Seed 31003913 of the fuzzer: of -100, -50, -33 ... some are one apart."""
    quotients = np.trunc(100 / (-1 - np.arange(16))).astype(int)
    np.testing.assert_array_equal(run(by_many, by=-1, n=64), X[64 + np.fmod(quotients, 64)])
