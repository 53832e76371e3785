"""wgmma instructions, as they are written in inline assembly."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.emulator.descriptors import Operand, addresses
from tests.emulator.fragments import Shape
from tests.emulator.memory import Array, EmulationError
from tests.emulator.pending import Pending
from tests.emulator.registers import Registers
from tests.emulator.text import split_commas
from tests.emulator.wgmma import Operation

Made = Callable[[Registers], None]

_DEPTHS = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}
_SUMS = {"f16": ("f32", "f16"), "bf16": ("f32",), "tf32": ("f32",), "e4m3": ("f32", "f16"),
         "e5m2": ("f32", "f16"), "s8": ("s32",), "u8": ("s32",)}  # fmt: skip
_WIDTHS_OF_INTEGERS = {8, 16, 24, *range(32, 257, 16)}


def _shape(match: re.Match[str], immediates: Sequence[str], has_a: bool) -> tuple[Shape, Any]:
    """The operation, and whether A and B are contiguous along M and N."""
    n, k, d, a, b = int(match["n"]), int(match["k"]), match["d"], match["a"], match["b"]
    same = a == b or {a, b} <= {"e4m3", "e5m2"} or {a, b} <= {"s8", "u8"}
    widths = _WIDTHS_OF_INTEGERS if d == "s32" else range(8, 257, 8)
    assert same and _DEPTHS[a] == k and d in _SUMS[a] and n in widths, match[0]
    numbers = [int(i) for i in immediates]
    transpositions = (1 if has_a else 2) if k == 16 else 0
    assert len(numbers) == (0 if d == "s32" else 2 + transpositions), match[0]
    signs = (numbers[0], numbers[1]) if numbers else (1, 1)
    turned = [bool(i) for i in numbers[2:]]  # none, that of B, or both
    a_turned, b_turned = ([False, False] + turned)[-2:]
    return Shape(n, k, d, a, b, signs, bool(match["sat"])), (a_turned, b_turned)


def _multiply(match: re.Match[str], args: list[str]) -> Made:
    sums, a, b, scale = args[:4]
    words_a = split_commas(a.strip("{} ")) if a.startswith("{") else []
    shape, (a_turned, b_turned) = _shape(match, args[4:], bool(words_a))
    names = split_commas(sums.strip("{} "))
    assert len(names) == shape.registers and len(words_a) in (0, 4), match[0]
    left = Operand(64, shape.k, shape.size, a_turned)
    right = Operand(shape.n, shape.k, shape.size, b_turned)

    def run(r: Registers) -> None:
        warps = np.flatnonzero(r.m.whole_warps("wgmma", r.predicate)).tolist()
        _check_fenced(r, [*names, *words_a], warps)
        keeps = r.uniform(scale, "scale-d").astype(bool)
        a_at = None if words_a else r.uniform(a, "a matrix descriptor")
        b_at = r.uniform(b, "a matrix descriptor")
        sources: dict[int, tuple[Operation, list[Any]]] = {}
        for warp in warps:
            at = 32 * warp
            keep = bool(keeps[at])
            key = (shape, keep, None if a_at is None else int(a_at[at]), int(b_at[at]),
                   a_turned, b_turned)  # fmt: skip
            operation = _operation(r, warp, key, (left, right))
            group, number = r.m.tensor.of(warp)
            _read_operands(r, warp, operation)
            if keep:
                operation.accumulators[number] = [_source(r, name, warp) for name in names]
            operation.words_a[number] = [r.get(w)[at : at + 32] for w in words_a]
            operands = [r.names.get(w, "") for w in words_a]
            r.m.tensor.hold(warp, operands, operation)
            r.m.tensor.hold(warp, [(id(r.values), w) for w in words_a], operation)
            sources[warp] = operation, names
        _mark(r, names, {w: operation for w, (operation, _) in sources.items()})

    return run


def _operation(r: Registers, warp: int, key: Any, operands: tuple[Operand, Operand]) -> Operation:
    """What the warp issues together with the others of its warpgroup."""
    shape, keep, a, b, *_ = key
    group, number = r.m.tensor.of(warp)
    known = group.issued[number] < len(group.operations)
    if known and group.operations[group.issued[number]].key == key:
        new = group.operations[group.issued[number]]
    else:
        places_a = None if a is None else _within(r, addresses(a, operands[0]))
        new = Operation(shape, keep, places_a, _within(r, addresses(b, operands[1])), key)
    return group.issue(number, new)


def _within(r: Registers, places: Array) -> Array:
    if int(places.max()) >= r.m.shared.size:
        raise EmulationError(f"a matrix descriptor reaches beyond {r.m.shared.size} bytes")
    return places


def _read_operands(r: Registers, warp: int, operation: Operation) -> None:
    """From now on shared memory may be read: by each warp its rows of A, by the first all of B."""
    shared, number = r.m.shared, warp % 4
    if operation.places_a is not None:
        mine = _chunks(operation.places_a[16 * number : 16 * number + 16])
        shared.begin_late_read(mine, warp, "wgmma")
        operation.chunks.append(mine)
    chunks = _chunks(operation.places_b)
    if len(operation.issued) == 1:
        shared.begin_late_read(chunks, warp, "wgmma")
        operation.chunks.append(chunks)
    else:
        shared.check_late_read(chunks, warp, "wgmma")


def _chunks(places: Array) -> Array:
    """The pieces of 16 bytes that hold some elements, as (n, 16) places."""
    return np.unique(places >> 4)[:, None] * 16 + np.arange(16)


def _source(r: Registers, name: str, warp: int) -> Any:
    """What an accumulator of a warp holds: (32,), or what an operation will leave in it."""
    value = r.raw(name)
    if type(value) is Pending and warp in value.sources:
        before = value.sources[warp]
        before[0].take(warp, before[1])
        return before
    data = value.data if type(value) is Pending else r.get(name)
    return data[32 * warp : 32 * warp + 32]


def _check_fenced(r: Registers, names: Sequence[str], warps: Sequence[int]) -> None:
    """wgmma.fence lies between ordinary writes to these registers and now."""
    for name in names:
        value = r.raw(name)
        pending = value.sources if type(value) is Pending else {}
        written = r.m.tensor.written(r, name)
        for warp in warps:
            if warp not in pending and written[warp] >= r.m.tensor.fenced[warp]:
                raise EmulationError(f"wgmma uses {name} with no wgmma.fence after it was written")


def _mark(r: Registers, names: Sequence[str], operations: dict[int, Operation]) -> None:
    """The accumulators are on their way."""
    for number, name in enumerate(names):
        old = r.raw(name)
        sources = dict(old.sources) if type(old) is Pending else {}
        _check_same_shape(sources, operations)
        sources |= {warp: (operation, number) for warp, operation in operations.items()}
        data = old.data if type(old) is Pending else r.get(name)
        r.values[name] = Pending(data, sources)


def _check_same_shape(sources: dict[int, Any], operations: dict[int, Operation]) -> None:
    for warp, operation in operations.items():
        before = sources.get(warp)
        if before is not None and before[0].shape.n != operation.shape.n:
            raise EmulationError("an accumulator on its way is used by a wgmma of another shape")


def _fence(match: re.Match[str], args: list[str]) -> Made:
    return lambda r: r.m.tensor.fence(r.predicate)


def _commit(match: re.Match[str], args: list[str]) -> Made:
    return lambda r: r.m.tensor.commit(r.predicate)


def _wait(match: re.Match[str], args: list[str]) -> Made:
    return lambda r: r.m.tensor.wait(r, int(args[0]))


INSTRUCTIONS = [
    (r"wgmma\.mma_async\.sync\.aligned\.m64n(?P<n>\d+)k(?P<k>\d+)\.(?P<d>\w+)\.(?P<a>\w+)\.(?P<b>\w+)"
     r"(?P<sat>\.satfinite)?", _multiply),
    (r"wgmma\.fence\.sync\.aligned", _fence),
    (r"wgmma\.commit_group\.sync\.aligned", _commit),
    (r"wgmma\.wait_group\.sync\.aligned", _wait),
]  # fmt: skip
