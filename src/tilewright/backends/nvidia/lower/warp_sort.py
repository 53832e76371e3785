"""Sorts: bitonic networks whose comparisons are of registers, or by shuffles, or through shared
memory.

A bit of a position along the axis is a bit of a register, lane or warp number (layouts of tiles are
permutations), so the partner of an element, whose position differs in one bit, is in another
register, lane or warp. The first `count` of each run are kept as soon as runs are longer: the
better of two partners stays in both, so that the bit they differ in becomes one of copies.
"""

from __future__ import annotations

from tilewright.backends.nvidia.lower.global_memory import shared_load, shared_store
from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, layout_of, lowering
from tilewright.backends.nvidia.lower.layout_conversion import shuffle_packed
from tilewright.ir.types import dtype_of
from tilewright.layout import LANE, REGISTER, WARP, LinearLayout
from tilewright.llvm import Val, integer_literal, llvm_type
from tilewright.ops import SortOp

_TWO_BUFFERS = 1 << 14
"""Bytes of an exchange up to which there are two, used in turn: then a barrier each will do."""

Bit = Val | bool
"""Known, or the lowest bit of an integer of the thread, whose others mean nothing."""


class _Sort:
    """The lowering of one sort; values: by register, fewer once some have become copies."""

    def __init__(self, state: GpuLowering, op: SortOp) -> None:
        self.state, self.op, self.code = state, op, state.code
        self.layout = layout_of(op.x)
        self.element = dtype_of(op.x.type)
        self.values = dict(enumerate(state.registers_of(op.x)))
        self.place = {bit: _place(self.layout, op.axis, bit) for bit in range(_levels(op.extent))}
        self.rounds = 0

    def run(self) -> None:
        op, levels, kept = self.op, _levels(self.op.extent), _levels(self.op.count)
        for stage in range(levels if op.bitonic else 1, levels + 1):
            if stage > kept:
                self._select(stage - 1)
            for bit in reversed(range(min(stage, kept))):
                self._exchange(stage, bit)
        coords = {self.layout.apply(register=r): v for r, v in self.values.items()}
        result = layout_of(op.result)
        registers = range(result.in_size(REGISTER))
        self.state.set_registers(op.result, [coords[result.apply(register=r)] for r in registers])

    # -- one step ---------------------------------------------------------------------------------

    def _exchange(self, stage: int, bit: int) -> None:
        """Order each element and its partner in the direction of their run of 2^stage."""
        name, number = self.place[bit]
        if name == REGISTER:
            for r in [r for r in self.values if not r >> number & 1]:
                self._order_registers(r, r | 1 << number, self._falls(stage, r))
            return
        upper = self._thread_bit(name, number)
        others = self._partners(name, number)
        for r, own in self.values.items():
            takes_high = self._predicate(upper, self._falls(stage, r))
            swapped = self._differ(self._less(others[r], own), takes_high)
            self.values[r] = self._select_value(swapped, others[r], own)

    def _select(self, bit: int) -> None:
        """Keep the better of each element and its partner, in both places."""
        name, number = self.place[bit]
        if name == REGISTER:
            for r in [r for r in self.values if not r >> number & 1]:
                other = self.values.pop(r | 1 << number)
                self.values[r] = self._better(self.values[r], other)
            return
        others = self._partners(name, number)
        for r, own in self.values.items():
            self.values[r] = self._better(own, others[r])

    def _falls(self, stage: int, register: int) -> Bit:
        """Whether the run that a register is in descends: by its bit `stage`, but for the last."""
        if stage == _levels(self.op.extent):
            return self.op.descending
        name, number = self.place[stage]
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

    def _partners(self, name: str, number: int) -> dict[int, Val]:
        """The values of the thread whose lane or warp number differs in a bit."""
        if name == LANE:
            mask = integer_literal(1 << number)
            return {r: shuffle_packed(self.state, "bfly", v, mask) for r, v in self.values.items()}
        state, size = self.state, self.element.bytes
        whole, buffers = _exchange_bytes(self.op, state.warps)
        if buffers == 1 and self.rounds:
            # What the round before wrote has to be read before it is written again.
            state.barrier()
        start = state.offsets[self.op] + whole * (self.rounds % buffers)
        self.rounds += 1
        own = self._slot(state.warp, start)
        for i, value in enumerate(self.values.values()):
            shared_store(state, self._moved(own, i), value, None)
        state.barrier()
        partner = self.code.let_here(f"xor i32 {state.warp}, {1 << number}", "i32")
        theirs = self._slot(partner, start)
        type_ = llvm_type(self.element)
        assert type_ == f"i{8 * size}"
        return {
            r: shared_load(state, self._moved(theirs, i), type_) for i, r in enumerate(self.values)
        }

    def _slot(self, warp: Val, start: int) -> Val:
        """Where the first value of this lane of a warp is."""
        code, size = self.code, self.element.bytes
        shifted = code.let_here(f"shl i32 {warp}, 5", "i32")
        thread = code.let_here(f"or i32 {shifted}, {self.state.lane}", "i32")
        scaled = code.let_here(f"mul i32 {thread}, {size}", "i32")
        address = code.let_here(f"add i32 {self.state.shared}, {scaled}", "i32")
        return code.let_here(f"add i32 {address}, {start}", "i32")

    def _moved(self, address: Val, index: int) -> Val:
        step = index * 32 * self.state.warps * self.element.bytes
        return self.code.let_here(f"add i32 {address}, {step}", "i32") if step else address


def _levels(extent: int) -> int:
    return extent.bit_length() - 1


def _place(layout: LinearLayout, axis: int, bit: int) -> tuple[str, int]:
    """What a bit of positions along an axis is: a register, lane or warp bit, and its number."""
    for name in (REGISTER, LANE, WARP):
        for number, basis in enumerate(layout.bases(name)):
            if basis[axis] == 1 << bit:
                return name, number
    raise AssertionError(f"{layout} does not hold bit {bit} of dim {axis}")


@lowering(SortOp)
def _sort(state: GpuLowering, op: SortOp) -> None:
    _Sort(state, op).run()


def _exchange_bytes(op: SortOp, warps: int) -> tuple[int, int]:
    """Bytes of one exchange between warps, and how many buffers there are for them."""
    size = layout_of(op.x).in_size(REGISTER) * 32 * warps * dtype_of(op.x.type).bytes
    return size, 2 if size <= _TWO_BUFFERS else 1


def sort_bytes(op: SortOp, warps: int) -> int:
    """Shared memory for exchanges between warps."""
    if not any(basis[op.axis] for basis in layout_of(op.x).bases(WARP)):
        return 0
    size, buffers = _exchange_bytes(op, warps)
    return size * buffers


__all__ = ["sort_bytes"]
