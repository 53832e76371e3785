"""Blocks and launch options of attention, by the figures in
docs/adr/0066-tuning-of-ready-made-kernels.md."""

from __future__ import annotations

from typing import Any

from tilewright.kernels.attention_arrays import Sizes, Variant
from tilewright.kernels.matmul_plan import HOPPER, current_gpu
from tilewright.runtime import cdiv
from tilewright.support import settings, thread_count

CPU_BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64}
_LARGE_CPU_BLOCK = {"BLOCK_M": 128, "BLOCK_N": 256}
"""Blocks of queries and keys with 128 KiB of scores, which large caches hold."""

Tile = tuple[int, int, int, int]
"""Blocks of queries and of keys, warps, stages."""

_HOPPER_TILES: tuple[Tile, ...] = ((64, 128, 4, 2), (128, 128, 8, 2), (128, 64, 8, 2))
"""Tiles whose MMAs overlap with exponentials: of another program, where two fit on a
multiprocessor, else of the other warpgroup."""

_MOST_NUMBERS = 256
"""Most elements of a key and a value together for tiles of 64 queries: with longer rows, MMAs take
so much longer than exponentials that the number of times keys are read decides."""

_HOPPER_SHARED_BYTES = 227 << 10
_MOST_SUMS = 160
"""Most accumulator registers per thread: with more, other values spill to local memory."""

_THREE_PROGRAMS, _THREE_REGISTERS = _HOPPER_TILES[0], 168
"""The tile and registers per thread with which three programs of a warpgroup are resident: while
one waits for its MMAs, the others compute exponentials, and none overlaps MMAs with its own."""

_LANES_OF_ROW = 4
"""Lanes that hold a row of an accumulator: each adds up a part of the row's total until the loop
ends."""

_MOST_SUMS_OF_THREE = 128
_PROGRAM_BYTES = 1280
"""Shared memory of a program besides tiles: barriers, and the system's part."""

_SHARED_OF_ALL_BYTES = 228 << 10

_HOPPER_HEADS = range(33, 257)
"""Head sizes of Hopper's tiles; others use the tiles of all architectures."""

_BACKWARD_TILES: dict[tuple[int, int], tuple[Tile, Tile]] = {
    (64, 64): ((64, 64, 4, 2), (64, 128, 4, 2)),
    (96, 96): ((64, 64, 4, 2), (128, 128, 8, 2)),
    (128, 128): ((64, 128, 8, 2), (128, 128, 8, 2)),
    (192, 128): ((32, 128, 8, 2), (128, 64, 8, 2)),
}
"""Tiles for the gradients of keys and of queries in 16 bits, by the largest sizes of keys and
values: the fastest of seven. Those for keys of 192 hold 160 accumulator registers per thread."""

TURING = 75
"""Turing, whose MMAs need more registers than those of later architectures."""

_SHORT = 2048
"""Longest causal sequences with a persistent loop over programs even where several are resident:
the start of a program costs more than uneven lengths."""

_DIAGONAL, _DIAGONAL_TILE = 1024, (64, 64, 4, 2)
"""Longest causal sequences with smaller tiles for heads of 64, and without a persistent loop: many
of their blocks of keys are partly masked. With two stages four programs are resident."""

_FEW_KEYS, _FEW_PAIRS = 1024, 2
"""Longest sequences of full attention whose programs alternate among so many pairs of batch and
head."""

_CACHED_BYTES = 32 << 20
"""Bytes that programs read in common and that stay in Hopper's L2 cache."""


def _hopper_tile(head: int, value: int, item_bytes: int) -> Tile:
    """The fastest of `_HOPPER_TILES` with heads of 64, 96, 128, 192/128 and 256: the first with two
    resident programs, or one; else the last."""
    for programs, (m, n, warps, stages) in zip((2, 1), _HOPPER_TILES, strict=False):
        shared = item_bytes * (m * head + stages * n * (head + value))
        fits = programs * shared <= _HOPPER_SHARED_BYTES and (n + value) // 2 <= _MOST_SUMS
        if fits and (programs == 1 or head + value <= _MOST_NUMBERS):
            return m, n, warps, stages
    return _HOPPER_TILES[-1]


def _fit_three(head: int, value: int, item_bytes: int) -> bool:
    """Whether three programs of `_THREE_PROGRAMS` are resident."""
    m, n, _, stages = _THREE_PROGRAMS
    shared = item_bytes * (m * head + stages * n * (head + value)) + _PROGRAM_BYTES
    return 3 * shared <= _SHARED_OF_ALL_BYTES and (n + value) // 2 <= _MOST_SUMS_OF_THREE


def gpu_launch_options(
    head: int, item_bytes: int, capability: int = 0, value: int = 0, is_plain: bool = True
) -> dict[str, int]:
    """Blocks and launch options. value: size of a row of values, `head` unless given; is_plain:
    weights follow from scores with few further registers.

    On other architectures, tiles up to heads of 128 fit the 99 KB of shared memory of the smallest
    ones; fp32 with heads of 256 needs 139 KB, and spills.
    """
    value = value or head
    if capability == HOPPER and item_bytes <= 2 and max(head, value) in _HOPPER_HEADS:
        if is_plain and _fit_three(head, value, item_bytes):
            return _named(_THREE_PROGRAMS) | {"maxnreg": _THREE_REGISTERS, "PARTS": _LANES_OF_ROW}
        return _named(_hopper_tile(head, value, item_bytes))
    wide, head = item_bytes > 2, max(head, value)
    return {
        "BLOCK_M": 128 if head <= (32 if wide else 128) else 64,
        "BLOCK_N": 32 if wide or head > 128 else 64,
        "num_warps": 8 if capability == TURING or not wide and head > 64 else 4,
        "num_stages": 3 if head <= 64 else 2,
    }


