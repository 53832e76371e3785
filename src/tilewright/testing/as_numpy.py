"""Conversion of arrays of any library, lists and scalars to NumPy arrays, for comparisons.

Libraries are recognized by protocol, so only NumPy is imported. Types that NumPy cannot compute
with become float64, which represents bfloat16, fp8 and the other small formats exactly.
"""

from __future__ import annotations

from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tilewright.support.torch_tensor import TorchTensor

Comparable = NDArray[np.generic]
"""Types in which comparisons compute: bool, any integer, float64 or complex128."""

_COMPARED_AS_IS = "biu"
"""Kinds of NumPy dtypes: bool, signed, unsigned."""


@runtime_checkable
class DeviceArray(Protocol):
    """A CuPy array, which is in device memory; `get` copies it to the host."""

    @property
    def __cuda_array_interface__(self) -> object: ...

    def get(self) -> NDArray[np.generic]: ...


def dtype_of(value: object) -> object:
    """The dtype of the array; that of NumPy for lists and scalars."""
    return getattr(value, "dtype", None) or _host_array(value).dtype


def to_comparable(value: object) -> Comparable:
    """The value as an array of bool, integers, float64 or complex128; on the host, without
    gradient.

    Raises TypeError for a value that holds no numbers.
    """
    array = _host_array(value)
    if array.dtype.kind in _COMPARED_AS_IS:
        return array
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    try:
        if array.dtype.kind not in "OUSMm":
            return array.astype(np.float64)  # ml_dtypes' types have kind "V" or "f"
    except (TypeError, ValueError):
        pass
    raise TypeError(f"cannot compare values of type {type(value).__name__} ({array.dtype})")


def _host_array(value: object) -> NDArray[np.generic]:
    if isinstance(value, np.ndarray):
        return cast("NDArray[np.generic]", value)
    if isinstance(value, TorchTensor):
        host = value.detach().cpu()
        # NumPy has no bfloat16 or fp8; float64 represents all floats of torch.
        # force=True: also resolves lazy conjugation and negation of torch.
        return (host.double() if value.dtype.is_floating_point else host).numpy(force=True)
    if isinstance(value, DeviceArray):
        return value.get()
    # `__array__` first: it also converts types that DLPack cannot express.
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return np.from_dlpack(cast("Any", value))
    return _from_sequence(value)


def _from_sequence(value: object) -> NDArray[np.generic]:
    if isinstance(value, (list, tuple)):
        items = cast("list[object]", value)
        # NumPy would iterate over such items, or refuse to copy from the device.
        if any(isinstance(item, (TorchTensor, DeviceArray)) for item in items):
            return np.stack([_host_array(item) for item in items])
    try:
        return np.asarray(value)
    except ValueError as error:
        raise TypeError(f"cannot compare a ragged sequence: {error}") from error
