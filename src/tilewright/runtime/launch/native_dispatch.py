"""Launches in machine code: the Python side of `native_dispatch_structures`.

A `Dispatcher` is called first: machine code makes the launches whose descriptors
equal those of an earlier launch, and passes the others to `JITFunction` (figures: ADR 0065).
"""

from __future__ import annotations

import ctypes
import enum
import struct
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from types import FunctionType
from typing import Any, Protocol

from tilewright.language import DeviceFunction, TensorDescriptor, dtype
from tilewright.native import METH_FASTCALL, METH_KEYWORDS, builtin_function
from tilewright.runtime.arguments.descriptor_arguments import DescriptorKey
from tilewright.runtime.arguments.kernel_parameters import KernelParam
from tilewright.runtime.arguments.key_rules import (
    BOUNDED,
    CONSTEXPR,
    LAYOUT,
    PARAMETER,
    TupleKey,
    rules_of,
)
from tilewright.runtime.launch.bound_call import BoundCall
from tilewright.runtime.launch.dispatch_entry import Entry, argument_sources
from tilewright.runtime.launch.native_dispatch_structures import (
    DISPATCH_SYMBOL,
    MAX_ARGUMENTS,
    PROBES,
    SLOTS,
    DispatchRecord,
)
from tilewright.runtime.launch.native_memory import Memory, free_position
from tilewright.runtime.launch.native_types import dispatch_code, known_types
from tilewright.runtime.launch.variant_cache import LaunchState, RecordedLaunch, Variant
from tilewright.support import ForkLock, function_late, user_boundary

_MAX_ENTRIES = 4 * SLOTS
"""Maximal number of cache entries of a kernel; after that, Python makes launches without one."""
_MAX_FAILURES = 16
"""Maximal number of launches that cannot have an entry, since their descriptors do not decide the
variant; after that, Python makes launches without an entry."""

_MAX_GRIDS = 16
"""Maximal number of grid functions of a kernel whose programs are sought."""

_BY_IDENTITY = (str, bool, dtype, DeviceFunction, enum.Enum, type(None))
"""Types of compile-time objects that never change."""

_HALF = 1 << 63

Launch = Callable[..., Any]

_grid_program = function_late("tilewright.runtime.launch.grid_programs:grid_program")


class Finder(Protocol):
    """Finder of the variant that a launch has run; `JITFunction` has such a method."""

    def __call__(
        self, args: tuple[object, ...], named: Mapping[str, object]
    ) -> RecordedLaunch | None:
        """The launch with these arguments; None if one with equal words might run another
        variant."""
        ...


