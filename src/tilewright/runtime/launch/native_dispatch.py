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
import functools
import struct
import sys
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any, Protocol, cast

from tilewright.analysis import Sum
from tilewright.backends import DirectLaunch, WordLaunch
from tilewright.ir.types import DType, PointerType
from tilewright.language import DeviceFunction, TensorDescriptor, dtype
from tilewright.native import METH_FASTCALL, METH_KEYWORDS, builtin_function
from tilewright.runtime.arguments.descriptor_arguments import DescriptorKey
from tilewright.runtime.arguments.kernel_parameters import Declared, KernelParam
from tilewright.runtime.arguments.specialization import Spec, TupleKey
from tilewright.runtime.launch.bound_call import BoundCall
from tilewright.runtime.launch.native_dispatch_structures import (
    BY_VALUE,
    CONSTEXPR,
    DISPATCH_SYMBOL,
    FLOAT,
    MAX_ARGUMENTS,
    MULTIPLE,
    PROBES,
    RANGE,
    SIGNED,
    SLOT_KINDS,
    SLOTS,
    UNALIGNED,
    UNSPECIALIZED,
    CacheEntry,
    DispatchRecord,
    OverlapPair,
)
from tilewright.runtime.launch.native_memory import Memory, free_position, global_checks
from tilewright.runtime.launch.native_types import dispatch_code, known_types
from tilewright.runtime.launch.overlap_warning import OverlapWatch
from tilewright.runtime.launch.variant import RecordedLaunch, Variant
from tilewright.support import ForkLock, user_boundary

__all__ = ["Dispatcher", "Finder"]

_MAX_ENTRIES = 4 * SLOTS
"""Cache entries of a kernel; once it has so many, launches without an entry are left to Python."""
_MAX_FAILURES = 16
"""Launches that cannot get an entry, since their descriptors do not decide all about them; after
so many, too, the rest is left to Python."""

_WORD = (1 << 64) - 1
_BY_IDENTITY = (str, bool, dtype, DeviceFunction, enum.Enum, type(None))
"""Compile-time objects that never change."""

_DESCRIPTOR_FIELDS = ("base", "shape", "strides", "block_shape", "padding")

Launch = Callable[..., Any]
Table = list[int] | ctypes.Array[ctypes.c_uint64]


class Finder(Protocol):
    """Finds the variant that a launch has run; `JITFunction` has such a method."""

    def __call__(
        self, args: tuple[object, ...], named: Mapping[str, object]
    ) -> RecordedLaunch | None:
        """What the launch with these arguments has run; None if others like it might differ."""
        ...


class _Entry(Memory):
    """A cache entry, and what it points to. slot: of the table, where a search for it begins."""

    def __init__(self, variant: Variant, slot: int) -> None:
        super().__init__()
        self.variant = variant
        self.slot = slot
        self.fields = CacheEntry()

    @property
    def address(self) -> int:
        """Of the structure."""
        return ctypes.addressof(self.fields)

    @property
    def stamp(self) -> int:
        """What the clock has shown to the latest launch by machine code; 0: there was none."""
        return self.fields.stamp


