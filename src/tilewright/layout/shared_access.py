"""Accesses of a register layout to a buffer in shared memory: one side of a conversion.

`plan_shared_access` is for a given buffer; `plan_shared_conversion` also chooses the buffer.
"""

from dataclasses import replace
from typing import Literal

from tilewright.layout import bank_conflicts, f2
from tilewright.layout.element_sources import normalized
from tilewright.layout.linear_layout import LANE, OFFSET, REGISTER, WARP, LinearLayout, log2
from tilewright.layout.matrix_access import MatrixForm, matrix_addresses, matrix_form
from tilewright.layout.shared_swizzle import AccessConstraints
from tilewright.support.data_class import dataclass

AccessKind = Literal["vector", "matrix", "matrix_trans"]
VECTOR_BYTES_LOG2 = 4  # the widest access of one lane is 16 bytes


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """The instructions that move one side's registers to or from the buffer.

    ``groups[i]`` are the registers of instruction ``i``. For a vector access they are consecutive
    elements from the lane's own address on. For ldmatrix / stmatrix they are the elements of one
    word for each matrix, and the address is that of the row which the lane supplies. ``address``
    maps (instruction, lane, warp) to the element offset; being linear, it is the XOR of a part for
    the thread and a constant for the instruction. ``bits`` is the width per lane; ``degree`` the
    bank-conflict degree; ``wavefronts`` the passes of all instructions of one warp; ``repacks`` the
    instructions that pack elements below 32 bits into the words moved.
    """

    kind: AccessKind
    bits: int
    groups: tuple[tuple[int, ...], ...]
    address: LinearLayout
    degree: int
    wavefronts: int
    repacks: int

    @property
    def cost(self) -> int:
        """Issue slots and wavefronts of one warp."""
        return len(self.groups) + self.wavefronts + self.repacks

    @property
    def in_order(self) -> bool:
        """Whether every instruction moves consecutive registers, as asynchronous copies
        require."""
        return all(group == tuple(range(group[0], group[0] + len(group))) for group in self.groups)


@dataclass(frozen=True, slots=True)
class Side:
    """One side and its access: matrices of ``form``, or vectors of ``2**vector_bits``."""

    layout: LinearLayout
    vector_bits: int
    form: MatrixForm | None
    element_bytes_log2: int
    keep_copies: bool

    def constraints(self) -> AccessConstraints:
        """The constraints of this access on the layout of the buffer, see shared_swizzle.py."""
        lanes, warps = self.layout.packed(LANE), self.layout.packed(WARP)
        if self.form is not None:
            fixed = (*self.form.rows, *self.form.matrices, *warps)
            return AccessConstraints(len(self.form.row), fixed, self.form.rows)
        together = bank_conflicts.lanes_at_once(self.vector_bits + self.element_bytes_log2)
        # Single elements may start anywhere.
        fixed = (*lanes, *warps) if self.vector_bits else ()
        return AccessConstraints(self.vector_bits, fixed, lanes[:together])

    def ideal_cost(self) -> int:
        """The cost without any conflict."""
        bits = len(self.layout.packed(REGISTER))
        if self.form is not None:
            count = self.form.count_bits
            instructions = 1 << (bits - self.form.word_bits - count)
            return instructions + (instructions << count)
        instructions = 1 << (bits - self.vector_bits)
        passes = 1 << max(0, self.vector_bits + self.element_bytes_log2 - bank_conflicts.WORD_BITS)
        # Less than a word at a time is always repacked, see `_vector_access`.
        parts = self.vector_bits + self.element_bytes_log2 < bank_conflicts.WORD_BITS
        return instructions * (1 + passes + parts)

    def with_vector(self, bits: int) -> "Side":
        """The side moving vectors of ``2**bits`` elements."""
        return replace(self, vector_bits=bits, form=None)

    def with_form(self, form: MatrixForm) -> "Side":
        """The side moving matrices."""
        return replace(self, vector_bits=len(form.row), form=form)

    def forms(self) -> list[MatrixForm]:
        """The matrices of this layout for ldmatrix or stmatrix."""
        bits = 8 << self.element_bytes_log2
        forms = (matrix_form(self.layout, bits, transposed=flag) for flag in (False, True))
        return [form for form in forms if form is not None]


