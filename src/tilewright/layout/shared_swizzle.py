"""Choice of the shared-memory layout between two register layouts: a basis of the offset bits.

A shared layout is a basis of the tile's space: offset bit ``i`` moves along vector ``b[i]``. Both
sides of a conversion constrain it:

* *vectors*: a side that moves ``2**v`` elements at once needs ``b[0..v-1]`` among its registers,
  independent of its lanes and warps, which would otherwise start in the middle of a vector;
* *banks*: with ``b[i]`` for the bits above 128 bytes spanning H, the lanes that are served
  together span P, and the vector and word bits span X, a side has no conflict exactly when H
  meets P + X in 0 only.

The first constraint fixes the low vectors and a complement Q of them in which everything else must
be chosen. The second needs a common complement of two subspaces. Two subspaces of equal dimension
always have one, over any field: with ``A = I + span(a)`` and ``B = I + span(b)``, I their
intersection, the vectors ``a[i] + b[i]`` are in neither, and with a complement of A + B they are
the solution. These vectors are the swizzle: the row bits XORed into the column bits.
"""

from collections.abc import Sequence
from itertools import zip_longest

from tilewright.layout import f2
from tilewright.layout.bank_conflicts import WAVEFRONT_BITS, WORD_BITS
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class AccessConstraints:
    """The requirements of one side on the offset basis; vectors are packed tile coordinates.

    ``vector_bits``: that many low basis vectors are moved at once. ``fixed``: vectors that must be
    independent of these. ``phase``: the lane bits that are served together.
    """

    vector_bits: int
    fixed: f2.Matrix
    phase: f2.Matrix


def compatible(low: Sequence[int], one: AccessConstraints, other: AccessConstraints) -> bool:
    """Whether a basis that starts with ``low`` can satisfy the vector constraints of both sides."""
    big, small = _by_size(one, other)
    if f2.rank((*low, *big.fixed)) != len(low) + f2.rank(big.fixed):
        return False
    above = (*low[small.vector_bits :], *big.fixed, *small.fixed)
    return f2.rank((*low, *above)) == small.vector_bits + f2.rank(above)


def offset_basis(
    low: Sequence[int],
    one: AccessConstraints,
    other: AccessConstraints,
    bits: int,
    element_bytes_log2: int,
) -> f2.Matrix:
    """A basis ``low + ...`` of the ``bits``-dimensional tile space with the fewest bank conflicts.

    ``low`` holds the vector bits of the side that has more of them, and must be `compatible`.
    """
    big, small = _by_size(one, other)
    word_bits = max(0, WORD_BITS - element_bytes_log2)
    rest = _complement(low, big, small, bits, low[:word_bits])
    low_and_word = (*low, *rest[: max(0, word_bits - len(low))])
    word = low_and_word[:word_bits]
    # P + X of the head for each side, within the complement of the low vectors.
    touched_big = f2.intersection((*word, *big.phase), rest)
    touched_small = f2.intersection((*low[: small.vector_bits], *word, *small.phase), rest)
    # Offset bits beyond one wavefront: words that differ only there share a bank.
    above = max(0, bits - (WAVEFRONT_BITS - element_bytes_log2))
    high = _avoiding(touched_big, touched_small, rest, low_and_word, above)
    # The rest of the complement numbers the banks.
    banks = f2.extension((*low_and_word, *high), rest)
    return (*low_and_word, *banks, *high)


def _by_size(
    one: AccessConstraints, other: AccessConstraints
) -> tuple[AccessConstraints, AccessConstraints]:
    return (one, other) if one.vector_bits >= other.vector_bits else (other, one)


def _complement(
    low: Sequence[int],
    big: AccessConstraints,
    small: AccessConstraints,
    bits: int,
    word: Sequence[int],
) -> f2.Matrix:
    """A complement of ``low`` that contains the fixed vectors of the big side.

    The lanes of the small side may depend on the low vectors that only the big side moves. Each
    gets another one of these, so that these bits of their addresses vary: a side that moves single
    words then reaches all banks although the other side's vectors are wide.
    """
    chosen = list(f2.basis(big.fixed))
    span = f2.Span((*low, *chosen))
    touched = f2.Span((*word, *small.phase))
    twists = [v for v in low[max(small.vector_bits, len(word)) :] if touched.add(v) is None]
    for vector in small.phase:
        if span.add(vector) is None:
            chosen.append(vector ^ (twists.pop() if twists else 0))
    chosen += [v for v in (*small.fixed, *f2.unit(bits)) if span.add(v) is None]
    return tuple(chosen)


def _avoiding(
    one: Sequence[int], other: Sequence[int], space: f2.Matrix, taken: Sequence[int], count: int
) -> f2.Matrix:
    """``count`` independent vectors of ``space`` that avoid both subspaces as long as possible."""
    common = f2.intersection(one, other)
    only_one, only_other = f2.extension(common, one), f2.extension(common, other)
    outside = f2.extension((*one, *other), space)
    paired = min(len(only_one), len(only_other))
    mixed = [a ^ b for a, b in zip_longest(only_one, only_other, fillvalue=0)]
    # From no conflict to the worst: outside both, the vectors a + b of the proof, conflicts on one
    # side, conflicts on both.
    preferred = (*outside, *mixed[:paired], *mixed[paired:], *common, *space)
    return f2.extension(taken, preferred)[:count]
