"""Test each access before it is made, and end the program at a violation.

Before:
    %v = mem.load %p, %m                 %p: tile<8xptr<f32>>, from the parameter %x
After, with an additional parameter %checks, in which the host finds the violation:
    %outside = %m & (%p < begin of %x or %p > end of %x - 4)
    %lane = the first lane of %outside, 8 if there is none
    cf.if %lane < 8 { cf.stop %checks, 1 + kind, %lane, address, 0, program }
    %v = mem.load %p, %m

The tests of each kind of check are in `lane_marks` and `race_shadow`. Accesses through pointers
that may start from several parameters, or that are loaded, may go to all arrays and to any memory
that the process has mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tilewright.analysis import ANY_PROGRAM, MemoryForms, axis_of_windows, is_injective, roots
from tilewright.ir import Block, Builder, Function, Op, Pass, Value
from tilewright.ir.types import (
    DType,
    PointerType,
    Type,
    element_of,
    i1,
    i64,
    shape_of,
    with_element,
)
from tilewright.ops import (
    AtomicCasOp,
    AtomicOp,
    CastOp,
    ConditionOp,
    ForOp,
    GatherOp,
    IfOp,
    LoadOp,
    OffsetOp,
    StopOp,
    StoreOp,
    WhileOp,
    YieldOp,
    pointee,
)
from tilewright.support.data_class import dataclass
from tilewright.support.fresh_stack import nested
from tilewright.transforms.checks.check_table import (
    LOADED,
    RANGE_BITS,
    RANGES,
    SHARED,
    STORED,
    CheckSite,
    CheckTable,
    Violation,
    load_pointer,
    load_word,
    program_number,
    within,
)
from tilewright.transforms.checks.lane_arithmetic import Lanes, when
from tilewright.transforms.checks.lane_marks import Mark, Marked, follow, markable, none
from tilewright.transforms.checks.race_shadow import Found, RaceShadow, Test, WatchedAccess

TABLE = "checks"
"""The name of the parameter that is added."""

Access = LoadOp | StoreOp | AtomicOp | AtomicCasOp


@dataclass(frozen=True)
class InstrumentAccesses(Pass, name="instrument-accesses"):
    """Check every access.

    kinds: some of `support.CHECK_KINDS`, joined by `+`; bounds are always checked. The function's
    attribute `checks` passes the table to the host (`CheckTable.as_text`).
    """

    kinds: str = "bounds"

    def run(self, function: Function) -> bool:
        layout = CheckTable(tuple(self.kinds.split("+")))
        body = _Instrumenter(function, layout).run()
        function.body = body
        body.owner = function
        function.attrs["checks"] = layout.as_text()
        return True


class _Instrumenter:
    """Copy a function with checks. `values`, `marks`: copies and marks of the original's values."""

    def __init__(self, function: Function, layout: CheckTable) -> None:
        self.function = function
        self.layout = layout
        self.marked = [m for m in Mark if m.value in layout.kinds]
        self.markable = markable(function, self.marked)
        self.values: dict[Value, Value] = {}
        self.marks: dict[Marked, Value] = {}
        self.roots: dict[Value, frozenset[Value]] = {}
        self.forms = MemoryForms(function)
        pointers = [arg for arg in function.args if isinstance(arg.type, PointerType)]
        self.numbers = {arg: number for number, arg in enumerate(pointers)}
        # An address that was cast from an integer may belong to any array.
        self.has_casts = any(
            isinstance(op, CastOp) and isinstance(element_of(op.type), PointerType)
            for op in function.walk()
        )
        accesses = [op for op in function.walk() if isinstance(op, Access)]
        self.has_atomics = any(isinstance(op, AtomicOp | AtomicCasOp) for op in accesses)
        layout.pointers = tuple(arg.index for arg in pointers)
        layout.windows = tuple(self._windows(pointers, accesses))
        layout.granule = min((_bytes(op) for op in accesses), default=1)
        self.shadow: RaceShadow | None = None

    def _windows(self, pointers: Sequence[Value], accesses: Sequence[Access]) -> Iterator[int]:
        """The axis along which programs use separate windows, for each pointer parameter."""
        forms, by_root = self.forms, dict[Value | None, list[Access]]()
        for op in accesses:
            by_root.setdefault(self._root(op), []).append(op)
        for pointer in pointers:
            used = () if None in by_root else by_root.get(pointer, ())
            yield axis_of_windows(forms, pointer, used) if used else ANY_PROGRAM

    def run(self) -> Block:
        """The body with checks."""
        block = Block()
        for arg in self.function.args:
            self._copy_arg(arg, block)
        self.table = block.add_arg(PointerType(i64), TABLE)
        build = Builder(block, loc=self.function.loc)
        # After a violation no further program of the launch runs.
        wrong = build.ne(load_word(build, self.table, 0), 0)
        when(build, wrong).emit(StopOp(self.table, ()))
        if "race" in self.layout.kinds:
            pointers = [self.values[arg] for arg in self.numbers]
            self.shadow = RaceShadow(build, self.table, self.layout, pointers, self.has_atomics)
        self._copy_ops(self.function.body, build)
        build.emit(self.function.body.terminator.clone(self.values))
        return block

    def _copy_arg(self, arg: Value, block: Block) -> Value:
        copy = block.add_arg(arg.type, arg.name)
        copy.facts = dict(arg.facts) if arg.facts else None
        self.values[arg] = copy
        return copy

    @nested
    def _copy_ops(self, block: Block, build: Builder) -> None:
        """Copy all ops but the terminator."""
        for op in block:
            build.loc = op.loc
            if op is block.last:
                return
            if isinstance(op, ForOp | WhileOp | IfOp):
                self._copy_structured(op, build)
                continue
            if isinstance(op, Access):
                self._check(op, build)
            elif isinstance(op, GatherOp):
                self._check_gather(op, build)
            copy = build.emit(op.clone(self.values))
            if isinstance(op, Access) and self.shadow is not None:
                self._check_after(op, copy, build)
            self._follow(op, copy, build)

    def _follow(self, op: Op, copy: Op, build: Builder) -> None:
        for mark in self.marked:
            if not any((mark, result) in self.markable for result in op.results):
                continue
            given = [self.marks.get((mark, value)) for value in op.operands]
            found = follow(build, copy, mark, given)
            for result, marks in zip(op.results, found, strict=True):
                if marks is not None:
                    self.marks[mark, result] = marks

    # --- control flow -----------------------------------------------------------------------------

    def _copy_structured(self, op: ForOp | WhileOp | IfOp, build: Builder) -> None:
        slots = [
            (mark, i)
            for mark in self.marked
            for i, result in enumerate(op.results)
            if not self.markable.isdisjoint((mark, view) for view in (result, *_views(op, i)))
        ]
        blocks = [self._copy_region(op, block, slots) for block in op.regions]
        build.loc = op.loc
        if isinstance(op, IfOp):
            self._check_condition(op, Violation.CONDITION_UNDEFINED, [op.condition], build)
            types = tuple(v.type for v in blocks[0].terminator.operands)
            copy: Op = IfOp(self.values[op.condition], blocks[0], blocks[1], types)
        else:
            first = len(op.operands) - len(op.results)
            inits = tuple(self._with_marks(op.operands, first, slots, build))
            make: Any = type(op)
            self._check_condition(op, Violation.BOUND_UNDEFINED, op.operands[:first], build)
            bounds = [self.values[v] for v in op.operands[:first]]
            copy = make(*bounds, inits, *blocks, **op.attrs)
        build.emit(copy)
        for old, new in zip(op.results, copy.results, strict=False):
            new.name = old.name
            self.values[old] = new
        for (mark, i), new in zip(slots, copy.results[len(op.results) :], strict=True):
            self.marks[mark, op.results[i]] = new

    def _copy_region(
        self, op: ForOp | WhileOp | IfOp, block: Block, slots: Sequence[tuple[Mark, int]]
    ) -> Block:
        copy = Block()
        for arg in block.args:
            self._copy_arg(arg, copy)
        if not isinstance(op, IfOp):
            first = len(block.args) - len(op.results)
            for mark, i in slots:
                arg = block.args[first + i]
                self.marks[mark, arg] = copy.add_arg(with_element(arg.type, i1))
        build = Builder(copy, loc=op.loc)
        self._copy_ops(block, build)
        end = block.terminator
        first = len(end.operands) - len(op.results)
        passed = tuple(self._with_marks(end.operands, first, slots, build))
        if isinstance(end, ConditionOp):
            build.loc = op.loc
            self._check_condition(op, Violation.CONDITION_UNDEFINED, [end.go], build)
            build.emit(ConditionOp(self.values[end.go], passed))
        else:
            build.emit(YieldOp(passed))
        return copy

    def _with_marks(
        self, values: Sequence[Value], first: int, slots: Sequence[tuple[Mark, int]], build: Builder
    ) -> list[Value]:
        """The operands of a terminator, followed by their marks."""
        passed = list(values)[first:]
        found = [self.values[v] for v in passed]
        for mark, i in slots:
            found.append(self.marks.get((mark, passed[i])) or none(build, passed[i]))
        return found

    # --- what depends on values ---------------------------------------------------------------

    def _check_condition(
        self, op: Op, kind: Violation, values: Sequence[Value], build: Builder
    ) -> None:
        """Scalars on which control flow depends must not be undefined."""
        found = [self.marks.get((Mark.UNDEFINED, value)) for value in values]
        tests = [(kind, _known(marks)) for marks in found if marks is not None]
        if tests:
            zero = build.constant(0, i64)
            self._report(CheckSite("", "", 0, (), -1, _frames(op)), zero).emit(build, tests)

    def _check_gather(self, op: GatherOp, build: Builder) -> None:
        """Indices must be within the tile."""
        index, shape = self.values[op.index], shape_of(op.index.type)
        extent = shape_of(op.x.type)[op.axis]
        lanes = Lanes(build, shape)
        wide = lanes.cast(index, i64)
        wrong = lanes.bit_or(lanes.lt(wide, 0), lanes.ge(wide, extent))
        site = CheckSite("gather", "", 0, shape, -1, _frames(op), extent)
        self._report(site, wide).emit(build, [(Violation.GATHER_OUTSIDE, _known(wrong))])

    def _report(self, site: CheckSite, pointer: Value) -> _Report:
        """The report of a new site. pointer: reported to the host as the address of the lane."""
        number = len(self.layout.sites)
        self.layout.sites.append(site)
        return _Report(self.table, site, number, pointer)

    # --- accesses ---------------------------------------------------------------------------------

    def _check(self, op: Access, build: Builder) -> None:
        watched = self._watched(op)
        report = self._report(_site(op, watched.root), watched.pointer)
        inside = self._inside(watched, build)
        outside = self._outside(watched, inside, build)
        tests = [*self._forbidden(op, watched, build), (Violation.OUTSIDE, _known(outside))]
        if self.shadow is None:
            report.emit(build, tests)
        elif isinstance(op, StoreOp):
            self._watch_store(op, watched, inside, tests, report, build)
        else:
            report.emit(build, tests)
            self._watch(op, watched, report, build)

    def _watched(self, op: Access) -> WatchedAccess:
        mask = None if isinstance(op, AtomicCasOp) else op.mask
        root = self._root(op)
        return WatchedAccess(
            self.values[op.pointer],
            None if mask is None else self.values[mask],
            -1 if root is None else self.numbers[root],
            _bytes(op),
        )

    def _root(self, op: Access) -> Value | None:
        """The parameter that an address starts from; None where it is unknown."""
        found = roots(op.pointer, self.roots)
        root = next(iter(found)) if len(found) == 1 and not self.has_casts else None
        return root if root in self.numbers else None

    def _forbidden(self, op: Access, access: WatchedAccess, build: Builder) -> list[Test]:
        """Lanes whose mask, address or value is marked."""
        if isinstance(op, AtomicCasOp):
            return []
        stored = None if isinstance(op, LoadOp) else op.operands[1]
        lanes = Lanes(build, shape_of(access.pointer.type))
        uses = (
            (Violation.MASK_UNDEFINED, Mark.UNDEFINED, op.mask),
            (Violation.ADDRESS_UNDEFINED, Mark.UNDEFINED, op.pointer),
            (Violation.ADDRESS_WRAPPED, Mark.WRAPPED, op.pointer),
            (Violation.VALUE_UNDEFINED, Mark.UNDEFINED, stored),
        )
        found: list[Test] = []
        for kind, mark, value in uses:
            marks = None if value is None else self.marks.get((mark, value))
            if marks is not None:
                found.append((kind, _known(lanes.masked(marks, access.mask))))
        return found

    def _inside(self, access: WatchedAccess, build: Builder) -> Value:
        """Lanes whose element is in an array that the access may reach."""
        lanes = Lanes(build, shape_of(access.pointer.type))
        address = lanes.cast(access.pointer, i64)
        known = access.root >= 0
        inside: Value | None = None
        for root in (access.root,) if known else range(len(self.numbers)):
            here = within(lanes, self.table, root, address, access.bytes)
            inside = here if inside is None else lanes.bit_or(inside, here)
        if not known:
            mapped = self._mapped(lanes, address, access.bytes)
            inside = mapped if inside is None else lanes.bit_or(inside, mapped)
        assert inside is not None
        return inside

    def _outside(self, access: WatchedAccess, inside: Value, build: Builder) -> Value:
        """Active lanes that are not inside."""
        lanes = Lanes(build, shape_of(access.pointer.type))
        return lanes.masked(lanes.select(inside, False, True), access.mask)

    def _mapped(self, lanes: Lanes, address: Value, size: int) -> Value:
        """Whether addresses are mapped memory of the process: a binary search in its ranges."""
        build = lanes.build
        ranges = load_pointer(build, self.table, RANGES, PointerType(i64))
        found, start = lanes.spread(0, i64), lanes.spread(ranges)
        for step in reversed(range(RANGE_BITS)):
            place = lanes.add(found, 2 << step)
            begin = build.value(LoadOp(build.value(OffsetOp(start, place))))
            found = lanes.select(lanes.le(begin, address), place, found)
        begin = build.value(LoadOp(build.value(OffsetOp(start, found))))
        end = build.value(LoadOp(build.value(OffsetOp(start, lanes.add(found, 1)))))
        last = lanes.add(address, size)
        return lanes.masked(lanes.le(begin, address), lanes.le(last, end))

    def _watch(self, op: Access, access: WatchedAccess, report: _Report, build: Builder) -> None:
        """Test a load or an atomic for races, and note it."""
        shadow = self.shadow
        assert shadow is not None
        if not isinstance(op, LoadOp):
            shadow.note_atomic(build, access)
            return
        watched = shadow.matters(build, access, STORED)
        polls = op.volatile
        kinds = [Violation.WRITTEN]
        if self.has_atomics and not polls:
            kinds.append(Violation.UPDATED)
        report.emit(watched, [shadow.test(kind, access) for kind in kinds])
        if not polls:
            shadow.note_read(watched, access)

    def _check_after(self, op: Access, copy: Op, build: Builder) -> None:
        """Test the memory after an access."""
        if isinstance(op, StoreOp) and not is_injective(self.forms.access(op)):
            self._compare_lanes(op, build)
        elif isinstance(op, AtomicOp | AtomicCasOp):
            self._watch_update(op, copy, build)

    def _compare_lanes(self, op: StoreOp, build: Builder) -> None:
        """Lanes of one store must not store different values to one element."""
        shadow, access = self.shadow, self._watched(op)
        assert shadow is not None
        lost = shadow.changed(build, access, self.values[op.stored]).mask
        assert lost is not None
        report = self._report(_site(op, access.root), access.pointer)
        report.emit(build, [(Violation.LANES_DIFFER, _known(lost))])

    def _watch_update(self, op: AtomicOp | AtomicCasOp, copy: Op, build: Builder) -> None:
        """Other programs must not read, except by an atomic, what an atomic changes."""
        shadow, access = self.shadow, self._watched(op)
        assert shadow is not None
        if not (isinstance(op, AtomicOp) and op.kind in ("load", "store")):
            access = shadow.changed(build, access, copy.results[0])
        if not (isinstance(op, AtomicOp) and op.kind == "load"):
            report = self._report(_site(op, access.root), access.pointer)
            read = shadow.test(Violation.READ, access)
            report.emit(shadow.matters(build, access, LOADED), [read])
            shadow.note_update(build, access)
        shadow.end_atomic(build)

    def _watch_store(
        self, op: StoreOp, access: WatchedAccess, inside: Value, tests: list[Test],
        report: _Report, build: Builder,
    ) -> None:  # fmt: skip
        """Test a store for races and other violations, and note it."""
        shadow = self.shadow
        assert shadow is not None
        if access.root >= 0 and self.layout.windows[access.root] != ANY_PROGRAM:
            report.emit(build, tests)
            build, tests = shadow.matters(build, access, SHARED), []
        lanes = Lanes(build, shape_of(access.pointer.type))
        allowed = replace(access, mask=lanes.both(inside, access.mask))
        changed = shadow.changed(build, allowed, self.values[op.stored])
        report.emit(build, [*tests, shadow.test(Violation.WRITTEN, changed)])
        report.emit(shadow.matters(build, access, LOADED), [shadow.test(Violation.READ, changed)])
        shadow.note_write(build, changed)


