"""Loops of products whose operands are loaded: as they are, cast, or computed from what is loaded.

On GPUs such loads are copied several iterations ahead, also if element-wise code follows them.
"""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit


@jit
def prepared(x, HOW: tl.constexpr):
    if HOW == "cast":
        return x.to(tl.float16)
    if HOW == "scaled":
        return (x * 2 + 1).to(tl.float16)
    if HOW == "chosen":
        return tl.where(x > 0, x.to(tl.float16), -1.0)
    return x


@jit
def looped(a, b, c, K, HOW: tl.constexpr, STAGES: tl.constexpr):
    i, k = tl.arange(0, 32), tl.arange(0, 32)
    acc = tl.zeros((32, 32), tl.float32)
    for start in tl.range(0, K, 32, num_stages=STAGES):
        inside = k + start < K
        x = tl.load(a + i[:, None] * K + k[None, :] + start, inside[None, :], other=0)
        y = tl.load(b + (k[:, None] + start) * 32 + i[None, :], inside[:, None], other=0)
        acc = tl.dot(prepared(x, HOW), y.to(tl.float16), acc)
    tl.store(c + i[:, None] * 32 + i[None, :], acc)


EXPECTED: dict[str, Any] = {
    "": lambda x: x,
    "cast": lambda x: x,
    "scaled": lambda x: 2 * x + 1,
    "chosen": lambda x: np.where(x > 0, x, -1),
}


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("length", [32, 64, 112, 176])
@pytest.mark.parametrize(
    "dtype, how",
    [("float16", ""), ("float32", "cast"), ("int8", "cast"), ("float16", "scaled"),
     ("float32", "chosen")],
)  # fmt: skip
def test_products_of_what_is_loaded(
    device: Device, rng: np.random.Generator, dtype: str, how: str, length: int, stages: int
):
    a, b = rng.integers(-3, 4, (32, length)), rng.integers(-3, 4, (length, 32))
    out = device.empty((32, 32), np.float32)
    operands = (device.array(x, dtype) for x in (a, b))
    device.run(looped, (1,), *operands, out, length, HOW=how, STAGES=stages)
    np.testing.assert_array_equal(out, EXPECTED[how](a) @ b)
