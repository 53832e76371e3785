"""Plans of matmuls: tiles, warps, and parts of K.

On Hopper the tile is chosen by a model of the time that each would take, whose constants are fitted
to measurements (docs/adr/0066-tuning-of-ready-made-kernels.md); elsewhere it is the same for all
sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tilewright.llvm import host_cpu
from tilewright.runtime import cdiv, driver
from tilewright.support import settings, thread_count

HOPPER = 90


@dataclass(frozen=True, slots=True)
class Tile:
    """A block of the result.

    speed: of one multiprocessor on such blocks, relative to `FLOPS_PER_US`; depth: bytes along K in
    one step; resident: programs per multiprocessor, 0 for a persistent loop over programs that
    loads for the next one while it stores
    """

    m: int
    n: int
    warps: int
    stages: int
    speed: float
    depth: int = 128
    resident: int = 0


TILES = (
    Tile(16, 64, 4, 5, 0.20, 256, 2),
    Tile(128, 128, 4, 4, 1.08),
    Tile(256, 128, 8, 3, 1.07),
    Tile(128, 256, 8, 3, 1.05),
    Tile(64, 256, 4, 4, 1.03),
    Tile(64, 128, 4, 3, 0.90, 256),
    Tile(128, 64, 4, 3, 0.88, 256),
    Tile(64, 64, 4, 3, 0.70, 512),
    Tile(64, 64, 4, 4, 0.50),
)
"""Tiles for operands of 8 and 16 bits, by wgmma; the first is for a few rows, by mma.sync, with
many bytes in flight."""

ROUNDED_TILES = (
    Tile(16, 64, 4, 5, 0.20, 128, 2),
    Tile(256, 128, 8, 3, 1.12),
    Tile(128, 256, 8, 4, 1.10),
    Tile(128, 128, 8, 4, 1.09),
    Tile(64, 64, 4, 4, 0.55),
)
"""Tiles for fp32 as tf32."""

WEIGHT_TILES = (
    Tile(16, 64, 4, 4, 0.10, 128, 2),
    Tile(128, 128, 4, 4, 0.92),
    Tile(256, 128, 8, 3, 0.87),
    Tile(64, 128, 4, 4, 0.60),
    Tile(64, 64, 4, 4, 0.45),
)
"""Tiles for integer weights, which are converted in registers."""

GROUP_TILES = (
    Tile(16, 64, 4, 5, 0.20, 256, 2),
    Tile(128, 256, 8, 3, 1.00, resident=1),
    Tile(128, 128, 4, 4, 0.90, resident=1),
    Tile(64, 128, 4, 4, 0.80, resident=2),
    Tile(64, 64, 4, 4, 0.60, resident=2),
)
"""Tiles for grouped matmuls, whose operands are loaded by threads: their addresses are in
memory."""

FEW_ROWS = 16
SMALL = 64 * 64 * 128
"""Largest product of a block's elements and a step's bytes that leaves registers for the addresses
of single elements."""

SPLITS = (1, 2, 3, 4, 6, 8, 12, 16)
STEPS_OF_A_PART = 4
FLOPS_PER_US = 4.85e6
"""Operations of one multiprocessor per microsecond at speed 1, in fp16; inversely proportional to
the size of an element."""

BYTES_PER_US = 4.2e6
START_US = 2.2
"""Latency until the first operands arrive. Programs that share a multiprocessor start while others
compute."""

STORE_US = 0.9 / 2**14
"""Time to store an element of the last block."""

SECOND_LAUNCH_US = 2.5
ROWS_OF_A_GROUP = 1024
"""Rows of A that stay in the L2 cache while a group of programs runs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """options: of the launch, including blocks; parts: of K, reduced by a second kernel."""

    options: dict[str, int]
    parts: int = 1


CPU_BLOCKS = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP_M": 1}
"""Blocks with which the operands of one step fit a core's L2 cache."""

_GROUP_OF_TILES, _GROUP_OF_VECTORS = 8, 32
"""GROUP_M where packed B is reused by all blocks of a group: with AMX tiles, and with vectors."""

_KEPT_BYTES = 1 << 22
"""Most bytes of packed B that matmuls with vectors reuse: without them, groups read a block of rows
from the L2 cache again for each block of columns."""

_BLOCKS_OF_A_THREAD = 32
"""Least blocks per thread for groups: threads take their work in eighths, and reuse nothing
between them, so that each should have four blocks or more."""

_BYTES_AT_ONCE = 1 << 10
"""Bytes along K of one pass of AMX. With a longer K, rows of A are read, or packed, for each pass,
and 512 columns are better than 256 for large matmuls."""

_MOST_ROWS_OF_VECTORS = 128
"""Most rows of fp32 and fp64, of which 256 conflict in the L2 cache at power-of-two strides: see
`backends/cpu/lower/gemm_groups.py`."""

