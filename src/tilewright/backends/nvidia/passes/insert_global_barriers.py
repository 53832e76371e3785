"""Insert barriers between accesses of a program's threads to the same global memory.

    mem.store %p, %v                        mem.store %p, %v
    %r = arith ...                   ->     mem.barrier
    %w = mem.load %q                        %w = mem.load %q

A program reads and writes in order; its threads do not wait for each other. So an access needs a
barrier before it if an access since the last barrier starts from the same pointer
(`analysis.roots`), one of the two writes, and another thread may have issued it. None is needed
between accesses that provably do not overlap (`analysis.overlap`), also in different iterations of
a loop, nor where each thread accesses only its own elements. Atomic operations need no order among
themselves, but one that releases comes after all earlier accesses of the program: it needs a
barrier after those that other threads may have issued, wherever they point.

    mem.store %data, %v                     mem.store %data, %v
    mem.atomic %flag, xchg release   ->     mem.barrier
                                            mem.atomic %flag, xchg release

Different parameters may be one array, modified in place. Then each element is loaded before it is
stored, through equal offsets from either parameter. No barrier is needed where one thread does
both. Several threads hold each element of a small tile. Only the one that stores the element loads
it, where nothing but element-wise ops is between load and store; elsewhere all of them load it:

    %x = mem.load (%a + d0)                 %x = mem.load (%a + d0)
    mem.store (%b + d0), ...         ->     mem.barrier
                                            mem.store (%b + d0), ...

In a small loop, the barrier is for launches in which %a and %b are equal.

A layout conversion between a load and the store of the loaded value orders threads as well, and so
does a wgmma dot that reads the loaded value from shared memory.

A loop that writes consecutive windows of memory needs no barrier where each starts after the end of
the previous one. Where that depends on arguments of the launch, it is tested at run time:

    cf.for ... (%row) {                     %ok = arith.compare ge %stride, 64
      mem.store %p + %row * %stride  ->     cf.if %ok {
    }                                         cf.for ... (%row) {
                                                mem.store %p + %row * %stride
                                              }
                                            } {
                                              cf.for ... (%row) {
                                                cf.if (not %ok) { mem.barrier }
                                                mem.store %p + %row * %stride
                                              }
                                            }

ptxas does not unroll a loop with a barrier, so a small loop has a version without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from typing import cast

from tilewright.analysis import (
    Advance,
    ArgumentUses,
    MemoryForms,
    Relation,
    Way,
    apart,
    is_injective,
    is_same,
    roots,
)
from tilewright.backends.nvidia.buffer_ops import ShareOp, WgmmaOp, users_of
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.backends.nvidia.passes._elementwise_uses import elementwise_uses
from tilewright.backends.nvidia.passes._launch_conditions import LaunchConditions
from tilewright.backends.nvidia.passes._materialize_forms import dominates
from tilewright.backends.nvidia.passes._pending_accesses import (
    MemoryAccess,
    Pending,
    PendingAccesses,
    PendingGroup,
    layout_of,
    union,
)
from tilewright.backends.nvidia.register_model import instruction_estimate
from tilewright.backends.nvidia.role_ops import RolesOp, is_over_programs
from tilewright.ir import Block, Builder, Function, Op, Pass, Rewriter, Trait, Value
from tilewright.ir.types import BufferType, TileType, i64
from tilewright.layout import LinearLayout
from tilewright.ops import (
    AtomicCasOp,
    AtomicOp,
    BarrierOp,
    ForOp,
    IfOp,
    LoadOp,
    StoreOp,
    WhileOp,
    YieldOp,
)
from tilewright.support.fresh_stack import nested
from tilewright.support.reachable import reachable

MAX_PENDING = 32
"""The most accesses to compare with: beyond, a barrier is cheaper than the proofs."""


class InsertGlobalBarriers(Pass, name="nvidia-insert-global-barriers"):
    """Insert barriers between accesses of threads to the same global memory."""

    def run(self, function: Function) -> bool:
        return _BarrierInsertion(function).run()


class _BarrierInsertion:
    """The insertion into one function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.forms = MemoryForms(function, (ConvertOp,))
        self.uses = ArgumentUses(function, self.forms)
        self.conditions = LaunchConditions()
        self.owned: dict[MemoryAccess, bool] = {}
        self.multiplied = set[Op]()
        self.starts: dict[Value, frozenset[Value]] = {}
        self.count = 0  # of accesses
        self.changed = False
        self.conditional: list[IfOp] = []
        self.different: dict[frozenset[Value], Value] = {}

    def run(self) -> bool:
        self._block(self.function.body, PendingAccesses())
        for loop in dict.fromkeys(_loop_around(op) for op in self.conditional):
            if loop is not None and _may_be_versioned(loop):
                _version(loop, [op for op in self.conditional if op.parent is loop.body])
        return self.changed

    @nested
    def _block(self, block: Block, before: PendingAccesses) -> PendingAccesses:
        """Insert barriers; before: accesses since the last barrier before the block; returns
        those after it."""
        pending = before.copy()
        for op in list(block):
            if isinstance(op, BarrierOp):
                pending = PendingAccesses()
            elif isinstance(op, MemoryAccess):
                pending = self._access(op, pending)
            elif isinstance(op, IfOp):
                # Either branch may have run: the accesses of both are pending.
                pending = union([self._block(inner, pending) for inner in op.regions])
            elif isinstance(op, ForOp | WhileOp):
                pending = self._loop(op, pending)
            elif isinstance(op, RolesOp):
                pending = self._block(op.consumers, pending)
            elif isinstance(op, WgmmaOp):
                self.multiplied.add(op)
        return pending

    def _loop(self, loop: ForOp | WhileOp, pending: PendingAccesses) -> PendingAccesses:
        """Walk a body at whose start the accesses of earlier iterations are pending."""
        if isinstance(loop, ForOp) and is_over_programs(loop):
            return self._block(loop.body, pending)  # programs have no order
        # No fixpoint: all accesses that the body may leave are pending at its start already, and
        # inserted barriers only remove some.
        inside = pending.copy()
        for block in loop.regions:
            for op in _left_by(block):
                inside.add(self._new(op, loop))
        for block in loop.regions:
            inside = self._block(block, inside)
        # The loop may run no iteration.
        return union([pending, inside])

    def _new(self, op: MemoryAccess, later: ForOp | WhileOp | None = None) -> Pending:
        self.count += 1
        return Pending(op, roots(op.pointer, self.starts), self.count, later)

    def _access(self, op: MemoryAccess, pending: PendingAccesses) -> PendingAccesses:
        """Insert a barrier before an access for those that must precede it."""
        access = self._new(op)
        if _releases(op) and pending.any_kind(lambda earlier: _is_by_others(earlier, op)):
            self._emit(Builder.at(op))
            pending = PendingAccesses()
            pending.add(access)
            return pending
        needed: dict[Value, None] = {}
        for number, earlier in enumerate(self._met(access, pending)):
            condition = number < MAX_PENDING and self._condition(earlier, access)
            if condition is False:
                self._emit(Builder.at(op))
                pending = PendingAccesses()
                break
            if isinstance(condition, Value) and condition not in earlier.waited:
                needed[condition] = None
        else:
            for condition in needed:
                self._emit_unless(Builder.at(op), condition)
            # All stay pending: threads wait only in launches where the condition fails.
            pending.wait(frozenset(needed))
        pending.add(access)
        return pending

    def _met(self, access: Pending, pending: PendingAccesses) -> Iterator[Pending]:
        """The pending accesses whose order before this one may matter, in program order."""
        found = list[Pending]()
        for group in pending.groups.values():
            if group.may_matter_to(access):
                found += group.members[: MAX_PENDING + 1]
            elif group.is_load and not isinstance(access.op, LoadOp):
                found += self._in_place(group, access)
        return iter(sorted(found, key=lambda earlier: earlier.number))

    def _emit(self, builder: Builder) -> None:
        builder.emit(BarrierOp())
        self.changed = True

    def _emit_unless(self, builder: Builder, condition: Value) -> None:
        """Emit a barrier unless a condition holds that is equal for all threads."""
        holds, fails = Block(), Block()
        self._emit(Builder(fails, None, builder.loc))
        for block in (holds, fails):
            Builder(block, None, builder.loc).emit(YieldOp(()))
        self.conditional.append(builder.emit(IfOp(condition, holds, fails)))

    # ---- pairs of accesses -----------------------------------------------------------------------

    def _condition(self, earlier: Pending, access: Pending) -> Value | bool:
        """Whether no barrier is needed; a value where that depends on the launch."""
        # A pair of `_is_in_place`: no proof relates different parameters.
        if not earlier.starts & access.starts:
            loop = _loop_around(access.op)
            # Elsewhere one barrier may serve for several pairs.
            is_for_version = loop is not None and _may_be_versioned(loop)
            return is_for_version and self._are_different(earlier.starts | access.starts)
        if self._is_ordered(earlier, access):
            return True
        ways = self._ways(earlier, access)
        if () in ways:
            return True
        assert earlier.later is not None or not ways
        condition = self.conditions.value(cast("Op", earlier.later), ways) if ways else None
        return False if condition is None else condition

    def _is_ordered(self, earlier: Pending, access: Pending) -> bool:
        """Whether the accesses do not overlap, or each thread accesses only its own elements."""
        first, second = (self.forms.access(a.op) for a in (earlier, access))
        relation = Relation.of(first, second, earlier.later)
        if apart(first, second, relation):
            return True
        # Types include layouts: with equal layouts, a thread has the same elements in both.
        if earlier.op.pointer.type is not access.op.pointer.type:
            return False
        if not is_same(first, second, relation):
            return False
        if isinstance(earlier.op, StoreOp) and isinstance(access.op, StoreOp):
            # Only the owner of an element stores it: copies in other threads do not matter.
            return is_injective(first)
        return self._is_owned(earlier.op)

    def _in_place(self, group: PendingGroup, access: Pending) -> list[Pending]:
        """The loads of a group whose elements another thread stores if two parameters are one
        array."""
        # With one layout, the storing thread has each element that one thread has loaded.
        is_alike = group.layout == layout_of(access.op.pointer)
        if is_alike:
            group.unowned = [
                e for e in group.unowned if self._is_multiplied(e.op) or not self._is_owned(e.op)
            ]
        loads = group.unowned if is_alike else group.members
        return [e for e in loads if self._is_in_place(e, access, is_alike)]

    def _is_in_place(self, earlier: Pending, access: Pending, is_alike: bool) -> bool:
        """Whether threads store elements that others load if two parameters are one array."""
        if self._is_multiplied(earlier.op):
            return False
        # Here, too, the storing thread has the element from the loading one.
        waits = not is_alike and _is_computed_from(access.op, cast("LoadOp", earlier.op))
        if waits and self._is_owned(earlier.op):
            return False
        one, other = (self.uses.of(a.op) for a in (earlier, access))
        return one is not None and other is not None and self.uses.may_be_one_element(one, other)

    def _are_different(self, parameters: frozenset[Value]) -> Value:
        """Whether two parameters are different arrays, computed where the function starts."""
        if parameters not in self.different:
            builder = Builder(self.function.body, self.function.body.first)
            order = [arg for arg in self.function.args if arg in parameters]
            one, other = (builder.cast(arg, i64) for arg in order)
            self.different[parameters] = builder.ne(one, other)
        return self.different[parameters]

    def _is_multiplied(self, load: MemoryAccess) -> bool:
        """Whether only dots have read the loaded value so far, after a barrier: if none of them has
        run, nothing needs it."""
        readers = load.result.uses
        shares = [op for op in readers if isinstance(op, ShareOp)]
        return len(shares) == len(readers) and all(
            op in self.multiplied for share in shares for op in users_of(share.result)
        )

    def _is_owned(self, op: MemoryAccess) -> bool:
        """Whether each element that an op accesses belongs to one thread."""
        if op not in self.owned:
            injective = is_injective(self.forms.access(op))
            self.owned[op] = injective and self._has_one_thread(op)
        return self.owned[op]

    def _has_one_thread(self, op: MemoryAccess) -> bool:
        """Whether one thread accesses each element, perhaps since others no longer load it."""
        if _each_has_its_thread(op.pointer):
            return True
        if not isinstance(op, LoadOp) or not _is_for_stores(op):
            return False
        op.attrs["by_owner"] = True
        self.changed = True
        return True

    def _ways(self, earlier: Pending, access: Pending) -> list[Way]:
        """Conditions on a launch under which an access does not overlap its later iterations."""
        first, second = (self.forms.access(a.op) for a in (earlier, access))
        loop = earlier.later
        if loop is None or loop not in second.loops or first.form != second.form:
            return []
        # Only limits that hold for both accesses bound both windows.
        masks = [self.forms.limits(a.op) for a in (earlier, access)]
        limits = [limit for limit in masks[0] if limit in masks[1]]
        return Advance(first, loop, limits, self.forms.bounds).ways()


