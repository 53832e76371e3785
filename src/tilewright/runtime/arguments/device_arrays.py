"""Arrays of other libraries than NumPy and torch, most of them in the memory of a GPU.

    CuPy                        `data.ptr`, `dtype`, `device`
    __cuda_array_interface__    Numba and others; version 2 has no stream, 3 may have one
    __dlpack__                  on GPUs, in pinned and in managed memory, and of the CPU
    data_ptr() and dtype        Triton's protocol; perhaps with `device` or `get_device()`

If an array does not report its device, the driver is queried for the owner of its address; without
a driver, or for other memory, that is the host.

A launch is enqueued in the current stream, after work that a library has enqueued for an array in
another stream: DLPack is passed the current stream and orders it; an address with another stream is
a `Streamed`, which the launcher orders (see `backends.nvidia.streams`).
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping
from typing import Any, cast

from tilewright.backends import DeviceMemory, Streamed, default_backend
from tilewright.runtime.arguments import dlpack
from tilewright.runtime.arguments.array_specs import ON_HOST, SPECS_BY_DEVICE
from tilewright.runtime.arguments.key_rules import HOST, Handled, Handler, refuse
from tilewright.support import errors
from tilewright.support.asynchronous_exceptions import synchronous

_DEFAULT_STREAM = 1
"""The default stream in both protocols, for which CUDA also uses 0."""

_TYPESTRS = {
    **{f"{order}b1": "bool" for order in "|<"},
    **{f"{order}i1": "int8" for order in "|<"},
    **{f"{order}u1": "uint8" for order in "|<"},
    **{f"<i{size}": f"int{8 * size}" for size in (2, 4, 8)},
    **{f"<u{size}": f"uint{8 * size}" for size in (2, 4, 8)},
    **{f"<f{size}": f"float{8 * size}" for size in (2, 4, 8)},
}  # fmt: skip
"""Type string of an array interface -> name of the dtype; types of ml_dtypes have no string."""


def resolve(kind: type[Any]) -> Handler | None:
    """The handler of arrays of a type; None for a type that is not known as one of arrays."""
    cupy = sys.modules.get("cupy")
    if cupy is not None and issubclass(kind, cupy.ndarray):
        return _of_cupy
    if hasattr(kind, "__cuda_array_interface__"):
        return by_instance
    if hasattr(kind, "data_ptr") and hasattr(kind, "dtype"):
        return _of_pointer
    if hasattr(kind, "__array_interface__"):
        return _of_interface
    return _of_dlpack if hasattr(kind, "__dlpack__") else None


def by_instance(value: Any) -> Handled:
    """The handler of an object whose class does not decide it, or that has an interface only while
    it is on a GPU."""
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_cuda_interface(value, cast("Mapping[str, Any]", interface))
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return _of_pointer(value)
    if hasattr(value, "__array_interface__"):
        return _of_interface(value)
    return _of_dlpack(value) if hasattr(value, "__dlpack__") else refuse(value)


# --- the protocols --------------------------------------------------------------------------------


def _of_cupy(array: Any) -> Handled:
    """The handler of CuPy's arrays: twice as fast as by `__cuda_array_interface__`."""
    address, ordinal = array.data.ptr, array.device.id
    key = SPECS_BY_DEVICE[_cuda_name(ordinal)].spec_of(array.dtype, address)
    if "torch" in sys.modules:  # then the current stream may be torch's
        stream = sys.modules["cupy"].cuda.get_current_stream().ptr
        return key, _after(stream, ordinal, address)
    return key, address


def _of_cuda_interface(value: Any, interface: Mapping[str, Any]) -> Handled:
    """The handler of objects with `__cuda_array_interface__`."""
    address, read_only = interface["data"]
    address = int(address or 0)
    device = _device_attribute(value)
    if device is None or device == HOST:
        device = _device_by_driver(address)
        device = _current_device() if device == HOST else device
    key = SPECS_BY_DEVICE[device].spec_of(_dtype(value, interface), address, read_only)
    stream = interface.get("stream")
    if stream is None:
        return key, address
    return key, _after(int(stream), int(device.partition(":")[2] or 0), address)


def _dtype(value: Any, interface: Mapping[str, Any]) -> object:
    """The dtype of an interface; that of the object if the interface has no string for it, as for
    ml_dtypes, which are "<V2" there."""
    typestr = interface["typestr"]
    return _TYPESTRS.get(typestr) or getattr(value, "dtype", None) or typestr


