"""Instructions of bulk copies, by tensor maps or of plain bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.emulator.bulk_copies import Load, Store
from tests.emulator.memory import Array, EmulationError
from tests.emulator.registers import Registers
from tests.emulator.tensor_maps import Pieces, TensorMap
from tests.emulator.text import split_commas

Made = Callable[[Registers], None]


def _address(text: str) -> str:
    return text.strip().strip("[]")


def _active(r: Registers) -> list[int]:
    return np.flatnonzero(r.predicate).tolist()


class _Box:
    """[map, {coordinates}] of a tensor copy."""

    def __init__(self, text: str) -> None:
        map_, coordinates = split_commas(text.strip().strip("[]"))
        self._map, self._coordinates = map_, split_commas(coordinates.strip("{} "))

    def at(self, r: Registers, thread: int, kind: str = "") -> tuple[TensorMap, Pieces]:
        """kind: of a reduction."""
        tensor = TensorMap.at(int(r.get(self._map)[thread]))
        found = [int(r.get(c).astype(np.uint32).view(np.int32)[thread]) for c in self._coordinates]
        if len(found) != len(tensor.dims):
            raise EmulationError("a copy with coordinates of another rank than its tensor map")
        if kind:
            _check_reduction(tensor, kind, found)
        return tensor, tensor.pieces(found)


def _check_reduction(tensor: TensorMap, kind: str, coordinates: list[int]) -> None:
    """What an H200 called an illegal instruction, or wrote beyond the rows of an array."""
    size = tensor.dtype.itemsize
    if min(coordinates) < 0 or coordinates[0] * size % 16:
        raise EmulationError(f"a reduction at {coordinates}: illegal instruction")
    if tensor.dims[0] * size % 16:
        raise EmulationError(f"a reduction of rows of {tensor.dims[0] * size} bytes reaches beyond")
    if kind in ("and", "or", "xor") and tensor.dtype == np.int64:
        raise EmulationError(f"{kind} by a map of int64: illegal instruction")


def _places(r: Registers, tensor: TensorMap, start: int) -> Array:
    if start % 128:
        raise EmulationError(f"a tensor copy at {start:#x}, which is no multiple of 128")
    return _pieces(r, tensor.places(start))


def _pieces(r: Registers, addresses: Array) -> Array:
    """Numbers of the pieces of 16 bytes at addresses in shared memory."""
    return r.m.shared.offsets(addresses, 16, "a bulk copy") >> 4


def _tensor_load(match: re.Match[str], args: list[str]) -> Made:
    target, box, barrier = _address(args[0]), _Box(args[1]), _address(args[2])

    def run(r: Registers) -> None:
        for thread in _active(r):
            tensor, pieces = box.at(r, thread)
            start, phase = (int(r.get(one)[thread]) for one in (target, barrier))
            blocks = int(r.get(args[3])[thread]) if match["multicast"] else 0
            for distance in _distances(r, thread, blocks):
                places = _places(r, tensor, start + distance)
                copy = Load(r.m, thread, pieces, places, tensor.filling())
                r.m.bulk.load(copy, phase + distance)

    return run


def _distances(r: Registers, thread: int, blocks: int) -> list[int]:
    """From a thread's own shared memory to that of blocks of its cluster, one for each bit."""
    if not blocks:
        return [0]
    ranks = [rank for rank in range(16) if blocks >> rank & 1]
    if max(ranks) >= r.m.blocks:
        raise EmulationError(f"a copy to block {max(ranks)} of a cluster of {r.m.blocks}")
    for rank in ranks:
        r.m.remote_uses.note(thread >> 5, rank, "a copy")
    return [(rank - int(r.m.rank[thread])) << 24 for rank in ranks]


def _tensor_store(match: re.Match[str], args: list[str]) -> Made:
    box, source, kind = _Box(args[0]), _address(args[1]), match["kind"] or ""

    def run(r: Registers) -> None:
        for thread in _active(r):
            tensor, pieces = box.at(r, thread, kind)
            places = _places(r, tensor, int(r.get(source)[thread]))
            r.m.bulk.store(Store(r.m, thread, pieces, places, kind, tensor.dtype))

    return run


