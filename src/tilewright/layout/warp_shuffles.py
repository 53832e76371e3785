"""Conversions inside a warp by rounds of ``shfl.idx``.

In one round every lane publishes one register and reads the one that some lane published.
Destination lane ``l`` needs for its register ``d`` the source register and source lane
(element_sources.py)

    s = A d + B l          A = register_from_register, B = register_from_lane
    m = C d + D l          C = lane_from_register,     D = lane_from_lane

If D is invertible, all lanes read from different lanes in a round ``d``, so each lane publishes one
register. Otherwise two lanes would need two registers of one lane, so lanes take their registers in
different orders: in round ``t`` lane ``l`` receives register ``d = t + F l``, with F chosen so that
D + C F maps lanes that need different registers to different lanes. Then the publisher's register
is a linear function of its lane as well, B + A F = G (D + C F), and the number of rounds stays at
one per register. The XOR of a register number with a function of the lane costs one select per
register for each bit of that function, before and after the shuffles.

Elements below 32 bits share a word where two registers always come from one lane.
"""

from tilewright.layout import f2
from tilewright.layout.element_sources import Sources
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class LaneMap:
    """An affine function of the lane number: ``constant`` XOR the bases of the lane's bits."""

    constant: int
    bases: f2.Matrix

    def __call__(self, lane: int) -> int:
        return self.constant ^ f2.apply(self.bases, lane)

    @property
    def is_constant(self) -> bool:
        """Whether all lanes get the same value."""
        return not any(self.bases)

    @property
    def is_own_lane(self) -> bool:
        """Whether each lane gets its own number."""
        return self.constant == 0 and self.bases == f2.unit(len(self.bases))


@dataclass(frozen=True, slots=True)
class ShuffleRound:
    """One exchange: lane ``l`` publishes register ``publish(l)``, and stores the
    register that lane ``source(l)`` published into its register ``receive(l)``. Where ``source`` is
    the lane itself no instruction is emitted.
    """

    publish: LaneMap
    source: LaneMap
    receive: LaneMap


@dataclass(frozen=True, slots=True)
class Shuffles:
    """All rounds of a conversion inside a warp.

    ``published[e]`` and ``received[e]`` are XORed to the register numbers of a round for the
    ``e``-th element of a word. ``words`` is the number of 32-bit exchanges
    of one round.
    """

    rounds: tuple[ShuffleRound, ...]
    published: tuple[int, ...]
    received: tuple[int, ...]
    words: int

    @property
    def shuffles(self) -> int:
        """The number of shfl instructions."""
        return self.words * sum(not r.source.is_own_lane for r in self.rounds)

    @property
    def selects(self) -> int:
        """The number of select instructions, for 32-bit registers."""
        if not self.rounds:
            return 0
        first = self.rounds[0]
        stages = f2.rank(first.publish.bases) + f2.rank(first.receive.bases)
        return self.words * len(self.rounds) * stages


def plan_shuffles(sources: Sources, element_bits: int) -> Shuffles | None:
    """The rounds for a conversion that is warp-local, or None where this scheme does not apply."""
    # All warps run the same rounds, so no register may depend on the warp.
    if not (sources.warp_local and sources.register_fixed):
        return None
    offsets = _staggering(sources)
    if offsets is None:
        return None
    across = _add(sources.lane_from_lane, f2.compose(sources.lane_from_register, offsets))
    required = _add(sources.register_from_lane, f2.compose(sources.register_from_register, offsets))
    publisher = _factor(required, across)
    if publisher is None:
        return None
    packed = _packable(sources, element_bits)
    own = sources.register_from_register
    rounds: list[ShuffleRound] = []
    for register in _rounds_over(packed, len(own)):
        lane = f2.apply(sources.lane_from_register, register)
        constant = f2.apply(own, register) ^ f2.apply(publisher, lane)
        rounds.append(
            ShuffleRound(
                LaneMap(constant, publisher), LaneMap(lane, across), LaneMap(register, offsets)
            )
        )
    together = 1 << len(packed)
    return Shuffles(
        tuple(rounds),
        tuple(f2.apply(f2.compose(own, packed), e) for e in range(together)),
        tuple(f2.apply(packed, e) for e in range(together)),
        max(1, element_bits // 32),
    )


def _staggering(sources: Sources) -> f2.Matrix | None:
    """F: the register offset of each lane bit, so that no lane publishes two registers in a
    round.

    Lane vectors that D maps to 0 and that need the same register are left: they read a broadcast.
    Each other one is mapped to another lane by a register of its own.
    """
    across, lanes = sources.lane_from_lane, len(sources.lane_from_lane)
    shift = max((column.bit_length() for column in across), default=0)
    # Stacked in one vector: the kernel is mapped to 0 by both matrices.
    both = [a | b << shift for a, b in zip(across, sources.register_from_lane, strict=True)]
    broadcast = f2.kernel(both)
    collide = f2.extension(broadcast, f2.kernel(across))
    reached = f2.Span(across)
    chosen: list[int] = []
    for register, column in enumerate(sources.lane_from_register):
        if len(chosen) < len(collide) and reached.add(column) is None:
            chosen.append(1 << register)
    if len(chosen) < len(collide):
        return None
    others = f2.extension((*collide, *broadcast), f2.unit(lanes))
    back = f2.inverse((*collide, *broadcast, *others))
    values = (*chosen, *(0,) * (lanes - len(chosen)))
    return f2.compose(values, back)


def _factor(required: f2.Matrix, across: f2.Matrix) -> f2.Matrix | None:
    """G with ``required == G @ across``; None if there is none."""
    # Lanes that read from one lane would need different registers of it.
    if any(f2.apply(required, vector) for vector in f2.kernel(across)):
        return None
    lanes = len(across)
    span = f2.Span((*across, *f2.unit(lanes)))
    preimages = [span.solve(1 << i) for i in range(lanes)]
    mask = (1 << lanes) - 1
    # The unit vectors only complete the span; their coefficients are free and dropped.
    return tuple(f2.apply(required, (x or 0) & mask) for x in preimages)


def _packable(sources: Sources, element_bits: int) -> f2.Matrix:
    """Destination register directions along which the source lane stays, as many as fill a word."""
    room = max(0, 5 - (element_bits.bit_length() - 1))
    steady = f2.kernel(sources.lane_from_register)
    return tuple(sorted(steady, key=int.bit_count)[:room])


def _rounds_over(packed: f2.Matrix, bits: int) -> list[int]:
    """One register of each coset of the packed directions."""
    free = f2.extension(packed, f2.unit(bits))
    return [f2.apply(free, index) for index in range(1 << len(free))]


def _add(left: f2.Matrix, right: f2.Matrix) -> f2.Matrix:
    return tuple(a ^ b for a, b in zip(left, right, strict=True))