def _of_interface(value: Any) -> Handled:
    """The handler of objects with `__array_interface__`."""
    interface = cast("Mapping[str, Any]", value.__array_interface__)
    address, read_only = interface["data"]
    return ON_HOST.spec_of(_dtype(value, interface), address, read_only), address


def _of_pointer(value: Any) -> Handled:
    """The handler of objects with `data_ptr()` and `dtype` that are no torch tensors."""
    address = int(value.data_ptr())
    device = _device_attribute(value) or _device_by_driver(address)
    return SPECS_BY_DEVICE[device].spec_of(value.dtype, address), address


class _Owned(int):
    """An address that keeps its memory alive."""

    owner: object


def _of_dlpack(value: Any) -> Handled:
    """The handler of arrays that export DLPack."""
    try:
        exported, device = _exported(value)
    except errors.TilewrightError:
        raise
    except synchronous(
        Exception
    ) as problem:  # any error of the library for an array without memory
        said = str(problem).partition("\n")[0]
        instead = f"its library does not export it: {said}"
        raise errors.UnsupportedArgument("", type(value).__name__, instead) from problem
    key = SPECS_BY_DEVICE[device].spec_of(exported.dtype, exported.address, exported.read_only)
    if device != HOST and not exported.copied:
        return (
            key,
            exported.address,
        )  # the caller's array owns the memory; plain integers launch faster
    owned = _Owned(exported.address)
    owned.owner = exported.capsule
    return key, owned


def _exported(value: Any) -> tuple[dlpack.Exported, str]:
    """The exported array, and its device."""
    kind, ordinal = cast("tuple[int, int]", value.__dlpack_device__())
    if kind in dlpack.HOSTS:
        return dlpack.export(value), HOST
    if kind in (dlpack.CUDA, dlpack.CUDA_MANAGED):
        # DLPack forbids 0 on CUDA, as ambiguous
        stream = _current_stream() or _DEFAULT_STREAM
        return dlpack.export(value, stream=stream), _cuda_name(ordinal)
    name = f"{dlpack.NAMES.get(kind, f'DLPack device {kind}')}:{ordinal}"
    raise errors.DeviceMismatch("", name, "the CPU")


# --- devices --------------------------------------------------------------------------------------


class _CudaNames(dict[int, str]):
    def __missing__(self, ordinal: int) -> str:
        found = self[ordinal] = f"cuda:{ordinal}"
        return found


_cuda_names = _CudaNames()


def _cuda_name(ordinal: int) -> str:
    return _cuda_names[ordinal]


_NAMED = re.compile(r"[a-z_]+(:\d+)?")


def _device_attribute(value: Any) -> str | None:
    """The device that an array reports, as torch writes it ("cpu", "cuda:0"); None if it reports
    none."""
    device = getattr(value, "device", None)
    name = str(device).lower()
    ordinal = device if type(device) is int else getattr(device, "id", None)
    if device is not None and name != "cuda" and _NAMED.fullmatch(name):
        return name
    if "cuda" in name and ordinal is not None:
        return _cuda_name(int(cast("int", ordinal)))  # of CuPy's "<CUDA Device 0>"
    if type(device) is int:
        return _by_ordinal(device)
    ask = getattr(value, "get_device", None)
    return _by_ordinal(int(cast("int", ask()))) if callable(ask) else None


def _by_ordinal(ordinal: int) -> str:
    """The device of a number that torch's `get_device()` returns."""
    return HOST if ordinal < 0 else _cuda_name(ordinal)


@functools.cache
def gpu() -> DeviceMemory | None:
    """Queries about memory and streams of this machine's GPUs; None if it has no GPU."""
    return default_backend().memory


def _device_by_driver(address: int) -> str:
    """The device that owns an address by the driver's report; otherwise the host."""
    memory = gpu()
    return HOST if memory is None else memory.device_of(address) or HOST


def _current_device() -> str:
    memory = gpu()
    return _cuda_name(0 if memory is None else memory.current()[0])


# --- streams --------------------------------------------------------------------------------------


def _current_stream() -> int:
    memory = gpu()
    return 0 if memory is None else memory.current()[1]


def _after(stream: int, ordinal: int, address: int) -> int:
    """An address whose use must be ordered after the work in a stream of its device."""
    memory = gpu()
    if stream == _DEFAULT_STREAM:
        stream = 0
    if memory is None or memory.current() == (ordinal, stream):
        return address
    return Streamed(address, ordinal, stream)