class Dispatcher:
    """`launch(grid, *args, **named)` in machine code, in front of the one in Python.

    python: the generated function; find: see `Finder`; by_value: parameters whose value decides,
    beyond its facts, which variant runs; assigned, enter, exit: with anything in them, each launch
    is left to Python; overlaps: what warns of arguments that overlap; clock: one 64-bit number that
    counts the launches of the kernel.
    """

    def __init__(
        self,
        name: str,
        params: Sequence[KernelParam],
        python: Launch,
        find: Finder,
        *,
        by_value: Collection[str] = (),
        assigned: Mapping[str, object],
        enter: Sequence[object],
        exit: Sequence[object],
        overlaps: OverlapWatch,
        clock: array[int],
    ) -> None:
        self._python = python
        self._find = find
        self._entries: list[_Entry] = []
        self._lock = ForkLock()
        self._failures = 0
        # PROBES more than the slots: a search from the last slot must end inside
        self._table = (ctypes.c_uint64 * (SLOTS + PROBES))()
        # one bound method, kept: `keep` writes its address into the record again
        self._adder = self._launch_and_add
        self._memory = memory = Memory([overlaps, clock])
        names = [sys.intern(param.name) for param in params]
        flags = [_flags(param, param.name in by_value) for param in params]
        self._record = DispatchRecord(
            known=known_types().address,
            table=ctypes.addressof(self._table),
            python=memory.object(python),
            add_entry=memory.object(self._adder),
            count=len(params),
            flags=memory.words(flags),
            names=memory.objects(names),
            assigned=memory.object(assigned),
            enter=memory.object(enter),
            exit=memory.object(exit),
            watching=overlaps.watching,
            clock=clock.buffer_info()[0],
        )
        code = dispatch_code()  # kept by the function, which needs it
        self.launch: Launch = builtin_function(
            name,
            code[DISPATCH_SYMBOL],
            METH_FASTCALL | METH_KEYWORDS,
            ctypes.addressof(self._record),
            keep=(self, code),
        )

    def _launch_and_add(
        self, descriptors: bytes, grid: object, /, *args: object, **named: object
    ) -> object:
        """Launch, and add a cache entry for launches like this, if machine code can make them."""
        with user_boundary:
            kernel = self._python(grid, *args, **named)
            # after the launch, which has made the variant, or raised the error of a mistake
            record = self._find(args, named)
            if record is not None and _can_learn(record.call, args, named):
                self._add(descriptors, args, named, record)
            else:
                self._failures += 1
            if self._failures == _MAX_FAILURES or len(self._entries) >= _MAX_ENTRIES:
                # makes machine code call `python` directly for launches without an entry
                self._record.add_entry = 0
        return kernel

    def note_launches(self) -> None:
        """Copy the stamps of the cache entries, which machine code sets, to their variants."""
        for entry in list(self._entries):
            entry.variant.stamp = max(entry.variant.stamp, entry.stamp)

    def keep(self, variants: Collection[Variant]) -> None:
        """Drop the entries of other variants, so that these can be freed. Launches of them that are
        under way in other threads keep what they need."""
        with self._lock:
            dropped = self._entries
            self._entries = [entry for entry in dropped if entry.variant in variants]
            table = [0] * len(self._table)
            for entry in self._entries:
                table[free_position(table, entry.slot)] = entry.address
            self._table[:] = table  # at once for other threads, as all that one bytecode does
        if self._failures < _MAX_FAILURES and len(self._entries) < _MAX_ENTRIES:
            self._record.add_entry = id(self._adder)
        del dropped  # not before, since other threads may have found them in the table

    def _add(
        self,
        descriptors: bytes,
        args: tuple[object, ...],
        named: Mapping[str, object],
        record: RecordedLaunch,
    ) -> None:
        call, variant = record.call, record.variant
        # machine code puts the word of the slot behind the descriptors
        *words, slot = struct.unpack(f"<{len(descriptors) // 8}Q", descriptors)
        memory = entry = _Entry(variant, slot)
        # Descriptors hold addresses of objects. One that was freed could be that of another object
        # later, which would then match.
        memory.kept += map(identities, [*args, *named.values()])
        names = [*(param.name for param in call.params[: len(args)]), *named]
        sources_given = all(position is not None for position, _ in _sources(names, call))
        entry.fields = CacheEntry(
            size=len(words),
            descriptors=memory.words(words),
            kernel=memory.object(variant.kernel),
            names=memory.objects(names),
            defaults=memory.object({n: v for n, v in call.named.items() if n not in names}),
            owner=id(entry),
            **_passed(memory, names, call),
            **global_checks(memory, (*variant.globals, *record.checks)),
            **_pairs(memory, names, call, variant),
            **target_of(memory, variant, bool(call.device), sources_given),
        )
        with self._lock:
            self._entries.append(entry)
            # last: another thread may launch by the entry as soon as the table has it
            self._table[free_position(self._table, entry.slot)] = entry.address


def _flags(param: KernelParam, by_value: bool) -> int:
    if param.is_constexpr:
        return CONSTEXPR
    if param.do_not_specialize:
        specialized = UNSPECIALIZED
    else:
        specialized = UNALIGNED if param.do_not_specialize_on_alignment else 0
    declared = 0 if param.declared is None else _declared_flags(param.declared)
    return specialized | declared | (BY_VALUE if by_value else 0)


def _declared_flags(declared: Declared) -> int:
    """What machine code checks before it takes an argument to be like others of its class."""
    type_ = declared.type
    multiple = declared.multiple << MULTIPLE if declared.multiple > 1 else 0
    if not isinstance(type_, DType) or type_.is_bool:
        return multiple
    if type_.is_float:
        return multiple | FLOAT
    if type_.is_signed:
        return multiple | (SIGNED | type_.bits << RANGE if type_.bits < 64 else 0)
    # 63 for u64: Python passes what a signed word cannot hold
    return multiple | min(type_.bits, 63) << RANGE


def _can_learn(call: BoundCall, args: tuple[object, ...], named: Mapping[str, object]) -> bool:
    """Whether the descriptors of a launch decide all about it, for good."""
    if any(isinstance(key, TupleKey) and not isinstance(key, DescriptorKey) for key in call.keys):
        return False
    params = {param.name: param for param in call.params}
    names = [*(param.name for param in call.params[: len(args)]), *named]
    given = zip(names, [*args, *named.values()], strict=True)
    return all(_decided(params.get(name), value) for name, value in given)


