"""Memory and streams of arrays: the device of an address, and the order of launches among streams.

A launch goes to the current stream. For arrays of another one (`Streamed`)

* the launch goes to that other stream if all arrays of the launch belong to it, such as CuPy's
where
  PyTorch, which is also imported, has another current stream;
* otherwise it goes to the current stream, after an event for the work in the others so far, and
later
  work in the others waits for it;
* a stream that is being captured is left alone: work in others is not part of its graph.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tilewright.backends.manifest import DeviceMemory, Streamed
from tilewright.backends.nvidia.driver.cuda_driver import Driver, Pointer, driver
from tilewright.backends.nvidia.driver.cuda_errors import CudaCallFailed
from tilewright.backends.nvidia.driver.current_stream import device_and_stream, stream_of


def chosen_stream(pointers: Sequence[object], device: int, stream: int) -> tuple[int, int]:
    """Device and stream of a launch: those of all arrays, otherwise the current ones."""
    streams = {
        (p.device, p.stream) if isinstance(p, Streamed) else (device, stream)
        for p in pointers
        if p is not None and p != 0  # null pointers belong to no stream
    }
    return streams.pop() if len(streams) == 1 else (device, stream)


@contextmanager
def joined(api: Driver, device: int, stream: int, others: Sequence[int]) -> Generator[None]:
    """A block whose launches in `stream` come after the work in `others` so far, and before later
    work there; all are streams of one device."""
    with api.context(device):
        for other in others:
            _order(api, other, stream)
        yield
        for other in others:
            _order(api, stream, other)


def _order(api: Driver, first: int, then: int) -> None:
    """Make later work in the stream `then` wait for the work in `first`."""
    event = api.create_event(timed=False)
    try:
        api.record_event(event, first)
        api.wait_event(then, event)
    finally:
        api.destroy_event(event)  # the driver keeps it until both streams have passed it


def _pointer(address: int) -> Pointer | None:
    api = driver()
    with api.context(api.current_device()):
        return api.pointer(address)


def _device_of(address: int) -> str | None:
    memory = _pointer(address)
    if memory is None or not (memory.on_device or memory.managed):
        return None
    return f"cuda:{memory.device}"


def _is_usable(address: int) -> bool:
    return _pointer(address) is not None


@contextmanager
def _entered(stream: int, address: int) -> Generator[int]:
    api = driver()
    try:
        block = api.context_of(stream)
    except CudaCallFailed:  # the default stream, in a thread without a context
        memory = _pointer(address)
        block = api.context(api.current_device() if memory is None else memory.device)
    with block:
        yield api.current_device()


MEMORY = DeviceMemory(_device_of, _is_usable, device_and_stream, stream_of, _entered)
