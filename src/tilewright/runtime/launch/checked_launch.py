"""Launches of kernels that check their own accesses (`jit(check=...)`) on a CPU.

Such a kernel has one more argument, a table (`transforms/checks/check_table.py`) that holds the
address ranges of the arrays and, after the launch, the first wrong access. Programs run serially.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tilewright import interp
from tilewright.compiler import CompiledKernel
from tilewright.eager import as_numpy
from tilewright.ir.types import PointerType
from tilewright.runtime.arguments.descriptor_arguments import DescriptorKey
from tilewright.runtime.arguments.key_rules import Key, Spec, TupleKey
from tilewright.runtime.launch.bound_call import BoundCall
from tilewright.support import ForkLock, Grid, SourceLoc, TilewrightError
from tilewright.transforms import CheckSite, CheckTable, Violation, check_table

_NOTE_BYTES = 4
_LAST_NUMBER = 1 << 29
"""The largest number of a program: after it, numbers restart at 1 and the notes are erased."""


class _Notes:
    """Memory for notes of which program used which element, shared by all launches.

    numbered: programs so far; notes of these programs are stale
    """

    def __init__(self) -> None:
        self.lock = ForkLock()
        self.numbered = 0
        self._memory = np.zeros(0, np.uint8)
        self._used = 0

    def begin(self, size: int, programs: int) -> None:
        """Make room for a launch, with `size` bytes of notes."""
        if size > self._memory.size or self.numbered + programs > _LAST_NUMBER:
            # New memory is zero, and is not resident before it is written to.
            self._memory = np.zeros(max(size, self._memory.size), np.uint8)
            self.numbered = 0
        self._used = 0

    def take(self, size: int) -> int:
        """The address of some bytes of notes."""
        start = self._memory.ctypes.data + self._used
        self._used += size
        return start


_notes = _Notes()


def launch_checked(kernel: CompiledKernel, grid: Grid, call: BoundCall, values: Any) -> None:
    """Run a kernel whose metadata has `checks`. values: those of its other arguments.

    Errors: OutOfBounds, RaceCondition, OffsetOverflow, UndefinedElement, at the line of the access.
    """
    with _notes.lock:
        launch = _CheckedLaunch(kernel, grid, call)
        kernel.launcher.launch(grid, [*values, launch.table_address])
        _notes.numbered += prod(grid)
        error = launch.error()
    if error is not None:
        raise error


@lru_cache(maxsize=256)
def _layout(text: str) -> CheckTable:
    return CheckTable.of_text(text)


_BEFORE = {Violation.WRITTEN: "wrote", Violation.READ: "read", Violation.UPDATED: "updated"}


class _CheckedLaunch:
    """The table of one launch, and its interpretation."""

    def __init__(self, kernel: CompiledKernel, grid: Grid, call: BoundCall) -> None:
        self._errors: Any = interp.access_errors
        self._layout = _layout(kernel.metadata.checks)
        self._grid = grid
        self._memory = interp.Memory(call.kernel)
        # Keep the arrays alive: some are views that the conversion has created.
        self._arrays = [(name, as_numpy(name, array)) for name, array in _arrays_of(call)]
        self._spans = [self._memory.add(name, array) for name, array in self._arrays]
        self._words = (ctypes.c_int64 * check_table.words_for(len(self._spans)))()
        self._base = 0
        if "race" in self._layout.kinds:
            self._place_notes()
        for number, span in enumerate(self._spans):
            self._set(number, check_table.BEGIN, span.start)
            self._set(number, check_table.END, span.stop)
        if any(site.root < 0 for site in self._layout.accesses):
            self._ranges = _ranges(interp.mapped_ranges())
            self._words[check_table.RANGES] = ctypes.addressof(self._ranges)
        self.table_address = ctypes.addressof(self._words)

    def _set(self, number: int, word: int, value: int) -> None:
        self._words[check_table.pointer_word(number, word)] = value

    def _place_notes(self) -> None:
        """Store the addresses of the notes of each array; overlapping arrays share notes."""
        granule, spans = self._layout.granule, self._memory.spans
        kinds = (
            check_table.WRITERS, check_table.READERS, check_table.TOUCHERS, check_table.UPDATERS,
        )  # fmt: skip
        # One more: elements need not be aligned to the start of the array.
        sizes = [_NOTE_BYTES * ((span.stop - span.start) // granule + 2) for span in spans]
        _notes.begin(len(kinds) * sum(sizes), prod(self._grid))
        self._base = _notes.numbered
        self._words[check_table.BASE] = self._base
        self._store_uses()
        for kind in kinds:
            notes = [_notes.take(size) for size in sizes]
            starts = {s.start: start for s, start in zip(spans, notes, strict=True)}
            for number, (_, array) in enumerate(self._arrays):
                whole = self._whole(self._spans[number].start)
                if whole is not None:  # an array without elements has none
                    distance = (array.__array_interface__["data"][0] - whole.start) // granule
                    self._set(number, kind, starts[whole.start] + _NOTE_BYTES * distance)

    def _store_uses(self) -> None:
        """Store for each array whether the kernel may store to its memory, may load from it, and
        whether several programs may use one element."""
        sites = self._layout.accesses
        stored = {s.root for s in sites if s.verb != "load"}
        loaded = {s.root for s in sites if s.verb == "load"}
        for number, span in enumerate(self._spans):
            near = {i for i, s in enumerate(self._spans) if _overlap(s, span)}
            shared = not self._has_windows(number) or len(near & (stored | loaded)) > 1
            self._set(number, check_table.SHARED, shared)
            for word, used in ((check_table.STORED, stored), (check_table.LOADED, loaded)):
                self._set(number, word, shared and (-1 in used or not used.isdisjoint(near)))

    def _has_windows(self, number: int) -> bool:
        """Whether programs of this grid use disjoint parts of an array."""
        axis = self._layout.windows[number]
        return axis >= 0 and all(n <= 1 for a, n in enumerate(self._grid) if a != axis)

    def _whole(self, address: int) -> Any:
        """The range around an address of one array, or of several that overlap."""
        return next((s for s in self._memory.spans if s.start <= address < s.stop), None)

    def error(self) -> TilewrightError | None:
        """The error for the wrong access that the kernel found; None if there was none."""
        word, lane, address, other, program = self._words[: check_table.RECORD_WORDS]
        if not word:
            return None
        number, kind = check_table.site_of(word)
        site = self._layout.sites[number]
        error = self._error(site, kind, _index(lane, site.shape), address, other, program)
        return error.with_loc(_location(site))

    def _error(
        self, site: CheckSite, kind: Violation, index: tuple[int, ...], address: int, other: int,
        program: int,
    ) -> TilewrightError:  # fmt: skip
        root = self._spans[site.root] if site.root >= 0 else None
        make, me = self._errors, self._program(program)
        match kind:
            case Violation.MASK_UNDEFINED:
                return make.undefined_mask(site.verb)
            case Violation.ADDRESS_UNDEFINED:
                return make.undefined_address(site.verb, root, index)
            case Violation.ADDRESS_WRAPPED:
                return make.wrapped_offset(site.verb, root, index)
            case Violation.VALUE_UNDEFINED:
                return make.undefined_value(root, index)
            case Violation.OUTSIDE:
                unsigned = address % 2**64 if root is None else address
                detail = make.outside(site.verb, site.element, root, unsigned)
                return make.out_of_bounds(detail, me, index)
            case Violation.CONDITION_UNDEFINED:
                return make.undefined_condition(make.CONDITION)
            case Violation.BOUND_UNDEFINED:
                return make.undefined_condition(make.BOUND)
            case Violation.GATHER_OUTSIDE:
                return make.gather_outside(address, site.extent)
            case Violation.LANES_DIFFER:
                return make.lanes_differ(me, self._whole(address), address)
            case _:
                return self._race(site, kind, address, other, me)

    def _race(
        self, site: CheckSite, kind: Violation, address: int, other: int, me: tuple[int, int, int]
    ) -> TilewrightError:
        """The error for an element used by two programs; `other`: the note of one of them."""
        now = {"store": "writes", "load": "reads"}.get(site.verb, "updates")
        who = self._program(other // 2) if other > 0 else None
        whole = self._whole(address)
        return self._errors.race(me, whole, address, now, _BEFORE[kind], who)

    def _program(self, number: int) -> tuple[int, int, int]:
        """The indices of a program."""
        row, x = divmod(number - self._base - 1, self._grid[0])
        z, y = divmod(row, self._grid[1])
        return x, y, z


def _overlap(x: Any, y: Any) -> bool:
    """Whether the ranges of two arrays intersect."""
    return x.start < y.stop and y.start < x.stop


def _arrays_of(call: BoundCall) -> Iterator[tuple[str, Any]]:
    """The arrays among the arguments, as the interpreter names them, in the order of parameters."""
    for param, key, arg in zip(call.params, call.keys, call.args, strict=True):
        yield from _arrays_in(param.name, key, arg)


def _arrays_in(name: str, key: Key, arg: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(key, DescriptorKey):
        yield name, arg.base
    elif isinstance(key, TupleKey):
        pairs = zip(key.items, key.values_of(arg), strict=True)
        for i, (item, value) in enumerate(pairs):
            yield from _arrays_in(f"{name}[{i}]", item, value)
    elif isinstance(key, Spec) and isinstance(key.type, PointerType):
        yield name, arg


def _ranges(mapped: Sequence[tuple[int, int]]) -> Any:
    """Address ranges in the form that a kernel searches."""
    count = 1 << check_table.RANGE_BITS
    kept = list(mapped[:count])
    if len(mapped) > count:  # the gaps between the last ones count as mapped
        kept[-1] = (kept[-1][0], mapped[-1][1])
    empty = [(2**63 - 1, 2**63 - 1)] * (count - len(kept))
    return (ctypes.c_int64 * (2 * count))(*(word for pair in (*kept, *empty) for word in pair))


def _index(lane: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index: list[int] = []
    for extent in reversed(shape):
        lane, place = divmod(lane, extent)
        index.insert(0, place)
    return tuple(index)


def _location(site: CheckSite) -> SourceLoc | None:
    loc: SourceLoc | None = None
    for frame in reversed(site.loc):
        loc = SourceLoc._make([*frame, loc])
    return loc
