"""Tensor maps of launches: which parameters decide them, and how the driver is asked."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from tilewright.backends.nvidia.driver import tensor_map_encoder
from tilewright.backends.nvidia.driver.cuda_driver import Driver
from tilewright.backends.nvidia.driver.cuda_errors import ArrayRefused
from tilewright.backends.nvidia.driver.tensor_map_encoder import TensorMapEncoder
from tilewright.backends.nvidia.tensor_maps import LaunchNumber, TensorMapSource

SOURCE = TensorMapSource(
    0, (LaunchNumber(1), LaunchNumber(2)), (LaunchNumber(3),), (64, 32), "f16", 2, 64
)
ENCODE = tensor_map_encoder._ENCODE  # pyright: ignore[reportPrivateUsage]


class FakeDriver:
    """Records what is encoded; zeros are at 4096 times the device."""

    def __init__(self, status: int = 0) -> None:
        self.encoded: list[tuple[Any, ...]] = []
        self.written: list[tuple[int, bytes]] = []

        def encode(to: int, kind: int, rank: int, base: int, *rest: Any) -> int:
            pairs = zip(rest, _TYPES, strict=False)
            arrays = [ctypes.cast(p, ctypes.POINTER(t)) for p, t in pairs]
            lists = [
                [array[i] for i in range(n)] for array, n in zip(arrays, (2, 1, 2, 2), strict=True)
            ]
            self.encoded.append((to % 64, kind, rank, base, *lists, *rest[4:]))
            return status

        self._encode = ENCODE(encode)

    def address_of(self, function: str) -> int:
        assert function == "cuTensorMapEncodeTiled"
        return cast("int", ctypes.cast(self._encode, ctypes.c_void_p).value)

    def value(self, call: str, result: tuple[int, object]) -> object:
        if result[0]:
            raise ValueError(call)
        return result[1]

    @contextmanager
    def context(self, device: int) -> Iterator[None]:
        self.device = device
        yield

    def allocate(self, size: int) -> int:
        return 4096 * self.device + size * len(self.written)

    def write(self, address: int, data: bytes) -> None:
        self.written.append((address, data))


_TYPES = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32)


KINDS = ("ptr", "i32", "i64", "i32")


def encode(driver: FakeDriver, *values: int, device: int = 0) -> bytes:
    """By words as machine code passes them."""
    words = (ctypes.c_uint64 * 4)(*(value & (1 << 64) - 1 for value in values))
    encoder = TensorMapEncoder([SOURCE], KINDS, cast("Driver", driver))
    return encoder.encode(device, 0, ctypes.addressof(words))


def test_parameters_that_decide_a_map() -> None:
    constant = TensorMapSource(2, (LaunchNumber(None, 8), LaunchNumber(0)), (LaunchNumber(0),),
                               (8, 32), "f16", 2, 64)  # fmt: skip
    encoder = TensorMapEncoder([SOURCE, constant], KINDS, cast("Driver", FakeDriver()))
    assert encoder.parameters == [(0, 1, 2, 3), (0, 2)]


def test_the_driver_gets_the_innermost_dimension_first() -> None:
    driver = FakeDriver()
    assert len(encode(driver, 1 << 40, 100, 72, 80)) == 128
    ones = [1, 1]
    assert driver.encoded == [(0, 6, 2, 1 << 40, [72, 100], [160], [32, 64], ones, 0, 2, 2, 0)]


def test_bits_above_an_integer_do_not_count() -> None:
    driver = FakeDriver()
    encode(driver, 1 << 40, 100 + (5 << 32), 72, 80 - (1 << 32))
    assert driver.encoded[0][4:6] == ([72, 100], [160])


@pytest.mark.parametrize("dims", [(0, 72), (100, 0), (-1, 72), (0xFFFFFFFF, 72)])
def test_an_array_without_elements_is_a_zero(dims: tuple[int, int]) -> None:
    driver = FakeDriver()
    encode(driver, 0, *dims, 80, device=3)
    (encoded,) = driver.encoded
    assert encoded[3:6] == (3 * 4096, [1, 1], [16])
    assert driver.written == [(3 * 4096, bytes(128))]


def test_stores_to_an_array_without_elements_go_elsewhere() -> None:
    driver, stored = FakeDriver(), replace(SOURCE, stored=True)
    encoder = TensorMapEncoder([SOURCE, stored], KINDS, cast("Driver", driver))
    words = (ctypes.c_uint64 * 4)(4096, 0, 72, 80)
    for number in (0, 1, 1):
        encoder.encode(0, number, ctypes.addressof(words))
    bases = [encoded[3] for encoded in driver.encoded]
    assert bases[0] != bases[1] == bases[2]
    assert len(driver.written) == 2


def test_strides_along_one_index_do_not_count() -> None:
    driver = FakeDriver()
    encode(driver, 4096, 1, 72, 0)
    assert driver.encoded[0][4:6] == ([72, 1], [16])


def test_an_array_that_no_map_describes() -> None:
    with pytest.raises(ArrayRefused, match=r"at 0x1000 with extents \(100, 72\), strides \(0,\)"):
        encode(FakeDriver(status=1), 4096, 100, 72, 0)


def test_other_refusals_are_those_of_the_driver() -> None:
    with pytest.raises(ValueError, match="cuTensorMapEncodeTiled"):
        encode(FakeDriver(status=3), 4096, 100, 72, 80)