_DEPTH_STRIP = 24
"""Steps of K that take as long as the overhead of a block."""

_PANEL = (8, 32)
"""Rows and columns of a microkernel."""

_WORTH_THREADS = 1 << 20
"""Least multiply-adds for several threads: one core does 50 to 130 per nanosecond, and waking a
second thread takes 3 us."""


def is_worth_threads(m: int, n: int, k: int) -> bool:
    """Whether a matmul is divided among threads."""
    return m * n * k >= _WORTH_THREADS


def threads_for(m: int, n: int, k: int) -> int:
    """The number of threads of a matmul."""
    return settings().cpu.threads or thread_count() if is_worth_threads(m, n, k) else 1


@lru_cache(maxsize=256)
def blocks_for_threads(m: int, n: int, k: int, item_bytes: int, threads: int) -> Mapping[str, int]:
    """The blocks that cover a matmul in the least time, the smallest of those.

    Besides its multiplication, a block packs panels of B and reads A, which the model counts as
    additional rows and columns: many more for 8 and 16 bits, which AMX multiplies 13 times as fast,
    so that blocks are larger, up to 512 columns with a long K. Accumulators of fp64 are limited to
    128 KiB.
    """
    narrow = item_bytes <= 2
    tiles = narrow and bool(host_cpu().tile_dots)
    more_rows, more_columns = (64, 16) if narrow else (8, 4)
    long = k * item_bytes > _BYTES_AT_ONCE
    widest = 512 if tiles and long and _stays(m, n, (256, 512), threads) else 256
    most = 256 * widest if narrow else (1 << 17) // item_bytes
    tallest = 256 if narrow else _MOST_ROWS_OF_VECTORS
    blocks = [(x, y) for x in _powers(tallest) for y in _powers(widest)[:-1] if x * y <= most]

    def time(block: tuple[int, int]) -> float:
        down, across = cdiv(m, block[0]), cdiv(n, block[1])
        # time of edge blocks is proportional to their size
        rows = cdiv(m, _PANEL[0]) * _PANEL[0] + down * more_rows
        columns = cdiv(n, _PANEL[1]) * _PANEL[1] + across * more_columns
        return cdiv(down * across, threads) * rows * columns / (down * across)

    rows, columns = min(blocks, key=lambda block: (time(block), block[0] * block[1], block[0]))
    depth = min(_powers(64), key=lambda block: cdiv(k, block) * (block + _DEPTH_STRIP))
    found = CPU_BLOCKS | {"BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": depth}
    fits = tiles or k * columns * item_bytes <= _KEPT_BYTES
    group = _GROUP_OF_TILES if tiles else _GROUP_OF_VECTORS
    return found | {"GROUP_M": group} if fits and _stays(m, n, (rows, columns), threads) else found


def _stays(m: int, n: int, block: tuple[int, int], threads: int) -> bool:
    """Whether panels that a thread packs are reused by several blocks."""
    blocks = cdiv(m, block[0]) * cdiv(n, block[1])
    return threads == 1 or blocks >= _BLOCKS_OF_A_THREAD * threads


def _powers(largest: int) -> list[int]:
    """The powers of two from the largest on down to 16."""
    return [largest >> i for i in range(largest.bit_length() - 4)]


GPU_BLOCKS = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "GROUP_M": 8}

GPU_OPTIONS = {"num_warps": 4, "num_stages": 3}


@dataclass(frozen=True, slots=True)
class Gpu:
    """capability: such as 90; multiprocessors: the least number of concurrent programs."""

    capability: int
    multiprocessors: int


@lru_cache(8)
def gpu_of(device: int) -> Gpu:
    """The GPU of that number."""
    found = driver.active.utils.get_device_properties(device)
    arch = driver.active.get_current_target().arch
    return Gpu(arch if isinstance(arch, int) else 0, found["multiprocessor_count"])


def current_gpu() -> Gpu:
    """The current GPU, on which kernels are launched."""
    return gpu_of(driver.active.get_current_device())


def gpu_launch_options(item_bytes: int) -> dict[str, int]:
    """Blocks and launch options; elements of 32 bits need twice the warps to stay in registers,
    those of 64 bits smaller blocks."""
    if item_bytes > 4:
        return {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 16, "GROUP_M": 8} | GPU_OPTIONS
    return {**GPU_BLOCKS, **GPU_OPTIONS, "num_warps": 8 if item_bytes > 2 else 4}


def options_of(tile: Tile, item_bytes: int) -> dict[str, int]:
    """Blocks and launch options of a tile."""
    return {
        "BLOCK_M": tile.m,
        "BLOCK_N": tile.n,
        "BLOCK_K": tile.depth // item_bytes,
        "GROUP_M": ROWS_OF_A_GROUP // tile.m,
        "num_warps": tile.warps,
        "num_stages": tile.stages,
    }


