"""What can be passed to an interpreted kernel, and what the kernel then sees."""

# pyright: reportInvalidTypeForm=false

import sys

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.eager import run_kernel
from tilewright.interp import NUMPY_DTYPES
from tilewright.ir.types import all_dtypes, f8e4b15
from tilewright.language import device_function
from tilewright.runtime import reinterpret
from tilewright.support import errors


@device_function
def look(x, seen: tl.constexpr):
    seen.value.append(x)


def seen_as(value, kernel=look):
    seen = []
    run_kernel(kernel, (1,), {"x": value, "seen": tl.constexpr(seen)})
    return seen[0]


@pytest.mark.parametrize(
    "value, dtype",
    [
        (3, "int32"),
        (-(2**31), "int32"),
        (2**31, "int64"),
        (2**63, "uint64"),
        (1.5, "fp32"),
        (True, "int1"),
        (np.int8(3), "int32"),
        (np.float64(1.5), "fp32"),
        (np.bool_(True), "int1"),
    ],
)
def test_numbers(value, dtype):
    found = seen_as(value)
    assert str(found.dtype) == dtype and found.handle.data == value


def test_numbers_take_the_annotated_dtype():
    @device_function
    def wide(x: tl.int64, seen: tl.constexpr):
        seen.value.append(x)

    assert str(seen_as(3, wide).dtype) == "int64"


def test_numbers_that_do_not_fit():
    with pytest.raises(errors.UnsupportedArgument, match="more than 64 bits"):
        seen_as(2**64)


@pytest.mark.parametrize("dtype", all_dtypes(), ids=str)
def test_arrays_of_every_dtype(dtype):
    array = np.zeros(2, np.uint8 if dtype is f8e4b15 else NUMPY_DTYPES[dtype])
    # NumPy has no dtype for the format that Triton alone knows
    pointer = seen_as(reinterpret(array, tl.type_of(dtype)) if dtype is f8e4b15 else array)
    assert pointer.handle.type.element is dtype
    assert int(pointer.handle.data) == array.__array_interface__["data"][0]


def test_arrays_seen_as_another_dtype():
    array = np.zeros(2, np.uint8)
    pointer = seen_as(reinterpret(array, tl.float8e4nv))
    assert pointer.handle.type.element is tl.float8e4nv.ir
    assert int(pointer.handle.data) == array.__array_interface__["data"][0]


def test_compile_time_values():
    assert seen_as(tl.constexpr("relu")).value == "relu"
    assert seen_as(None) is None and seen_as(tl.constexpr(None)) is None
    assert seen_as(tl.float16) is tl.float16
    assert seen_as("name") == "name"


def test_tuples_keep_their_structure():
    from collections import namedtuple

    point = namedtuple("point", "a b")
    found = seen_as((3, point(2.0, (None,)), 1))
    assert found[2] == 1 and isinstance(found[2], int)
    assert str(found[0].dtype) == "int32" and str(found[1].a.dtype) == "fp32"
    assert found[1].b[0] is None


@pytest.mark.parametrize(
    "value",
    [object(), {1: 2}, np.zeros(2, np.complex64), np.zeros(2, ">f4"), 1j],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_passed(value):
    with pytest.raises(errors.UnsupportedArgument, match="argument 'x'"):
        seen_as(value)


class WithInterface:
    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


class WithDLPack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@device_function
def increment(x, n: tl.constexpr):
    at = x + tl.arange(0, n)
    tl.store(at, tl.load(at) + 1)


@pytest.mark.parametrize("wrap", [lambda a: a, WithInterface, WithDLPack])
def test_results_appear_in_place(wrap):
    array = np.arange(4, dtype=np.float32)
    run_kernel(increment, (1,), {"x": wrap(array), "n": tl.constexpr(4)})
    assert array.tolist() == [1, 2, 3, 4]


def test_arrays_on_a_gpu_are_refused():
    class OnGpu:
        __cuda_array_interface__ = {}

    with pytest.raises(errors.DeviceMismatch, match="is on a GPU, but the kernel runs on the CPU"):
        seen_as(OnGpu())


@pytest.mark.torch
@pytest.mark.parametrize(
    "name", ["float32", "float16", "bfloat16", "int8", "int64", "uint8", "float8_e4m3fn"]
)
def test_torch_tensors(name):
    torch = pytest.importorskip("torch")
    x = torch.arange(4).to(getattr(torch, name))
    run_kernel(increment, (1,), {"x": x, "n": tl.constexpr(4)})
    assert x.to(torch.float32).tolist() == [1, 2, 3, 4]


@pytest.mark.torch
def test_torch_tensors_that_have_a_gradient_a_stride_or_no_counterpart():
    torch = pytest.importorskip("torch")
    x = torch.zeros(8, requires_grad=True)
    run_kernel(increment, (1,), {"x": x, "n": tl.constexpr(8)})
    assert x.tolist() == [1] * 8
    y = torch.zeros(4, 4)
    run_kernel(increment, (1,), {"x": y[1], "n": tl.constexpr(4)})
    assert y.sum(1).tolist() == [0, 4, 0, 0]
    with pytest.raises(errors.UnsupportedArgument, match="argument 'x'"):
        seen_as(torch.zeros(2, dtype=torch.complex64))
    with pytest.raises(errors.DeviceMismatch, match="is on meta"):
        seen_as(torch.zeros(2, device="meta"))


def test_bfloat16_arrays():
    x = np.ones(4, ml_dtypes.bfloat16)
    run_kernel(increment, (1,), {"x": x, "n": tl.constexpr(4)})
    assert x.astype(float).tolist() == [2] * 4


class BarePointer:
    """Tells no more of its memory than where it begins."""

    def __init__(self, array, dtype="float32"):
        self.array, self.dtype = array, dtype

    def data_ptr(self):
        return self.array.ctypes.data


def doubled(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i) * 2)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells what is mapped")
@pytest.mark.parametrize(
    "options",
    [{}, {"interpret": True}, {"check": "bounds,race"}, {"interpret": True, "check": "race"}],
)
def test_addresses_alone(options):
    x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    tilewright.jit(doubled, **options)[(1,)](BarePointer(x), BarePointer(y, "torch.float32"), B=16)
    np.testing.assert_array_equal(y, 2 * x)


def test_addresses_of_no_memory_and_of_no_dtype():
    far, odd = BarePointer(np.zeros(1)), BarePointer(np.zeros(1), "complex64")
    far.data_ptr = lambda: 8
    with pytest.raises(errors.DeviceMismatch, match="cannot read"):
        seen_as(far)
    with pytest.raises(errors.UnsupportedArgument, match="complex64 array"):
        seen_as(odd)