def plan_shared_access(
    shared: LinearLayout,
    layout: LinearLayout,
    element_bits: int,
    *,
    matrix: bool = False,
    store: bool = False,
    copy: bool = False,
    max_elements: int | None = None,
) -> SharedAccess:
    """The cheapest access of ``layout`` to a buffer whose layout is given, such as a TMA swizzle.

    ``matrix`` allows ldmatrix (stmatrix for a store). A store skips registers that are copies; the
    caller handles lanes and warps that hold copies (`LinearLayout.free_masks`). ``copy`` is a store
    by asynchronous copies, which move runs of consecutive registers, as long as possible.
    ``max_elements`` limits vectors to the aligned run at the other end of a copy.
    ``shared`` is a bijection from ``offset`` to the same tile.
    """
    size = log2(element_bits // 8)
    layout = normalized(layout.reorder_outs(shared.out_names))
    offsets = shared.invert().columns
    side = Side(layout, 0, None, size, not (store or copy))
    widest = VECTOR_BYTES_LOG2 - size
    limit = widest if max_elements is None else min(widest, log2(max_elements))
    if copy:
        bits = _vector_bits(side, offsets, limit, ordered=True)
        return _vector_access(side.with_vector(bits), offsets)
    bits = _vector_bits(side, offsets, limit, ordered=False)
    # Narrower vectors are rarely cheaper: where only the wide ones conflict.
    accesses = [_vector_access(side.with_vector(width), offsets) for width in range(bits, -1, -1)]
    for form in side.forms() if matrix else ():
        above = f2.compose(offsets, side.with_form(form).constraints().fixed)
        row = f2.compose(offsets, form.row)
        # A row has to be 16 consecutive bytes, and to start at a multiple of 16.
        if row == f2.unit(len(row)) and not any(o & ((1 << len(row)) - 1) for o in above):
            accesses.append(_matrix_access(side, form, offsets))
    return min(accesses, key=lambda access: access.cost)


def _vector_bits(side: Side, offsets: f2.Matrix, limit: int, *, ordered: bool) -> int:
    """log2 of the longest vector of consecutive registers to which every thread's address is
    aligned; with ``ordered``, of the first registers in order."""
    registers = f2.compose(offsets, side.layout.packed(REGISTER))
    span = f2.Span(registers)
    threads = f2.compose(offsets, (*side.layout.packed(LANE), *side.layout.packed(WARP)))
    bits = 0
    while bits < limit and 1 << bits in span:
        if ordered and registers[bits : bits + 1] != (1 << bits,):
            break
        if any(offset >> bits & 1 for offset in threads):
            break
        bits += 1
    # In order, no other register may start inside of a vector either.
    while ordered and any(offset & ((1 << bits) - 1) for offset in registers[bits:]):
        bits -= 1
    return bits


def access(side: Side, offsets: f2.Matrix) -> SharedAccess:
    """The access of one side to the buffer whose inverse map (tile to offset) is ``offsets``."""
    if side.form is not None:
        return _matrix_access(side, side.form, offsets)
    return _vector_access(side, offsets)


def _vector_access(side: Side, offsets: f2.Matrix) -> SharedAccess:
    """Group the registers by vector: inside a group along the low offset bits."""
    registers = f2.compose(offsets, side.layout.packed(REGISTER))
    span = f2.Span(registers)
    inner = tuple(span.solve(1 << bit) or 0 for bit in range(side.vector_bits))
    units = f2.unit(len(registers))
    if not side.keep_copies:
        pivots = f2.pivots(registers)
        units = tuple(unit for unit in units if unit & pivots)
    low = (1 << side.vector_bits) - 1
    # Without their component in the low offset bits, so that each is the start of a vector.
    outer = tuple(
        unit ^ f2.apply(inner, f2.apply(registers, unit) & low)
        for unit in f2.extension(inner, units)
    )
    groups = tuple(
        tuple(f2.apply(outer, i) ^ f2.apply(inner, e) for e in range(1 << side.vector_bits))
        for i in range(1 << len(outer))
    )
    lanes = f2.compose(offsets, side.layout.packed(LANE))
    address = _address(f2.compose(registers, outer), lanes, side, offsets)
    width = side.vector_bits + side.element_bytes_log2
    degree = bank_conflicts.degree(
        lanes[: bank_conflicts.lanes_at_once(width)], side.vector_bits, side.element_bytes_log2
    )
    passes = 1 << max(0, width - bank_conflicts.WORD_BITS)
    wavefronts = len(groups) * passes * degree
    word_bits = max(0, bank_conflicts.WORD_BITS - side.element_bytes_log2)
    # Elements are already packed if the lowest register bits are those of a word.
    whole = inner[:word_bits] == f2.unit(word_bits)
    repacks = 0 if whole else len(groups) * passes
    return SharedAccess("vector", 8 << width, groups, address, degree, wavefronts, repacks)


def _matrix_access(side: Side, form: MatrixForm, offsets: f2.Matrix) -> SharedAccess:
    """Take the registers in order, as many words at a time as one instruction has matrices."""
    size = 1 << (form.word_bits + form.count_bits)
    total = 1 << len(side.layout.packed(REGISTER))
    groups = tuple(tuple(range(start, start + size)) for start in range(0, total, size))
    steps = f2.compose(offsets, form.matrices[form.count_bits :])
    lanes = f2.compose(offsets, matrix_addresses(form))
    degree = bank_conflicts.degree(
        f2.compose(offsets, form.rows),
        VECTOR_BYTES_LOG2 - side.element_bytes_log2,
        side.element_bytes_log2,
    )
    kind: AccessKind = "matrix_trans" if form.transposed else "matrix"
    return SharedAccess(
        kind,
        32 << form.count_bits,
        groups,
        _address(steps, lanes, side, offsets),
        degree,
        len(groups) * degree << form.count_bits,
        0,
    )


def _address(steps: f2.Matrix, lanes: f2.Matrix, side: Side, offsets: f2.Matrix) -> LinearLayout:
    warps = f2.compose(offsets, side.layout.packed(WARP))
    ins = (("instruction", len(steps)), (LANE, len(lanes)), (WARP, len(warps)))
    return LinearLayout(ins, ((OFFSET, len(offsets)),), (*steps, *lanes, *warps))