_MOST_INSTRUCTIONS = 512
"""Instructions of a loop that has a version without barriers: in longer ones a test costs less."""


def _loop_around(op: Op) -> ForOp | None:
    """The loop in whose body an op is."""
    owner = op.parent.owner if op.parent is not None else None
    return owner if isinstance(owner, ForOp) else None


def _may_be_versioned(loop: ForOp) -> bool:
    """Whether a loop is small, and shares no buffers or barriers with other code."""
    ops = [op for op in loop.walk() if op is not loop]
    return (
        not any(isinstance(op, ForOp | WhileOp) for op in ops)
        and not any(isinstance(value.type, BufferType) for op in ops for value in op.operands)
        and instruction_estimate(ops) <= _MOST_INSTRUCTIONS
    )


def _version(loop: ForOp, barriers: Collection[IfOp]) -> None:
    """Branch before a loop, to a version without the barriers where no condition fails."""
    outside = [op for op in barriers if dominates(op.condition, loop)]
    if not outside:
        return
    builder = Builder.at(loop)
    condition = reduce(builder.bit_and, dict.fromkeys(op.condition for op in outside))
    fast, slow = Block(), Block()
    copy = loop.clone({})
    for op, copied in list(zip(loop.body, copy.body, strict=True)):
        if op in outside:
            Rewriter.erase(copied)
    versions = IfOp(condition, fast, slow, result_types=tuple(v.type for v in loop.results))
    builder.emit(versions)
    for old, new in zip(loop.results, versions.results, strict=True):
        Rewriter.replace_uses(old, new)
    assert loop.parent is not None
    loop.parent.detach(loop)
    loop.attrs["unroll"] = 1  # rarely runs
    for block, version in ((fast, copy), (slow, loop)):
        block.insert(version)
        Builder(block, None, loop.loc).emit(YieldOp(version.results))


