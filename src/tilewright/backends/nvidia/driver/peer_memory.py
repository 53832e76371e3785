"""Memory of other GPUs and other processes, mapped for kernels of a device."""

from __future__ import annotations

import functools

from tilewright.backends.nvidia.driver.cuda_driver import Driver, driver
from tilewright.backends.nvidia.driver.current_stream import stream_of
from tilewright.backends.nvidia.driver.driver_api import BACKEND
from tilewright.support import ForkLock, errors

_ALREADY_ENABLED = 704  # CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
_LAZY_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS


class CudaPeers:
    """Access to memory of peers by CUDA's driver; the functions are those of `PeerMemory`."""

    def __init__(self, api: Driver) -> None:
        self._driver = api
        self._lock = ForkLock()
        self._opened: dict[tuple[int, str], int] = {}

    def enable(self, device: int, peer: int) -> None:
        """Let kernels of a device access the memory of another one. Raises BackendError."""
        if device == peer:
            return
        api = self._driver.api
        handles = [self._driver.value("cuDeviceGet", api.cuDeviceGet(n)) for n in (device, peer)]
        result = api.cuDeviceCanAccessPeer(*handles)
        if not int(self._driver.value("cuDeviceCanAccessPeer", result)):
            reason = f"cuda:{device} has no access to the memory of cuda:{peer}"
            raise errors.BackendUnavailable(BACKEND, reason, "use GPUs that NVLink connects")
        context = self._driver.primary_context(peer)
        with self._driver.context(device):
            done = api.cuCtxEnablePeerAccess(context, 0)
        if int(done[0]) != _ALREADY_ENABLED:
            self._driver.done("cuCtxEnablePeerAccess", done)

    def export(self, address: int, device: int) -> str:
        """A text by which another process can open the allocation around an address."""
        api = self._driver.api
        with self._driver.context(device):
            found = api.cuMemGetAddressRange(address)
            self._driver.done("cuMemGetAddressRange", (found[0],))
            handle = self._driver.value("cuIpcGetMemHandle", api.cuIpcGetMemHandle(int(found[1])))
        return f"{bytes(handle.reserved).hex()}+{address - int(found[1])}"

    def open(self, exported: str, device: int) -> int:
        """The address at which a device accesses memory of another process."""
        text, _, offset = exported.partition("+")
        with self._lock:
            base = self._opened.get((device, text))
            if base is None:
                base = self._opened[device, text] = self._open(bytes.fromhex(text), device)
        return base + int(offset)

    def copy(self, to: int, source: int, size: int, device: int) -> None:
        """Enqueue a copy in a device's current stream; it uses no multiprocessors."""
        with self._driver.context(device):
            done = self._driver.api.cuMemcpyAsync(to, source, size, stream_of(device))
        self._driver.done("cuMemcpyAsync", done)

    def _open(self, reserved: bytes, device: int) -> int:
        api = self._driver.api
        handle = api.CUipcMemHandle()
        handle.reserved = reserved
        with self._driver.context(device):
            result = api.cuIpcOpenMemHandle(handle, _LAZY_PEER_ACCESS)
        return int(self._driver.value("cuIpcOpenMemHandle", result))


@functools.cache
def peer_memory() -> CudaPeers:
    """Access to memory of peers in this process."""
    return CudaPeers(driver())
