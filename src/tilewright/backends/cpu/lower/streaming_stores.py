"""Decides which stores may be non-temporal.

Where a grid touches more memory than the caches hold, an ordinary store first reads the line that
it then overwrites. A non-temporal store does not, but it costs where the output would still be in
the cache for its reader. So the unmasked steps of a nest of stores (`fused_loop_nest.py`) are
emitted twice, and the program selects:

    br (grid touches more than the caches hold), streaming steps, ordinary steps

A grid touches the memory that its tiles load and store at addresses that depend on the program. The
figures are in ADR 0033. A kernel that releases does not stream: x86 orders non-temporal stores
neither before a later store nor before an atomic instruction that is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.fusion import LoopNest, is_inlinable
from tilewright.ir import Function, Value
from tilewright.ir.types import element_of, shape_of
from tilewright.ops import (
    AtomicCasOp,
    AtomicOp,
    LoadOp,
    ProgramIdOp,
    StoreOp,
    pointee,
)

STREAM_ALIGNMENT = 16
"""Bytes; LLVM splits a non-temporal store that is wider than its alignment, which is as fast."""

MAX_NESTS = 128
"""Nests of a function that may stream. Each branches on one condition, and LLVM's instruction
combiner visits all branches on it at each of its uses, in quadratic time."""

_MIN_OPS_OF_COMPUTE_BOUND = 256
"""Computed values from which on a nest is bound by computation, not by memory."""


def nest_may_stream(state: CpuLowering, nest: LoopNest) -> bool:
    """Whether the stores of a nest of stores may be non-temporal in unmasked steps."""
    stores = [s for s in nest.sinks if isinstance(s, StoreOp)]
    return (
        may_stream(state)
        and all(_aligned(state, s.pointer) for s in stores)
        and not is_compute_bound(stores)
    )


def releases(function: Function) -> bool:
    """Whether an atomic of a kernel comes after all its earlier stores, for other programs."""
    return any(
        isinstance(op, AtomicOp | AtomicCasOp) and op.order in ("release", "acq_rel")
        for op in function.walk()
    )


def bytes_of_program(function: Function) -> int:
    """Bytes that the tiles of one program instance load and store, each pointer's once."""
    pointers = {
        op.pointer: element_of(pointee(op.pointer.type)).bytes * prod(shape_of(op.pointer.type))
        for op in function.walk()
        if isinstance(op, LoadOp | StoreOp) and shape_of(op.pointer.type)
    }
    return sum(size for pointer, size in pointers.items() if differs_by_program(pointer))


def differs_by_program(pointer: Value) -> bool:
    """Whether a pointer depends on the program's place in the grid."""
    return depends(pointer, lambda value: isinstance(value.op, ProgramIdOp))


def depends(value: Value, on: Callable[[Value], bool]) -> bool:
    """Whether a value, or any that it is computed from, satisfies a predicate."""
    reached, stack = {value}, [value]
    while stack:
        value = stack.pop()
        if on(value):
            return True
        new = [v for v in (value.op.operands if value.op is not None else ()) if v not in reached]
        reached.update(new)
        stack += new
    return False


def may_stream(state: CpuLowering) -> bool:
    """Whether one more nest may stream."""
    return state.streams and state.streamed_nests < MAX_NESTS


def is_compute_bound(stores: Sequence[StoreOp]) -> bool:
    """Whether the stored values take so long to compute that memory does not matter.

    The code of such a nest is not emitted twice.
    """
    seen: set[Value] = set()
    stack = [store.stored for store in stores]
    while stack and len(seen) < _MIN_OPS_OF_COMPUTE_BOUND:
        value = stack.pop()
        op = value.op
        if value not in seen and op is not None and is_inlinable(op):
            seen.add(value)
            stack += op.operands
    return len(seen) >= _MIN_OPS_OF_COMPUTE_BOUND


def _aligned(state: CpuLowering, pointer: Value) -> bool:
    facts = state.alignments.get(pointer)
    if facts is None:
        return False
    last = len(facts.contiguity) - 1
    run = facts.contiguity[last]
    width = element_of(pointee(pointer.type)).bytes
    return run * width >= STREAM_ALIGNMENT and facts.divisibility[last] >= STREAM_ALIGNMENT


def nontemporal_hint(state: CpuLowering) -> str:
    """The metadata of a streaming store, after the instruction."""
    line = "!0 = !{i32 1}"
    if line not in state.module.footer:
        state.module.footer.append(line)
    return ", !nontemporal !0"