def _releases(op: MemoryAccess) -> bool:
    """Whether accesses before an op are ordered before it, for other programs."""
    return isinstance(op, AtomicOp | AtomicCasOp) and op.order in ("release", "acq_rel")


def _is_by_others(earlier: MemoryAccess, release: MemoryAccess) -> bool:
    """Whether another thread than that of a release may have issued an access."""
    if _is_tile(release) and not release.result.uses and not _is_stored(release):
        # Tiles of additions are data, after which a flag follows: only stores matter to readers.
        return isinstance(earlier, StoreOp)
    # One thread issues scalar stores and atomics, and all of them scalar loads.
    return isinstance(earlier, LoadOp) or _is_tile(earlier) or _is_tile(release)


def _is_stored(op: MemoryAccess) -> bool:
    """Whether an atomic replaces what is in memory, as flags are set."""
    is_swap = isinstance(op, AtomicOp) and op.kind in ("store", "xchg")
    return is_swap or isinstance(op, AtomicCasOp)


def _is_tile(op: MemoryAccess) -> bool:
    return isinstance(op.pointer.type, TileType)


def _left_by(block: Block) -> Iterator[MemoryAccess]:
    """The accesses of a block after its last barrier, and of loops and branches before."""
    since: list[MemoryAccess] = []
    for op in block:
        if isinstance(op, BarrierOp):
            since.clear()
        since += [inner for inner in op.walk() if isinstance(inner, MemoryAccess)]
    yield from since


def _is_computed_from(store: MemoryAccess, load: LoadOp) -> bool:
    """Whether the thread that stores an element has received it from the one that loaded it."""

    def sources(value: Value) -> Sequence[Value]:
        op = value.op
        passes = op is not None and (Trait.ELEMENTWISE in op.traits or isinstance(op, ConvertOp))
        return op.operands if op is not None and passes else ()

    return isinstance(store, StoreOp) and load.result in reachable([store.stored], sources)


def _is_for_stores(load: LoadOp) -> bool:
    """Whether a loaded tile reaches, by element-wise ops, only stores in its layout."""
    layout = layout_of(load.pointer)
    if layout is None or load.volatile:
        return False
    return all(
        isinstance(user, StoreOp) and user.stored is value and layout_of(user.pointer) == layout
        for value, user in elementwise_uses(load.result, load.parent)
    )


def _each_has_its_thread(pointer: Value) -> bool:
    """Whether each address belongs to one thread."""
    layout = layout_of(pointer)
    return isinstance(layout, LinearLayout) and layout.is_injective
