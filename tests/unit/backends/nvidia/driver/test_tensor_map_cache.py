"""Tensor maps of launches: made once for the same numbers, and how the driver is asked."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from tilewright.backends.nvidia.driver import tensor_map_cache
from tilewright.backends.nvidia.driver.cuda_driver import Driver
from tilewright.backends.nvidia.driver.tensor_map_cache import TensorMapCache
from tilewright.backends.nvidia.tensor_maps import LaunchNumber, TensorMapSource

SOURCE = TensorMapSource(
    0, (LaunchNumber(1), LaunchNumber(2)), (LaunchNumber(3),), (64, 32), "f16", 2, 64
)
ENCODE = tensor_map_cache._ENCODE  # pyright: ignore[reportPrivateUsage]


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
        return 4096 * self.device

    def write(self, address: int, data: bytes) -> None:
        self.written.append((address, data))


_TYPES = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32)


def cache_of(driver: FakeDriver) -> TensorMapCache:
    return TensorMapCache([SOURCE], cast("Driver", driver))


def test_the_driver_gets_the_innermost_dimension_first() -> None:
    driver = FakeDriver()
    cache_of(driver).addresses(0, [1 << 40, 100, 72, 80])
    ones = [1, 1]
    assert driver.encoded == [(0, 6, 2, 1 << 40, [72, 100], [160], [32, 64], ones, 0, 2, 2, 0)]


def test_maps_are_made_once_for_the_same_numbers() -> None:
    driver = FakeDriver()
    cache = cache_of(driver)
    first = cache.addresses(0, [4096, 100, 72, 80])
    assert cache.addresses(0, [4096, 100, 72, 80]) == first
    assert cache.addresses(0, [8192, 100, 72, 80]) != first
    assert len(driver.encoded) == 2


def test_few_maps_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_map_cache, "MAX_KEPT", 2)
    driver = FakeDriver()
    cache = cache_of(driver)
    for rows in (1, 2, 3, 1):
        cache.addresses(0, [4096, rows, 72, 80])
    assert len(driver.encoded) == 4


@pytest.mark.parametrize("dims", [(0, 72), (100, 0), (-1, 72)])
def test_an_array_without_elements_is_a_zero(dims: tuple[int, int]) -> None:
    driver = FakeDriver()
    cache_of(driver).addresses(3, [0, *dims, 80])
    (encoded,) = driver.encoded
    assert encoded[3:6] == (3 * 4096, [1, 1], [16])
    assert driver.written == [(3 * 4096, bytes(128))]


def test_a_refusal_is_an_error() -> None:
    with pytest.raises(ValueError, match="cuTensorMapEncodeTiled"):
        cache_of(FakeDriver(status=1)).addresses(0, [4096, 100, 72, 80])
