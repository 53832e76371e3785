"""Types of arguments that native dispatch recognizes, and its loaded machine code."""

from __future__ import annotations

import functools
import sys
from types import FunctionType

from tilewright.language import TensorDescriptor
from tilewright.llvm import LoadedObject
from tilewright.runtime.arguments.host_arrays import (
    has_device_tensors,
    is_tensor_type,
    reads_numpy_header,
)
from tilewright.runtime.arguments.torch_tensors import tensor_header
from tilewright.runtime.launch.native_dispatch_structures import (
    DISPATCH,
    TENSOR_TYPES,
    KnownObjects,
)
from tilewright.runtime.launch.native_memory import Memory
from tilewright.support import user_boundary

_DESCRIPTOR_FIELDS = ("base", "shape", "strides", "block_shape", "padding")


class _KnownTypes:
    """Types of arguments that the machine code recognizes, for all kernels."""

    def __init__(self) -> None:
        self._memory = Memory()
        keep = self._memory.object
        named = {
            "int_type": int, "float_type": float, "bool_type": bool, "tuple_type": tuple,
            "function_type": FunctionType, "none": None, "one": 1,
            "data_ptr": sys.intern("data_ptr"), "dtype": sys.intern("dtype"),
            "get_device": sys.intern("get_device"), "is_neg": sys.intern("is_neg"),
            "numel": sys.intern("numel"), "descriptor": TensorDescriptor,
            **{name: sys.intern(name) for name in _DESCRIPTOR_FIELDS},
            "add_type": self.add_type, "boundary": user_boundary.__exit__,
        }  # fmt: skip
        self._known = KnownObjects(**{name: keep(value) for name, value in named.items()})
        self.address = self._memory.structure(self._known)
        self._tensors: list[type] = []

    def add_type(self, value: object) -> None:
        """Add the type of an argument, if machine code can read arrays of this type."""
        kind = type(value)
        numpy = sys.modules.get("numpy")
        if numpy is not None and kind is numpy.ndarray:
            if reads_numpy_header():
                self._known.ndarray = self._memory.object(kind)
        # the last entry stays 0, which ends a search
        elif is_tensor_type(kind) and len(self._tensors) < TENSOR_TYPES - 1:
            self._known.tensors[len(self._tensors)] = self._memory.object(kind)
            self._tensors.append(kind)
            self._note_plain(kind)
            if not has_device_tensors():
                self._known.get_device = None

    def _note_plain(self, kind: type) -> None:
        """Add a type of tensors to those that a C function of torch describes, if it is one."""
        torch = sys.modules["torch"]
        header = tensor_header()
        # subclasses may override `data_ptr()`
        if header is None or kind not in (torch.Tensor, torch.nn.Parameter):
            return
        plain = self._known.plain
        plain[next(i for i, known in enumerate(plain) if not known)] = id(kind)
        self._known.describe_tensor = header.describe
        self._known.implementation_at = header.implementation
        self._known.keys_at = header.keys
        self._known.negative_key = header.negative


@functools.cache
def known_types() -> _KnownTypes:
    """The known types of this process."""
    return _KnownTypes()


@functools.cache
def dispatch_code() -> LoadedObject:
    """The machine code of native dispatch, loaded once in a process."""
    return DISPATCH.load()
