"""Specs of arrays by device, dtype, alignment and writability; element types by name."""

from __future__ import annotations

from typing import Any

from tilewright.ir.types import ARRAY_NAMES, DType, PointerType
from tilewright.runtime.arguments.key_rules import ALIGNMENT, HOST, LOW_BITS, spec
from tilewright.support import errors

DTYPES: dict[str, DType] = {name: dtype for dtype, name in ARRAY_NAMES.items()}
"""Element types by the name that NumPy, ml_dtypes, CuPy and torch share."""


def element_type(name: str) -> DType:
    """The element type of a dtype called `name`, such as "torch.float32" or "int8"."""
    type_ = DTYPES.get(name.rpartition(".")[2])
    if type_ is None:
        raise errors.UnsupportedArgument("", f"{name} array", "convert it to another dtype")
    return type_


class PointerSpecs(dict[object, Any]):
    """dtype of a library, or its name -> the Specs of its arrays on one device: (unaligned,
    aligned), read-only ones after."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    def __missing__(self, dtype: object) -> Any:
        # of NumPy's dtypes; other libraries have native byte order only
        if not getattr(dtype, "isnative", True):
            raise errors.UnsupportedArgument("", f"{dtype} array", "convert it to native order")
        type_ = PointerType(element_type(str(dtype)))
        self[dtype] = specs = tuple(
            spec(type_, divisor, self._device, read_only)
            for read_only in (False, True)
            for divisor in (1, ALIGNMENT)
        )
        return specs

    def spec_of(self, dtype: object, address: int, read_only: object = False) -> Any:
        """The Spec of an array."""
        return self[dtype][(0 if address & LOW_BITS else 1) + (2 if read_only else 0)]


class _SpecsByDevice(dict[str, PointerSpecs]):
    """Device, such as "cuda:1" -> the Specs of its arrays."""

    def __missing__(self, device: str) -> PointerSpecs:
        self[device] = specs = PointerSpecs(device)
        return specs


SPECS_BY_DEVICE = _SpecsByDevice()
ON_HOST = SPECS_BY_DEVICE[HOST]
