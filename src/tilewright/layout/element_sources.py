"""The source location of each destination location: the first step of every conversion.

For every register, lane and warp of the destination some register, lane and warp of the source
hold the same element. Both are linear, so the map is one bit matrix, split into blocks by dims.
Among copies in the source, one in the same lane is preferred, then one in the same warp.
"""

from tilewright.layout import f2
from tilewright.layout.linear_layout import BLOCK, LANE, REGISTER, WARP, LinearLayout
from tilewright.support.data_class import dataclass

LOCATION = (REGISTER, LANE, WARP)


def normalized(layout: LinearLayout) -> LinearLayout:
    """The layout with exactly the input dims register, lane, warp. No value crosses
    the blocks of a cluster."""
    return layout.restrict(LOCATION) if layout.in_names != LOCATION else layout


@dataclass(frozen=True, slots=True)
class Sources:
    """Source register and lane of every destination location, as columns per destination bit.

    ``register_from_lane[i]`` is the contribution of destination lane bit ``i`` to the source
    register. ``warp_local``: no value comes from another warp.
    """

    register_from_register: f2.Matrix
    register_from_lane: f2.Matrix
    lane_from_register: f2.Matrix
    lane_from_lane: f2.Matrix
    warp_local: bool
    register_fixed: bool

    @property
    def lane_local(self) -> bool:
        """Whether every value comes from a register of the same lane."""
        same_lane = self.lane_from_lane == f2.unit(len(self.lane_from_lane))
        return self.warp_local and same_lane and not any(self.lane_from_register)

    @property
    def register_only(self) -> bool:
        """Whether all threads permute their registers in the same way."""
        return self.lane_local and self.register_fixed and not any(self.register_from_lane)


def find_sources(src: LinearLayout, dst: LinearLayout) -> Sources:
    """Source locations for two `normalized` layouts of one tile, with the same outputs in order.

    ``register_fixed`` is False when a warp bit changes the source register.
    """
    assert src.packed(BLOCK) == dst.packed(BLOCK), "conversions between the blocks of a cluster"
    # Registers come first, so solutions use lanes and warps only where registers do not suffice.
    span = f2.Span(src.columns)
    registers, lanes = len(src.packed(REGISTER)), len(src.packed(LANE))
    above = registers + lanes
    columns: list[int] = []
    for start, name in ((0, REGISTER), (registers, LANE), (above, WARP)):
        own = src.packed(name) if name != REGISTER else ()
        columns += [
            _source(span, vector, own[i] if i < len(own) else None, 1 << (start + i), start)
            for i, vector in enumerate(dst.packed(name))
        ]
    first, second = len(dst.packed(REGISTER)), len(dst.packed(LANE))
    low, lane_mask = (1 << registers) - 1, (1 << lanes) - 1
    of_register = columns[:first]
    of_lane = columns[first : first + second]
    of_warp = columns[first + second :]
    local = not any(c >> above for c in (*of_register, *of_lane)) and all(
        c >> registers == 1 << (lanes + i) for i, c in enumerate(of_warp)
    )
    return Sources(
        tuple(c & low for c in of_register),
        tuple(c & low for c in of_lane),
        tuple(c >> registers & lane_mask for c in of_register),
        tuple(c >> registers & lane_mask for c in of_lane),
        local,
        not any(c & low for c in of_warp),
    )


def _source(span: f2.Span, vector: int, own: int | None, own_bit: int, start: int) -> int:
    """A source location of ``vector``, in the same lane (warp) up to its registers (lanes) if
    possible."""
    location = span.solve(vector)
    assert location is not None, "the source does not hold every element that the destination needs"
    if own is None:
        return location
    near = span.solve(vector ^ own)
    # Only bits below `start`: registers (and lanes) of the same lane (warp) supply the rest.
    if near is not None and near >> start == 0:
        return near ^ own_bit
    return location
