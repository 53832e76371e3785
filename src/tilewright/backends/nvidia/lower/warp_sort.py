"""Steps of sorts by bitonic networks (_expand_sorts.py), whose comparisons are of registers, or by
shuffles, or with what was read from shared memory.

A bit of a position along the axis is a bit of a register, lane or warp number (layouts of tiles are
permutations), so the partner of an element, whose position differs in one bit, is in another
register, lane or warp.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.backends.nvidia.buffer_ops import buffer_type
from tilewright.backends.nvidia.exchange_ops import (
    KeepBetterOp,
    MergeRunsOp,
    OrderPairsOp,
    ReadPartnerOp,
)
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, lowering
from tilewright.backends.nvidia.lower.lane_exchange import shuffle_packed
from tilewright.backends.nvidia.lower.layout_conversion import read_group
from tilewright.backends.nvidia.shared_memory.shared_accesses import read_access
from tilewright.ir.types import dtype_of
from tilewright.layout import LANE, REGISTER, WARP, LinearLayout
from tilewright.llvm import Val, integer_literal

Bit = Val | bool
"""A constant, or the lowest bit of an integer of the thread, whose other bits are undefined."""


class _Steps:
    """The lowering of one op; values: by register, fewer once some have become copies."""

    def __init__(self, state: GpuLowering, op: OrderPairsOp | MergeRunsOp | KeepBetterOp) -> None:
        self.state, self.op, self.code = state, op, state.code
        self.layout = layout_of(op.x)
        self.element = dtype_of(op.x.type)
        self.values = dict(enumerate(state.registers_of(op.x)))

    def finish(self) -> None:
        """The results, in the registers of their layout."""
        registers = [self.values[r] for r in sorted(self.values)]
        self.state.set_registers(self.op.result, registers)

    def exchange(self, bit: int, falls: int | None) -> None:
        """Order each element and its partner in this warp."""
        name, number = place_of(self.layout, self.op.axis, bit)
        if name == REGISTER:
            for r in [r for r in self.values if not r >> number & 1]:
                self._order_registers(r, r | 1 << number, self._falls(falls, r))
            return
        assert name == LANE, f"{self.op} is to be expanded"
        self.order(bit, falls, self._partners(number))

    def order(self, bit: int, falls: int | None, others: Mapping[int, Val]) -> None:
        """Keep the one that belongs here of each element and its partner in another thread."""
        upper = self._thread_bit(*place_of(self.layout, self.op.axis, bit))
        for r, own in self.values.items():
            takes_high = self._predicate(upper, self._falls(falls, r))
            swapped = self._differ(self._less(others[r], own), takes_high)
            self.values[r] = self._select_value(swapped, others[r], own)

    def keep(self, bit: int, others: Mapping[int, Val] | None) -> None:
        """Keep the better of each element and its partner; others: in another warp."""
        name, number = place_of(self.layout, self.op.axis, bit)
        if name == REGISTER:
            for r in [r for r in self.values if not r >> number & 1]:
                other = self.values.pop(r | 1 << number)
                self.values[r] = self._better(self.values[r], other)
            return
        found = self._partners(number) if others is None else others
        for r, own in self.values.items():
            self.values[r] = self._better(own, found[r])

    def _falls(self, bit: int | None, register: int) -> Bit:
        """Whether the sequence of a register descends."""
        if bit is None:
            return self.op.descending
        name, number = place_of(self.layout, self.op.axis, bit)
        return bool(register >> number & 1) if name == REGISTER else self._thread_bit(name, number)

    # -- comparisons ------------------------------------------------------------------------------

    def _order_registers(self, low: int, high: int, falls: Bit) -> None:
        x, y = self.values[low], self.values[high]
        if isinstance(falls, bool):
            first, second = self._extremum("min", x, y), self._extremum("max", x, y)
            self.values[low], self.values[high] = (second, first) if falls else (first, second)
            return
        swapped = self._differ(self._less(y, x), self._predicate(falls, False))
        self.values[low] = self._select_value(swapped, y, x)
        self.values[high] = self._select_value(swapped, x, y)

    def _better(self, own: Val, other: Val) -> Val:
        return self._extremum("max" if self.op.descending else "min", own, other)

    def _less(self, x: Val, y: Val) -> Val:
        predicate = "slt" if self.element.is_signed else "ult"
        return self.code.let_here(f"icmp {predicate} {x.typed}, {y}", "i1")

    def _extremum(self, which: str, x: Val, y: Val) -> Val:
        name = f"{'s' if self.element.is_signed else 'u'}{which}"
        found = self.code.intrinsic(name, x.type, x, y)
        return Val(found.text, found.type, x.level)

    def _select_value(self, condition: Val, x: Val, y: Val) -> Val:
        return self.code.let_here(f"select i1 {condition}, {x.typed}, {y.typed}", x.type)

    def _differ(self, x: Val, y: Val) -> Val:
        return self.code.let_here(f"xor i1 {x}, {y}", "i1")

    # -- threads ----------------------------------------------------------------------------------

    def _thread_bit(self, name: str, number: int) -> Val:
        index = self.state.lane if name == LANE else self.state.warp
        return self.code.let_here(f"lshr i32 {index}, {number}", "i32")

    def _predicate(self, x: Bit, y: Bit) -> Val:
        """Whether two bits differ, one of which the thread knows.

        By integers: LLVM would take the XOR of predicates apart, for each register anew.
        """
        (number, *more) = [bit for bit in (x, y) if not isinstance(bit, bool)]
        for other in more:
            number = self.code.let_here(f"xor i32 {number}, {other}", "i32")
        lowest = self.code.let_here(f"and i32 {number}, 1", "i32")
        return self.code.let_here(f"icmp {'eq' if True in (x, y) else 'ne'} i32 {lowest}, 0", "i1")

    def _partners(self, number: int) -> dict[int, Val]:
        """The values of the lane whose number differs in a bit."""
        mask = integer_literal(1 << number)
        return {r: shuffle_packed(self.state, "bfly", v, mask) for r, v in self.values.items()}


def place_of(layout: LinearLayout, axis: int, bit: int) -> tuple[str, int]:
    """The register, lane or warp bit, with its number, of each bit of positions along an axis."""
    for name in (REGISTER, LANE, WARP):
        for number, basis in enumerate(layout.bases(name)):
            if basis[axis] == 1 << bit:
                return name, number
    raise AssertionError(f"{layout} does not hold bit {bit} of dim {axis}")


@lowering(MergeRunsOp)
def _merge_runs(state: GpuLowering, op: MergeRunsOp) -> None:
    steps = _Steps(state, op)
    for bit in reversed(range(op.bits)):
        steps.exchange(bit, op.falls)
    steps.finish()


@lowering(OrderPairsOp)
def _order_pairs(state: GpuLowering, op: OrderPairsOp) -> None:
    steps = _Steps(state, op)
    steps.order(op.bit, op.falls, dict(enumerate(state.registers_of(op.partner))))
    steps.finish()


@lowering(KeepBetterOp)
def _keep_better(state: GpuLowering, op: KeepBetterOp) -> None:
    steps, partner = _Steps(state, op), op.partner
    others = None if partner is None else dict(enumerate(state.registers_of(partner)))
    steps.keep(op.bit, others)
    steps.finish()


@lowering(ReadPartnerOp)
def _read_partner(state: GpuLowering, op: ReadPartnerOp) -> None:
    """Where this thread's own values are, in the bytes of another warp."""
    type_, layout = buffer_type(op.buffer), layout_of(op.result)
    access, values = read_access(type_, layout, None), dict[int, Val]()
    name, number = place_of(layout, op.axis, op.bit)
    moved = access.address.bases(name)[number][0] * type_.element.bytes
    for index, group in enumerate(access.groups):
        start = state.scalar(op.buffer)
        read = read_group(state, access, type_.element, start, index, moved)
        values.update(zip(group, read, strict=True))
    state.set_registers(op.result, [values[r] for r in range(layout.in_size(REGISTER))])
