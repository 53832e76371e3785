"""Prepared launches in machine code: the Python side of `native_dispatch_prepared.ll`."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.analysis import ArgumentPair
from tilewright.backends import WordLaunch
from tilewright.ir.types import PointerType
from tilewright.native import METH_FASTCALL, builtin_function
from tilewright.runtime.arguments.memory_spans import memory_of
from tilewright.runtime.arguments.specialization import Spec, TupleKey
from tilewright.runtime.launch.bound_call import BoundCall
from tilewright.runtime.launch.native_dispatch import Finder, identities, target_of
from tilewright.runtime.launch.native_dispatch_structures import (
    DESCRIBE_SYMBOL,
    MAX_ARGUMENTS,
    MAX_PREPARED,
    PREPARED_SYMBOL,
    PROBES,
    SLOTS,
    ArrayPair,
    CacheEntry,
    DispatchRecord,
    PreparedLaunch,
    PreparedRecord,
)
from tilewright.runtime.launch.native_memory import Memory, free_position, global_checks
from tilewright.runtime.launch.native_types import dispatch_code, known_types
from tilewright.runtime.launch.overlap_warning import OverlapWatch
from tilewright.runtime.launch.used_globals import GlobalCheck
from tilewright.runtime.launch.variant import RecordedLaunch, Variant
from tilewright.support import ForkLock, grid_for
from tilewright.support.data_class import dataclass

_MOST = 4 * SLOTS
"""Launches that are prepared at a time, and layouts that are remembered."""

_CODES = {"word": "Q", "f32": "f4x", "f64": "d", "i1": "?7x"}
"""`struct` code of each kind of slot."""

_WORD = (1 << 64) - 1


class PreparedDispatcher:
    """See `PreparedLaunches`.

    parameters: of each object the one that it is passed for if it is an array, or ""; find: tells
    what a launch has run; assigned, enter, exit, before: with anything in them, no prepared launch
    is made
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[str],
        find: Finder,
        *,
        assigned: Mapping[str, object],
        enter: Sequence[object],
        exit: Sequence[object],
        before: Sequence[object],
        overlaps: OverlapWatch,
    ) -> None:
        assert len(parameters) <= MAX_PREPARED
        self._parameters = parameters
        self._find = find
        self._seen = set[bytes]()
        # one that is replaced while another thread makes it is held there
        self._prepared: dict[bytes, _Prepared] = {}
        self._lock = ForkLock()
        self._table = (ctypes.c_uint64 * (SLOTS + PROBES))()
        self._memory = memory = Memory([overlaps])
        dispatch = DispatchRecord(
            assigned=memory.object(assigned),
            enter=memory.object(enter),
            exit=memory.object(exit),
            watching=overlaps.watching,
        )
        self._record = PreparedRecord(
            known=known_types().address,
            table=ctypes.addressof(self._table),
            dispatch=memory.structure(dispatch),
            before=memory.object(before),
            count=len(parameters),
        )
        self.launch: Callable[..., bool] = self._function(name, PREPARED_SYMBOL)
        self._describe = self._function("describe", DESCRIBE_SYMBOL)

    def _function(self, name: str, symbol: str) -> Callable[..., Any]:
        code, address = dispatch_code(), ctypes.addressof(self._record)
        return builtin_function(name, code[symbol], METH_FASTCALL, address, keep=(self, code))

    def add(
        self,
        objects: Sequence[object],
        grid: object,
        args: Sequence[object],
        checks: Sequence[GlobalCheck],
    ) -> None:
        """See `PreparedLaunches.add`. Objects of a layout that is met the first time are only
        remembered."""
        layouts: bytes = self._describe(*objects)
        before = self._prepared.get(layouts)
        # one that is left to Python, for hooks or overlaps, say, is as good as a new one
        if not layouts or (before is not None and before.checks == tuple(checks)):
            return
        if layouts not in self._seen:
            if len(self._seen) >= _MOST:
                self._seen.clear()
            self._seen.add(layouts)
            return
        record = self._find(tuple(args), {})
        made = None if record is None else self._made(objects, layouts, grid, record)
        if record is None or made is None:
            return
        made.set_checks((*record.variant.globals, *record.checks), checks)
        with self._lock:
            self._add(layouts, made)

    def _add(self, layouts: bytes, made: _Prepared) -> None:
        table, before = self._table, self._prepared.get(layouts)
        if before is None and len(self._prepared) >= _MOST:
            table[:] = [0] * len(table)
            self._prepared = {}
        self._prepared[layouts] = made
        slot = free_position(table, made.slot)
        near = range(made.slot, made.slot + PROBES)
        position = next((i for i in near if before and table[i] == before.address), slot)
        # last: another thread may make the launch as soon as the table has it
        table[position] = made.address

    def _made(
        self, objects: Sequence[object], layouts: bytes, grid: object, record: RecordedLaunch
    ) -> _Prepared | None:
        """A launch for objects that are laid out like these; None if machine code cannot make it,
        or if it has to know more of them than where they are."""
        call, variant = record.call, record.variant
        launcher: Any = variant.kernel.launcher
        launch = launcher.by_words() if hasattr(launcher, "by_words") else None
        values = _run_time_values(call)
        if launch is None or values is None or len(values) > MAX_ARGUMENTS:
            return None
        arrays = self._arrays(objects, values)
        if arrays is None:
            return None
        made = _Prepared(layouts, variant)
        made.kept += map(identities, objects)
        made.set_words(launch, values, arrays)
        made.set_pairs(variant.pairs, arrays, objects)
        made.fields.x, made.fields.y, made.fields.z = grid_for(grid, call.named)
        return made

    def _arrays(self, objects: Sequence[object], values: Sequence[_Value]) -> dict[int, int] | None:
        """Which object each value is that is an array, from its first element upwards; None if one
        is no such."""
        arrays = dict[int, int]()
        for position, value in enumerate(values):
            if not value.is_array:
                continue
            known = self._parameters.index(value.name) if value.name in self._parameters else -1
            memory = memory_of(value.given)
            rises = memory is not None and memory.span[0] == value.passed
            if known < 0 or objects[known] is not value.given or not rises:
                return None
            arrays[position] = known
        return arrays


