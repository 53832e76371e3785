"""Memory of peers by CUDA's driver, against a stand-in."""

from __future__ import annotations

import pytest

from tests.unit.backends.nvidia.fake_cuda import CUresult, FakeCuda
from tilewright.backends.nvidia.driver.cuda_errors import CudaCallFailed
from tilewright.backends.nvidia.driver.peer_memory import CudaPeers
from tilewright.support import errors

ALREADY = 704


class Handle:
    reserved = bytes(64)


class PeerCuda(FakeCuda):
    """Two GPUs. reach: whether they have access to each other"""

    CUipcMemHandle = Handle

    def __init__(self, reach: bool = True) -> None:
        super().__init__()
        self.reach, self.enabled, self.opened = reach, list[tuple[int, int]](), list[bytes]()

    def cuDeviceCanAccessPeer(self, dev: int, peer: int) -> tuple[CUresult, int]:
        return self._done("cuDeviceCanAccessPeer"), int(self.reach)

    def cuCtxEnablePeerAccess(self, context: int, flags: int) -> tuple[int]:
        pair = (self.stack[-1], int(context))
        known = pair in self.enabled
        self.enabled.append(pair)
        return (ALREADY if known else 0,)

    def cuMemGetAddressRange(self, address: int) -> tuple[CUresult, int, int]:
        return self._done("cuMemGetAddressRange"), address & ~0xFFF, 4096

    def cuIpcGetMemHandle(self, address: int) -> tuple[CUresult, Handle]:
        handle = Handle()
        handle.reserved = address.to_bytes(64, "little")
        return self._done("cuIpcGetMemHandle"), handle

    def cuIpcOpenMemHandle(self, handle: Handle, flags: int) -> tuple[CUresult, int]:
        self.opened.append(handle.reserved)
        return self._done("cuIpcOpenMemHandle"), 0x7000_0000


def test_peer_access_is_enabled_once_in_each_direction() -> None:
    cuda = PeerCuda()
    peers = CudaPeers(cuda.driver())
    for _ in range(2):
        peers.enable(0, 1)
        peers.enable(1, 0)
        peers.enable(1, 1)
    assert len(set(cuda.enabled)) == 2 and len(cuda.enabled) == 4


def test_gpus_without_access_are_an_error() -> None:
    peers = CudaPeers(PeerCuda(reach=False).driver())
    with pytest.raises(
        errors.BackendUnavailable, match="cuda:0 has no access to the memory of cuda:1"
    ):
        peers.enable(0, 1)


def test_an_allocation_of_another_process_is_opened_once() -> None:
    cuda = PeerCuda()
    peers = CudaPeers(cuda.driver())
    texts = [peers.export(address, 1) for address in (0x5010, 0x5020)]
    assert [peers.open(text, 0) for text in texts] == [0x7000_0010, 0x7000_0020]
    assert cuda.opened == [(0x5000).to_bytes(64, "little")]


def test_memory_that_cannot_be_shared_is_an_error() -> None:
    cuda = PeerCuda()
    cuda.fails["cuIpcGetMemHandle"] = 1
    with pytest.raises(CudaCallFailed, match="cuIpcGetMemHandle failed"):
        CudaPeers(cuda.driver()).export(0x5010, 0)
