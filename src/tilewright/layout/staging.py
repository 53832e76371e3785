"""Conversions through shared memory: the buffer's layout, and how each side accesses it.

`plan_staging` tries the ways in which the two sides can move several elements at once (vectors,
ldmatrix, stmatrix), lets `swizzle` choose the buffer for each, counts the exact cost, and keeps
the cheapest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tilewright.layout import banks, f2
from tilewright.layout.linear import LANE, OFFSET, REGISTER, WARP, Dims, LinearLayout, log2
from tilewright.layout.matrix_access import MatrixForm, matrix_addresses, matrix_form
from tilewright.layout.places import normalized
from tilewright.layout.swizzle import Demand, compatible, offset_basis

AccessKind = Literal["vector", "matrix", "matrix_trans"]
VECTOR_BYTES_LOG2 = 4  # the widest access of one lane is 16 bytes


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """How one side moves its registers to or from the buffer.

    ``groups[i]`` are the registers of instruction ``i``. For a vector access they are consecutive
    elements from the lane's own address on. For ldmatrix / stmatrix they are the elements of one
    word after the other, a word for each matrix, and the address is that of the row which the
    lane names. ``address`` maps (instruction, lane, warp) to the element offset; being linear, it
    is the XOR of a part for the thread and a constant for the instruction. ``bits`` is the width
    per lane; ``degree`` the bank-conflict degree; ``wavefronts`` the passes of all instructions
    of one warp.
    """

    kind: AccessKind
    bits: int
    groups: tuple[tuple[int, ...], ...]
    address: LinearLayout
    degree: int
    wavefronts: int

    @property
    def cost(self) -> int:
        """Issue slots and wavefronts of one warp."""
        return len(self.groups) + self.wavefronts

    @property
    def in_order(self) -> bool:
        """Whether every instruction moves consecutive registers, as a copy without registers
        must."""
        return all(group == tuple(range(group[0], group[0] + len(group))) for group in self.groups)


@dataclass(frozen=True, slots=True)
class Staging:
    """A buffer (``offset`` in elements -> tile) with the access that fills and the one that reads
    it."""

    shared: LinearLayout
    store: SharedAccess
    load: SharedAccess

    @property
    def rank(self) -> tuple[int, int]:
        """What to minimize: the cost of both sides, at equal cost the worse conflict degree."""
        return (self.store.cost + self.load.cost, max(self.store.degree, self.load.degree))


@dataclass(frozen=True, slots=True)
class _Side:
    """One side with the way it moves: ``form`` for matrices, else vectors of ``2**vector_bits``."""

    layout: LinearLayout
    vector_bits: int
    form: MatrixForm | None
    element_bytes_log2: int
    keep_copies: bool

    def demand(self) -> Demand:
        """The wishes that `swizzle` is to satisfy."""
        lanes, warps = self.layout.packed(LANE), self.layout.packed(WARP)
        if self.form is not None:
            fixed = (*self.form.rows, *self.form.matrices, *warps)
            return Demand(len(self.form.row), fixed, self.form.rows)
        together = banks.lanes_at_once(self.vector_bits + self.element_bytes_log2)
        fixed = (*lanes, *warps) if self.vector_bits else ()
        return Demand(self.vector_bits, fixed, lanes[:together])

    def ideal_cost(self) -> int:
        """The cost without any conflict."""
        bits = len(self.layout.packed(REGISTER))
        if self.form is not None:
            count = self.form.count_bits
            instructions = 1 << (bits - self.form.word_bits - count)
            return instructions + (instructions << count)
        instructions = 1 << (bits - self.vector_bits)
        passes = 1 << max(0, self.vector_bits + self.element_bytes_log2 - banks.WORD_BITS)
        return instructions * (1 + passes)


@dataclass(frozen=True, slots=True)
class _Candidate:
    low: f2.Matrix
    store: _Side
    load: _Side

    @property
    def ideal_cost(self) -> int:
        return self.store.ideal_cost() + self.load.ideal_cost()


def plan_staging(
    src: LinearLayout,
    dst: LinearLayout,
    element_bits: int,
    *,
    matrix_loads: bool,
    matrix_stores: bool,
) -> Staging:
    """The cheapest way of a tile from layout ``src`` through shared memory to layout ``dst``.

    Also the way to choose a buffer between a copy and its reader, as in a software pipeline. Both
    layouts list the same outputs in the same order.
    """
    size = log2(element_bits // 8)
    src, dst = normalized(src), normalized(dst)
    store, load = _Side(src, 0, None, size, False), _Side(dst, 0, None, size, True)
    found = list(_vector_candidates(store, load, VECTOR_BYTES_LOG2 - size))
    if matrix_loads:
        found += _matrix_load_candidates(store, load, matrix_stores)
    if matrix_stores:
        found += _matrix_store_candidates(store, load)
    best: Staging | None = None
    for candidate in sorted(found, key=lambda c: c.ideal_cost):
        if best is not None and best.rank <= (candidate.ideal_cost, 1):
            break
        staging = _realize(candidate, src.outs, size)
        if best is None or staging.rank < best.rank:
            best = staging
    assert best is not None, "single elements can always be moved"
    return best


def shared_access(
    shared: LinearLayout,
    layout: LinearLayout,
    element_bits: int,
    *,
    matrix: bool = False,
    store: bool = False,
) -> SharedAccess:
    """The cheapest access of ``layout`` to a buffer whose layout is given, such as a TMA swizzle.

    ``matrix`` allows ldmatrix (stmatrix for a store). A store skips registers that are copies;
    which lanes and warps hold copies is the caller's matter (`free_variable_masks`). ``shared``
    is a bijection from ``offset`` to the same tile.
    """
    size = log2(element_bits // 8)
    layout = normalized(layout.reorder_outs(shared.out_names))
    offsets = shared.invert().columns
    side = _Side(layout, 0, None, size, not store)
    registers = f2.Span(f2.compose(offsets, layout.packed(REGISTER)))
    threads = f2.compose(offsets, (*layout.packed(LANE), *layout.packed(WARP)))
    bits = 0
    while bits < VECTOR_BYTES_LOG2 - size and 1 << bits in registers:
        if any(offset >> bits & 1 for offset in threads):
            break
        bits += 1
    found = [_vector_access(_with_vector(side, bits), offsets)]
    for form in _forms(side) if matrix else ():
        above = f2.compose(offsets, _with_form(side, form).demand().fixed)
        row = f2.compose(offsets, form.row)
        if row == f2.unit(len(row)) and not any(o & ((1 << len(row)) - 1) for o in above):
            found.append(_matrix_access(side, form, offsets))
    return min(found, key=lambda access: access.cost)


def _vector_candidates(store: _Side, load: _Side, widest: int) -> Iterator[_Candidate]:
    """Vectors that both sides can move, alone and continued by those of either side."""
    threads = [v for side in (store, load) for n in (LANE, WARP) for v in side.layout.packed(n)]
    ours, theirs = store.layout.packed(REGISTER), load.layout.packed(REGISTER)
    shared = f2.extension(f2.basis(threads), f2.intersection(ours, theirs))[:widest]
    yield _candidate(shared, store, load, len(shared), len(shared))
    for registers, long_store in ((ours, True), (theirs, False)):
        low = list(shared)
        for vector in registers:
            pair = (len(low) + 1, len(shared)) if long_store else (len(shared), len(low) + 1)
            trial = _candidate((*low, vector), store, load, *pair)
            if len(low) < widest and _fits(trial):
                low.append(vector)
                yield trial


def _candidate(
    low: Sequence[int], store: _Side, load: _Side, store_bits: int, load_bits: int
) -> _Candidate:
    return _Candidate(tuple(low), _with_vector(store, store_bits), _with_vector(load, load_bits))


def _with_vector(side: _Side, bits: int) -> _Side:
    return _Side(side.layout, bits, None, side.element_bytes_log2, side.keep_copies)


def _with_form(side: _Side, form: MatrixForm) -> _Side:
    return _Side(side.layout, len(form.row), form, side.element_bytes_log2, side.keep_copies)


def _fits(candidate: _Candidate) -> bool:
    return compatible(candidate.low, candidate.store.demand(), candidate.load.demand())


def _forms(side: _Side) -> list[MatrixForm]:
    bits = 8 << side.element_bytes_log2
    found = (matrix_form(side.layout, bits, transposed=flag) for flag in (False, True))
    return [form for form in found if form is not None]


def _matrix_load_candidates(store: _Side, load: _Side, matrix_stores: bool) -> Iterator[_Candidate]:
    """ldmatrix on the reading side, with stmatrix or the widest vectors that fit on the other."""
    for form in _forms(load):
        reader = _with_form(load, form)
        writers = [_with_vector(store, bits) for bits in _prefixes(form.row, store)]
        if matrix_stores:
            writers += [_with_form(store, f) for f in _forms(store) if f.row == form.row]
        yield from _fitting(_Candidate(form.row, writer, reader) for writer in writers)


def _matrix_store_candidates(store: _Side, load: _Side) -> Iterator[_Candidate]:
    """stmatrix on the writing side, with the widest vectors that fit on the reading side."""
    for form in _forms(store):
        writer = _with_form(store, form)
        readers = [_with_vector(load, bits) for bits in _prefixes(form.row, load)]
        yield from _fitting(_Candidate(form.row, writer, reader) for reader in readers)


def _fitting(candidates: Iterator[_Candidate]) -> Iterator[_Candidate]:
    return (candidate for candidate in candidates if _fits(candidate))


def _prefixes(row: f2.Matrix, side: _Side) -> list[int]:
    """The vector widths, widest first, for which the row starts with registers of this side."""
    registers = f2.Span(side.layout.packed(REGISTER))
    bits = 0
    while bits < len(row) and row[bits] in registers:
        bits += 1
    return list(range(bits, -1, -1))


def _realize(candidate: _Candidate, outs: Dims, size: int) -> Staging:
    """Choose the buffer for a candidate and spell out both accesses."""
    bits = sum(width for _, width in outs)
    store, load = candidate.store, candidate.load
    basis = offset_basis(candidate.low, store.demand(), load.demand(), bits, size)
    offsets = f2.inverse(basis)
    shared = LinearLayout(((OFFSET, bits),), outs, basis)
    return Staging(shared, _access(store, offsets), _access(load, offsets))


def _access(side: _Side, offsets: f2.Matrix) -> SharedAccess:
    if side.form is not None:
        return _matrix_access(side, side.form, offsets)
    return _vector_access(side, offsets)


def _vector_access(side: _Side, offsets: f2.Matrix) -> SharedAccess:
    """Group the registers by vector: inside a group along the low offset bits."""
    registers = f2.compose(offsets, side.layout.packed(REGISTER))
    span = f2.Span(registers)
    inner = tuple(span.solve(1 << bit) or 0 for bit in range(side.vector_bits))
    units = f2.unit(len(registers))
    if not side.keep_copies:
        pivots = f2.pivots(registers)
        units = tuple(unit for unit in units if unit & pivots)
    low = (1 << side.vector_bits) - 1
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
    degree = banks.degree(
        lanes[: banks.lanes_at_once(width)], side.vector_bits, side.element_bytes_log2
    )
    passes = 1 << max(0, width - banks.WORD_BITS)
    return SharedAccess(
        "vector", 8 << width, groups, address, degree, len(groups) * passes * degree
    )


def _matrix_access(side: _Side, form: MatrixForm, offsets: f2.Matrix) -> SharedAccess:
    """Take the registers in order, as many words at a time as one instruction has matrices."""
    size = 1 << (form.word_bits + form.count_bits)
    total = 1 << len(side.layout.packed(REGISTER))
    groups = tuple(tuple(range(start, start + size)) for start in range(0, total, size))
    steps = f2.compose(offsets, form.matrices[form.count_bits :])
    lanes = f2.compose(offsets, matrix_addresses(form))
    degree = banks.degree(
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
    )


def _address(steps: f2.Matrix, lanes: f2.Matrix, side: _Side, offsets: f2.Matrix) -> LinearLayout:
    warps = f2.compose(offsets, side.layout.packed(WARP))
    ins = (("instruction", len(steps)), (LANE, len(lanes)), (WARP, len(warps)))
    return LinearLayout(ins, ((OFFSET, len(offsets)),), (*steps, *lanes, *warps))