class DispatchTable:
    """`launch(grid, *args, **named)` in machine code, by the cache entries that Python adds.

    flags: of each parameter by name; add_entry(descriptors, grid, *args, **named): called for
    launches without an entry; python(grid, *args, **named): called for the others that machine code
    cannot make.
    """

    def __init__(
        self,
        name: str,
        flags: Mapping[str, int],
        python: Launch,
        add_entry: Launch,
        state: LaunchState,
    ) -> None:
        self._entries: dict[bytes, Entry] = {}
        self._lock = ForkLock()
        # PROBES more than the slots: a search from the last slot must end inside
        self._table = (ctypes.c_uint64 * (SLOTS + PROBES))()
        self._add_entry = add_entry
        self._memory = memory = Memory([state])
        self._names, self._declared = list(flags), state.bounds
        self._flags = (ctypes.c_uint64 * len(flags))(*flags.values())
        self._bounds = (ctypes.c_int64 * (2 * len(flags)))()
        self.read_bounds()
        self._grids = (ctypes.c_uint64 * (_MAX_GRIDS + 1))()  # a 0 ends them
        self._record = DispatchRecord(
            known=known_types().address,
            table=ctypes.addressof(self._table),
            python=memory.object(python),
            add_entry=memory.object(add_entry),
            count=len(flags),
            flags=ctypes.addressof(self._flags),
            bounds=ctypes.addressof(self._bounds),
            names=memory.objects([sys.intern(name) for name in flags]),
            assigned=memory.object(state.assigned),
            enter=memory.object(state.enter),
            exit=memory.object(state.exit),
            before=memory.object(state.before),
            watching=state.overlaps.watching,
            clock=state.clock.buffer_info()[0],
            grids=ctypes.addressof(self._grids),
            add_grid=memory.object(self._add_grid),
        )
        code = dispatch_code()  # the function keeps it alive
        self.launch: Launch = builtin_function(
            name,
            code[DISPATCH_SYMBOL],
            METH_FASTCALL | METH_KEYWORDS,
            ctypes.addressof(self._record),
            keep=(self, code),
        )

    def read_bounds(self) -> None:
        """Read the bounds of integers, and drop all entries."""
        for i, name in enumerate(self._names):
            bounds = self._declared.get(name)
            if bounds is None:
                self._flags[i] &= ~BOUNDED
            elif i < MAX_ARGUMENTS and not self._flags[i] & (CONSTEXPR | LAYOUT):
                # one word less than a signed one holds, so that Python launches the rest
                low, high = (min(max(bound, -_HALF), _HALF - 1) for bound in bounds)
                self._bounds[2 * i : 2 * i + 2] = [low, high]
                self._flags[i] |= BOUNDED | i << PARAMETER
        self.retain(())

    @property
    def is_full(self) -> bool:
        """Whether the table has the maximal number of entries."""
        return len(self._entries) >= _MAX_ENTRIES

    def set_adding(self, adds: bool) -> None:
        """Pass launches without an entry to `add_entry`, or to `python` directly."""
        self._record.add_entry = id(self._add_entry) if adds else 0

    def add(self, descriptors: bytes, entry: Entry) -> None:
        """Add the entry of these descriptors, or replace it."""
        # machine code appends the slot to the descriptors
        *words, slot = struct.unpack(f"<{len(descriptors) // 8}Q", descriptors)
        entry.set(slot=slot, size=len(words), descriptors=entry.words(words))
        with self._lock:
            before = self._entries.get(descriptors)
            self._entries[descriptors] = entry
            if before is None:
                # last: another thread may use the entry as soon as it is in the table
                self._table[free_position(self._table, slot)] = entry.address
            else:
                self._fill_table()

    def _add_grid(self, grid: FunctionType) -> None:
        """Add the program of a grid function, or the fact that it has none."""
        program = self._memory.structure(_grid_program(grid, self._memory))
        with self._lock:
            position = list(self._grids).index(0)
            if position < _MAX_GRIDS:  # else other threads have added the last ones
                self._grids[position] = program
            if position + 1 >= _MAX_GRIDS:
                self._record.add_grid = 0

    def note_launches(self) -> None:
        """Copy the stamps of the cache entries, which machine code sets, to their variants."""
        for entry in list(self._entries.values()):
            entry.variant.stamp = max(entry.variant.stamp, entry.stamp)

    def retain(self, variants: Collection[Variant]) -> None:
        """Drop the entries of other variants, so that these can be freed. Launches that other
        threads are making hold references."""
        with self._lock:
            dropped = self._entries
            self._entries = {d: e for d, e in dropped.items() if e.variant in variants}
            self._fill_table()
        del dropped  # after the table, since other threads may have found the entries there

    def replace(self, served: tuple[object, ...], record: RecordedLaunch) -> None:
        """Run a variant in place of the one without facts that serves a launch key."""
        for descriptors, entry in list(self._entries.items()):
            if entry.served != served:
                continue
            if entry.names:
                self.add(descriptors, entry.with_variant(record))
            else:
                # a prepared or tuned launch, which is made from Python once more
                self.retain({other.variant for other in self._entries.values()} - {entry.variant})

    def _fill_table(self) -> None:
        table = [0] * len(self._table)
        for entry in self._entries.values():
            table[free_position(table, entry.slot)] = entry.address
        self._table[:] = table  # one bytecode, hence atomic for other threads


