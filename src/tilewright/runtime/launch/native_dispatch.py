"""Launches in machine code: the Python side of `native_dispatch_structures`.

The generated Python function of a kernel (`launch_function`) does all that a launch may need, in a
few microseconds. A `Dispatcher` stands in front of it: launches that look like one that Python has
made before are made by machine code, the rest is passed on. With 7 arguments, three of them tensors
of PyTorch, on the host of an H100 in one run: 4.7 us, of which the backend's own machine code with
the driver is 3.5; by the Python function 7.7 (torch.add 5.5, Triton 3.6.0 12.1).
"""

from __future__ import annotations

import ctypes
import enum
import struct
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from tilewright.language import DeviceFunction, TensorDescriptor, dtype
from tilewright.native import METH_FASTCALL, METH_KEYWORDS, builtin_function
from tilewright.runtime.arguments.descriptor_arguments import DescriptorKey
from tilewright.runtime.arguments.kernel_parameters import KernelParam
from tilewright.runtime.arguments.key_rules import rules_of
from tilewright.runtime.arguments.specialization import TupleKey
from tilewright.runtime.launch.bound_call import BoundCall
from tilewright.runtime.launch.dispatch_entry import Entry, argument_sources
from tilewright.runtime.launch.native_dispatch_structures import (
    DISPATCH_SYMBOL,
    PROBES,
    SLOTS,
    DispatchRecord,
)
from tilewright.runtime.launch.native_memory import Memory, free_position
from tilewright.runtime.launch.native_types import dispatch_code, known_types
from tilewright.runtime.launch.variant import LaunchState, RecordedLaunch, Variant
from tilewright.support import ForkLock, user_boundary

__all__ = ["DispatchTable", "Dispatcher", "Finder", "identities", "is_constant"]

_MAX_ENTRIES = 4 * SLOTS
"""Cache entries of a kernel; once it has so many, launches without an entry are left to Python."""
_MAX_FAILURES = 16
"""Launches that cannot get an entry, since their descriptors do not decide all about them; after
so many, too, the rest is left to Python."""

_BY_IDENTITY = (str, bool, dtype, DeviceFunction, enum.Enum, type(None))
"""Compile-time objects that never change."""

Launch = Callable[..., Any]


class Finder(Protocol):
    """Finds the variant that a launch has run; `JITFunction` has such a method."""

    def __call__(
        self, args: tuple[object, ...], named: Mapping[str, object]
    ) -> RecordedLaunch | None:
        """What the launch with these arguments has run; None if others like it might differ."""
        ...


