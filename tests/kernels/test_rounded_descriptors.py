"""Tensor descriptors of the host whose float32 is rounded to TF32 where it is loaded."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import assert_same
from tests.kernels.devices import Array, Device
from tilewright import jit
from tilewright.language import TensorDescriptor
from tilewright.support import errors


@jit
def copy_kernel(source, single_rows, target, gathered, row):
    target.store((row, 0), source.load((row, 0)))
    rows = tl.arange(0, 8)
    place = rows[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(gathered + place, single_rows.gather(rows, 0))


def as_tf32(x: Array) -> Array:
    """The nearest numbers with 10 bits of fraction, ties to even."""
    bits = x.view(np.uint32).astype(np.uint64)
    nearest = (bits + 0xFFF + (bits >> np.uint64(13) & np.uint64(1))) & np.uint64(0xFFFFE000)
    return np.where(np.isfinite(x), nearest.astype(np.uint32).view(np.float32), x)


def numbers(rng: np.random.Generator) -> Array:
    x = rng.normal(size=(16, 16)).astype(np.float32)
    # ties on both sides, the largest number, which becomes infinite, and a denormal one
    ties = np.array([0x3F801000, 0x3F803000, 0xBF801000, 0x7F7FFFFF, 0x00001001], np.uint32)
    x[0, :5] = ties.view(np.float32)
    x[0, 5:8] = [np.inf, -np.inf, np.nan]
    return x


@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_loads_round(device: Device, rng: np.random.Generator, padding: str):
    x, out = numbers(rng), device.array(np.zeros((16, 16), np.float32))
    gathered, array = device.empty((8, 16), np.float32), device.array(x)
    source = TensorDescriptor.from_tensor(array, [8, 16], padding, True)
    single_rows = TensorDescriptor.from_tensor(array, [1, 16], round_f32_to_tf32=True)
    target = TensorDescriptor.from_tensor(out, [8, 16])
    for row in (0, 8):
        device.run(copy_kernel, (1,), source, single_rows, target, gathered, row)
    assert_same(out, as_tf32(x))
    assert_same(gathered, as_tf32(x[:8]))
    assert not np.array_equal(as_tf32(x), x, equal_nan=True)


def test_whether_loads_round_may_change_between_launches(device: Device, rng: np.random.Generator):
    x, out = numbers(rng), device.array(np.zeros((16, 16), np.float32))
    gathered, array = device.empty((8, 16), np.float32), device.array(x)
    source = TensorDescriptor.from_tensor(array, [8, 16])
    single_rows = TensorDescriptor.from_tensor(array, [1, 16])
    target = TensorDescriptor.from_tensor(out, [8, 16])
    # more than twice in a row, so that machine code makes launches too
    for rounds in (False, False, False, True, True, True, False):
        single_rows.round_f32_to_tf32 = rounds
        single_rows.padding = "zero"
        device.run(copy_kernel, (1,), source, single_rows, target, gathered, 0)
        assert_same(gathered, as_tf32(x[:8]) if rounds else x[:8])


def test_stores_keep_all_bits(device: Device, rng: np.random.Generator):
    x, out = numbers(rng), device.array(np.zeros((16, 16), np.float32))
    array = device.array(x)
    source = TensorDescriptor.from_tensor(array, [8, 16])
    single_rows = TensorDescriptor.from_tensor(array, [1, 16])
    target = TensorDescriptor.from_tensor(out, [8, 16], round_f32_to_tf32=True)
    gathered = device.empty((8, 16), np.float32)
    device.run(copy_kernel, (1,), source, single_rows, target, gathered, 8)
    assert_same(out[8:], x[8:])


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.float64])
def test_only_float32_is_rounded(dtype: Any):
    with pytest.raises(errors.InvalidDescriptor, match="'round_f32_to_tf32' must be False"):
        TensorDescriptor.from_tensor(np.zeros((8, 16), dtype), [8, 16], round_f32_to_tf32=True)


def test_a_kernel_is_compiled_for_the_rounding_that_its_type_names():
    from tilewright.compiler import ASTSource

    def source(reads: str) -> ASTSource:
        descriptor, rows = (f"tensordesc<fp32[{n}, 16]{reads}>" for n in (8, 1))
        types = {"source": descriptor, "single_rows": rows, "target": descriptor}
        return ASTSource(copy_kernel, {**types, "gathered": "*fp32", "row": "i32"})

    all_reads = ("", ",nan", ",zero,tf32", ",nan,tf32")
    assert len({source(reads).key() for reads in all_reads}) == 4
    for reads in all_reads:  # the types that hooks get are those that were given
        assert source(reads).signature["source"] == f"tensordesc<fp32[8, 16]{reads}>"
    with pytest.raises(errors.InvalidOption, match="as 'tensordesc<fp16"):
        source(",tf32")
