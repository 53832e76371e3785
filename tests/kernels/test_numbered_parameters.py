"""Functions of libdevice take Triton's names of their parameters: arg0, arg1 ..."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import assert_same
from tests.kernels.devices import Device
from tilewright import jit
from tilewright.language.extra import libdevice as libdevice_functions
from tilewright.support import errors

libdevice: Any = libdevice_functions
"""Without the names of parameters that type checkers know."""


@jit
def numbered_kernel(x, y, out):
    i = tl.arange(0, 16)
    a, b = tl.load(x + i), tl.load(y + i)
    signed = libdevice.copysign(arg1=b, arg0=a)
    rounded = libdevice.trunc(arg0=a)
    # functions that `tl.math` has too, under another name in one case
    summed = libdevice.fma(a, arg1=b, arg2=libdevice.abs(arg0=b))
    tl.store(out + i, signed + rounded + summed + libdevice.fast_expf(arg0=a * 0))


def test_parameters_by_number(device: Device, rng: np.random.Generator):
    x, y = rng.integers(-9, 9, (2, 16)).astype(np.float32)
    out = device.empty(16, np.float32)
    device.run(numbered_kernel, (1,), device.array(x), device.array(y), out)
    assert_same(out, np.copysign(x, y) + np.trunc(x) + (x * y + np.abs(y)) + 1)


@jit
def twice_kernel(x):
    tl.store(x, libdevice.copysign(arg0=1.0, x=2.0, y=3.0))


@jit
def beyond_kernel(x):
    tl.store(x, libdevice.trunc(arg1=1.0))


maximum: Any = tl.maximum


@jit
def other_kernel(x):
    tl.store(x, maximum(arg0=1.0, arg1=2.0))


@pytest.mark.parametrize("kernel", [twice_kernel, beyond_kernel, other_kernel])
def test_other_numbers_are_mistakes(kernel: object):
    launch = kernel[(1,)]  # pyright: ignore[reportIndexIssue]
    with pytest.raises(errors.UnknownArgument, match="arg"):
        launch(np.zeros(1, np.float32))
