"""How a tile gets from one register layout to another, as cheaply as possible.

`plan` answers with one of four plans, tried from the cheapest kind to the dearest:

    Identity          nothing to do
    RegisterPermute   every thread renames its registers; no instruction at all
    WarpShuffle       values stay in their warp: rounds of shfl.idx (shuffle.py)
    SharedMemory      store, synchronize, load, through a swizzled buffer (staging.py, swizzle.py)

Between the last two the estimated issue slots and shared-memory passes of one warp decide. A plan
is a complete recipe: lowering only has to spell it, and the tests execute it element by element.
"""

from dataclasses import dataclass
from functools import lru_cache

from tilewright.layout.linear import LinearLayout
from tilewright.layout.places import normalized, sources
from tilewright.layout.shuffle import Shuffles, plan_shuffles
from tilewright.layout.staging import SharedAccess, plan_staging

SYNC_COST = 24
"""Cost of leaving the registers through memory: a barrier and the latency that it exposes, in the
units of `SharedAccess.cost`. Without it, small conversions would choose memory over a few
shuffles."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Both layouts put every element in the same place."""

    @property
    def cost(self) -> int:
        """Nothing happens."""
        return 0


@dataclass(frozen=True, slots=True)
class RegisterPermute:
    """Every thread's destination register ``i`` is its source register ``sources[i]``."""

    sources: tuple[int, ...]

    @property
    def cost(self) -> int:
        """Renaming costs nothing in SSA form; repacking of small elements is not counted."""
        return 0


@dataclass(frozen=True, slots=True)
class WarpShuffle:
    """Values travel between the lanes of each warp in the rounds of ``exchange``."""

    exchange: Shuffles

    @property
    def cost(self) -> int:
        """A shuffle takes an issue slot and a pass through the shared-memory crossbar."""
        return 2 * self.exchange.shuffles + self.exchange.selects


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Values travel through a buffer in shared memory.

    ``shared`` maps the element offset in the buffer to the tile. ``bytes`` is its size. With
    ``warp_local`` every warp reads only what it wrote itself, provided that warps which hold
    copies store them too: then a warp barrier suffices. ``store_masks`` names the register, lane
    and warp bits that must be 0 for a thread to be the one owner that stores an element.
    """

    shared: LinearLayout
    store: SharedAccess
    load: SharedAccess
    bytes: int
    warp_local: bool
    store_masks: tuple[tuple[str, int], ...]

    @property
    def cost(self) -> int:
        """Issue slots and passes of one warp on both sides, and the synchronization."""
        return self.store.cost + self.load.cost + SYNC_COST

    @property
    def degree(self) -> int:
        """The worse bank-conflict degree of the two sides; 1 is free of conflicts."""
        return max(self.store.degree, self.load.degree)


ConversionPlan = Identity | RegisterPermute | WarpShuffle | SharedMemory


@lru_cache(maxsize=4096)
def plan(
    src: LinearLayout,
    dst: LinearLayout,
    element_bits: int,
    *,
    matrix_loads: bool = True,
    matrix_stores: bool = False,
) -> ConversionPlan:
    """The cheapest way from layout ``src`` to layout ``dst`` of one tile.

    ``element_bits`` is 8, 16, 32, 64 or 128; smaller elements are moved as bytes.
    ``matrix_loads`` and ``matrix_stores`` allow ldmatrix (sm_75 and up) and stmatrix (sm_90 and
    up). Both layouts map register, lane, warp (and block, which must agree) to the same tile.
    ValueError for other widths or for tiles that differ.
    """
    if element_bits not in (8, 16, 32, 64, 128):
        raise ValueError(f"elements of {element_bits} bits cannot be moved; use 8 to 128")
    if sorted(src.outs) != sorted(dst.outs):
        raise ValueError(f"{src} and {dst} do not describe the same tile")
    if dst.outs != src.outs:
        dst = dst.reorder_outs(src.out_names)
    origin = src
    src, dst = normalized(src), normalized(dst)
    places = sources(src, dst)
    if places.register_only:
        return _register_plan(src, places.register_from_register)
    exchange = plan_shuffles(places, element_bits)
    through_memory = _shared_plan(
        origin, dst, element_bits, places.warp_local, matrix_loads, matrix_stores
    )
    if exchange is None:
        return through_memory
    inside_warp = WarpShuffle(exchange)
    return inside_warp if inside_warp.cost <= through_memory.cost else through_memory


def _register_plan(src: LinearLayout, moves: tuple[int, ...]) -> Identity | RegisterPermute:
    registers = src.in_size("register")
    from_register = LinearLayout((("to", len(moves)),), (("from", max(1, registers)),), moves)
    chosen = tuple(from_register.apply(to=i)[0] for i in range(1 << len(moves)))
    return Identity() if chosen == tuple(range(registers)) else RegisterPermute(chosen)


def _shared_plan(
    src: LinearLayout,
    dst: LinearLayout,
    element_bits: int,
    warp_local: bool,
    matrix_loads: bool,
    matrix_stores: bool,
) -> SharedMemory:
    staging = plan_staging(
        normalized(src),
        dst,
        element_bits,
        matrix_loads=matrix_loads,
        matrix_stores=matrix_stores,
    )
    return SharedMemory(
        staging.shared,
        staging.store,
        staging.load,
        (1 << src.out_bits) * element_bits // 8,
        warp_local,
        tuple(src.free_masks().items()),
    )