def _group(pairs: int, length: int, row_bytes: int) -> int:
    """The number of pairs of batch and head whose two arrays, such as keys and values, fit the L2
    cache: a power of two that divides the number of pairs."""
    fitting = max(_CACHED_BYTES // max(2 * length * row_bytes, 1), 1)
    return common_group(1 << fitting.bit_length() - 1, pairs)


def common_group(group: int, pairs: int) -> int:
    """The largest power of two up to `group` that also divides a number of pairs."""
    return min(group, pairs & -pairs or 1)


MOST_PROGRAMS = 65535
"""Most programs of a grid's second and third dimensions."""


def grid_of(blocks: int, pairs: int, group: int = 1) -> tuple[tuple[int, ...], int]:
    """The grid of `block_and_head`, and its GROUP: the given one, or 0 if it is too small."""
    if pairs // group > MOST_PROGRAMS:
        return (pairs, blocks), 0
    return ((blocks, pairs) if group == 1 else (group, blocks, pairs // group)), group


def planned_launch(
    sizes: Sizes, item_bytes: int, on_cpu: bool, variant: Variant
) -> tuple[tuple[int, ...], dict[str, Any]]:
    """The grid of attention forward, its blocks and launch options."""
    options = launch_options(sizes, item_bytes, on_cpu, variant.right >= 0, variant.is_plain)
    blocks, pairs = cdiv(sizes.q_length, options["BLOCK_M"]), sizes.batch * sizes.heads
    grid, options["GROUP"] = grid_of(blocks, pairs, options.get("GROUP", 1))
    return grid, options


def launch_options(
    sizes: Sizes, item_bytes: int, on_cpu: bool, causal: bool, is_plain: bool = True
) -> dict[str, Any]:
    """Blocks and launch options of attention forward."""
    if on_cpu:
        threads = settings().cpu.threads or thread_count()
        return dict(cpu_launch_options(sizes, causal, threads))
    capability = current_gpu().capability
    options: dict[str, Any] = {
        **gpu_launch_options(sizes.head, item_bytes, capability, sizes.value, is_plain)
    }
    is_small = item_bytes == 2 and max(sizes.head, sizes.value) == 64
    if causal and capability == HOPPER and is_small and sizes.q_length <= _DIAGONAL:
        return options | _named(_DIAGONAL_TILE) | {"GROUP": 1, "persistent": False, "maxnreg": None}
    pairs = sizes.batch * sizes.heads
    if causal:
        options["GROUP"] = _group(pairs, sizes.k_length, sizes.head * item_bytes)
    elif capability == HOPPER and sizes.k_length <= _FEW_KEYS:
        options["GROUP"] = min(_FEW_PAIRS, pairs & -pairs or 1)
    if causal and capability == HOPPER and sizes.q_length <= _SHORT:
        options["persistent"] = True
    return options


def cpu_launch_options(sizes: Sizes, causal: bool, threads: int) -> dict[str, int]:
    """Blocks of attention forward: large ones unless threads would be idle, square ones if
    causal."""
    rows = _LARGE_CPU_BLOCK["BLOCK_M"]
    programs = cdiv(sizes.q_length, rows) * sizes.batch * sizes.heads
    most = _LARGE_CPU_BLOCK | ({"BLOCK_N": rows} if causal else {})
    most = most if programs >= threads else CPU_BLOCKS
    lengths = {"BLOCK_M": sizes.q_length, "BLOCK_N": sizes.k_length}
    return {name: min(size, _covering(lengths[name])) for name, size in most.items()}


def _covering(length: int) -> int:
    """The least power of two that is at least a length, and at least 16."""
    return max(16, 1 << (length - 1).bit_length())


def backward_options(
    sizes: Sizes, item_bytes: int, on_cpu: bool, causal: bool
) -> tuple[dict[str, int], dict[str, int]]:
    """Blocks and launch options of the kernels for the gradients of keys and of queries, with the
    group for `grid_of`."""
    if on_cpu:
        return CPU_BLOCKS | {"GROUP": 1}, CPU_BLOCKS | {"GROUP": 1}
    capability = current_gpu().capability
    keys, queries = gpu_backward_options(sizes.head, item_bytes, capability, sizes.value)
    pairs, row = sizes.batch * sizes.heads, sizes.head * item_bytes
    of_keys = _group(pairs // sizes.shared, sizes.q_length * sizes.shared, row) if causal else 1
    of_queries = _group(pairs, sizes.k_length, row) if causal else 1
    return keys | {"GROUP": of_keys}, queries | {"GROUP": of_queries}


def gpu_backward_options(
    head: int, item_bytes: int, capability: int, value: int = 0
) -> tuple[dict[str, int], dict[str, int]]:
    """`backward_options` for a GPU. value: size of a row of values, `head` unless given."""
    value = value or head
    on_hopper = capability == HOPPER and item_bytes == 2 and max(head, value) in _HOPPER_HEADS
    tiles = _BACKWARD_TILES.items() if on_hopper else ()
    found = next((tile for (h, v), tile in tiles if head <= h and value <= v), None)
    if found is not None:
        keys, queries = found
    else:
        head = max(head, value)
        block = 32 if item_bytes > 2 or head > 64 else 64
        keys = queries = (block, block, 8 if head > 64 or capability == TURING else 4, 2)
    return _named(keys), _named(queries)


def _named(tile: Tile) -> dict[str, int]:
    return dict(zip(("BLOCK_M", "BLOCK_N", "num_warps", "num_stages"), tile, strict=True))