def _known(wrong: Value) -> Callable[[Builder, bool], Found]:
    """A test whose result is computed already."""
    return lambda _build, _again: Found(wrong)


@dataclass(frozen=True, slots=True)
class _Report:
    """Reports violations at one site to the host."""

    table: Value
    site: CheckSite
    number: int
    pointer: Value

    def emit(self, build: Builder, tests: Sequence[Test]) -> None:
        """Stop if a test finds a violation in any lane; reported is the first lane of the first
        such test."""
        lanes, count = Lanes(build, self.site.shape), prod(self.site.shape)
        whole: Value | None = None
        for _, look in tests:
            wrong = look(build, False).wrong
            whole = wrong if whole is None else lanes.bit_or(whole, wrong)
        assert whole is not None
        rare = when(build, build.lt(lanes.first(whole), count))
        for kind, look in tests:
            wrong, other = look(rare, True)
            lane = Lanes(rare, self.site.shape).first(wrong)
            self._stop(when(rare, rare.lt(lane, count)), kind, lane, other)

    def _stop(self, build: Builder, kind: Violation, lane: Value, other: Value | None) -> None:
        lanes = Lanes(build, self.site.shape)
        words = (
            build.constant(self.site.code(self.number, kind), i64),
            build.cast(lane, i64),
            lanes.at(lane, self.pointer),
            build.constant(0, i64) if other is None else lanes.at(lane, other),
            program_number(build, self.table),
        )
        build.emit(StopOp(self.table, words))


def _views(op: ForOp | WhileOp | IfOp, slot: int) -> list[Value]:
    """The arguments of a loop's blocks for a carried value."""
    return [block.args[slot - len(op.results)] for block in op.regions if block.args]


def _bytes(op: Access) -> int:
    """Bytes of an element."""
    element = element_of(pointee(op.pointer.type))
    return element.bytes if isinstance(element, DType) else 8


def _site(op: Access, root: int) -> CheckSite:
    verb = "atomic cas" if isinstance(op, AtomicCasOp) else op.opcode.removeprefix("mem.")
    verb = f"atomic {op.kind}" if isinstance(op, AtomicOp) else verb
    type_: Type = op.pointer.type
    element = element_of(pointee(type_))
    return CheckSite(verb, str(element), _bytes(op), shape_of(type_), root, _frames(op))


def _frames(op: Op) -> list[list[Any]]:
    """The source location of an op, with the call sites of inlined functions."""
    return [] if op.loc is None else [list(frame[:-1]) for frame in op.loc.frames()]