@dataclass
class _Value:
    """A run-time argument: its parameter, what is given, and what is passed for it."""

    name: str
    is_array: bool
    given: object
    passed: Any


def _run_time_values(call: BoundCall) -> list[_Value] | None:
    """Those of a launch; None if tuples or descriptors are among them."""
    values = list[_Value]()
    for param, key, given, passed in zip(
        call.params, call.keys, call.args, call.values, strict=True
    ):
        if isinstance(key, TupleKey):
            return None
        if isinstance(key, Spec):
            values.append(_Value(param.name, isinstance(key.type, PointerType), given, passed))
    return values


class _Prepared(Memory):
    """A prepared launch, and what it points to.

    slot: of the table, where a search for it begins; checks: beside those of its kernel
    """

    def __init__(self, layouts: bytes, variant: Variant) -> None:
        super().__init__()
        *words, self.slot = struct.unpack(f"<{len(layouts) // 8}Q", layouts)
        self.fields = PreparedLaunch()
        self.checks: tuple[GlobalCheck, ...] = ()
        self._entry = {
            "size": len(words),
            "descriptors": self.words(words),
            "kernel": self.object(variant.kernel),
            "owner": id(self),
            **target_of(self, variant, with_arrays=True, sources_given=True),
        }

    @property
    def address(self) -> int:
        """Of the structure."""
        return ctypes.addressof(self.fields)

    def set_checks(self, own: Sequence[GlobalCheck], further: Sequence[GlobalCheck]) -> None:
        """What has to be as it was: for the kernel, and beside."""
        self.checks = tuple(further)
        self._entry.update(global_checks(self, (*own, *further)))
        self.fields.entry = CacheEntry(**self._entry)

    def set_words(
        self, launch: WordLaunch, values: Sequence[_Value], arrays: Mapping[int, int]
    ) -> None:
        """What is passed."""
        numbers = [_number(kind, v.passed) for kind, v in zip(launch.slots, values, strict=True)]
        template = struct.pack("<" + "".join(_CODES[kind] for kind in launch.slots), *numbers)
        self._entry["values"] = len(values)
        self.fields.words = self.words(struct.unpack(f"<{len(values)}Q", template))
        self.fields.arrays = len(arrays)
        self.fields.places = self.words([word for pair in arrays.items() for word in pair])

    def set_pairs(
        self, pairs: Sequence[ArgumentPair], arrays: Mapping[int, int], objects: Sequence[object]
    ) -> None:
        """Which objects must not overlap; arrays: which object each argument is."""
        listed = list[ArrayPair]()
        for pair in pairs:
            places = arrays[pair.first], arrays[pair.second]
            extents = (_bytes_of(objects[place]) for place in places)
            listed.append(ArrayPair(*places, *extents, pair.is_element_wise))
        array = (ArrayPair * len(listed))(*listed)
        self.kept.append(array)
        self.fields.pairs = len(listed)
        self.fields.pair_list = ctypes.addressof(array)


def _number(kind: str, value: Any) -> int | float:
    return value & _WORD if kind == "word" else value


def _bytes_of(array: object) -> int:
    """From its first element to the end of its last one."""
    memory = memory_of(array)
    assert memory is not None
    return memory.span[1]
