"""The specification of a micro-kernel, its vector unit, and its register panels."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.backends.cpu.microkernel.function_text import Run
from tilewright.ir.types import DType, f32, f64, i32
from tilewright.llvm import TargetCpu, llvm_type, width_attributes
from tilewright.support import operating_system
from tilewright.support.data_class import dataclass

CACHE_LINE = 64  # bytes; also the alignment of scratch buffers
PANEL_VECTORS = 2  # vectors of columns in a full panel
ENOUGH_ACCUMULATORS = 16  # independent: a multiply-add takes 4 cycles in 2 (x86) or 4 (Arm) pipes
TILE_ROWS, TILE_ROW_BYTES = 16, 64  # of a register of AMX, at most
TILE_CONFIGURATION = bytes(
    (1, *[0] * 15, *[TILE_ROW_BYTES, 0] * 8, *[0] * 16, *[TILE_ROWS] * 8, *[0] * 8)
)
"""Palette 1, with all 8 registers of the largest size: the operand of ldtilecfg."""
UNROLL = 2  # steps of k in one iteration, where A is broadcast from memory
_MOST_PANEL_BYTES = 1 << 17  # of stack memory
_BYTES_OF_A_ROW = 1 << 10  # in a block of a matmul from memory
_MOST_SPLIT_ROWS = 1 << 8  # rows of a copy of A, each of that many bytes, on the stack
_MOST_KEPT_BYTES = 1 << 22  # of panels of B, and of rows of A, in L2 and L3 caches
KEY_NUMBERS = 24  # of caches: 4 of panels, 4 of which only the next slot is used, 4 of each slot
PAIR = 2  # tiles of A, and of B, in a panel: 4 accumulators and 4 operands are all 8 registers
PANEL_ROWS = PAIR * TILE_ROWS
ASSEMBLED_ROWS = 8  # of A in a panel: a general register each
KEPT_ROWS = 4  # groups of rows of A, as many as the tutorials have with tiles of 128 rows


class VectorUnit(NamedTuple):
    """The properties of a vector instruction set that shape the kernel."""

    bits: int  # width of one register
    registers: int  # architectural vector registers
    fma: bool  # fused multiply-add of floats
    lane_broadcast: bool  # a multiply-add can take one lane of a register as a scalar operand
    tiles: frozenset[str] = frozenset()  # elements (`DotSpec.element`) that AMX multiplies
    bursts: bool = False  # rows of B are prefetched in bursts
    scalable: bool = False  # SVE
    extrema: str = "num"  # see `Code`
    assembly: bool = False  # of AVX-512, for loops of `assembled_rows.py`

    @property
    def function_attributes(self) -> str:
        """Attributes without which LLVM splits 512-bit vectors on CPUs for which it prefers 256
        bits."""
        return f"noinline nounwind {width_attributes(self.bits, self.scalable)}"


AVX512 = VectorUnit(512, 32, fma=True, lane_broadcast=False)
AVX2 = VectorUnit(256, 16, fma=True, lane_broadcast=False)
# fminnm of a signaling NaN and a number is a NaN, so LLVM's minnum is; minimumnum is the number
NEON = VectorUnit(128, 32, fma=True, lane_broadcast=True, extrema="imumnum")
# an instruction takes a lane only from its own 128 bits
SVE = VectorUnit(128, 32, fma=True, lane_broadcast=False, scalable=True, extrema="imumnum")
GENERIC = VectorUnit(128, 16, fma=False, lane_broadcast=False)  # SSE2, and any other 128 bits


class Element(NamedTuple):
    """The element type of a dot, and that of its accumulators.

    group: multiply-adds of one instruction in each lane of an accumulator, neighbours along K
    parts: the number of narrower numbers whose sum each element is, which are multiplied
    """

    bytes: int
    sum_type: DType
    group: int = 1
    parts: int = 1


ELEMENTS = {
    **{llvm_type(dtype): Element(dtype.bytes, dtype) for dtype in (f32, f64, i32)},
    "bfloat": Element(2, f32, group=2),
    "half": Element(2, f32, group=2, parts=2),
    "i8": Element(1, i32, group=4),
    "u8": Element(1, i32, group=4),
}
"""By LLVM's name; the two kinds of bytes are the left operand's, the right one is signed. Other
narrow types are converted when they are materialized."""


class Strides(NamedTuple):
    """Elements from one row of a scratch buffer to the next."""

    lda: int
    ldb: int
    ldc: int


@dataclass(frozen=True, slots=True)
class DotSpec:
    """One micro-kernel: C[m, n] = (C +) A[m, k] @ B[k, n] in scratch, C row-major

    element: "float", "double", "i32" (which wraps modulo 2**32); for units with 512 bits, n a
        multiple of 16 and k of 4: "bfloat", accumulated in float, and "i8" or "u8", in i32. "half"
        for tiles from memory: see `split_halves.py`.
    from_memory: A and B are matrices in memory: the function also takes the bytes from one row (or
        column) of A and of B to the next, the length along K, a multiple of `memory_step`, and the
        numbers of rows of A and columns of B, 1 at least; C beyond these is undefined. k is the
        depth of one copy.
    a_columns, b_columns: A or B is column-major: A only without groups, B only if n is a multiple
        of the lanes and k of as many groups.
    lda, ldb, ldc: elements from one row (or column) to the next; 0: those of `preferred_strides`.
    c_columns: columns of C that are stored together, all m rows of them before the next ones; 0:
        all. From memory: a multiple of `panel_columns`.
    aligned: the three buffers start at a multiple of 64 bytes.
    accumulate: add to C; otherwise C is only written, from memory unless a last argument (i1)
        requests an addition.
    """

    m: int
    n: int
    k: int
    element: str = "float"
    unit: VectorUnit = GENERIC
    lda: int = 0
    ldb: int = 0
    ldc: int = 0
    c_columns: int = 0
    aligned: bool = True
    accumulate: bool = True
    a_columns: bool = False
    b_columns: bool = False
    from_memory: bool = False

    def __post_init__(self) -> None:
        assert min(self.m, self.n, self.k) > 0, f"empty dot {self.m}x{self.n}x{self.k}"
        assert self.element in ELEMENTS, f"no micro-kernel multiplies {self.element}"
        lda, ldb, ldc = self.strides
        rows_of_a, rows_of_b = (
            (self.m if self.a_columns else self.k),
            (self.k if self.b_columns else self.n),
        )
        assert lda >= rows_of_a and ldb >= rows_of_b and ldc >= (self.c_columns or self.n), (
            f"rows overlap: {self}"
        )

    @property
    def operand(self) -> Element:
        return ELEMENTS[self.element]

    @property
    def type(self) -> DType:
        """The type of the accumulators."""
        return self.operand.sum_type

    @property
    def lanes(self) -> int:
        """Elements in one vector."""
        return self.unit.bits // 8 // self.type.bytes

    @property
    def fused(self) -> bool:
        """Multiply and add are one LLVM instruction."""
        return self.unit.fma and self.type.is_float

    @property
    def by_tiles(self) -> bool:
        """Whether AMX computes it, on whole tiles: of 16 rows of 64 bytes."""
        whole = (
            self.m % TILE_ROWS == self.n % TILE_ROWS == 0
            and self.k * self.operand.bytes % TILE_ROW_BYTES == 0
        )
        return whole and self.element in self.unit.tiles

    @property
    def is_assembled(self) -> bool:
        """Whether its loops over rows are written in assembly: see `assembled_rows.py`."""
        return self.from_memory and self.unit.assembly and self.element in ("float", "double")

    @property
    def may_fail(self) -> bool:
        """Whether the function returns that its result is right (i1); see `split_halves.py`."""
        return self.operand.parts > 1

    @property
    def keeps(self) -> bool:
        """Whether panels of B may be cached for the next matmul: see `tile_copies.py`. Not those
        whose copies give the start of accumulators."""
        return self.from_memory and (self.by_tiles or self.element != "i8")

    @property
    def panel_vectors(self) -> int:
        """Vectors of columns in a full panel.

        From memory the rows of A are read from the L3 cache where their lines evict each other from
        the L2: in panels of 8x2 vectors 8 bytes a cycle of fp64, more than a core of Intel's gets.
        Panels of 4x4 read half as much, and those of B take 32 KB then, as with other types
        (figures in ADR 0033).
        """
        wide = self.from_memory and self.type.bytes == 8 and self.unit.registers >= 32
        return 2 * PANEL_VECTORS if wide else PANEL_VECTORS

    @property
    def panel_columns(self) -> int:
        """Columns of a full panel."""
        return PANEL_ROWS if self.by_tiles else self.panel_vectors * self.lanes

    @property
    def packed_vectors(self) -> int:
        """Vectors of columns of B that are copied together: those of a panel.

        For tiles from memory two cache lines of each row: one line of a row, then one of the next,
        which is far away, is half as fast from an L3 cache, and tiles multiply as fast as copies
        arrive.
        """
        if not (self.from_memory and self.by_tiles) or self.b_columns:
            return self.panel_vectors
        most = 2 * CACHE_LINE // (self.operand.bytes * self.lanes)
        return min(most, 1 << ((self.n // self.lanes).bit_length() - 1))

    @property
    def line_groups(self) -> int:
        """Steps of k for which a cache line of a row of A holds the elements."""
        return CACHE_LINE // self.operand.bytes // self.operand.group

    @property
    def strides(self) -> Strides:
        """The given row strides, the preferred ones in place of zeros."""
        given = (self.lda, self.ldb, self.ldc)
        return Strides(*(x or y for x, y in zip(given, preferred_strides(self), strict=True)))


def packs_columns(spec: DotSpec) -> bool:
    """Whether the kernel of a dot could copy panels of a column-major B."""
    steps = spec.k // spec.operand.group
    panel = steps * spec.panel_vectors * spec.unit.bits // 8
    return spec.n % spec.lanes == 0 and steps % spec.lanes == 0 and panel <= _MOST_PANEL_BYTES


def memory_depth(spec: DotSpec) -> int:
    """K of the blocks of a matmul from memory: a panel of B then takes 32 KB."""
    return _BYTES_OF_A_ROW // (spec.operand.bytes * spec.operand.parts)


def kept_blocks(spec: DotSpec) -> int:
    """The number of blocks of K of which panels of B are cached."""
    block = spec.k * spec.n * spec.operand.bytes * spec.operand.parts
    return max(1, _MOST_KEPT_BYTES // block)


def kept_columns_bytes(spec: DotSpec) -> int:
    """Bytes of memory for the cached panels."""
    return kept_blocks(spec) * spec.k * spec.n * spec.operand.bytes * spec.operand.parts


def copied_bytes(spec: DotSpec) -> int:
    """Bytes of rows of A, whole panels of 32, in a block of K."""
    return -(-spec.m // PANEL_ROWS) * PANEL_ROWS * spec.k * spec.operand.bytes


def kept_rows_blocks(spec: DotSpec) -> int:
    """The number of blocks of K of which rows of A are cached: all or none; none if they are
    split."""
    return 0 if spec.may_fail else _MOST_KEPT_BYTES // KEPT_ROWS // copied_bytes(spec)


def kept_bytes(spec: DotSpec) -> int:
    """Bytes of memory for all cached data."""
    rows = KEPT_ROWS * kept_rows_blocks(spec) * copied_bytes(spec) if spec.by_tiles else 0
    return kept_columns_bytes(spec) + rows


def memory_step(spec: DotSpec) -> int:
    """The divisor of K of a matmul from memory; 0 if no micro-kernel computes it."""
    group = spec.operand.group
    if spec.may_fail and (spec.accumulate or spec.m > _MOST_SPLIT_ROWS or not spec.by_tiles):
        return 0
    # with lane broadcast a vector of A holds steps of K
    if spec.n % spec.lanes or (spec.a_columns and group > 1) or spec.unit.lane_broadcast:
        return 0
    return group if spec.by_tiles else group * UNROLL


def vector_unit(cpu: TargetCpu) -> VectorUnit:
    """The widest unit of `cpu` that has a row here.

    Prefetching rows of B in bursts is faster on Zen, and slower on Intel, where they are prefetched
    in the loop over K.
    """
    return _widest_unit(cpu)._replace(bursts=cpu.name.startswith("znver"))


def _widest_unit(cpu: TargetCpu) -> VectorUnit:
    if cpu.has_scalable_vectors:
        return SVE._replace(bits=cpu.vector_bits)
    if cpu.is_arm64:
        return NEON
    if cpu.vector_bits == AVX512.bits:
        kinds = {"bf16": ("bfloat", "half"), "int8": ("i8", "u8")}
        tiles = frozenset(e for kind in cpu.tile_dots for e in kinds[kind])
        # written for the calling convention of every other system
        assembly = cpu.has_assembler and not operating_system.IS_WINDOWS
        return AVX512._replace(tiles=tiles, assembly=assembly)
    return AVX2 if cpu.vector_bits == AVX2.bits and cpu.has_fma else GENERIC


def preferred_strides(spec: DotSpec) -> Strides:
    """Row strides that keep vectors inside cache lines and a B panel spread over the L1 sets

    Rows are rounded up to whole vectors. A row of B wider than a panel is made an odd number of
    cache lines: a panel reads two lines of each row, and rows 1 KiB apart would put all of them
    into 8 of the 64 sets, which hold 12 lines each (8 on older cores).
    """
    lanes, line = spec.lanes, CACHE_LINE // spec.operand.bytes
    across_a, across_b = (
        (spec.m if spec.a_columns else spec.k),
        (spec.k if spec.b_columns else spec.n),
    )
    wide = lanes if spec.operand.group == 1 else line
    lda, ldb = (-(-columns // wide) * wide for columns in (across_a, across_b))
    ldc = -(-spec.n // lanes) * lanes
    if ldb > PANEL_VECTORS * lanes or spec.b_columns:
        ldb = (-(-ldb // line) | 1) * line
    return Strides(lda, ldb, ldc)


def panel_rows(spec: DotSpec, vectors: int) -> int:
    """Rows of a panel `vectors` wide: as many as fit into the registers, or a power of two

    Registers hold rows x vectors accumulators, the vectors of B, and the broadcast scalar (for a
    unit with lane broadcast: a vector of A for each row). Unfused multiply-adds need room for two
    rows, or LLVM's scheduler makes them spill. A power of two is taken if it still gives enough
    independent accumulators to hide the latency of a multiply-add.
    """
    lane = spec.unit.lane_broadcast
    temporaries = 0 if spec.fused else 2 * vectors
    free = spec.unit.registers - vectors - (not lane) - temporaries
    most = free // (vectors + lane)
    if spec.is_assembled:
        most = min(most, ASSEMBLED_ROWS)
    even = 1 << (most.bit_length() - 1)
    return even if even * vectors >= ENOUGH_ACCUMULATORS else most


def row_runs(spec: DotSpec, vectors: int) -> tuple[Run, ...]:
    """M divided into the fewest panels, whose sizes differ by at most one."""
    # Nearly equal sizes: a short last panel would have too few independent accumulators.
    panels = -(-spec.m // panel_rows(spec, vectors))
    size, larger = divmod(spec.m, panels)
    return tuple(run for run in (Run(larger, size + 1), Run(panels - larger, size)) if run.times)


def column_runs(spec: DotSpec) -> tuple[Run, ...]:
    """Panels over the whole vectors of N, as wide as one copy; the rest of N is not covered."""
    panel = spec.panel_vectors
    full, rest = divmod(spec.n // spec.lanes, spec.packed_vectors)
    runs = (Run(full, spec.packed_vectors), Run(rest // panel, panel), Run(1, rest % panel))
    return tuple(run for run in runs if run.times * run.size)


def panel_shape(spec: DotSpec) -> tuple[int, int]:
    """Rows and vectors of columns of the usual panel; no vectors where N is less than one."""
    runs = column_runs(spec)
    vectors = min(runs[0].size, spec.panel_vectors) if runs else 0
    return (row_runs(spec, vectors)[0].size, vectors) if vectors else (spec.m, 0)


def are_whole_panels(spec: DotSpec, rows: int) -> bool:
    """Whether panels of a matmul end after its first `rows` rows."""
    runs = [row_runs(spec, columns.size) for columns in column_runs(spec)]
    return all(len(run) == 1 and rows % run[0].size == 0 for run in runs)
