"""Arrays of every library: address, element type, alignment, writability, device."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.unit.runtime.kernels import add, new_value
from tilewright.runtime.arguments import host_arrays
from tilewright.runtime.arguments.key_rules import HANDLERS, Handlers, Spec
from tilewright.support import errors


def seen(array: object) -> tuple[Spec, int]:
    key, address = HANDLERS.key_and_value(array)
    assert isinstance(key, Spec)
    return key, address


def aligned(dtype: Any, offset: int = 0) -> np.ndarray:
    """16 elements whose first is `offset` bytes after a multiple of 64."""
    raw = np.zeros(16 * np.dtype(dtype).itemsize + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    return raw[start : start + 16 * np.dtype(dtype).itemsize].view(dtype)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("bool", "*u1"),
        ("int8", "*i8"),
        ("uint16", "*u16"),
        ("int64", "*i64"),
        ("float16", "*fp16"),
        ("float64", "*fp64"),
        (ml_dtypes.bfloat16, "*bf16"),
        (ml_dtypes.float8_e4m3fn, "*fp8e4nv"),
        (ml_dtypes.float8_e5m2, "*fp8e5"),
    ],
)
def test_numpy_dtypes(dtype: Any, name: str) -> None:
    array = aligned(dtype)
    key, address = seen(array)
    assert repr(key) == name + "/16"
    assert address == array.ctypes.data
    assert key.device == "cpu"
    assert not key.read_only


def test_alignment_and_writability() -> None:
    assert seen(aligned("f", 16))[0].divisor == 16
    assert [seen(aligned("f", n))[0].divisor for n in (4, 8)] == [1, 1]
    array = aligned("f")
    array.flags.writeable = False
    key, _ = seen(array)
    assert key.read_only
    assert key.divisor == 16
    assert key is not seen(aligned("f"))[0]
    assert seen(aligned("f"))[0] is seen(aligned("f"))[0]


def test_views_start_at_their_first_element() -> None:
    base = np.arange(12, dtype=np.int32).reshape(3, 4)
    for view in (base[1:, 2:], base.T, base[::-1], base[..., ::2], base[:0]):
        assert seen(view)[1] == view.__array_interface__["data"][0]


def test_subclasses_and_other_ways_to_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    class Named(np.ndarray):
        pass

    array = aligned("f").view(Named)
    assert seen(array)[1] == array.ctypes.data
    monkeypatch.setattr(host_arrays, "_data_follows_header", lambda *_: False)
    fresh = Handlers()
    fresh.resolvers = HANDLERS.resolvers
    assert fresh.key_and_value(array) == HANDLERS.key_and_value(array)


@pytest.mark.parametrize("dtype", [">f4", "complex64", "M8[s]", "S3", "O", ml_dtypes.int4])
def test_dtypes_that_kernels_have_not(dtype: Any) -> None:
    with pytest.raises(errors.UnsupportedArgument, match="convert it to"):
        HANDLERS.key_and_value(np.zeros(2, dtype))


class Interface:
    """Describes its memory as NumPy arrays do."""

    def __init__(self, array: np.ndarray) -> None:
        self.__array_interface__ = array.__array_interface__


class InterfaceClass:
    """As `Interface`, known from the class."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @property
    def __array_interface__(self) -> Any:
        return self._array.__array_interface__


class Pointer:
    """Has what Triton asks of an argument."""

    dtype = np.dtype("f")

    def data_ptr(self) -> int:
        return 4096 + 4


class Capsule:
    """Speaks DLPack only."""

    def __init__(self, array: np.ndarray, device: int = 1) -> None:
        self._array = array
        self._device = device

    def __dlpack__(self, **words: Any) -> Any:
        return self._array.__dlpack__(**words)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device, 0


def test_protocols() -> None:
    array = aligned("f")
    for other in (InterfaceClass(array), Interface(array), Capsule(array)):
        key, address = seen(other)
        assert address == array.ctypes.data
        assert key is seen(array)[0]
    assert seen(Pointer()) == (seen(aligned("f", 4))[0], 4100)


def test_a_read_only_interface() -> None:
    array = aligned("f")
    array.flags.writeable = False
    assert seen(InterfaceClass(array))[0].read_only


def test_dlpack_keeps_the_memory() -> None:
    array = aligned("f")
    before = sys.getrefcount(array)
    address: Any = HANDLERS.key_and_value(Capsule(array))[1]
    assert address == array.ctypes.data
    assert sys.getrefcount(array) == before + 1
    del address
    assert sys.getrefcount(array) == before


def test_kernels_take_arrays_that_are_not_contiguous() -> None:
    value = new_value()
    out = np.zeros((4, 4), np.int32)
    value[1](out[2:, 1:], 7)
    assert out[2, 1] == 7
    assert out.sum() == 7


def test_arrays_of_no_elements() -> None:
    x = np.zeros(0, "f")
    assert add[1](x, x, x, 0, BLOCK=16).metadata.name == "add"


def test_memory_of_ctypes() -> None:
    memory = (ctypes.c_float * 16)()
    value = new_value()
    value[1](np.ctypeslib.as_array(memory), 2.5)
    assert memory[0] == 2.5


@pytest.mark.torch
def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")

    from tilewright.runtime import MockTensor, reinterpret

    t = torch.zeros(16)
    assert seen(t) == (seen(aligned("f"))[0], t.data_ptr())
    parameter = torch.nn.Parameter(t)
    assert seen(parameter)[1] == t.data_ptr()
    for dtype in (torch.bfloat16, torch.float8_e5m2, torch.bool, torch.uint16):
        assert repr(seen(torch.zeros(16, dtype=dtype))[0]).startswith("*")
    assert repr(seen(MockTensor(torch.bfloat16))[0]) == "*bf16/16"
    assert repr(seen(reinterpret(t, torch.int32))[0]) == "*i32/16"
    with pytest.raises(errors.UnsupportedArgument):
        HANDLERS.key_and_value(torch.zeros(3, dtype=torch.complex64))
    value = new_value()
    with pytest.raises(errors.DeviceMismatch, match="is on meta"):
        value[1](torch.zeros(3, device="meta"), 2)
    value[1](t.requires_grad_(), 2.5)
    assert t[0].item() == 2.5
    assert "torch" in sys.modules
