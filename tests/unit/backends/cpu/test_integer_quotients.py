"""Vectors of integers of up to 32 bits are divided as doubles, which CPUs have instructions for."""

import numpy as np
import pytest

import tilewright.language as tl
from tilewright import jit


@jit
def by_an_argument(x, out, d):
    at = tl.arange(0, 64)
    v = tl.load(x + at)
    tl.store(out + at, v // d + v % d)


@jit
def by_a_tile(x, out, d):
    at = tl.arange(0, 64)
    v = tl.load(x + at)
    tl.store(out + at, v // (at + d).to(v.dtype))


@pytest.mark.parametrize("kernel", [by_an_argument, by_a_tile])
@pytest.mark.parametrize("dtype", [np.int32, np.int16])
def test_32_bits_are_divided_as_doubles(kernel: object, dtype: type) -> None:
    text = kernel.warmup(dtype, dtype, 77, grid=(1,)).asm["llir"]  # pyright: ignore[reportAttributeAccessIssue]
    assert "x double>" in text and "sdiv <" not in text and "srem <" not in text


@pytest.mark.parametrize("kernel", [by_an_argument, by_a_tile])
def test_64_bits_are_not(kernel: object) -> None:
    text = kernel.warmup(np.int64, np.int64, 77, grid=(1,)).asm["llir"]  # pyright: ignore[reportAttributeAccessIssue]
    assert "x double>" not in text and "sdiv <" in text
