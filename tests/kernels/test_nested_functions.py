"""Functions and lambdas inside kernels, plain globals, and 64-bit offsets: on every device."""

# pyright: reportArgumentType=false, reportOperatorIssue=false, reportAttributeAccessIssue=false

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit

NUMBER = 7
NAMES = ("left", "right")


@jit
def applied_twice(function, x):
    return function(function(x))


@jit
def nested_kernel(out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)

    def largest(a, b, *, scale=1):
        if scale == 1:
            return tl.maximum(a, b)
        return a * scale + b

    total = 0
    for j in range(n):

        def inner(x, by=j):
            result = x
            for q in range(4):
                if q == 1:
                    continue
                if q == 3:
                    break
                result += by + q + n
            return result

        total += inner(j)
    n = n + 1
    last = applied_twice(lambda x: x + n + NUMBER, i)
    best = tl.reduce(i * 3, 0, largest) + tl.reduce(i, 0, lambda a, b: a + b)
    scanned = tl.associative_scan(i, 0, largest)
    scanned += (lambda x, y=2: x * y)(i, y=largest(i, i, scale=3))
    tl.store(out + i, total * 100 + last + best + scanned + (1 < n <= 5) * 5 + len(NAMES))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_functions_inside_a_kernel(device: Device, n: int):
    out = device.empty(8, np.int32)
    device.run(nested_kernel, (1,), out, n, BLOCK=8)
    i = np.arange(8)
    total = sum(j + sum(j + q + n for q in (0, 2)) for j in range(n))
    last = i + 2 * (n + 1 + 7)
    expected = total * 100 + last + 21 + 28 + i + i * (4 * i) + (1 < n + 1 <= 5) * 5 + 2
    np.testing.assert_array_equal(out, expected)


@jit
def far_kernel(out, n, one, BLOCK: tl.constexpr):
    i = tl.program_id(0) * n + tl.arange(0, BLOCK) * one
    far = n * 1_000_000
    for k in range(3):
        far += k * 2_000_000_000
    tl.store(out + tl.arange(0, BLOCK), i * 3_000_000_000 + far)


def test_offsets_of_64_bits_do_not_wrap(device: Device):
    out = device.empty(8, np.int64)
    device.run(far_kernel, (1,), out, 5000, 1, BLOCK=8, int64_offsets=True)
    expected = np.arange(8, dtype=np.int64) * 3_000_000_000 + 5_000_000_000 + 6_000_000_000
    np.testing.assert_array_equal(out, expected)
