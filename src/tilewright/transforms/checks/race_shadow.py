"""Notes of the programs that used each element, kept by the kernel to find races.

Before a load of program %me (a store also tests %reader, an atomic that modifies the element tests
%reader only; a load, unless it is volatile, also tests the last program that modified it):

    %writer = mem.load %writers + place    %wrong = %writer > %ordered and %writer is not of %me
    %reader = mem.load %readers + place    mem.store %readers + place, %me or -%me

A checked kernel runs its programs one after the other, so notes need no atomics. %ordered is the
last note that happened before this program: of an earlier launch, or the state of the last program
that used an atomic on an address before this one did. All earlier notes count as ordered. Chains of
counters and locks are followed so without a set for each program, and a program that waited is
never reported. Storing the value that memory already holds is no race.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tilewright.ir import Builder, Value
from tilewright.ir.types import (
    PointerType,
    element_of,
    i32,
    i64,
    shape_of,
    u8,
    u16,
    u32,
    u64,
)
from tilewright.ops import (
    BroadcastOp,
    ExpandDimsOp,
    LoadOp,
    MaxOp,
    OffsetOp,
    ReshapeOp,
    SplatOp,
    StoreOp,
    TransposeOp,
)
from tilewright.support.data_class import dataclass
from tilewright.transforms.checks.check_table import (
    ACQUIRED,
    BASE,
    READERS,
    RELEASED,
    TOUCHERS,
    UPDATERS,
    WRITERS,
    CheckTable,
    Violation,
    load_pointer,
    load_word,
    pointer_word,
    program_number,
    within,
    word_at,
)
from tilewright.transforms.checks.lane_arithmetic import Lanes, emit_like, when

_NOTED = {Violation.WRITTEN: WRITERS, Violation.READ: READERS, Violation.UPDATED: UPDATERS}
_NOTE = PointerType(i32)
_UNSIGNED = {8: u8, 16: u16, 32: u32, 64: u64}
_SHAPES = (SplatOp, BroadcastOp, ExpandDimsOp, ReshapeOp, TransposeOp)


@dataclass(frozen=True, slots=True)
class WatchedAccess:
    """An access that is tested for races.

    mask: None for all lanes; root: number of the pointer parameter, -1 for any; bytes: of an
    element
    """

    pointer: Value
    mask: Value | None
    root: int
    bytes: int


class Found(NamedTuple):
    """Lanes with a violation; other: the conflicting program, negative for several."""

    wrong: Value
    other: Value | None = None


Test = tuple[Violation, Callable[[Builder, bool], Found]]
"""A kind of violation, and its test: run first, and again to locate the lane."""


class RaceShadow:
    """Emits the notes and tests of one function.

    table: the parameter of the kernel; pointers: the pointer parameters; has_atomics: whether
    atomics may order a program after others while it runs
    """

    def __init__(
        self, build: Builder, table: Value, layout: CheckTable, pointers: Sequence[Value],
        has_atomics: bool,
    ) -> None:  # fmt: skip
        self._table = table
        self._granule = layout.granule
        self._pointers = pointers
        base = build.add(build.mul(load_word(build, table, BASE), 2), 1)
        self._base = build.cast(base, i32)
        self._before = build.mul(self._base, -1)
        number = build.cast(program_number(build, table), i32)
        self._first = build.mul(number, 2)
        self._has_atomics = has_atomics
        if has_atomics:
            build.emit(StoreOp(word_at(build, table, ACQUIRED), base))
            zero = build.constant(0, i64)
            build.emit(StoreOp(word_at(build, table, RELEASED), zero))

    def matters(self, build: Builder, access: WatchedAccess, word: int) -> Builder:
        """A builder in a branch taken where the kernel may store to the memory of an access
        (STORED), load from it (LOADED), or share it among programs (SHARED)."""
        if access.root < 0:
            return build
        flag = load_word(build, self._table, pointer_word(access.root, word))
        return when(build, build.ne(flag, 0))

    def test(self, kind: Violation, access: WatchedAccess) -> Test:
        """The test of an access for conflicting programs."""
        return kind, lambda build, again: self.others(build, access, kind, again)

    def others(self, build: Builder, access: WatchedAccess, kind: Violation, again: bool) -> Found:
        """Find the programs that wrote, read or updated the accessed elements.

        again: for elements that were tested before, so that no result has to be kept."""
        lanes = Lanes(build, shape_of(access.pointer.type))
        acquired = self._acquired(build)
        word = _NOTED[kind]
        wrong: Value | None = None
        other: Value | None = None
        places, mask = self._note_addresses(build, access, word)
        for place in places:
            note = build.value(LoadOp(place, mask, volatile=again))
            bad = lanes.masked(self._in_the_way(lanes, note, acquired, kind), mask)
            other = note if other is None else lanes.select(bad, note, other)
            wrong = bad if wrong is None else lanes.bit_or(wrong, bad)
        assert wrong is not None
        return Found(wrong, other)

    def _in_the_way(self, lanes: Lanes, note: Value, acquired: Value, kind: Violation) -> Value:
        """Whether a noted program, or one of several, is not ordered before this one."""
        late = lanes.gt(note, acquired)
        alone = lanes.masked(late, lanes.lt(note, self._first))
        if kind is not Violation.READ:
            return alone
        several = lanes.lt(note, self._before)
        unordered = lanes.build.eq(acquired, self._base)
        return lanes.bit_or(alone, lanes.masked(several, unordered))

    def note_read(self, build: Builder, access: WatchedAccess) -> None:
        """Note that this program reads."""
        lanes = Lanes(build, shape_of(access.pointer.type))
        places, mask = self._note_addresses(build, access, READERS)
        me = self._own_note(build)
        many = build.mul(me, -1)
        for place in places:
            before = build.value(LoadOp(place, mask))
            old = lanes.masked(lanes.le(before, self._base), lanes.ge(before, self._before))
            mine = lanes.bit_or(old, lanes.ge(before, self._first))
            now = build.select(mine, lanes.spread(me), lanes.spread(many))
            build.emit(StoreOp(place, now, mask))

    def note_write(self, build: Builder, access: WatchedAccess) -> None:
        """Note that this program writes."""
        self._note(build, access, WRITERS)

    def note_update(self, build: Builder, access: WatchedAccess) -> None:
        """Note that this program has changed elements by an atomic."""
        self._note(build, access, UPDATERS)

    def _note(self, build: Builder, access: WatchedAccess, word: int) -> None:
        lanes, me = Lanes(build, shape_of(access.pointer.type)), self._own_note(build)
        places, mask = self._note_addresses(build, access, word)
        for place in places:
            build.emit(StoreOp(place, lanes.spread(me), mask))

    def note_atomic(self, build: Builder, access: WatchedAccess) -> None:
        """Note an atomic of this program, and which program it is ordered after."""
        lanes = Lanes(build, shape_of(access.pointer.type))
        (place, *_), mask = self._note_addresses(build, access, TOUCHERS)
        before = build.value(LoadOp(place, mask))
        others = lanes.masked(lanes.lt(before, self._first), mask)
        last = lanes.fold(lanes.select(others, before, 0), MaxOp)
        latest = build.max(last, self._acquired(build))
        word = word_at(build, self._table, ACQUIRED)
        build.emit(StoreOp(word, build.cast(latest, i64)))
        build.emit(StoreOp(place, lanes.spread(self._own_note(build)), mask))

    def end_atomic(self, build: Builder) -> None:
        """Note that all later accesses of this program follow an atomic of its own."""
        one = build.constant(1, i64)
        build.emit(StoreOp(word_at(build, self._table, RELEASED), one))

    def _own_note(self, build: Builder) -> Value:
        """This program's current note."""
        if not self._has_atomics:
            return self._first
        flag = build.cast(load_word(build, self._table, RELEASED), i32)
        return build.add(self._first, flag)

    def changed(self, build: Builder, access: WatchedAccess, stored: Value) -> WatchedAccess:
        """The lanes in which memory differs from the stored value."""
        lanes = Lanes(build, shape_of(access.pointer.type))
        there = build.value(LoadOp(access.pointer, access.mask))
        differ = lanes.ne(_bits(build, there), _bits(build, stored))
        return replace(access, mask=lanes.masked(differ, access.mask))

    def _acquired(self, build: Builder) -> Value:
        """The last note that happened before this program."""
        if not self._has_atomics:
            return self._base
        return build.cast(load_word(build, self._table, ACQUIRED), i32)

    def _note_addresses(
        self, build: Builder, access: WatchedAccess, word: int
    ) -> tuple[list[Value], Value | None]:
        """The addresses of the notes of the elements' granules, and the lanes that have them."""
        if access.root >= 0 and access.bytes == self._granule:
            start = load_pointer(build, self._table, pointer_word(access.root, word), _NOTE)
            moved = _rebased(build, access.pointer, self._pointers[access.root], start)
            if moved is not None:
                return [moved], access.mask
        lanes = Lanes(build, shape_of(access.pointer.type))
        known = access.root >= 0
        roots = (access.root,) if known else range(len(self._pointers))
        address, inside = lanes.cast(access.pointer, i64), None if known else lanes.spread(False)
        found: Value | None = None
        for root in roots:
            place = self._note_address(lanes, address, root, word)
            if inside is not None:
                here = within(lanes, self._table, root, address, access.bytes)
                inside = lanes.bit_or(inside, here)
                place = place if found is None else lanes.select(here, place, found)
            found = place
        assert found is not None
        parts = [lanes.add(found, 4 * i) for i in range(max(1, access.bytes // self._granule))]
        places = [lanes.cast(part, _NOTE) for part in parts]
        return places, lanes.both(inside, access.mask)

    def _note_address(self, lanes: Lanes, address: Value, root: int, word: int) -> Value:
        """The address of the note for an address in the array of a parameter."""
        build = lanes.build
        notes = load_word(build, self._table, pointer_word(root, word))
        origin = build.mul(build.cast(self._pointers[root], i64), -1)
        shift = lanes.spread(self._granule.bit_length() - 1, i64)
        number = build.shr(lanes.add(address, origin), shift)
        return lanes.add(lanes.mul(number, 4), notes)


def _rebased(build: Builder, pointer: Value, root: Value, start: Value) -> Value | None:
    """The same address computation from another base; None if it is more than offsets and moves.

    The addresses of notes are then as contiguous as those of the access.
    """
    if pointer is root:
        return start
    op = pointer.op
    if op is None or not isinstance(op, (OffsetOp, *_SHAPES)):
        return None
    inner = _rebased(build, op.operands[0], root, start)
    if inner is None:
        return None
    return emit_like(build, op, [inner, *op.operands[1:]]).result


def _bits(build: Builder, value: Value) -> Value:
    """A float as an integer of its width, so that NaNs can be compared."""
    element = element_of(value.type)
    if isinstance(element, PointerType) or not element.is_float:
        return value
    return build.bitcast(value, _UNSIGNED[element.bits])