def _line(r: Registers, addresses: Array, start: int, size: int) -> tuple[Pieces, Array]:
    """Plain bytes, in pieces of 16."""
    if start % 16 or size % 16 or int(addresses) % 16 or not size:
        raise EmulationError(f"a bulk copy of {size} bytes, or at addresses no multiples of 16")
    offsets = np.arange(0, size, 16, dtype=np.int64)
    whole = np.uint64(addresses) + offsets.astype(np.uint64)
    return Pieces(whole, offsets, np.ones(len(offsets), bool), 16), _pieces(r, start + offsets)


def _line_load(match: re.Match[str], args: list[str]) -> Made:
    target, source, size, barrier = _address(args[0]), _address(args[1]), args[2], _address(args[3])

    def run(r: Registers) -> None:
        for t in _active(r):
            start, count = int(r.get(target)[t]), int(r.get(size)[t])
            pieces, places = _line(r, r.get(source)[t], start, count)
            copy = Load(r.m, t, pieces, places, np.zeros(1, np.uint8))
            r.m.bulk.load(copy, int(r.get(barrier)[t]))

    return run


_DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "s32": np.int32, "u32": np.uint32, "u64": np.uint64, "s64": np.int64,
}  # fmt: skip


def _line_store(match: re.Match[str], args: list[str]) -> Made:
    target, source, size = _address(args[0]), _address(args[1]), args[2]
    kind = match["kind"] or ""
    dtype = _DTYPES[match["type"]] if kind else np.uint8

    def run(r: Registers) -> None:
        for t in _active(r):
            start, count = int(r.get(source)[t]), int(r.get(size)[t])
            pieces, places = _line(r, r.get(target)[t], start, count)
            r.m.bulk.store(Store(r.m, t, pieces, places, kind, dtype))

    return run


def _commit(match: re.Match[str], args: list[str]) -> Made:
    return lambda r: r.m.bulk.commit(r.predicate)


def _wait(match: re.Match[str], args: list[str]) -> Made:
    pending, only_read = int(args[0]), bool(match["read"])
    return lambda r: r.m.bulk.wait(r.predicate, pending, only_read)


def _nothing(match: re.Match[str], args: list[str]) -> Made:
    return lambda r: None


_HINT = r"(?:\.L2::cache_hint)?"
_PHASE = rf"\.mbarrier::complete_tx::bytes{_HINT}"
_TO_SHARED = r"\.shared::(?:cta|cluster)\.global"
_TO_GLOBAL = r"\.global\.shared::cta"

INSTRUCTIONS = [
    (rf"cp\.async\.bulk\.tensor\.\dd{_TO_SHARED}(?:\.tile)?{_PHASE}"
     r"(?P<multicast>\.multicast::cluster)?", _tensor_load),
    (rf"cp\.async\.bulk\.tensor\.\dd{_TO_GLOBAL}(?P<kind>)(?:\.tile)?\.bulk_group{_HINT}",
     _tensor_store),
    (rf"cp\.reduce\.async\.bulk\.tensor\.\dd{_TO_GLOBAL}\.(?P<kind>\w+)(?:\.tile)?\.bulk_group{_HINT}",
     _tensor_store),
    (rf"cp\.async\.bulk{_TO_SHARED}{_PHASE}", _line_load),
    (rf"cp\.async\.bulk{_TO_GLOBAL}(?P<kind>)(?P<type>)\.bulk_group{_HINT}", _line_store),
    (rf"cp\.reduce\.async\.bulk{_TO_GLOBAL}\.bulk_group{_HINT}\.(?P<kind>\w+)(?:\.noftz)?\.(?P<type>\w+)",
     _line_store),
    (r"cp\.async\.bulk\.commit_group", _commit),
    (r"cp\.async\.bulk\.wait_group(?P<read>\.read)?", _wait),
    (r"cp\.async\.bulk\.prefetch\..*|prefetch\.tensormap|prefetchu?\..*", _nothing),
]  # fmt: skip