def _decided(param: KernelParam | None, value: object) -> bool:
    """Whether what its descriptor says of an argument is all that matters of it."""
    if param is None or param.is_constexpr:
        return type(value) in (int, float) or isinstance(value, _BY_IDENTITY)
    return param.declared is None or param.declared.takes_as_is(value)


def identities(value: object) -> tuple[object, ...]:
    """The objects whose addresses are in the descriptor of an argument."""
    if isinstance(value, _BY_IDENTITY):
        return (type(value), value)
    if type(value) is TensorDescriptor:
        return (*identities(value.base), value.padding)
    return (type(value), getattr(value, "dtype", None))


def _passed(memory: Memory, names: Sequence[str], call: BoundCall) -> dict[str, int]:
    """Where the run-time values come from."""
    sources = [
        memory.object(value) if position is None else position
        for position, value in _sources(names, call)
    ]
    return {"values": len(sources), "sources": memory.words(sources)}


def _sources(names: Sequence[str], call: BoundCall) -> list[tuple[int | None, Any]]:
    """Of each run-time value: which item it is, None for a default, and what is passed."""
    keys = {param.name: key for param, key in zip(call.params, call.keys, strict=True)}
    sizes = [_items(keys.get(name)) for name in names]
    starts = dict(zip(names, accumulate(sizes, initial=0), strict=False))
    sources: list[tuple[int | None, Any]] = []
    for param, key, value in zip(call.params, call.keys, call.values, strict=True):
        start = starts.get(param.name)
        if isinstance(key, Spec):
            sources.append((start, value))
        elif isinstance(key, DescriptorKey):
            # behind the descriptor itself: array, extents, strides
            for i, part in enumerate(cast("Sequence[Any]", value), 1):
                sources.append((None if start is None else start + i, part))
    return sources


def _items(key: object) -> int:
    """How many items machine code makes of an argument: of a descriptor also itself, all strides
    and the shape of blocks."""
    return 2 + 3 * len(key.blocks.shape) if isinstance(key, DescriptorKey) else 1


def _pairs(
    memory: Memory, names: Sequence[str], call: BoundCall, variant: Variant
) -> dict[str, int]:
    """Which items must not overlap; those with an array that is a default are left out."""
    sources, pairs = _sources(names, call), list[OverlapPair]()
    for pair in variant.pairs:
        first, second = sources[pair.first][0], sources[pair.second][0]
        if first is None or second is None:
            continue
        sizes = (_element_bytes(call, value) for value in (pair.first, pair.second))
        words = [word for terms in pair.unless for word in _sum_words(terms, sources)]
        pairs.append(OverlapPair(first, second, *sizes, len(pair.unless), memory.words(words)))
    array = (OverlapPair * len(pairs))(*pairs)
    memory.kept.append(array)
    return {
        "pairs": len(pairs),
        "pair_list": ctypes.addressof(array),
        "latest": memory.words([0] * (4 + MAX_ARGUMENTS)),
    }


def _sum_words(terms: Sum, sources: Sequence[tuple[int | None, Any]]) -> list[int]:
    """A sum as machine code reads it (see `OverlapPair`); defaults are numbers in it."""
    words = [len(terms)]
    for factor, values in terms:
        given = [sources[value][0] for value in values]
        numbers = [sources[value][1] for value in values if sources[value][0] is None]
        positions = [position for position in given if position is not None]
        words += [(factor * prod(numbers)) & _WORD, len(positions), *positions]
    return words


def _element_bytes(call: BoundCall, value: int) -> int:
    """Of what a run-time argument points to."""
    specs = [spec for _, spec in call.run_time_specs]
    return cast("PointerType", specs[value].type).element.bytes


def target_of(
    memory: Memory, variant: Variant, with_arrays: bool, sources_given: bool
) -> dict[str, int]:
    """What an entry calls: the backend's own machine code; the launcher where the backend has
    none, or no array decides on the device. sources_given: no value is a default."""
    by_words = getattr(variant.kernel.launcher, "by_words", None) if with_arrays else None
    launch = cast("WordLaunch | None", by_words() if by_words is not None else None)
    if launch is not None and sources_given:
        return {
            "words": launch.function,
            "words_record": launch.record,
            "slots": memory.words([SLOT_KINDS.index(kind) for kind in launch.slots]),
            "check": memory.object(launch.check),
            "failures": memory.object(launch.failures),
        }
    offer = getattr(variant.kernel.launcher, "direct", None) if with_arrays else None
    direct = cast("DirectLaunch | None", offer() if offer is not None else None)
    if direct is None:
        return {"call": memory.object(functools.partial(_launch_flat, variant.launch))}
    return {
        "call": memory.object(direct.call),
        "device": memory.object(direct.device),
        "stream_of": memory.object(direct.stream_of),
        "context_of": direct.context_of,
        "context": direct.context,
    }


def _launch_flat(launch: Launch, x: int, y: int, z: int, *values: Any) -> None:
    launch((x, y, z), values)