class DispatchTable:
    """`launch(grid, *args, **named)` in machine code, by the cache entries that Python adds.

    flags: of each parameter by name; python(grid, *args, **named): makes the launches that machine
    code leaves; add_entry(descriptors, grid, *args, **named): those that have no entry.
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
        self._record = DispatchRecord(
            known=known_types().address,
            table=ctypes.addressof(self._table),
            python=memory.object(python),
            add_entry=memory.object(add_entry),
            count=len(flags),
            flags=memory.words(list(flags.values())),
            names=memory.objects([sys.intern(name) for name in flags]),
            assigned=memory.object(state.assigned),
            enter=memory.object(state.enter),
            exit=memory.object(state.exit),
            before=memory.object(state.before),
            watching=state.overlaps.watching,
            clock=state.clock.buffer_info()[0],
        )
        code = dispatch_code()  # kept by the function, which needs it
        self.launch: Launch = builtin_function(
            name,
            code[DISPATCH_SYMBOL],
            METH_FASTCALL | METH_KEYWORDS,
            ctypes.addressof(self._record),
            keep=(self, code),
        )

    @property
    def is_full(self) -> bool:
        """Whether no more entries are added."""
        return len(self._entries) >= _MAX_ENTRIES

    def set_adding(self, adds: bool) -> None:
        """Whether launches without an entry go to `add_entry`, or to `python` directly."""
        self._record.add_entry = id(self._add_entry) if adds else 0

    def add(self, descriptors: bytes, entry: Entry) -> None:
        """Launch by an entry from now on where the arguments have these descriptors."""
        # machine code puts the word of the slot behind the descriptors
        *words, slot = struct.unpack(f"<{len(descriptors) // 8}Q", descriptors)
        entry.set(slot=slot, size=len(words), descriptors=entry.words(words))
        with self._lock:
            before = self._entries.get(descriptors)
            self._entries[descriptors] = entry
            if before is None:
                # last: another thread may launch by the entry as soon as the table has it
                self._table[free_position(self._table, slot)] = entry.address
            else:
                self._fill_table()

    def note_launches(self) -> None:
        """Copy the stamps of the cache entries, which machine code sets, to their variants."""
        for entry in list(self._entries.values()):
            entry.variant.stamp = max(entry.variant.stamp, entry.stamp)

    def keep(self, variants: Collection[Variant]) -> None:
        """Drop the entries of other variants, so that these can be freed. Launches of them that are
        under way in other threads keep what they need."""
        with self._lock:
            dropped = self._entries
            self._entries = {d: e for d, e in dropped.items() if e.variant in variants}
            self._fill_table()
        del dropped  # not before, since other threads may have found them in the table

    def _fill_table(self) -> None:
        table = [0] * len(self._table)
        for entry in self._entries.values():
            table[free_position(table, entry.slot)] = entry.address
        self._table[:] = table  # at once for other threads, as all that one bytecode does


class Dispatcher:
    """`launch(grid, *args, **named)` in machine code, in front of the one in Python: a launch that
    has no entry is made by Python, and adds one.

    python: the generated function; find: see `Finder`; by_value: parameters whose value decides,
    beyond its facts, which variant runs.
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
        self._failures = 0
        rules = rules_of(params, by_value)
        flags = {param.name: rule.flags for param, rule in zip(params, rules, strict=True)}
        self._table = DispatchTable(name, flags, python, self._launch_and_add, state)
        self.launch = self._table.launch
        self.note_launches = self._table.note_launches

    def _launch_and_add(
        self, descriptors: bytes, grid: object, /, *args: object, **named: object
    ) -> object:
        """Launch, and add a cache entry for launches like this, if machine code can make them."""
        with user_boundary:
            kernel = self._python(grid, *args, **named)
            # after the launch, which has made the variant, or raised the error of a mistake
            record = self._find(args, named)
            if record is not None and _can_learn(record.call, args, named):
                self._table.add(descriptors, _learned(args, named, record))
            else:
                self._failures += 1
            self._set_adding()
        return kernel

    def keep(self, variants: Collection[Variant]) -> None:
        """Drop the entries of other variants."""
        self._table.keep(variants)
        self._set_adding()

    def _set_adding(self) -> None:
        self._table.set_adding(self._failures < _MAX_FAILURES and not self._table.is_full)


def _learned(
    args: tuple[object, ...], named: Mapping[str, object], record: RecordedLaunch
) -> Entry:
    """The entry for launches with arguments like these."""
    call = record.call
    names = [*(param.name for param in call.params[: len(args)]), *named]
    entry = Entry(record, argument_sources(names, call))
    # Descriptors hold addresses of objects. One that was freed could be that of another object
    # later, which would then match.
    entry.kept += map(identities, [*args, *named.values()])
    entry.set(
        names=entry.objects(names),
        defaults=entry.object({n: v for n, v in call.named.items() if n not in names}),
    )
    return entry


def _can_learn(call: BoundCall, args: tuple[object, ...], named: Mapping[str, object]) -> bool:
    """Whether the descriptors of a launch decide all about it, for good."""
    if any(isinstance(key, TupleKey) and not isinstance(key, DescriptorKey) for key in call.keys):
        return False
    params = {param.name: param for param in call.params}
    names = [*(param.name for param in call.params[: len(args)]), *named]
    given = zip(names, [*args, *named.values()], strict=True)
    return all(_is_decided(params.get(name), value) for name, value in given)


def _is_decided(param: KernelParam | None, value: object) -> bool:
    """Whether what its descriptor says of an argument is all that matters of it."""
    if param is None or param.is_constexpr:
        return is_constant(value)
    return param.declared is None or param.declared.takes_as_is(value)


def is_constant(value: object) -> bool:
    """Whether its descriptor decides a compile-time value, for good."""
    return type(value) in (int, float) or isinstance(value, _BY_IDENTITY)


def identities(value: object) -> tuple[object, ...]:
    """The objects whose addresses are in the descriptor of an argument."""
    if isinstance(value, _BY_IDENTITY):
        return (type(value), value)
    if type(value) is TensorDescriptor:
        return (*identities(value.base), value.padding)
    return (type(value), getattr(value, "dtype", None))
