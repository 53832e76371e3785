"""The cheapest conversion of a tile from one register layout to another.

`plan` returns one of four plans, from the cheapest kind to the most expensive:

    Identity          nothing to do
    RegisterPermute   every thread renames its registers; no instruction at all
    WarpShuffle       values stay in their warp: rounds of shfl.idx (warp_shuffles.py)
    SharedMemory      store, synchronize, load, through a swizzled buffer (shared_conversion.py)

The last two are compared by the estimated issue slots and shared-memory passes of one warp. A plan
is complete: lowering emits it, and the tests execute it element by element.
"""

from functools import lru_cache

from tilewright.layout import f2
from tilewright.layout.element_sources import find_sources, normalized
from tilewright.layout.linear_layout import REGISTER, WARP, LinearLayout
from tilewright.layout.shared_access import SharedAccess
from tilewright.layout.shared_conversion import plan_shared_conversion
from tilewright.layout.warp_shuffles import Shuffles, plan_shuffles
from tilewright.support.data_class import dataclass

SYNC_COST, WARP_SYNC_COST = 24, 12
"""The cost of synchronization through memory, in the units of `SharedAccess.cost`: a barrier of all
warps or of one, and the latency that it exposes. Without it, small conversions would use memory,
not a few shuffles."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Both layouts put every element in the same hardware location."""

    @property
    def cost(self) -> int:
        """Nothing is emitted."""
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
    """Values move between the lanes of each warp in the rounds of ``exchange``."""

    exchange: Shuffles

    @property
    def cost(self) -> int:
        """A shuffle takes an issue slot and a pass through the shared-memory crossbar."""
        return 2 * self.exchange.shuffles + self.exchange.selects


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Values move through a buffer of ``bytes`` bytes in shared memory: ``store``, a barrier, then
    ``load``. ``shared`` maps the buffer's element offsets to the tile elements.

    With ``warp_local`` every warp reads only its own writes, provided that warps which hold copies
    store them as well: warp barriers suffice. Otherwise a thread whose lane or warp number has a
    bit of ``copies`` does not store, since another thread stores the same.
    """

    shared: LinearLayout
    store: SharedAccess
    load: SharedAccess
    bytes: int
    warp_local: bool
    copies: tuple[tuple[str, int], ...]

    @property
    def cost(self) -> int:
        """Issue slots and passes of one warp on both sides, plus the synchronization."""
        sync = WARP_SYNC_COST if self.is_inside_warps else SYNC_COST
        return self.store.cost + self.load.cost + sync

    @property
    def is_inside_warps(self) -> bool:
        """Whether each warp writes and reads bytes that no other warp accesses."""
        return self.warp_local and not any(mask for name, mask in self.copies if name == WARP)

    @property
    def degree(self) -> int:
        """The worse bank-conflict degree of the two sides; 1 is free of conflicts."""
        return max(self.store.degree, self.load.degree)


ConversionPlan = Identity | RegisterPermute | WarpShuffle | SharedMemory


@dataclass(frozen=True, slots=True)
class _Limits:
    """The element width and the instructions that a plan may use."""

    element_bits: int
    matrix_loads: bool
    matrix_stores: bool


@lru_cache(maxsize=4096)
def plan(
    src: LinearLayout,
    dst: LinearLayout,
    element_bits: int,
    *,
    matrix_loads: bool = True,
    matrix_stores: bool = False,
) -> ConversionPlan:
    """The cheapest conversion of a tile from layout ``src`` to layout ``dst``.

    ``element_bits`` is 8, 16, 32, 64 or 128; smaller elements are moved as bytes.
    ``matrix_loads`` and ``matrix_stores`` allow ldmatrix (sm_75 and up) and stmatrix (sm_90 and
    up). Both layouts map register, lane, warp (and block, which must agree) to the same tile.
    ValueError for other widths or for tiles that differ.
    """
    if element_bits not in (8, 16, 32, 64, 128):
        raise ValueError(f"elements of {element_bits} bits cannot be moved; use 8 to 128")
    if sorted(src.outs) != sorted(dst.outs):
        raise ValueError(f"{src} and {dst} do not describe the same tile")
    # Packed vectors are compared as numbers below, so both must have the same packing.
    if dst.outs != src.outs:
        dst = dst.reorder_outs(src.out_names)
    src, dst = normalized(src), normalized(dst)
    if src.ins[1:] != dst.ins[1:]:
        raise ValueError(f"{src} and {dst} differ in their number of lanes or warps")
    origin = find_sources(src, dst)
    if origin.register_only:
        return _register_plan(src, origin.register_from_register)
    exchange = plan_shuffles(origin, element_bits)
    limits = _Limits(element_bits, matrix_loads, matrix_stores)
    through_memory = _shared_plan(src, dst, limits, origin.warp_local)
    if exchange is None:
        return through_memory
    inside_warp = WarpShuffle(exchange)
    # at equal cost prefer shuffles, which take no shared memory and no barrier
    return inside_warp if inside_warp.cost <= through_memory.cost else through_memory


def _register_plan(src: LinearLayout, moves: f2.Matrix) -> Identity | RegisterPermute:
    chosen = tuple(f2.apply(moves, register) for register in range(1 << len(moves)))
    same = chosen == tuple(range(src.in_size(REGISTER)))
    return Identity() if same else RegisterPermute(chosen)


def _shared_plan(
    src: LinearLayout, dst: LinearLayout, limits: _Limits, warp_local: bool
) -> SharedMemory:
    whole = (1 << src.out_bits) * limits.element_bits // 8
    copies = tuple(item for item in src.free_masks().items() if item[0] != REGISTER)
    conversion = plan_shared_conversion(
        src,
        dst,
        limits.element_bits,
        matrix_loads=limits.matrix_loads,
        matrix_stores=limits.matrix_stores,
    )
    shared, store, load = conversion.shared, conversion.store, conversion.load
    return SharedMemory(shared, store, load, whole, warp_local, copies)
