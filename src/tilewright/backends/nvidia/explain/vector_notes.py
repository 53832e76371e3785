"""Reasons why an access to global memory is narrow, from the facts that decided its width."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.analysis import Alignment
from tilewright.backends.nvidia.layouts.access_vectors import VectorRun, vector_runs
from tilewright.ir import Block, Function, Value
from tilewright.ir.types import PointerType, TileType, element_of
from tilewright.ops import ForOp, LoadOp, StoreOp, pointee
from tilewright.support.reachable import reachable

Facts = dict[Value, Alignment]


def vector_notes(op: LoadOp | StoreOp, facts: Facts, most: int) -> list[str]:
    """The reasons, the tightest first; none for an access of `most` bytes."""
    if not isinstance(op.pointer.type, TileType):
        return ["one element, the same for all threads"] if isinstance(op, LoadOp) else []
    size = element_of(pointee(op.pointer.type)).bytes
    widest = max(1, most // size)
    runs = vector_runs(facts, op.pointer, op.mask)
    # Of equal lengths, the dim along which memory is contiguous, where it could be longer.
    run = max(runs, key=lambda run: (run.length, run.contiguous))
    if run.length >= widest:
        return []
    reasons = sorted(_reasons(op, facts, run, size, widest), key=lambda reason: reason[0])
    return [text for _, text in reasons]


def _reasons(
    op: LoadOp | StoreOp, facts: Facts, run: VectorRun, size: int, widest: int
) -> Iterator[tuple[int, str]]:
    """The limits below `widest` elements, with descriptions."""
    others = min(run.contiguous, run.aligned, widest if run.masked is None else run.masked)
    if run.contiguous < widest:
        yield run.contiguous, _contiguity(run)
    if run.aligned < widest and run.aligned <= run.contiguous:
        known = f"addresses are known to be multiples of {run.aligned * size} bytes only"
        yield run.aligned, known + _blamed(op.pointer, facts, size, widest)
    if op.mask is not None and run.masked is not None and run.masked < widest:
        yield run.masked, _masking(run.masked) + _blamed(op.mask, facts, size, widest)
    if run.held < min(others, widest):
        yield run.held, f"a thread holds {run.held} consecutive elements"


def _masking(count: int) -> str:
    if count == 1:
        return "the mask may change from element to element"
    return f"the mask may change after {count} elements"


def _contiguity(run: VectorRun) -> str:
    if run.contiguous == 1:
        return "neighbours are not known to be contiguous in memory: a stride is not 1"
    return f"runs in memory are {run.contiguous} elements long"


def _blamed(value: Value, facts: Facts, size: int, widest: int) -> str:
    """The arguments of the kernel on which an address or a mask depends without a known multiple of
    a vector: pointers in bytes, numbers in elements."""
    names: dict[str, int] = {}
    for source in reachable([value], _sources):
        wanted = widest * size if isinstance(element_of(source.type), PointerType) else widest
        if _is_parameter(source) and facts[source].every < wanted:
            names[source.name] = facts[source].every
    known = [f"{name} as a multiple of {every}" for name, every in sorted(names.items())]
    return f" ({', '.join(known)})" if known else ""


def _is_parameter(value: Value) -> bool:
    return isinstance(value.owner, Block) and isinstance(value.owner.owner, Function)


def _sources(value: Value) -> list[Value]:
    """The operands of a value, or the initial values of a carried one."""
    if value.op is not None:
        return value.op.operands
    loop = value.owner.owner if isinstance(value.owner, Block) else None
    # Argument 0 is the index.
    return [loop.inits[value.index - 1]] if isinstance(loop, ForOp) and value.index else []
