"""Blocks and launch options of attention."""

from __future__ import annotations

from typing import Any

from tilewright.kernels.attention_arrays import Sizes, Variant
from tilewright.kernels.matmul_plan import HOPPER, current_gpu
from tilewright.runtime import cdiv
from tilewright.support import settings, thread_count

CPU_BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64}
_LARGE_CPU_BLOCK = {"BLOCK_M": 128, "BLOCK_N": 256}
"""Of queries and keys: 128 KiB of scores. At heads of 64 it takes 0.84 to 0.89 of the time of
64 x 64, half as many keys 0.87 to 0.89 (Zen 5, Emerald Rapids)."""

Tile = tuple[int, int, int, int]
"""Blocks of queries and of keys, warps, stages."""

_HOPPER_TILES: tuple[Tile, ...] = ((64, 128, 4, 2), (128, 128, 8, 2), (128, 64, 8, 2))
"""Products of 64 rows of a warpgroup, beside which the exponentials of other scores are computed:
of another program's where two fit on a multiprocessor, else of the other warpgroup's."""

_MOST_NUMBERS = 256
"""Of a key and a value together, for tiles of 64 queries: of longer ones products take so much more
time than exponentials that what counts is how often keys are read."""

_HOPPER_SHARED_BYTES = 227 << 10
_MOST_SUMS = 160
"""Of products, that a thread has at a time: above, what else it has would go to local memory."""

_THREE_PROGRAMS, _THREE_REGISTERS = _HOPPER_TILES[0], 168
"""Where three programs of a warpgroup fit, each with so many registers of a thread: while one waits
for its products, two others compute exponentials, and none needs operands for a product beside
them. On an H200 1.09 to 1.3 times as fast as two with fp8 and heads of 128, 1.03 to 1.09 times with
fp16 and heads of 64."""

_LANES_OF_ROW = 4
"""Of a product: parts of rows' sums, added up behind the loop, 2 to 3 % faster on an H200."""

_MOST_SUMS_OF_THREE = 128
_PROGRAM_BYTES = 1280
"""Of shared memory, beside tiles: what the system takes, and barriers."""

_SHARED_OF_ALL_BYTES = 228 << 10

_HOPPER_HEADS = range(33, 257)
"""Other rows take the tiles of all architectures."""

_BACKWARD_TILES: dict[tuple[int, int], tuple[Tile, Tile]] = {
    (64, 64): ((64, 64, 4, 2), (64, 128, 4, 2)),
    (96, 96): ((64, 64, 4, 2), (128, 128, 8, 2)),
    (128, 128): ((64, 128, 8, 2), (128, 128, 8, 2)),
    (192, 128): ((32, 128, 8, 2), (128, 64, 8, 2)),
}
"""For the gradients of keys and of queries, of elements of 16 bits, by sizes of rows of keys and
values, up to which they are taken: the fastest of seven on an H200; those of keys of 192 hold 160
sums in a thread."""

TURING = 75
"""Products take more registers there than behind it."""

_SHORT = 2048
"""Of sequences whose causal programs begin for longer than they are uneven: then blocks run several
even where others are resident beside them, 6 to 10 % faster on an H200 at a length of 1024, and 5
to 10 % slower with longer ones."""

_DIAGONAL, _DIAGONAL_TILE = 1024, (64, 64, 4, 2)
"""Up to which length of a causal sequence so many of its blocks of keys are half hidden that heads
of 64 take smaller ones, a program to a block: on an H200 15 % faster than those of longer ones. In
two stages four programs are resident, in three stages three, which is 9 % slower."""

_FEW_KEYS, _FEW_PAIRS = 1024, 2
"""Up to which length programs of full attention take turns among so many pairs of batch and head:
2 to 3 % faster on an H200, and as fast or 1 % slower with longer sequences."""

_CACHED_BYTES = 32 << 20
"""Of what programs read in common, which stays in the second-level cache of Hopper."""


def _hopper_tile(head: int, value: int, item_bytes: int) -> Tile:
    """The fastest of `_HOPPER_TILES` on an H200, at a length of 4096, with heads of 64, 96, 128,
    192/128 and 256: the first of which two programs, or one, fit; the last."""
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
    scores become weights by few registers more than they take.

    Elsewhere, up to heads of 128, they fit the 99 KB of shared memory that the smallest
    architectures have; fp32 with heads of 256 needs 139 KB, and spills.
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
    """Pairs of batch and head whose two arrays, such as keys and values, are read again from the
    cache: a power of two that divides their number."""
    fitting = max(_CACHED_BYTES // max(2 * length * row_bytes, 1), 1)
    return common_group(1 << fitting.bit_length() - 1, pairs)


def common_group(group: int, pairs: int) -> int:
    """The largest power of two up to one that divides a number of pairs, too."""
    return min(group, pairs & -pairs or 1)


MOST_PROGRAMS = 65535
"""Of a grid's second and third dims."""


def grid_of(blocks: int, pairs: int, group: int = 1) -> tuple[tuple[int, ...], int]:
    """The grid of `block_and_head`, and its GROUP: that asked for, or 0 if it is too small."""
    if pairs // group > MOST_PROGRAMS:
        return (pairs, blocks), 0
    return ((blocks, pairs) if group == 1 else (group, blocks, pairs // group)), group


def planned_launch(
    sizes: Sizes, item_bytes: int, on_cpu: bool, asked: Variant
) -> tuple[tuple[int, ...], dict[str, Any]]:
    """The grid of attention forward, its blocks and launch options."""
    options = launch_options(sizes, item_bytes, on_cpu, asked.right >= 0, asked.is_plain)
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
    """Blocks of attention forward: large ones where they do not leave threads idle, and square ones
    where later keys are hidden."""
    rows = _LARGE_CPU_BLOCK["BLOCK_M"]
    programs = cdiv(sizes.q_length, rows) * sizes.batch * sizes.heads
    most = _LARGE_CPU_BLOCK | ({"BLOCK_N": rows} if causal else {})
    most = most if programs >= threads else CPU_BLOCKS
    lengths = {"BLOCK_M": sizes.q_length, "BLOCK_N": sizes.k_length}
    return {name: min(size, _covering(lengths[name])) for name, size in most.items()}


def _covering(length: int) -> int:
    """The least power of two that is not below a length, 16 at least."""
    return max(16, 1 << (length - 1).bit_length())


def backward_options(
    sizes: Sizes, item_bytes: int, on_cpu: bool, causal: bool
) -> tuple[dict[str, int], dict[str, int]]:
    """Blocks and launch options of the kernels for the gradients of keys and of queries, with the
    group that `grid_of` is asked for."""
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
    """The same for a GPU. value: size of a row of values, `head` unless given."""
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
