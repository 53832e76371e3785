"""Rows of `explain` for a CPU: accesses, reductions, dots and loop nests of a recorded lowering."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.backends.cpu.lower.lowering_record import (
    AccessForm,
    DotForm,
    LoweringRecord,
    NestForm,
)
from tilewright.backends.cpu.microkernel import DotSpec, panel_shape
from tilewright.backends.explanation import LoopRow, OpRow, distinct_rows
from tilewright.ir import Op, Value
from tilewright.ir.types import TileType, dtype_of, element_of, shape_of
from tilewright.ops import LoadOp, ReduceOp, StoreOp

_READ_IN_PLACE = "read in place by the micro-kernel"
_PACKED = "packed into panels by the micro-kernel"


def op_rows(record: LoweringRecord, vector_bits: int) -> list[OpRow]:
    """The rows of a kernel, in the order of its lines."""
    return distinct_rows(
        [
            *_access_rows(record, vector_bits),
            *_reduce_rows(record),
            *(_transposition_row(op, side) for op, side in record.transposed.items()),
            *(row for op, forms in record.dots.items() for row in _dot_rows(record, op, forms)),
        ]
    )


# ---- accesses ------------------------------------------------------------------------------------


def _access_rows(record: LoweringRecord, vector_bits: int) -> Iterator[OpRow]:
    written = {value for nest in record.nests for value in nest.written}
    by_kernel = _loads_of_matmuls(record)
    for op, forms in record.accesses.items():
        assert isinstance(op, LoadOp | StoreOp)
        value = op.result if isinstance(op, LoadOp) else op.stored
        if op in by_kernel:
            yield OpRow(op.loc, "load", tile_text(value), by_kernel[op], 0, "")
            continue
        form = max(forms, key=lambda form: (form.lanes, not form.masked))
        element = element_of(value.type).bytes
        yield OpRow(
            op.loc, "load" if isinstance(op, LoadOp) else "store", tile_text(value),
            _how(op, forms, form), form.lanes * element if form.stride == 1 else element,
            _path(op, value in written),
            notes=tuple(_access_notes(value, forms, form, vector_bits)),
        )  # fmt: skip


def _loads_of_matmuls(record: LoweringRecord) -> dict[Op, str]:
    """How micro-kernels of whole loops read their operands. Loops of the remaining iterations load
    the same tiles."""
    matmuls = (op for op, forms in record.dots.items() if any(form.from_memory for form in forms))
    read = (
        (_load_behind(value), how)
        for op in matmuls
        for value, how in zip(op.operands, (_READ_IN_PLACE, _PACKED), strict=False)
    )
    return {load: how for load, how in read if load is not None}


def _load_behind(value: Value) -> LoadOp | None:
    """The load of an operand, which may be converted first."""
    if isinstance(value.op, LoadOp):
        return value.op
    operands = () if value.op is None else value.op.operands
    return next((v.op for v in operands if isinstance(v.op, LoadOp)), None)


def _path(op: LoadOp | StoreOp, is_written: bool) -> str:
    if isinstance(op, StoreOp):
        return ""
    return "memory -> registers -> scratch memory, for other nests" if is_written else ""


def _how(op: LoadOp | StoreOp, forms: Sequence[AccessForm], form: AccessForm) -> str:
    masks = {other.masked for other in forms if other.lanes == form.lanes}
    masked = ", masked" if masks == {True} else ", last step masked" if len(masks) > 1 else ""
    if form.lanes == 1:
        return f"scalar{masked}"
    if form.stride == 1:
        return f"{form.lanes} contiguous lanes{masked}"
    if form.stride == 0:
        return f"one element for {form.lanes} lanes{masked}"
    return f"{'gather' if isinstance(op, LoadOp) else 'scatter'} of {form.lanes} lanes{masked}"


def _access_notes(
    value: Value, forms: Sequence[AccessForm], form: AccessForm, vector_bits: int
) -> Iterator[str]:
    """Reasons against a contiguous, unmasked access of whole vectors."""
    if not isinstance(value.type, TileType):
        return
    if form.lanes > 1 and form.stride is None:
        yield "lanes are no constant distance apart: addresses depend on loaded values, or may wrap"
    elif form.lanes > 1 and form.stride not in (0, 1):
        yield f"lanes are {form.stride} elements apart in memory"
    if form.lanes > 1 and all(other.masked for other in forms) and form.stride:
        yield "every step is masked: no end of an index range is found in the mask"
    bits = form.lanes * element_of(value.type).bytes * 8
    if form.stride == 1 and bits < vector_bits:
        yield (
            f"a step has {bits} bits of a vector of {vector_bits}: rows of the tile are short, or "
            "wider values share its nest"
        )
    elif form.lanes == 1 and value.type.numel > 1:
        yield "one element at a time"


# ---- reductions and dots -------------------------------------------------------------------------


def _reduce_rows(record: LoweringRecord) -> Iterator[OpRow]:
    for nest in record.nests:
        for op in nest.sinks:
            if isinstance(op, ReduceOp):
                across = nest.axis == nest.dim
                how = "partial results, then combined" if across else "results at a time"
                yield OpRow(op.loc, "reduce", tile_text(op.inputs[0]), f"{nest.lanes} {how}", 0, "")


def _transposition_row(op: Op, side: int) -> OpRow:
    how = f"{side}x{side} blocks transposed in registers"
    through = "registers -> scratch memory"
    return OpRow(op.loc, "convert", tile_text(op.results[0]), how, 0, through)


def _dot_rows(record: LoweringRecord, op: Op, forms: Sequence[DotForm]) -> Iterator[OpRow]:
    # A matmul from memory has a loop for its last iterations, with dots of its own.
    form = next((form for form in forms if form.from_memory), forms[0])
    through = "A, B: memory -> scratch memory -> registers"
    if form.from_memory:
        through = "A: memory -> registers, B: memory -> packed panels -> registers"
        down, across = form.programs
        if down * across > 1:
            through += f"; one call for up to {down} x {across} adjacent programs"
    notes = list(_dot_notes(form.spec, op))
    if not form.from_memory and record.refused.get(op):
        notes.insert(0, f"the loop is not one matmul: {record.refused[op]}")
    yield OpRow(
        op.loc, "dot", tile_text(op.results[0]), _kernel_text(form.spec), 0, through,
        notes=tuple(notes),
    )  # fmt: skip


def _kernel_text(spec: DotSpec) -> str:
    """The micro-kernel in a few words."""
    if spec.by_tiles:
        return "AMX micro-kernel, 2x2 tiles"
    rows, vectors = panel_shape(spec)
    if not vectors:
        return "micro-kernel of single columns"
    kind = "FMA" if spec.fused else "multiply and add"
    return f"{rows}x{vectors} micro-kernel of {spec.lanes} {spec.type} lanes, {kind}"


def _dot_notes(spec: DotSpec, op: Op) -> Iterator[str]:
    given = dtype_of(op.operands[0].type)
    if given.bits < 32 and spec.operand.bytes * 8 > given.bits:
        yield f"{given} is converted to {spec.type} first: this CPU has no dot of {given}"
    rest = spec.n % spec.lanes
    if rest and not spec.by_tiles:
        yield f"{rest} of {spec.n} columns fill no vector"


# ---- loop nests ----------------------------------------------------------------------------------


def loop_rows(record: LoweringRecord) -> tuple[LoopRow, ...]:
    """The fused nests, in the order of their code."""
    made: list[LoopRow] = []
    before: NestForm | None = None
    for number, nest in enumerate(record.nests, 1):
        ops = [*nest.sinks, *(v.op for v in nest.written if v.op is not None)]
        lines = sorted({op.loc.outermost.line for op in ops if op.loc is not None})
        notes = [] if before is None else [_why_apart(before, nest)]
        if nest.streams:
            notes.append("stores bypass the caches where the grid's data exceed them")
        written = tuple(tile_text(v) for v in nest.written)
        made.append(
            LoopRow(number, nest.shape, nest.lanes, nest.dim, tuple(lines), written, tuple(notes))
        )
        before = nest
    return tuple(made)


def _why_apart(before: NestForm, nest: NestForm) -> str:
    """Why a nest is not part of the one before it."""
    if nest.shape != before.shape:
        return "not fused with the nest before: its shape differs"
    results = {r for op in before.sinks for r in op.results}
    if _depends(nest, results):
        return "not fused with the nest before: it needs that nest's reductions"
    if set(before.written) and _depends(nest, set(before.written)):
        return "not fused with the nest before: it reads that nest's tiles in another order"
    return "not fused with the nest before: memory order or control flow is between them"


def _depends(nest: NestForm, results: set[Value]) -> bool:
    """Whether the nest computes with any of some values."""
    stack = [v for op in nest.sinks for v in op.operands] + list(nest.written)
    seen = set[Value]()
    while stack:
        value = stack.pop()
        if value in results:
            return True
        if value not in seen and value.op is not None:
            seen.add(value)
            stack += value.op.operands
    return False


def tile_text(value: Value) -> str:
    """Shape and element type."""
    shape = "x".join(map(str, shape_of(value.type)))
    return f"{shape}x{element_of(value.type)}" if shape else str(value.type)
