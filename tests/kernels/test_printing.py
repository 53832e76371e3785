"""`device_print` and `device_assert` on every device."""

import re

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import assert_same
from tests.kernels.devices import Device
from tilewright import jit
from tilewright.support import errors


@jit
def print_kernel(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.device_print("values", v)
    tl.device_print("program", tl.program_id(0), tl.sum(v, 0) * 0.5)
    tl.device_print("large", v > 2)


SHOWN = ["0", "0", "1", "1"]


def printed(text: str) -> list[str]:
    """Lines without the spaces that pad columns."""
    return [re.sub(r" +", " ", line).strip() for line in text.splitlines()]


def test_print(device: Device, capfd: pytest.CaptureFixture[str]):
    x = device.array(np.array([1, -2, 3, 4], np.int32))
    device.run(print_kernel, (2,), x, BLOCK=4)
    found = printed(capfd.readouterr().out)
    for program in range(2):
        head = f"pid ({program}, 0, 0) idx "
        mine = [line.removeprefix(head) for line in found if line.startswith(head)]
        assert mine[:4] == ["(0) values: 1", "(1) values: -2", "(2) values: 3", "(3) values: 4"]
        assert mine[4:6] == [
            f"() program: (operand 0) {program}", "() program: (operand 1) 3.000000"
        ]  # fmt: skip
        assert mine[6:] == [f"({i}) large: {shown}" for i, shown in enumerate(SHOWN)]


@jit
def print_shapes_kernel(x):
    tl.device_print("v", tl.arange(0, 2), tl.arange(0, 4)[:, None] + 10, tl.load(x))


def test_tiles_of_different_shapes_are_printed_together(
    device: Device, capfd: pytest.CaptureFixture[str]
):
    device.run(print_shapes_kernel, (1,), device.array([7], np.int32))
    found = [line.removeprefix("pid (0, 0, 0) idx ") for line in printed(capfd.readouterr().out)]
    first = [f"({i}) v: (operand 0) {i}" for i in range(2)]
    second = [f"({i}, 0) v: (operand 1) {10 + i}" for i in range(4)]
    assert sorted(found) == sorted([*first, *second, "() v: (operand 2) 7"])


@jit
def plain_print_kernel(x, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    if tl.program_id(0) == 1:
        print("seen", v)


def test_the_print_of_python(device: Device, capfd: pytest.CaptureFixture[str]):
    device.run(plain_print_kernel, (2,), device.array([1.5, 2.5], np.float32), BLOCK=2)
    found = capfd.readouterr().out
    assert found.count("seen") in (1, 2) and "1.5" in found and "2.5" in found


@jit
def print_types_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.device_print("v", v)
    tl.store(out + i, v)


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        ("float32", 0.1, "0.100000"), ("float32", 1e-7, "0.000000"), ("float32", 100, "100.000000"),
        ("float16", -0.25, "-0.250000"), ("float64", 1 / 3, "0.333333"),
        ("float32", float("inf"), "inf"), ("float64", float("nan"), "nan"),
        ("uint64", 2**64 - 1, "18446744073709551615"), ("int8", -128, "-128"),
        ("int64", -(2**63), "-9223372036854775808"), ("uint8", 200, "200"), ("bool", True, "1"),
    ],
)  # fmt: skip
def test_print_of_element_types(
    device: Device, capfd: pytest.CaptureFixture[str], dtype: str, value: float, text: str
):
    x, out = device.array([value, 0], dtype), device.empty(2, dtype)
    device.run(print_types_kernel, (1,), x, out, BLOCK=2)
    assert printed(capfd.readouterr().out)[0] == f"pid (0, 0, 0) idx (0) v: {text}"
    assert_same(out, x)


@jit
def assert_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=1)
    tl.device_assert(v > 0, "values must be positive")
    tl.store(out + i, v, mask=i < n)


def test_assert_that_holds(device: Device):
    x, out = device.array(np.arange(1, 101, dtype=np.int32)), device.empty(100, np.int32)
    device.run(assert_kernel, (4,), x, out, 100, BLOCK=32, debug=True)
    np.testing.assert_array_equal(out, x)


def test_assert_that_fails(device: Device):
    values = np.arange(1, 101, dtype=np.int32)
    values[70] = -1
    x, out = device.array(values), device.empty(100, np.int32)
    with pytest.raises(errors.DeviceAssertionFailure) as caught:
        device.run(assert_kernel, (4,), x, out, 100, BLOCK=32, debug=True)
    text = str(caught.value)
    assert "values must be positive" in text
    assert "(2, 0, 0)" in text
    assert 'tl.device_assert(v > 0, "values must be positive")' in text
    device.run(assert_kernel, (2,), x, out, 64, BLOCK=32, debug=True)
    np.testing.assert_array_equal(out[:64], values[:64])


def test_asserts_cost_nothing_without_debug(device: Device):
    x, out = device.array(-np.ones(32, np.int32)), device.empty(32, np.int32)
    device.run(assert_kernel, (1,), x, out, 32, BLOCK=32)
    assert (out == -1).all()


@jit
def static_kernel(out, N: tl.constexpr):
    tl.static_assert(N > 2, f"N is {N}")
    tl.static_print("N", N)
    tl.store(out, N)


def test_static_assert_and_print(device: Device, capfd: pytest.CaptureFixture[str]):
    out = device.empty(1, np.int32)
    device.run(static_kernel, (1,), out, N=3)
    assert "N 3" in capfd.readouterr().out
    with pytest.raises(errors.CompileTimeAssertionFailure, match="N is 2"):
        device.run(static_kernel, (1,), out, N=2)
    assert out[0] == 3


@jit
def lines_kernel(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.device_print("x", tl.load(x + i))
    tl.device_print("in hex:", tl.load(y + i), hex=True)
    tl.device_print("here")


def test_lines_are_those_of_triton(device: Device, capfd: pytest.CaptureFixture[str]):
    """Indices are padded to the digits of the extent; a prefix gets a space and a colon."""
    x, y = np.arange(16, dtype=np.float32) / 4, np.arange(16, dtype=np.int16) - 8
    device.run(lines_kernel, (1,), device.array(x), device.array(y), BLOCK=16)
    found = set(capfd.readouterr().out.splitlines())
    expected = {f"pid (0, 0, 0) idx ({i:2}) x: {value:f}" for i, value in enumerate(x)}
    codes = enumerate(y.view(np.uint16))
    expected |= {f"pid (0, 0, 0) idx ({i:2}) in hex: 0x{code:04x}" for i, code in codes}
    assert found == expected | {"pid (0, 0, 0) here"}


@jit
def underflowed(x, out, n):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.expect_zero(tl.load(x + i), i < n))


def test_what_is_expected_to_be_zero_is_left_as_it_is(device: Device):
    x = np.where(np.arange(16) < 5, 0, np.arange(16)).astype(np.float32)
    out = device.empty(16, np.float32)
    for debug in (False, True):
        device.run(underflowed, (1,), device.array(x), out, 5, debug=debug)
        np.testing.assert_array_equal(out, x)
    device.run(underflowed, (1,), device.array(x), out, 7)
    np.testing.assert_array_equal(out, x)
    if device.name in ("cpu", "interpreter"):
        with pytest.raises(errors.DeviceAssertionFailure, match="a number is not 0"):
            device.run(underflowed, (1,), device.array(x), out, 7, debug=True)
