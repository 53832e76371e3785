"""Tensor maps for launches: made by the driver from the arguments, and kept."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from tilewright.backends.nvidia.driver.cuda_driver import Driver
from tilewright.backends.nvidia.tensor_maps import ELEMENT_KINDS, SWIZZLES, TensorMapSource
from tilewright.support import ForkLock

MAX_KEPT = 4096
"""Maps of a kernel: some 200 bytes each."""

_BYTES, _ALIGNMENT = 128, 64

_NOT_INTERLEAVED, _PROMOTED_TO_128_BYTES, _ZEROS = 0, 2, 0
"""CU_TENSOR_MAP_INTERLEAVE_NONE, _L2_PROMOTION_L2_128B, _FLOAT_OOB_FILL_NONE."""

_ENCODE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p,
    *[ctypes.c_void_p] * 4, *[ctypes.c_int] * 4,
)  # fmt: skip
"""cuTensorMapEncodeTiled: the map, element type, rank, address, extents, strides in bytes, box,
element strides, interleaving, swizzle, promotion in the L2 cache, what is outside."""


class TensorMapCache:
    """The maps of one kernel. sources: in the order of its parameters."""

    def __init__(self, sources: Sequence[TensorMapSource], api: Driver) -> None:
        self._sources, self._driver = sources, api
        self._kept: dict[tuple[int, ...], tuple[int, object]] = {}
        self._zeros: dict[int, int] = {}
        self._lock = ForkLock()

    @property
    def count(self) -> int:
        """Maps that a launch passes."""
        return len(self._sources)

    def addresses(self, device: int, values: Sequence[int]) -> list[int]:
        """Where the bytes of each map are; values: of the kernel's parameters, as passed."""
        return [self._address(device, n, s, values) for n, s in enumerate(self._sources)]

    def _address(
        self, device: int, number: int, source: TensorMapSource, values: Sequence[int]
    ) -> int:
        dims = [n.of(values) for n in reversed(source.dims)]
        strides = [n.of(values) * source.element_bytes for n in reversed(source.strides)]
        base = values[source.base]
        key = (device, number, base, *dims, *strides)
        kept = self._kept.get(key)
        if kept is None:
            with self._lock:
                if len(self._kept) >= MAX_KEPT:
                    self._kept.clear()
                if min(dims) <= 0:
                    base, dims, strides = self._empty(device), [1] * len(dims), [16] * len(strides)
                kept = self._kept[key] = self._make(source, base, dims, strides)
        return kept[0]

    def _empty(self, device: int) -> int:
        """Address of a zero, which is what loads from an array without elements give: the driver
        takes no extents of 0. Never freed: a captured graph may read it."""
        if device not in self._zeros:
            with self._driver.context(device):
                self._zeros[device] = self._driver.allocate(_BYTES)
                self._driver.write(self._zeros[device], bytes(_BYTES))
        return self._zeros[device]

    def _make(
        self, source: TensorMapSource, base: int, dims: list[int], strides: list[int]
    ) -> tuple[int, object]:
        memory = ctypes.create_string_buffer(_BYTES + _ALIGNMENT)
        address = -(-ctypes.addressof(memory) // _ALIGNMENT) * _ALIGNMENT
        rank, box = len(dims), list(reversed(source.box))
        encode = _ENCODE(self._driver.address_of("cuTensorMapEncodeTiled"))
        status = encode(
            address, ELEMENT_KINDS[source.element], rank, base,
            (ctypes.c_uint64 * rank)(*dims), (ctypes.c_uint64 * rank)(*strides, 0),
            (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*[1] * rank),
            _NOT_INTERLEAVED, SWIZZLES[source.swizzle], _PROMOTED_TO_128_BYTES, _ZEROS,
        )  # fmt: skip
        self._driver.value("cuTensorMapEncodeTiled", (status, None))
        return address, memory
