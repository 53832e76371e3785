"""Decides which stores may go past the caches.

Where a grid works on more memory than the caches hold, an ordinary store first reads the line that
it then overwrites. A non-temporal store does not (fp32 addition of 2^24 elements on Zen 5: 1.25
times as fast), but it costs where the output would still be in the cache for its reader. So the
whole steps of a nest of stores (`fused_loop_nest.py`) are emitted twice, and the program chooses:

    br (grid works on more than the caches hold), streaming steps, ordinary steps

What a grid works on is what its tiles load and store at addresses that depend on the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.fusion import LoopNest, is_inlinable
from tilewright.backends.cpu.lower.vector_access import Element
from tilewright.ir import Function, Value
from tilewright.ir.types import DType, dtype_of, element_of, shape_of
from tilewright.ops import (
    AddOp,
    BroadcastOp,
    CastOp,
    ConstantOp,
    ExpandDimsOp,
    HintOp,
    LoadOp,
    MulOp,
    ProgramIdOp,
    RangeOp,
    SplatOp,
    StoreOp,
    SubOp,
    TransposeOp,
    pointee,
)
from tilewright.support.graph_fold import fold

STREAM_ALIGNMENT = 16
"""Bytes; LLVM splits a non-temporal store that is wider than it is aligned, which is as fast."""

MAX_NESTS = 128
"""Nests of a function that may stream. Each branches on one condition, and LLVM's combination of
instructions looks at all branches on it wherever it is used: 10,000 take 65 s, without them 1."""

_MIN_OPS_OF_COMPUTE_BOUND = 256
"""Computed values from which on a nest is bound by computation, not by memory."""

_MOVES = BroadcastOp | ExpandDimsOp | TransposeOp | HintOp


def nest_may_stream(state: CpuLowering, nest: LoopNest) -> bool:
    """Whether the stores of a nest of nothing else may go past the caches, where no mask cuts."""
    stores = [s for s in nest.sinks if isinstance(s, StoreOp)]
    return (
        may_stream(state)
        and all(_aligned(state, s.pointer) for s in stores)
        and not is_compute_bound(stores)
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
    """Whether a value, or any that it is computed from, is such a one."""
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
    """Whether what is stored takes so long to compute that memory does not matter.

    Nor would the code of such a nest be made twice.
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


def direction(value: Value, cache: dict[Value, int | None] | None = None) -> int | None:
    """1 if an integer tile never decreases along any dimension, -1 never increases, 0 constant.

    cache: results of earlier calls, to which this one adds its own
    """
    return fold(value, _terms, _direction, {} if cache is None else cache)


def _terms(value: Value) -> Sequence[Value]:
    """The values that decide in which direction a tile goes."""
    op = value.op
    if not shape_of(value.type) or not isinstance(op, CastOp | _MOVES | AddOp | SubOp | MulOp):
        return ()
    return op.operands


def _direction(value: Value, terms: list[int | None]) -> int | None:
    op = value.op
    if not shape_of(value.type) or isinstance(op, SplatOp | ConstantOp):
        return 0
    if isinstance(op, RangeOp):
        return 1
    if isinstance(op, CastOp):
        ordered = _keeps_order(element_of(op.x.type), element_of(op.type))
        return terms[0] if ordered or terms[0] == 0 else None
    if isinstance(op, _MOVES):
        return terms[0]
    # Unsigned differences wrap below zero and lose their order.
    if isinstance(op, AddOp) or (isinstance(op, SubOp) and dtype_of(op.type).is_signed):
        return _sum(terms[0], terms[1], 1 if isinstance(op, AddOp) else -1)
    if isinstance(op, MulOp):
        return _product(op, terms)
    return None


def _keeps_order(source: Element, target: Element) -> bool:
    """Whether a cast keeps the order of numbers; it does not where -1 becomes a large one."""
    if not isinstance(source, DType) or not isinstance(target, DType):
        return False
    if not source.is_integer or not target.is_integer:
        return False
    if source.is_signed == target.is_signed:
        return target.bits >= source.bits
    return target.is_signed and target.bits > source.bits


def _sum(x: int | None, y: int | None, sign: int) -> int | None:
    if x is None or y is None:
        return None
    y *= sign
    # Opposite directions: either may outweigh the other.
    return x or y if x * y >= 0 else None


def _product(op: MulOp, terms: list[int | None]) -> int | None:
    # Reversed: beside a constant factor stands the direction of the other one.
    for factor, along in zip(op.operands, reversed(terms), strict=True):
        constant = factor.op
        if isinstance(constant, ConstantOp):
            return None if along is None else along * (1 if constant.value >= 0 else -1)
    return 0 if terms == [0, 0] else None


def nontemporal_hint(state: CpuLowering) -> str:
    """The metadata of a streaming store, as it follows the instruction."""
    line = "!0 = !{i32 1}"
    if line not in state.module.footer:
        state.module.footer.append(line)
    return ", !nontemporal !0"
