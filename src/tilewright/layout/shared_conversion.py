"""Conversions through shared memory: the buffer's layout, and how each side accesses it.

`plan_shared_conversion` enumerates the accesses of both sides that move several elements at once
(vectors, ldmatrix, stmatrix), has `shared_swizzle` choose the buffer for each, computes the exact
cost, and returns the cheapest.
"""

from collections.abc import Iterator, Sequence

from tilewright.layout import f2
from tilewright.layout.element_sources import normalized
from tilewright.layout.linear_layout import LANE, OFFSET, REGISTER, WARP, Dims, LinearLayout, log2
from tilewright.layout.shared_access import VECTOR_BYTES_LOG2, SharedAccess, Side, access
from tilewright.layout.shared_swizzle import compatible, offset_basis
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class SharedConversion:
    """A buffer (``offset`` in elements -> tile) with the access that fills it and the one that
    reads it."""

    shared: LinearLayout
    store: SharedAccess
    load: SharedAccess

    @property
    def rank(self) -> tuple[int, int]:
        """The objective: the cost of both sides, then the worse conflict degree."""
        return (self.store.cost + self.load.cost, max(self.store.degree, self.load.degree))


@dataclass(frozen=True, slots=True)
class _Candidate:
    low: f2.Matrix
    store: Side
    load: Side

    @property
    def ideal_cost(self) -> int:
        return self.store.ideal_cost() + self.load.ideal_cost()


def plan_shared_conversion(
    src: LinearLayout,
    dst: LinearLayout,
    element_bits: int,
    *,
    matrix_loads: bool,
    matrix_stores: bool,
    copy: bool = False,
    copy_elements: int | None = None,
) -> SharedConversion:
    """The cheapest conversion from layout ``src`` to ``dst`` through shared memory.

    Both layouts list the same outputs in the same order. ``copy``: the filling side is an
    asynchronous copy that ``src`` describes, as in a software pipeline: it moves consecutive
    elements only, so its vectors are runs of consecutive registers, as long as possible, but no
    longer than ``copy_elements``, the aligned run at the source of the copy.
    """
    size = log2(element_bits // 8)
    src, dst = normalized(src), normalized(dst)
    store, load = Side(src, 0, None, size, False), Side(dst, 0, None, size, True)
    widest = VECTOR_BYTES_LOG2 - size
    limit = widest if copy_elements is None else min(widest, log2(copy_elements))
    candidates = list(
        _copy_candidates(store, load, limit) if copy else _vector_candidates(store, load, widest)
    )
    if matrix_loads:
        candidates += _matrix_load_candidates(store, load, matrix_stores and not copy, copy)
    if matrix_stores and not copy:
        candidates += _matrix_store_candidates(store, load)
    if copy:
        # Candidates for matrix loads may copy more at once than is aligned at the source.
        candidates = [candidate for candidate in candidates if candidate.store.vector_bits <= limit]
        most = max(candidate.store.vector_bits for candidate in candidates)
        candidates = [candidate for candidate in candidates if candidate.store.vector_bits == most]
    best: SharedConversion | None = None
    for candidate in sorted(candidates, key=lambda c: c.ideal_cost):
        # sorted by a bound of the cost: no later candidate can be better
        if best is not None and best.rank <= (candidate.ideal_cost, 1):
            break
        conversion = _realize(candidate, src.outs, size)
        if best is None or conversion.rank < best.rank:
            best = conversion
    assert best is not None, "single elements can always be moved"
    return best


def _vector_candidates(store: Side, load: Side, widest: int) -> Iterator[_Candidate]:
    """Vectors that both sides can move, alone and extended by those of either side."""
    threads = [v for side in (store, load) for n in (LANE, WARP) for v in side.layout.packed(n)]
    ours, theirs = store.layout.packed(REGISTER), load.layout.packed(REGISTER)
    # Vectors in the registers of both sides that are independent of all lanes and warps.
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
    low: Sequence[int], store: Side, load: Side, store_bits: int, load_bits: int
) -> _Candidate:
    return _Candidate(tuple(low), store.with_vector(store_bits), load.with_vector(load_bits))


def _copy_candidates(store: Side, load: Side, widest: int) -> Iterator[_Candidate]:
    """Vectors of the filling side in register order; the reading side moves prefixes of them."""
    own = store.layout.packed(REGISTER)[:widest]
    for bits in range(len(own), -1, -1):
        for shared in _prefixes(own[:bits], load, False):
            trial = _candidate(own[:bits], store, load, bits, shared)
            if _fits(trial):
                yield trial
                break


def _fits(candidate: _Candidate) -> bool:
    return compatible(candidate.low, candidate.store.constraints(), candidate.load.constraints())


def _matrix_load_candidates(
    store: Side, load: Side, matrix_stores: bool, copy: bool
) -> Iterator[_Candidate]:
    """ldmatrix on the reading side, with stmatrix or the widest vectors that fit on the other."""
    for form in load.forms():
        reader = load.with_form(form)
        writers = [store.with_vector(bits) for bits in _prefixes(form.row, store, copy)]
        if matrix_stores:
            writers += [store.with_form(f) for f in store.forms() if f.row == form.row]
        yield from _fitting(_Candidate(form.row, writer, reader) for writer in writers)


def _matrix_store_candidates(store: Side, load: Side) -> Iterator[_Candidate]:
    """stmatrix on the writing side, with the widest vectors that fit on the reading side."""
    for form in store.forms():
        writer = store.with_form(form)
        readers = [load.with_vector(bits) for bits in _prefixes(form.row, load, False)]
        yield from _fitting(_Candidate(form.row, writer, reader) for reader in readers)


def _fitting(candidates: Iterator[_Candidate]) -> Iterator[_Candidate]:
    return (candidate for candidate in candidates if _fits(candidate))


def _prefixes(row: f2.Matrix, side: Side, ordered: bool) -> list[int]:
    """The vector widths, widest first, for which the row starts with registers of this side.

    With ``ordered``, with its first registers in their order.
    """
    own = side.layout.packed(REGISTER)
    span = f2.Span(own)
    bits = 0
    while bits < len(row) and (own[bits : bits + 1] == (row[bits],) or not ordered):
        if row[bits] not in span:
            break
        bits += 1
    return list(range(bits, -1, -1))


def _realize(candidate: _Candidate, outs: Dims, size: int) -> SharedConversion:
    """Choose the buffer for a candidate, and build both accesses."""
    bits = sum(width for _, width in outs)
    store, load = candidate.store, candidate.load
    basis = offset_basis(candidate.low, store.constraints(), load.constraints(), bits, size)
    offsets = f2.inverse(basis)
    shared = LinearLayout(((OFFSET, bits),), outs, basis)
    return SharedConversion(shared, access(store, offsets), access(load, offsets))
