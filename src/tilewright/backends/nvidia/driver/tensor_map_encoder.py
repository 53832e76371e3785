"""Encoding of tensor maps by the driver from the arguments; launch_maps.h caches them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

from tilewright.backends.nvidia.driver.cuda_driver import Driver
from tilewright.backends.nvidia.driver.cuda_errors import ArrayRefused
from tilewright.backends.nvidia.driver.launch_structures import MAP_BYTES
from tilewright.backends.nvidia.tensor_maps import (
    ELEMENT_KINDS,
    SWIZZLES,
    TensorMapSource,
)
from tilewright.support import ForkLock

_ALIGNMENT = 64
_ANY_STRIDE = 16
_INVALID_VALUE = 1
"""CUDA_ERROR_INVALID_VALUE"""

_NOT_INTERLEAVED, _PROMOTED_TO_128_BYTES, _ZEROS = 0, 2, 0
"""CU_TENSOR_MAP_INTERLEAVE_NONE, _L2_PROMOTION_L2_128B, _FLOAT_OOB_FILL_NONE."""

_ENCODE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p,
    *[ctypes.c_void_p] * 4, *[ctypes.c_int] * 4,
)  # fmt: skip
"""cuTensorMapEncodeTiled: the map, element type, rank, address, extents, strides in bytes, box,
element strides, interleaving, swizzle, promotion in the L2 cache, fill of elements outside."""


class TensorMapEncoder:
    """Encoder of the maps of one kernel. sources: in parameter order; kinds: of parameters."""

    def __init__(
        self, sources: Sequence[TensorMapSource], kinds: Sequence[str], api: Driver
    ) -> None:
        self._sources, self._kinds, self._driver = sources, kinds, api
        self.parameters = [source.parameters for source in sources]
        """The parameters that determine each map."""
        self._elements: dict[tuple[int, bool], int] = {}
        self._lock = ForkLock()

    def encode(self, device: int, number: int, address: int) -> bytes:
        """The bytes of a map. address: of a word for each parameter that determines it, as launches
        pass them. Raises ArrayRefused for an array without a map, otherwise CudaCallFailed."""
        source, parameters = self._sources[number], self.parameters[number]
        words = (ctypes.c_int64 * len(parameters)).from_address(address)
        values = {p: self._value(p, w) for p, w in zip(parameters, words, strict=True)}
        return self._encode(device, source, values)

    def _value(self, parameter: int, word: int) -> int:
        """The number in a word, whose bits above those of its type are undefined."""
        kind = self._kinds[parameter]
        if kind == "ptr":
            return word & (1 << 64) - 1
        bits = int(kind[1:])
        low = word & (1 << bits) - 1
        is_negative = kind[0] == "i" and bits > 1 and low >> (bits - 1)
        return low - (1 << bits) if is_negative else low

    def _encode(self, device: int, source: TensorMapSource, values: Mapping[int, int]) -> bytes:
        dims = [n.of(values) for n in reversed(source.dims)]
        strides = [n.of(values) * source.element_bytes for n in reversed(source.strides)]
        # A dim of one index has no stride.
        steps = zip(dims[1:], strides, strict=True)
        strides = [_ANY_STRIDE if extent == 1 else stride for extent, stride in steps]
        base = values[source.base]
        if min(dims) <= 0:
            base, dims, strides = (
                self._empty(device, source),
                [1] * len(dims),
                [_ANY_STRIDE] * len(strides),
            )
        memory = ctypes.create_string_buffer(MAP_BYTES + _ALIGNMENT)
        start = -ctypes.addressof(memory) % _ALIGNMENT
        rank, box = len(dims), list(reversed(source.box))
        encode = _ENCODE(self._driver.address_of("cuTensorMapEncodeTiled"))
        status = encode(
            ctypes.addressof(memory) + start, ELEMENT_KINDS[source.element], rank, base,
            (ctypes.c_uint64 * rank)(*dims), (ctypes.c_uint64 * rank)(*strides, 0),
            (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*[1] * rank),
            _NOT_INTERLEAVED, SWIZZLES[source.swizzle], _PROMOTED_TO_128_BYTES, _ZEROS,
        )  # fmt: skip
        if status == _INVALID_VALUE:
            raise ArrayRefused(base, tuple(dims[::-1]), tuple(strides[::-1]))
        self._driver.value("cuTensorMapEncodeTiled", (status, None))
        return memory.raw[start : start + MAP_BYTES]

    def _empty(self, device: int, source: TensorMapSource) -> int:
        """Address of a zero for loads from an array without elements, or of memory for stores to
        one, since the driver takes no extents of 0. Never freed: a captured graph may use it."""
        key = (device, source.stored)
        with self._lock:
            if key not in self._elements:
                with self._driver.context(device):
                    self._elements[key] = self._driver.allocate(MAP_BYTES)
                    self._driver.write(self._elements[key], bytes(MAP_BYTES))
        return self._elements[key]