@lru_cache(1024)
def plan_of(m: int, n: int, k: int, item_bytes: int, gpu: Gpu, aligned: bool = True) -> Plan:
    """The plan for a matmul of (m, k) by (k, n); only k may be zero.

    aligned: all operands are copied in units of 16 bytes; if not, they are loaded by elements, for
    whose addresses only small tiles leave registers
    """
    if gpu.capability != HOPPER or item_bytes > 4:
        return Plan(gpu_launch_options(item_bytes))
    choices = [
        (tile, parts)
        for tile in _tiles(m, item_bytes, aligned)
        for parts in SPLITS
        if parts == 1 or k * item_bytes >= parts * STEPS_OF_A_PART * tile.depth
    ]
    tile, parts = min(choices, key=lambda c: _us(m, n, k, item_bytes, gpu, *c))
    return Plan(options_of(tile, item_bytes), parts)


@lru_cache(256)
def options_of_group(
    sizes: tuple[tuple[int, int, int], ...], item_bytes: int, gpu: Gpu, aligned: bool
) -> dict[str, int]:
    """The launch options for a grouped matmul of sizes (m, n, k)."""
    if gpu.capability != HOPPER or item_bytes > 4:
        return gpu_launch_options(item_bytes) | {"num_warps": 8}
    tiles = GROUP_TILES if item_bytes <= 2 else ROUNDED_TILES
    tiles = _fitting(max(m for m, _, _ in sizes), tiles, aligned)
    tile = min(tiles, key=lambda tile: _us_of_group(sizes, item_bytes, gpu, tile))
    return options_of(tile, item_bytes)


@lru_cache(256)
def options_of_weights(
    m: int, n: int, k: int, item_bytes: int, gpu: Gpu, aligned: bool
) -> dict[str, int] | None:
    """The launch options for (m, k) by integer weights (k, n), in steps of 64 rows of weights; None
    where it is faster to convert all weights first, for an ordinary matmul."""
    if gpu.capability != HOPPER or item_bytes != 2:
        return gpu_launch_options(item_bytes) | {"BLOCK_K": 64, "num_warps": 8}
    inside = {t: _us(m, n, k, 2, gpu, t, 1) for t in _fitting(m, WEIGHT_TILES, aligned)}
    tile = min(inside, key=lambda tile: inside[tile])
    before = min(_us(m, n, k, 2, gpu, t, 1) for t in _tiles(m, 2, True))
    before += SECOND_LAUNCH_US + START_US + 3 * k * n / BYTES_PER_US
    return None if before < inside[tile] else options_of(tile, 2)


def _tiles(m: int, item_bytes: int, aligned: bool) -> list[Tile]:
    return _fitting(m, TILES if item_bytes <= 2 else ROUNDED_TILES, aligned)


def _fitting(m: int, tiles: tuple[Tile, ...], aligned: bool) -> list[Tile]:
    """The tiles that fit a number of rows and whose elements can be addressed."""
    return [
        tile
        for tile in tiles
        if (m <= FEW_ROWS or tile.m > FEW_ROWS)
        and (aligned or tile.m * tile.n * tile.depth <= SMALL)
    ]


def _us(m: int, n: int, k: int, item_bytes: int, gpu: Gpu, tile: Tile, parts: int) -> float:
    """Estimated microseconds: the busiest multiprocessor's work, or the memory traffic."""
    programs = cdiv(m, tile.m) * cdiv(n, tile.n) * parts
    rounds = cdiv(programs, gpu.multiprocessors)
    compute = rounds * tile.m * tile.n * k / parts * item_bytes / (FLOPS_PER_US * tile.speed)
    busy = min(1.0, programs / gpu.multiprocessors)
    memory = (m * k + k * n + m * n) * item_bytes / (BYTES_PER_US * busy)
    us = max(compute, memory) + _starts(tile, rounds) * _start_us(tile)
    return us if parts == 1 else us + SECOND_LAUNCH_US + 8 * parts * m * n / BYTES_PER_US


def _start_us(tile: Tile) -> float:
    return START_US + STORE_US * tile.m * tile.n


def _starts(tile: Tile, rounds: int) -> int:
    """The number of rounds that wait for their operands."""
    return cdiv(rounds, tile.resident) if tile.resident else 1


def _us_of_group(
    sizes: tuple[tuple[int, int, int], ...], item_bytes: int, gpu: Gpu, tile: Tile
) -> float:
    """Estimated microseconds of a group: evenly distributed, or the longest block alone."""
    each = FLOPS_PER_US * tile.speed / item_bytes
    start = _start_us(tile) / max(1, tile.resident)
    blocks = [
        (cdiv(m, tile.m) * cdiv(n, tile.n), tile.m * tile.n * k / each + start) for m, n, k in sizes
    ]
    spread = sum(count * us for count, us in blocks) / gpu.multiprocessors
    return spread + max(us for _, us in blocks)
