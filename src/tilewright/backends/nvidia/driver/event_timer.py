"""Clock and memory of a GPU, without PyTorch."""

from __future__ import annotations

import weakref

from tilewright.backends.nvidia.driver.cuda_driver import Driver, driver
from tilewright.backends.nvidia.driver.current_stream import device_and_stream

_FLUSH_FACTOR = 4
"""The cache is flushed by writing this many times its size."""


class DeviceMemory:
    """`size` bytes of a device, freed when collected. address: of the first byte."""

    def __init__(self, size: int, ordinal: int, api: Driver | None = None) -> None:
        self._driver = api or driver()
        self._ordinal = ordinal
        self.size = size
        with self._driver.context(ordinal):
            self.address = self._driver.allocate(size)
        self._free = weakref.finalize(self, _free, self._driver, ordinal, self.address)

    def data_ptr(self) -> int:
        """The address; so a launch takes the object itself."""
        return self.address

    def fill(self, byte: int, stream: int = 0) -> None:
        """Fill the memory with `byte`, in stream order."""
        with self._driver.context(self._ordinal):
            self._driver.fill(self.address, byte, self.size, stream)

    def write(self, data: bytes) -> None:
        """Copy `data` to the start."""
        assert len(data) <= self.size
        with self._driver.context(self._ordinal):
            self._driver.write(self.address, data)

    def read(self) -> bytes:
        """All bytes, after the work issued to the default stream so far."""
        with self._driver.context(self._ordinal):
            return self._driver.read(self.address, self.size)

    def free(self) -> None:
        """Free the memory now."""
        self._free()


def _free(api: Driver, ordinal: int, address: int) -> None:
    if api.is_lost:  # after a fork the memory is the parent's
        return
    with api.context(ordinal):
        api.free(address)


class _Stamp:
    """An event that has been recorded."""

    def __init__(self, api: Driver) -> None:
        self.event = api.create_event()
        # not at exit: the driver may be shut down, and frees its events itself
        weakref.finalize(self, _destroy, api, self.event).atexit = False


def _destroy(api: Driver, event: int) -> None:
    if not api.is_lost:
        api.destroy_event(event)


class CudaEventTimer:
    """A clock for `testing.do_bench`: events in the current stream of a device.

    ordinal: of the device, by default the current one.
    """

    shortest_sample_ms = 0.0
    """Events time each call alone."""

    def __init__(self, ordinal: int | None = None, api: Driver | None = None) -> None:
        self._driver = api or driver()
        self._ordinal = device_and_stream()[0] if ordinal is None else ordinal
        self._flushed: DeviceMemory | None = None

    def _stream(self) -> int:
        device, stream = device_and_stream()
        # the current stream belongs to the current device; for any other, its default stream
        return stream if device == self._ordinal else 0

    def record(self) -> _Stamp:
        """Record the completion time of the work issued so far."""
        with self._driver.context(self._ordinal):
            stamp = _Stamp(self._driver)
            self._driver.record_event(stamp.event, self._stream())
        return stamp

    def elapsed_ms(self, start: _Stamp, end: _Stamp) -> float:
        """Milliseconds between two stamps; valid after `synchronize`."""
        return self._driver.elapsed_ms(start.event, end.event)

    def synchronize(self) -> None:
        """Wait until the device has finished all work issued so far."""
        self._driver.synchronize(self._ordinal)

    def flush_cache(self) -> None:
        """Evict the second-level cache."""
        if self._flushed is None:
            size = _FLUSH_FACTOR * self._driver.device(self._ordinal).l2_bytes
            self._flushed = DeviceMemory(size, self._ordinal, self._driver)
        self._flushed.fill(0, self._stream())

    def close(self) -> None:
        """Free the memory of `flush_cache`."""
        if self._flushed is not None:
            self._flushed.free()
        self._flushed = None
