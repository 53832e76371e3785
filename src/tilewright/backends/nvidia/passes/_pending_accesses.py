"""Accesses to global memory since the last barrier, in groups that are compared at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from tilewright.ir import Value
from tilewright.ir.types import TileType
from tilewright.ops import AtomicCasOp, AtomicOp, ForOp, LoadOp, StoreOp, WhileOp

MemoryAccess = LoadOp | StoreOp | AtomicOp | AtomicCasOp


class Pending:
    """An access since the last barrier.

    starts: the pointers from which it may derive; number: its place in program order; later: the
    loop in whose later iterations it is pending; waited: there was a barrier since, unless one of
    these conditions held
    """

    __slots__ = ("_waiting", "later", "number", "op", "starts", "waited")

    def __init__(
        self,
        op: MemoryAccess,
        starts: frozenset[Value],
        number: int,
        later: ForOp | WhileOp | None,
        waited: frozenset[Value] = frozenset(),
    ) -> None:
        self.op = op
        self.starts = starts
        self.number = number
        self.later = later
        self.waited = waited
        self._waiting: dict[frozenset[Value], Pending] = {}

    def after(self, conditions: frozenset[Value]) -> Pending:
        """The same access after barriers unless these conditions hold, one object for equal
        ones."""
        waited = self.waited | conditions
        if waited == self.waited:
            return self
        if waited not in self._waiting:
            self._waiting[waited] = Pending(self.op, self.starts, self.number, self.later, waited)
        return self._waiting[waited]


class PendingGroup:
    """Accesses of one kind, from the same pointers in one layout, in program order.

    unowned: those of which it is not known that each element belongs to one thread
    """

    __slots__ = ("is_atomic", "is_load", "layout", "members", "starts", "unowned")

    def __init__(self, access: Pending) -> None:
        self.starts = access.starts
        self.is_load = isinstance(access.op, LoadOp)
        self.is_atomic = isinstance(access.op, AtomicOp | AtomicCasOp)
        self.layout = layout_of(access.op.pointer)
        self.members: list[Pending] = []
        self.unowned: list[Pending] = []

    def copy_with(self, members: Iterable[Pending], unowned: Iterable[Pending]) -> PendingGroup:
        """A group of the same kind with these members."""
        copy = PendingGroup(self.members[0])
        copy.members, copy.unowned = [*members], [*unowned]
        return copy

    def may_matter_to(self, access: Pending) -> bool:
        """Whether the order of a later access and these matters if they meet."""
        if self.is_load and isinstance(access.op, LoadOp):
            return False
        if self.is_atomic and isinstance(access.op, AtomicOp | AtomicCasOp):
            return False
        return bool(self.starts & access.starts)


class PendingAccesses:
    """The accesses since the last barrier."""

    def __init__(self) -> None:
        self.groups: dict[object, PendingGroup] = {}

    def add(self, access: Pending) -> None:
        """Add the latest access."""
        op = access.op
        kind = AtomicOp if isinstance(op, AtomicCasOp) else type(op)
        key = (access.starts, kind, layout_of(op.pointer))
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = PendingGroup(access)
        group.members.append(access)
        group.unowned.append(access)

    def any_kind(self, matters: Callable[[MemoryAccess], bool]) -> bool:
        """Whether a condition holds for any access, which depends on its kind and layout."""
        return any(matters(group.members[0].op) for group in self.groups.values())

    def wait(self, conditions: frozenset[Value]) -> None:
        """Note barriers that are left out where conditions hold."""
        if conditions:
            for group in self.groups.values():
                group.members = [access.after(conditions) for access in group.members]
                group.unowned = [access.after(conditions) for access in group.unowned]

    def copy(self) -> PendingAccesses:
        """A copy that can change."""
        return union([self])


def union(ends: Collection[PendingAccesses]) -> PendingAccesses:
    """The accesses that are pending at some of several ends."""
    found = PendingAccesses()
    for end in ends:
        for key, group in end.groups.items():
            before = found.groups.get(key, group)
            members = _merged(before.members, group.members)
            unowned = _merged(before.unowned, group.unowned)
            found.groups[key] = group.copy_with(members, unowned)
    return found


def _merged(some: Sequence[Pending], others: Sequence[Pending]) -> Iterable[Pending]:
    """The union of two lists in program order."""
    if some == others:
        return some
    return sorted(dict.fromkeys([*some, *others]), key=lambda access: access.number)


def layout_of(pointer: Value) -> object:
    """The layout of an access; None for one by scalars."""
    return pointer.type.layout if isinstance(pointer.type, TileType) else None
