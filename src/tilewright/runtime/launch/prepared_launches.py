"""Launches that the layouts of some arrays determine, made by one call of machine code.

A function over arrays finds out from their shapes, strides and dtypes what it launches, which may
take longer than the launch. It prepares launches instead::

    prepared = kernel.prepared_launches("x_ptr", "out_ptr", "")

    def function(x, out, mode):
        layouts = prepared.launch(x, out, mode)
        if layouts is None:
            return                              # the launch was made
        grid, args = ...                        # decided by what `x`, `out` and `mode` are alone
        kernel[grid](*args)
        prepared.add(layouts, (x, out, mode), grid, args)

They are cache entries of native dispatch that hold their grid and most arguments, in a separate
table, where the descriptor of an array also has its rank, shape and strides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

from tilewright.ir.types import PointerType
from tilewright.runtime import launch
from tilewright.runtime.arguments.key_rules import CONSTEXPR, LAYOUT, Spec, TupleKey
from tilewright.runtime.launch.used_globals import GlobalCheck
from tilewright.runtime.launch.variant_cache import LaunchState, RecordedLaunch
from tilewright.support import grid_for

_MAX_SEEN = 1024
"""Maximal number of layouts that are remembered until their second launch."""

Find = Callable[[Sequence[object], dict[str, object]], RecordedLaunch | None]


class PreparedLaunches:
    """The prepared launches of a kernel; usage: see the head of this module.

    launch(*objects) -> None: the launch was made. Otherwise the layouts of the objects for `add`;
    empty if it cannot be prepared, or has hooks, settings or arrays that overlap.

    parameters: for each object, the parameter to which it is passed if it is an array, or "" for a
    constant; find(args, named) -> the launch with these arguments; state: None if machine code does
    not launch the kernel; register: called with the table
    """

    def __init__(
        self,
        kernel: str,
        parameters: Sequence[str],
        find: Find,
        state: LaunchState | None,
        register: Callable[[launch.DispatchTable], object],
    ) -> None:
        self.launch: Callable[..., bytes | None] = _leave
        self._kernel = kernel
        self._parameters = parameters
        self._find = find
        self._state = state
        self._register = register
        self._launched = False
        self._table: launch.DispatchTable | None = None
        self._seen = set[bytes]()

    def add(
        self,
        layouts: bytes,
        objects: Sequence[Any],
        grid: object,
        args: Sequence[object],
        checks: Sequence[GlobalCheck] = (),
    ) -> None:
        """Prepare the launch `kernel[grid](*args)`, which was just made, for objects of these
        layouts, if it is the second one with them.

        checks: conditions `get(name) is value`, as (get, name, value), that must still hold
        """
        # a process that launches once needs no machine code for it
        if self._state is None or not self._launched:
            self._launched = True
            return
        if self._table is None:
            self._table = self._new_table(self._state)
            # without entries, it only describes the objects
            layouts = self.launch(*objects) or layouts
        if layouts and layouts not in self._seen:
            if len(self._seen) >= _MAX_SEEN:
                self._seen.clear()
            self._seen.add(layouts)
        elif layouts:
            if self._table.is_full:
                self._table.retain(())
            record = self._find(args, {})
            entry = None if record is None else self._entry(record, objects, grid, checks)
            if entry is not None:
                self._table.add(layouts, entry)

    def _new_table(self, state: LaunchState) -> launch.DispatchTable:
        flags = {
            name or str(i): LAYOUT if name else CONSTEXPR for i, name in enumerate(self._parameters)
        }
        table = launch.DispatchTable(self._kernel, flags, _leave, _unknown, state)
        self._register(table)
        # 0 for the grid: every entry has its own
        self.launch = MethodType(table.launch, 0)
        return table

    def _entry(
        self,
        record: RecordedLaunch,
        objects: Sequence[Any],
        grid: object,
        checks: Sequence[GlobalCheck],
    ) -> launch.Entry | None:
        sources = self._sources(record, objects)
        if sources is None:
            return None
        entry = launch.Entry(record, sources, checks)
        entry.kept += map(launch.identities, objects)
        extents = grid_for(grid, record.call.named)
        entry.set(grid=entry.object(extents), kernel=entry.object(None))
        return entry

    def _sources(
        self, record: RecordedLaunch, objects: Sequence[Any]
    ) -> list[launch.Source] | None:
        """The sources of the launch; None if layouts and constants do not determine one."""
        call, position, places = record.call, 0, dict[str, tuple[int, object]]()
        for name, item in zip(self._parameters, objects, strict=True):
            if not name and not launch.is_constant(item):
                return None
            places[name] = position, item
            rank: int | None = None if item is None or not name else len(item.shape)
            position += 1 if rank is None else 2 + rank
        sources = list[launch.Source]()
        for param, key, given, passed in zip(
            call.params, call.keys, call.args, call.values, strict=True
        ):
            if isinstance(key, TupleKey):
                return None
            if not isinstance(key, Spec):
                continue
            item, known = places.get(param.name, (None, None))
            is_array = isinstance(key.type, PointerType)
            if is_array and (item is None or known is not given):
                return None
            sources.append((item if is_array else None, passed))
        return sources


def _leave(*_objects: object) -> bytes:
    return b""


def _unknown(descriptors: bytes, grid: object, /, *_objects: object) -> bytes:
    return descriptors
