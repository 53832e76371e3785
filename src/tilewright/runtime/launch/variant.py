"""A variant of a kernel, and the records of its launches."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from tilewright.compiler import CompiledKernel
from tilewright.runtime.arguments.specialization import Key, Spec, TupleKey, run_time_pairs
from tilewright.runtime.launch.bound_call import BoundCall
from tilewright.runtime.launch.overlap_warning import OverlapWatch
from tilewright.runtime.launch.used_globals import GlobalCheck, UsedGlobals
from tilewright.support.data_class import dataclass

Pick = Callable[[Sequence[Any]], Sequence[Any]]


class Variant:
    """A loaded kernel and how its run-time values are picked from all arguments of a launch.

    globals: see `UsedGlobals.checks`; pairs: of run-time arguments that must not overlap; checked:
    whether the kernel reports wrong accesses; stamp: the clock of `VariantCache` at its latest
    launch.
    """

    __slots__ = (
        "_used_globals",
        "checked",
        "globals",
        "kernel",
        "launch",
        "pairs",
        "pick",
        "stamp",
    )

    def __init__(
        self, kernel: CompiledKernel, keys: Sequence[Key], globals: UsedGlobals, stamp: int
    ) -> None:
        self.kernel = kernel
        # A check for races is passed the addresses of the arrays, and reports overlaps that matter.
        self.pairs = () if "race" in kernel.metadata.options.check else kernel.pairs
        self.checked = hasattr(kernel.metadata, "checks")
        self.launch = kernel.launcher.launch
        self.pick = picker(keys)
        self.globals = globals.checks
        self.stamp = stamp
        self._used_globals = globals

    def check_globals(self) -> None:
        """Raise ChangedGlobal if a global has another value than when the kernel was compiled."""
        if any(get(name) is not value for get, name, value in self.globals):
            self._used_globals.check(self.kernel.src.name)


def picker(keys: Sequence[Key]) -> Pick:
    """The function that picks the run-time values of a launch; tuples are flattened."""
    if any(isinstance(key, TupleKey) for key in keys):
        return lambda values: [value for _, value in run_time_pairs(keys, values)]
    indices = [i for i, key in enumerate(keys) if isinstance(key, Spec)]
    # itemgetter of one index returns the bare value, not a tuple of one
    if len(indices) > 1:
        return itemgetter(*indices)
    return lambda values: [values[i] for i in indices]


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """A launch that was made: its bound arguments and its variant, of which native dispatch makes a
    cache entry.

    checks: conditions, besides the globals of the variant, under which the entry is valid.
    """

    call: BoundCall
    variant: Variant
    checks: tuple[GlobalCheck, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchState:
    """The state of a kernel that each of its launches reads.

    assigned: settings of compilation that the program has set; enter, exit: hooks around launches;
    before: those of this kernel; overlaps: the watch for arguments that overlap; clock: one 64-bit
    number that counts launches. With any setting or hook, machine code leaves launches to Python.
    """

    assigned: Mapping[str, object]
    enter: Sequence[object]
    exit: Sequence[object]
    before: Sequence[object]
    overlaps: OverlapWatch
    clock: array[int]
