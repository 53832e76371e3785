"""Arrays that trial launches change: zeroed before each, or saved and restored."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.language import TensorDescriptor
from tilewright.runtime.arguments.mock_tensor import TensorWrapper
from tilewright.support import errors


class ArrayState:
    """The arguments that each trial must find unchanged; those that are None are ignored.

    reset_to_zero: names of arguments to set to 0; restore_value: of those to save and restore.
    """

    def __init__(self, reset_to_zero: Sequence[str], restore_value: Sequence[str]) -> None:
        self.reset_to_zero = list(reset_to_zero)
        self.restore_value = list(restore_value)

    def __bool__(self) -> bool:
        return bool(self.reset_to_zero or self.restore_value)

    def reset(self, arguments: Mapping[str, Any]) -> None:
        """Zero the arrays of `reset_to_zero`."""
        for array in _given(arguments, self.reset_to_zero).values():
            if hasattr(array, "zero_"):
                array.zero_()
            else:
                array[...] = 0

    def save(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Copies of the arrays of `restore_value`."""
        return {
            name: array.clone() if hasattr(array, "clone") else array.copy()
            for name, array in _given(arguments, self.restore_value).items()
        }

    def restore(self, arguments: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
        """Restore the copies that `save` returned."""
        for name, array in _given(arguments, list(saved)).items():
            if hasattr(array, "copy_"):
                array.copy_(saved[name])
            else:
                array[...] = saved[name]


def _given(arguments: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The arrays of those names that are not None."""
    found: dict[str, Any] = {}
    for name in names:
        array = arguments.get(name)
        # wrappers have no separate data
        array = array.base if isinstance(array, TensorWrapper | TensorDescriptor) else array
        if array is None:
            continue
        if not _is_array(array):
            raise errors.UnsupportedArgument(
                name, type(array).__name__, "only arrays of torch, NumPy and CuPy can be reset"
            )
        found[name] = array
    return found


def _is_array(value: Any) -> bool:
    modules = [sys.modules[name] for name in ("numpy", "cupy") if name in sys.modules]
    if any(isinstance(value, module.ndarray) for module in modules):
        return True
    return hasattr(value, "zero_") and hasattr(value, "clone")
