"""Registers per thread, estimated before ptxas assigns them, and the programs that they leave.

A loop of warpgroup dots holds its accumulators and the tiles that it carries next to them. What a
thread needs besides, for addresses and temporaries, depends on its work: an `Overhead`.
`tests/corpus/test_register_model.py` compares the estimates with the tables of the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import cast

from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.buffer_ops import ShareOp, WgmmaOp
from tilewright.ir import Value
from tilewright.ir.types import DType, TileType, dtype_of, element_of
from tilewright.layout import REGISTER, LinearLayout
from tilewright.ops import ForOp

_REGISTER_BYTES = 4
_THREADS = 32


class Overhead(IntEnum):
    """Registers per thread next to accumulators and carried tiles, by the work of the thread."""

    DOTS = 60
    """A loop of dots, whose copies may be issued by the same threads."""

    CONSUMER = 48
    """A consumer without deferred waits: it issues no copies, and no dot is in flight while
    the next iteration starts."""

    SKEWED = 72
    """A loop with skewed dots: addresses, running maxima, and temporaries of exponentials."""

    ROLE_ENTRY = 26
    """The entry of a function with roles, next to the accumulators of one instruction."""

    LEAST = 40
    """The fewest that ptxas needs next to accumulators."""


def register_count(value: Value) -> int:
    """32-bit registers per thread that a value takes; elements of a tile without a layout."""
    if not isinstance(value.type, TileType):
        return 1
    layout = cast("LinearLayout | None", value.type.layout)
    if layout is None:
        return value.type.numel
    return -(-layout.in_size(REGISTER) * element_of(value.type).bytes // _REGISTER_BYTES)


def spread_registers(tiles: Iterable[Value], warps: int) -> int:
    """32-bit registers per thread for tiles that have no layouts yet, spread over all threads."""
    types = (cast("TileType", tile.type) for tile in tiles)
    bits = sum(type_.numel * dtype_of(type_).bits for type_ in types)
    return bits // (8 * _REGISTER_BYTES * _THREADS * warps)


def held_registers(loop: ForOp) -> int:
    """Registers per thread for the accumulators of a loop's warpgroup dots, and for tiles that it
    carries next to these: operands computed for the next iteration, and sums of threads."""
    dots = [op for op in loop.walk() if isinstance(op, WgmmaOp)]
    accumulators = {value for op in dots for value in (op.result, op.acc)}
    yielded = zip(loop.carried, loop.body.terminator.operands, strict=True)
    others = [v for v, y in yielded if not accumulators & {v, y} and _is_held(v)]
    return sum(register_count(value) for value in [*distinct_accumulators(dots), *others])


def distinct_accumulators(dots: Iterable[WgmmaOp]) -> list[Value]:
    """The results of dots, without those to which another dot adds in the same registers."""
    dots = list(dots)
    added_to = {op.acc for op in dots}
    return [op.result for op in dots if op.result not in added_to]


def _is_held(value: Value) -> bool:
    """Whether threads hold a tile of floating-point numbers: no addresses, which may go, and no
    operand that dots read from shared memory."""
    element = element_of(value.type)
    if not isinstance(value.type, TileType) or all(isinstance(u, ShareOp) for u in value.uses):
        return False
    return isinstance(element, DType) and element.is_float


def estimated_registers(held: int, overhead: Overhead, arch: Arch) -> int:
    """Registers per thread: those that it holds, and an overhead."""
    return min(held + overhead, arch.registers_thread)


def resident_programs(arch: Arch, shared: int, registers: int, threads: int) -> int:
    """Programs on a multiprocessor, each with so many bytes of shared memory, and so many threads
    with so many registers; at least one."""
    by_memory = arch.shared_sm // (shared + arch.shared_reserved)
    return max(1, min(by_memory, arch.registers_sm // (registers * threads)))
