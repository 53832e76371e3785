"""wgmma instructions, as they are written in inline assembly."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.emulator.descriptors import Operand, addresses, pieces
from tests.emulator.fragments import Shape
from tests.emulator.memory import Array, EmulationError
from tests.emulator.pending import Operations, Pending
from tests.emulator.registers import Registers
from tests.emulator.text import split_commas
from tests.emulator.wgmma import Operation

Made = Callable[[Registers], None]
Key = tuple[Shape, bool, "tuple[int, Operand] | None", tuple[int, Operand]]
"""What all warps of a warpgroup must agree on: also descriptors, and whether sums are kept."""

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
        operations: Operations = {}
        held = _sources(r, names, [warp for warp in warps if keeps[32 * warp]])
        for warp in warps:
            at = 32 * warp
            keep = bool(keeps[at])
            key = (
                shape,
                keep,
                None if a_at is None else (int(a_at[at]), left),
                (int(b_at[at]), right),
            )
            operation = _operation(r, warp, key)
            group, number = r.m.tensor.of(warp)
            _read_operands(r, warp, operation)
            if keep:
                operation.accumulators[number] = held[warp]
            operation.words_a[number] = [r.get(w)[at : at + 32] for w in words_a]
            operands = [r.names.get(w, "") for w in words_a]
            r.m.tensor.hold(warp, operands, operation)
            r.m.tensor.hold(warp, [(id(r.values), w) for w in words_a], operation)
            operations[warp] = operation
        _mark(r, names, operations)

    return run


def _operation(r: Registers, warp: int, key: Key) -> Operation:
    """What the warp issues together with the others of its warpgroup."""
    group, number = r.m.tensor.of(warp)
    at = group.issued[number]
    if at < len(group.operations) and group.operations[at].key == key:
        return group.issue(number, group.operations[at])
    shape, keep, left, right = key
    places = [
        None if held is None else _within(r, addresses(*held), warp) for held in (left, right)
    ]
    assert places[1] is not None
    return group.issue(number, Operation(shape, keep, places[0], places[1], key))


def _base(r: Registers, warp: int) -> int:
    """What as much of an address as a descriptor holds is more than its place for a warp."""
    return (r.m.shared.base & 0x3FFFF) - r.m.shared.start(warp)


def _within(r: Registers, places: Array, warp: int) -> Array:
    found = places - _base(r, warp)
    r.m.shared.check_within(found - r.m.shared.start(warp), 1, "a matrix descriptor")
    return found


def _read_operands(r: Registers, warp: int, operation: Operation) -> None:
    """From now on shared memory may be read: by each warp its rows of A, by the first all of B."""
    shared, number = r.m.shared, warp % 4
    _, _, left, right = operation.key
    if left is not None:
        mine = pieces(*left, 16 * number, 16 * number + 16) - (_base(r, warp) >> 4)
        shared.begin_late_read(mine, warp, "wgmma")
        operation.pieces.append(mine)
    every = pieces(*right, 0, operation.shape.n) - (_base(r, warp) >> 4)
    if len(operation.issued) == 1:
        shared.begin_late_read(every, warp, "wgmma")
        operation.pieces.append(every)
    else:
        shared.check_late_read(every, warp, "wgmma")


def _sources(r: Registers, names: Sequence[str], warps: Sequence[int]) -> dict[int, Any]:
    """What the accumulators hold, by warp: an operation that leaves all of them, or one by one
    (32,), or an operation and which of its accumulators."""
    values = [r.raw(name) for name in names]
    first = values[0]
    are_whole = all(
        type(v) is Pending and v.operations is first.operations and v.number == i
        for i, v in enumerate(values)
    )
    found: dict[int, Any] = {}
    for warp in warps:
        if are_whole and warp in first.operations:
            found[warp] = first.operations[warp]
            found[warp].take(warp, range(len(names)))
        else:
            found[warp] = [_source(r, name, warp) for name in names]
    return found


def _source(r: Registers, name: str, warp: int) -> Any:
    value = r.raw(name)
    if type(value) is not Pending:
        return r.get(name)[32 * warp : 32 * warp + 32]
    if warp not in value.operations:
        return value.data[32 * warp : 32 * warp + 32]
    value.operations[warp].take(warp, [value.number])
    return value.operations[warp], value.number


def _check_fenced(r: Registers, names: Sequence[str], warps: Sequence[int]) -> None:
    """wgmma.fence lies between ordinary writes to these registers and now."""
    every = set(warps)
    fenced = r.m.tensor.fenced[warps]
    for name in names:
        value = r.raw(name)
        pending = value.operations if type(value) is Pending else {}
        if pending.keys() >= every:
            continue
        written = r.m.tensor.written(r, name)
        late = (written if isinstance(written, int) else written[warps]) >= fenced
        if np.count_nonzero(late & [warp not in pending for warp in warps]):
            raise EmulationError(f"wgmma uses {name} with no wgmma.fence after it was written")


def _mark(r: Registers, names: Sequence[str], operations: Operations) -> None:
    """The accumulators are on their way."""
    made: dict[int, tuple[Operations, Operations]] = {}
    for number, name in enumerate(names):
        old = r.raw(name)
        if type(old) is not Pending:
            old = Pending(r.get(name), number, _NONE)
        if id(old.operations) not in made:
            _check_same_shape(old.operations, operations)
            made[id(old.operations)] = old.operations, old.operations | operations
        together = made[id(old.operations)][1]
        if old.number != number and len(together) > len(operations):
            raise EmulationError("warps disagree which accumulator a register is")
        r.values[name] = Pending(old.data, number, together)


_NONE: Operations = {}


def _check_same_shape(before: Operations, operations: Operations) -> None:
    for warp in before.keys() & operations.keys():
        old, new = before[warp].shape, operations[warp].shape
        if (old.n, old.d) != (new.n, new.d):
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
