"""Run-time arguments of a launch in the form in which they are passed: numbers and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.backends import DeviceMemory, Streamed
from tilewright.support import errors

Number = int | float


def is_read_only(value: Any) -> bool:
    """Whether an array is declared read-only."""
    for name in ("__array_interface__", "__cuda_array_interface__"):
        interface = getattr(value, name, None)
        if interface is not None:
            return bool(interface["data"][1])
    return False


def passed_value(value: Any, memory: DeviceMemory | None = None) -> Number:
    """A run-time argument in the form in which it is passed: a number, or the address of an array.

    memory: of the device, to order the launch after the stream that the array may name
    """
    if isinstance(value, int | float):
        return value
    if hasattr(value, "data_ptr"):
        return value.data_ptr()
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _on_device(interface, memory)
    if hasattr(value, "__array_interface__"):
        return value.__array_interface__["data"][0]
    raise errors.UnsupportedArgument("", type(value).__name__)


def _on_device(interface: Mapping[str, Any], memory: DeviceMemory | None) -> int:
    address, stream = int(interface["data"][0] or 0), interface.get("stream")
    if stream is None or memory is None:
        return address
    device, _ = memory.current()
    return Streamed(address, device, 0 if stream == 1 else int(stream))
