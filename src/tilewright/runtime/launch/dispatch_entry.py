"""Cache entries of native dispatch: the launch with certain descriptors."""

from __future__ import annotations

import ctypes
import functools
import struct
from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod
from typing import Any, cast

from tilewright.analysis import Sum
from tilewright.backends import DirectLaunch, PackedLaunch
from tilewright.ir.types import PointerType
from tilewright.runtime.arguments.descriptor_arguments import DescriptorKey
from tilewright.runtime.arguments.key_rules import Spec
from tilewright.runtime.launch.bound_call import BoundCall
from tilewright.runtime.launch.native_dispatch_structures import (
    MAX_ARGUMENTS,
    SLOT_KINDS,
    CacheEntry,
    OverlapPair,
)
from tilewright.runtime.launch.native_memory import Memory
from tilewright.runtime.launch.used_globals import GlobalCheck
from tilewright.runtime.launch.variant_cache import RecordedLaunch, Variant

_WORD = (1 << 64) - 1

Launch = Callable[..., Any]
Source = tuple[int | None, Any]
"""Source of a run-time value: the position of its item, None if it is the same in all launches;
and the value."""


class Entry(Memory):
    """A cache entry and the memory it points to.

    sources: of each run-time value; checks: globals that must be unchanged, besides those of the
    variant.
    """

    def __init__(
        self, record: RecordedLaunch, sources: Sequence[Source], checks: Sequence[GlobalCheck] = ()
    ) -> None:
        super().__init__()
        call, self.variant = record.call, record.variant
        self.served = record.served
        self.names: Sequence[str] = ()
        place, note = record.note or (None, 0)
        self.fields = CacheEntry(
            kernel=self.object(self.variant.kernel),
            owner=id(self),
            noted=None if place is None else self._word_of(place),
            note=note,
            values=len(sources),
            sources=self.words([self.object(v) if p is None else p for p, v in sources]),
            **_global_checks(self, (*self.variant.globals, *record.checks, *checks)),
            **_pairs(self, sources, call, self.variant),
            **_target(self, self.variant, bool(call.device), sources),
        )

    def _word_of(self, place: array[int]) -> int:
        """Address of an array's first word."""
        self.kept.append(place)
        return place.buffer_info()[0]

    def with_variant(self, record: RecordedLaunch) -> Entry:
        """The entry for the same descriptors, of a launch with another variant."""
        entry = Entry(record, argument_sources(self.names, record.call))
        # the identities, and the names and defaults in memory of this entry
        entry.kept += self.kept
        entry.set(names=self.fields.names or 0, defaults=self.fields.defaults or 0)
        return entry

    def set(self, **fields: int) -> None:
        """Set further fields of the structure."""
        for name, value in fields.items():
            setattr(self.fields, name, value)

    @property
    def address(self) -> int:
        """Address of the structure."""
        return ctypes.addressof(self.fields)

    @property
    def slot(self) -> int:
        """Index in the table at which a search for the entry starts."""
        return self.fields.slot

    @property
    def stamp(self) -> int:
        """The clock at the latest launch by machine code; 0 if there was none."""
        return self.fields.stamp


def argument_sources(names: Sequence[str], call: BoundCall) -> list[Source]:
    """The sources of a launch. names: of the parameters or keywords of its items, in order; other
    parameters have their defaults."""
    keys = {param.name: key for param, key in zip(call.params, call.keys, strict=True)}
    sizes = [_items(keys.get(name)) for name in names]
    starts = dict(zip(names, accumulate(sizes, initial=0), strict=False))
    sources: list[Source] = []
    for param, key, value in zip(call.params, call.keys, call.values, strict=True):
        start = starts.get(param.name)
        if isinstance(key, Spec):
            sources.append((start, value))
        elif isinstance(key, DescriptorKey):
            # the items of the array, extents and strides follow that of the descriptor
            for i, part in enumerate(cast("Sequence[Any]", value), 1):
                sources.append((None if start is None else start + i, part))
    return sources


def _items(key: object) -> int:
    """The number of items of an argument; those of a descriptor include itself, all strides and the
    shape of blocks."""
    return 2 + 3 * len(key.blocks.shape) if isinstance(key, DescriptorKey) else 1


def _global_checks(memory: Memory, checks: Sequence[GlobalCheck]) -> dict[str, int]:
    """The fields of a cache entry for globals."""
    words = list[int]()
    for get, name, value in checks:
        memory.kept += [get, name, value]
        # the common case: globals of a module are read without a call
        holder: Any = getattr(get, "__self__", None)
        plain: bool = holder.__class__ is dict
        in_dict = plain and get == holder.get
        words += [id(holder) if in_dict else 0, id(get), id(name), id(value)]
    return {"checks": len(checks), "globals": memory.words(words)}


def _pairs(
    memory: Memory, sources: Sequence[Source], call: BoundCall, variant: Variant
) -> dict[str, int]:
    """The fields for items that must not overlap; pairs with an array that is no item are left
    out."""
    pairs = list[OverlapPair]()
    for pair in variant.pairs:
        first, second = sources[pair.first][0], sources[pair.second][0]
        if first is None or second is None:
            continue
        sizes = (_element_bytes(call, value) for value in (pair.first, pair.second))
        words = [word for terms in pair.unless for word in _sum_words(terms, sources)]
        pairs.append(OverlapPair(first, second, *sizes, len(pair.unless), memory.words(words)))
    return {
        "pairs": len(pairs),
        "pair_list": memory.structures(OverlapPair, pairs),
        "latest": memory.words([0] * (4 + MAX_ARGUMENTS)),
    }


def _sum_words(terms: Sum, sources: Sequence[Source]) -> list[int]:
    """A sum in the form that machine code reads (see `OverlapPair`); defaults become numbers."""
    words = [len(terms)]
    for factor, values in terms:
        given = [sources[value][0] for value in values]
        numbers = [sources[value][1] for value in values if sources[value][0] is None]
        positions = [position for position in given if position is not None]
        words += [(factor * prod(numbers)) & _WORD, len(positions), *positions]
    return words


def _element_bytes(call: BoundCall, value: int) -> int:
    """Bytes of the elements that a run-time argument points to."""
    specs = [spec for _, spec in call.run_time_specs]
    return cast("PointerType", specs[value].type).element.bytes


def _target(
    memory: Memory, variant: Variant, with_arrays: bool, sources: Sequence[Source]
) -> dict[str, int]:
    """The fields for the callee of an entry: the machine code of the backend, or the launcher if
    there is none or no array decides the device."""
    launch_packed = getattr(variant.kernel.launcher, "launch_packed", None) if with_arrays else None
    launch = cast("PackedLaunch | None", launch_packed() if launch_packed is not None else None)
    if launch is not None:
        values = zip(launch.slots, sources, strict=True)
        return {
            "words": launch.function,
            "words_record": launch.record,
            "slots": memory.words([SLOT_KINDS.index(kind) for kind in launch.slots]),
            "constants": memory.words(
                [_word(kind, value) if item is None else 0 for kind, (item, value) in values]
            ),
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


def _word(kind: str, value: Any) -> int:
    """The 64 bits of a slot that holds a value."""
    if kind == "f32":
        # `struct` refuses numbers beyond the range of f32, which become infinite
        value = ctypes.c_float(value).value
    code = {"f32": "f4x", "f64": "d", "i1": "?7x"}.get(kind)
    if code is None:
        return value & _WORD
    (word,) = struct.unpack("<Q", struct.pack("<" + code, value))
    return word


def _launch_flat(launch: Launch, x: int, y: int, z: int, *values: Any) -> None:
    launch((x, y, z), values)
