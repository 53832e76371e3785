"""Random numbers: the published known answers, and Triton's conventions for key and counter."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.frontend.contexts import BuildBench, EagerBench, data
from tilewright import language as tl
from tilewright.ir import types as ir
from tilewright.support import errors

MASK = (1 << 32) - 1

KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((MASK,) * 4, (MASK,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
"""Counter, key, output of Philox4x32-10: Random123's kat_vectors."""


def reference(seed: int, offset: int) -> tuple[int, int, int, int]:
    """Philox4x32-10 in Python integers."""
    c = [offset & MASK, offset >> 32 & MASK, 0, 0]
    k = [seed & MASK, seed >> 32 & MASK]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & MASK, p0 >> 32 ^ c[3] ^ k[1], p0 & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c[0], c[1], c[2], c[3]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS)
def test_known_answers(
    counter: tuple[int, ...], key: tuple[int, int], words: tuple[int, ...]
) -> None:
    bench = EagerBench()
    seed = bench.tile(np.uint64(key[0] | key[1] << 32), ir.u64)
    tiles = [bench.tile(np.array([c], np.uint32), ir.u32) for c in counter]
    found = bench.call(tl.philox, seed, *tiles)
    assert [int(data(word)[0]) for word in found] == list(words)


def test_philox_4x64_agrees_with_numpy() -> None:
    # NumPy's generator steps its counter before it draws, so its first block is counter 1.
    bit_generator = np.random.Philox(counter=[6, 0, 0, 0], key=[11, 0])
    expected = [int(word) for word in bit_generator.random_raw(4)]
    bench = EagerBench()
    counter = [bench.tile(np.array([c], np.uint64), ir.u64) for c in (7, 0, 0, 0)]
    found = bench.call(tl.philox, 11, *counter)
    assert [int(data(word)[0]) for word in found] == expected


@pytest.mark.parametrize("element", [ir.i32, ir.u32, ir.i64])
@pytest.mark.parametrize("seed", [0, 5, (7 << 32) + 3])
def test_integers_count_by_offset(element: ir.DType, seed: int) -> None:
    bench = EagerBench()
    offsets = [0, 1, 100] + ([1 << 40] if element.bits == 64 else [])
    words = bench.call(tl.randint4x, seed, bench.tile(offsets, element))
    expected = np.array([reference(seed, o) for o in offsets]).T
    assert np.array_equal(np.array([data(word) for word in words]), expected)
    assert all(word.dtype == tl.uint32 for word in words)
    first = bench.call(tl.randint, seed, bench.tile(offsets, element))
    assert np.array_equal(data(first), expected[0])


def test_uniform_numbers_are_in_range_and_even() -> None:
    bench = EagerBench()
    offsets = bench.tile(np.arange(8192), ir.i32)
    found = data(bench.call(tl.rand, 42, offsets))
    assert found.dtype == np.float32 and found.min() >= 0 and found.max() < 1
    assert abs(found.mean() - 0.5) < 0.02 and abs(found.var() - 1 / 12) < 0.005
    words = np.array([reference(42, i)[0] for i in range(8192)], np.uint32).view(np.int32)
    positive = np.where(words < 0, -words.astype(np.int64) - 1, words).astype(np.float32)
    assert np.array_equal(found, positive * np.float32(4.6566127342e-10))


def test_uniform_numbers_from_64_bits() -> None:
    bench = EagerBench()
    x = bench.tile(np.array([0, 2**63 - 1, 2**63, 2**64 - 1], np.uint64), ir.u64)
    found = data(bench.call(tl.uint_to_uniform_float, x))
    assert found.min() >= 0 and found.max() <= 1 and found[0] == 0 == found[3]


def test_normal_numbers() -> None:
    bench = EagerBench()
    offsets = bench.tile(np.arange(8192), ir.i32)
    found = data(bench.call(tl.randn, 1, offsets))
    assert abs(found.mean()) < 0.04 and abs(found.std() - 1) < 0.03
    four = bench.call(tl.randn4x, 1, offsets)
    assert len(four) == 4 and np.array_equal(data(four[0]), found)


def test_key_words_and_rounds() -> None:
    bench = EagerBench()
    zero = bench.tile(np.array([0], np.uint32), ir.u32)
    seven = bench.call(tl.philox, 3, zero, zero, zero, zero, n_rounds=7)
    by_words = bench.call(tl.philox_impl, zero, zero, zero, zero, 3, 0, n_rounds=7)
    assert [data(w).tolist() for w in seven] == [data(w).tolist() for w in by_words]
    with pytest.raises(errors.InvalidValue, match="positive"):
        bench.call(tl.philox, 3, zero, zero, zero, zero, n_rounds=0)


def test_floats_are_no_seeds() -> None:
    with pytest.raises(errors.InvalidValue, match="'seed' must be an integer"):
        BuildBench().call(tl.rand, 1.5, 0)
    with pytest.raises(errors.InvalidValue, match="32 or 64 bits"):
        bench = BuildBench()
        bench.call(tl.uint_to_uniform_float, bench.tile(ir.u16))


def test_the_key_stays_scalar() -> None:
    bench = BuildBench()
    bench.call(tl.randint, bench.arg(ir.i64), bench.tile(ir.i32, 64))
    keys = [op for op in bench.block if op.opcode == "arith.add"]
    assert len(keys) == 20 and all(op.results[0].type is ir.u32 for op in keys)
