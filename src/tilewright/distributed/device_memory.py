"""Memory of tensors by address, and that of GPUs: symmetric memory, CUDA IPC, peer access."""

from __future__ import annotations

import ctypes
from typing import Any, cast

import numpy as np

from tilewright.backends.manifest import PeerMemory, backend_named
from tilewright.distributed.rank_groups import Group, torch_group
from tilewright.support import errors, import_late
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a contiguous tensor. kind: "cpu", "cuda"; device: its index; size: bytes"""

    kind: str
    device: int
    address: int
    size: int
    dtype: str


def memory_of(tensor: Any) -> Memory:
    """The memory of a tensor of torch or an array of NumPy. Raises UnsupportedArgument."""
    if hasattr(tensor, "data_ptr"):
        if not tensor.is_contiguous():
            raise errors.UnsupportedArgument("tensor", "view that is not contiguous")
        size = tensor.numel() * tensor.element_size()
        dtype = str(tensor.dtype).removeprefix("torch.")
        device = tensor.device
        return Memory(device.type, device.index or 0, tensor.data_ptr(), size, dtype)
    if not isinstance(tensor, np.ndarray) or not tensor.flags.c_contiguous:
        raise errors.UnsupportedArgument("tensor", "value that is not a contiguous array")
    array = cast("Any", tensor)
    address = array.__array_interface__["data"][0]
    return Memory("cpu", 0, address, array.nbytes, str(array.dtype))


def table_of(addresses: tuple[int, ...], tensor: Any) -> Any:
    """The addresses as int64, on the device of a tensor."""
    if not hasattr(tensor, "data_ptr"):
        return np.array(addresses, np.int64)
    torch: Any = import_late("torch")
    return torch.tensor(addresses, dtype=torch.int64, device=tensor.device)


def view_at(address: int, tensor: Any) -> Any:
    """The memory at an address, as a tensor like another one."""
    memory = memory_of(tensor)
    if memory.kind == "cpu":
        at = memoryview((ctypes.c_uint8 * memory.size).from_address(address))
        if not hasattr(tensor, "data_ptr"):
            return np.frombuffer(at, tensor.dtype, tensor.size).reshape(tensor.shape)
        torch: Any = import_late("torch")
        whole = torch.frombuffer(at, dtype=tensor.dtype, count=tensor.numel())
        return whole.reshape(tensor.shape)
    torch = import_late("torch")
    # On the tensor's own device, which accesses it: the protocols for arrays would name the peer's.
    storage = torch._C._construct_storage_from_data_pointer(address, tensor.device, memory.size)
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage, 0, tensor.shape)


def copy(out: Any, address: int) -> None:
    """Copy memory of a peer into a tensor: on a GPU in its current stream."""
    memory = memory_of(out)
    if memory.kind == "cpu":
        ctypes.memmove(memory.address, address, memory.size)
    else:
        _driver(memory.kind).copy(memory.address, address, memory.size, memory.device)


_WITHOUT_HANDLES = (
    "expandable segments of torch have no handles of CUDA IPC, nor has symmetric memory, which "
    "peers access by a process group of torch"
)


def _driver(kind: str) -> PeerMemory:
    access = backend_named(kind).peer_memory
    assert access is not None, "the tensor is on this kind of device"
    return access()


def offered(memory: Memory, tensor: Any, ranks: Group) -> dict[str, Any]:
    """The offer of a tensor of a GPU."""
    symmetric = _symmetric(tensor, ranks)
    if symmetric is not None:
        return {"symmetric": symmetric, "offset": memory.address - symmetric[ranks.rank]}
    try:
        return {"handle": _driver(memory.kind).export(memory.address, memory.device)}
    except errors.BackendError as error:  # ranks that are threads need no handle
        return {"handle": None, "refused": f"{error.message}; {_WITHOUT_HANDLES}"}


def _symmetric(tensor: Any, ranks: Group) -> list[int] | None:
    """The addresses of a symmetric allocation by rank; collective for such tensors."""
    group = torch_group(ranks)
    if group is None:
        return None
    memory: Any = import_late("torch.distributed._symmetric_memory")
    is_symmetric = getattr(memory, "is_symm_mem_tensor", None)
    if is_symmetric is not None and not is_symmetric(tensor):
        return None
    # The whole allocation: some versions of torch find it by its first address only.
    torch: Any = import_late("torch")
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    try:
        found = memory.rendezvous(whole, group)
    except synchronous(RuntimeError):  # torch before 2.12 has no other test
        if is_symmetric is not None:
            raise
        return None
    return None if found is None else list(found.buffer_ptrs)


def mapped(
    ranks: Group, peer: int, own: dict[str, Any], offer: dict[str, Any]
) -> tuple[int, object]:
    """Address of the memory of a peer, and the owner of its mapping. Raises UnmappedPeer."""
    if "symmetric" in own:
        return own["symmetric"][peer] + offer["offset"], None
    driver = _driver(offer["kind"])
    try:
        if offer["pid"] == own["pid"]:
            driver.enable(own["device"], offer["device"])
            return offer["address"], None
        if offer["handle"] is None:
            raise errors.UnmappedPeer(ranks.rank, peer, offer["refused"])
        return driver.open(offer["handle"], own["device"]), None
    except errors.BackendError as error:
        raise errors.UnmappedPeer(ranks.rank, peer, error.message) from None