class Dispatcher:
    """`launch(grid, *args, **named)` in machine code. Python makes a launch that has no entry, and
    adds one.

    python: launches from Python; find: see `Finder`; by_value: parameters whose value, beyond its
    facts, decides the variant.
    """

    def __init__(
        self,
        name: str,
        params: Sequence[KernelParam],
        python: Launch,
        find: Finder,
        state: LaunchState,
        by_value: Collection[str] = (),
    ) -> None:
        self._python = python
        self._find = find
        self._variants = state.variants
        self._failures = 0
        rules = rules_of(params, by_value)
        flags = {param.name: rule.flags for param, rule in zip(params, rules, strict=True)}
        self._table = DispatchTable(name, flags, python, self._launch_and_add, state)
        self.launch = self._table.launch
        self.note_launches = self._table.note_launches
        self.replace = self._table.replace
        self.read_bounds = self._table.read_bounds

    def _launch_and_add(
        self, descriptors: bytes, grid: object, /, *args: object, **named: object
    ) -> object:
        """Launch, and add a cache entry if machine code can make launches with equal
        descriptors."""
        with user_boundary:
            kernel = self._python(grid, *args, **named)
            # after the launch, which created the variant or raised an error
            if not self._add(descriptors, args, named):
                self._failures += 1
            self._set_adding()
        return kernel

    def _add(
        self, descriptors: bytes, args: tuple[object, ...], named: Mapping[str, object]
    ) -> bool:
        """Add the entry of a launch that was made; False if its descriptors do not decide the
        variant."""
        record = self._find(args, named)
        if record is None or not _can_learn(record.call, args, named):
            return False
        self._table.add(descriptors, _learned(args, named, record))
        # the own variant may have been loaded before there was an entry to replace
        return record.served not in self._variants or self._add(descriptors, args, named)

    def retain(self, variants: Collection[Variant]) -> None:
        """Drop the entries of other variants."""
        self._table.retain(variants)
        self._set_adding()

    def _set_adding(self) -> None:
        self._table.set_adding(self._failures < _MAX_FAILURES and not self._table.is_full)


def _learned(
    args: tuple[object, ...], named: Mapping[str, object], record: RecordedLaunch
) -> Entry:
    """The entry for launches with the descriptors of these arguments."""
    call = record.call
    names = [*(param.name for param in call.params[: len(args)]), *named]
    entry = Entry(record, argument_sources(names, call))
    if record.note is None and not record.checks:
        entry.names = names
    # Descriptors hold addresses of objects, which must not be freed: a new object could get the
    # address, and match.
    entry.kept += map(identities, [*args, *named.values()])
    entry.set(
        names=entry.objects(names),
        defaults=entry.object({n: v for n, v in call.named.items() if n not in names}),
    )
    return entry


def _can_learn(call: BoundCall, args: tuple[object, ...], named: Mapping[str, object]) -> bool:
    """Whether the descriptors of a launch decide its variant for the rest of the process."""
    if any(isinstance(key, TupleKey) and not isinstance(key, DescriptorKey) for key in call.keys):
        return False
    params = {param.name: param for param in call.params}
    names = [*(param.name for param in call.params[: len(args)]), *named]
    given = zip(names, [*args, *named.values()], strict=True)
    return all(_is_decided(params.get(name), value) for name, value in given)


def _is_decided(param: KernelParam | None, value: object) -> bool:
    """Whether the descriptor of an argument decides its part of the launch key."""
    if param is None or param.is_constexpr:
        return is_constant(value)
    return param.declared is None or param.declared.takes_as_is(value)


def is_constant(value: object) -> bool:
    """Whether the descriptor of a compile-time value decides it for the rest of the process."""
    return type(value) in (int, float) or isinstance(value, _BY_IDENTITY)


def identities(value: object) -> tuple[object, ...]:
    """The objects whose addresses are in the descriptor of an argument."""
    if isinstance(value, _BY_IDENTITY):
        return (type(value), value)
    if type(value) is TensorDescriptor:
        return (*identities(value.base), value.padding)
    return (type(value), getattr(value, "dtype", None))
