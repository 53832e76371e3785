"""Moving a tile through a buffer that is smaller than the tile, in several passes.

A tile may be cut along vectors that lie in the registers of both sides and in no lane or warp:
then every thread takes part in every pass, with some of its registers, and all passes use the
same addresses. With ``k`` such vectors o[0..k-1] the tile is 2**k copies of one *part*, the span
of everything else; pass ``m`` moves the registers of part ``m``, which are those of part 0 XOR a
constant.
"""

from dataclasses import dataclass

from tilewright.layout import f2
from tilewright.layout.linear_layout import LANE, REGISTER, WARP, LinearLayout


@dataclass(frozen=True, slots=True)
class PartSide:
    """One side of a part: its layout, the true register of each of its registers, and of each
    pass."""

    layout: LinearLayout
    registers: f2.Matrix
    steps: f2.Matrix


@dataclass(frozen=True, slots=True)
class Parts:
    """A conversion cut into equal parts. ``basis`` are the tile vectors of the part's own space."""

    src: PartSide
    dst: PartSide
    basis: f2.Matrix

    @property
    def passes(self) -> tuple[tuple[int, int], ...]:
        """For each pass what is XORed to the source and to the destination registers."""
        count = 1 << len(self.src.steps)
        return tuple(
            (f2.apply(self.src.steps, m), f2.apply(self.dst.steps, m)) for m in range(count)
        )


def cut(src: LinearLayout, dst: LinearLayout, halvings: int) -> Parts:
    """Cut a conversion of `normalized` layouts in two up to ``halvings`` times.

    As often as registers allow. The last registers go first, so that vectors stay whole.
    """
    threads = f2.basis(v for side in (src, dst) for n in (LANE, WARP) for v in side.packed(n))
    common = f2.intersection(src.packed(REGISTER), dst.packed(REGISTER))
    # No lane or warp may have a share in a cut, or it would sit out a pass.
    usable = f2.extension(threads, common)
    # the last ones are given up: the first registers are the elements of vectors
    kept = max(0, len(usable) - halvings)
    across = usable[kept:]
    basis = f2.extension(across, (*threads, *usable[:kept], *f2.unit(src.out_bits)))
    coordinates = f2.inverse((*basis, *across))
    return Parts(
        _side(src, across, len(basis), coordinates),
        _side(dst, across, len(basis), coordinates),
        basis,
    )


def _side(layout: LinearLayout, across: f2.Matrix, inside: int, coordinates: f2.Matrix) -> PartSide:
    """Change the register basis so that all but ``steps`` stay within a part."""
    own = layout.packed(REGISTER)
    span = f2.Span(own)
    # Always solvable: `across` lies in the registers of both sides.
    steps = tuple(span.solve(vector) or 0 for vector in across)
    moved = f2.compose(coordinates, own)
    # Each register XOR the steps that bring it back into part 0.
    back = tuple(1 << i ^ f2.apply(steps, column >> inside) for i, column in enumerate(moved))
    registers = f2.extension(steps, back)
    threads = f2.compose(coordinates, (*layout.packed(LANE), *layout.packed(WARP)))
    ins = ((REGISTER, len(registers)), *layout.ins[1:])
    columns = (*f2.compose(moved, registers), *threads)
    return PartSide(LinearLayout(ins, (("element", inside),), columns), registers, steps)
