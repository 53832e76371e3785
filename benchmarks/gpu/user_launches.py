"""Launches of the corpus of users' kernels: a grid and arguments for each kernel.

A tensor is given by its shape, as `Of(...)` with other contents, or as `Out(...)`, which starts as
zeros; its dtype is that of the case. Sizes fill a large GPU for 20 to 500 us and
keep what a case says: multiples of 16, unit strides, or neither.
"""

# ruff: noqa: N803, E741 -- names as the kernels write them

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.corpus.users.case import Case

ELEMENTS = 1 << 25
PROGRAMS = 132


@dataclass(frozen=True)
class Of:
    """A tensor. fill: a name of `FILLS`, or a bound of random integers; a negative number: a
    multiple of it for each element."""

    shape: tuple[int, ...]
    fill: str | int = "normal"


class Out(Of):
    """A tensor that the kernel writes."""


@dataclass(frozen=True)
class Launch:
    """A grid, and the run-time arguments in the kernel's order."""

    grid: tuple[int, ...]
    arguments: tuple[Any, ...]


Recipe = Callable[[Case, Any], Launch]
RECIPES: dict[str, Recipe] = {}


class Words:
    """The compile-time values of a case as attributes; `odd(n)` is less where sizes are any."""

    def __init__(self, case: Case) -> None:
        self.__dict__.update(case.words)
        self.types = case.types.split()

    def odd(self, number: int, position: int) -> int:
        """A size that is a multiple of 16 only if the parameter at a position says so."""
        return number if self.types[position] != "i32" else number - 3


def launch_of(case: Case) -> Launch:
    """The launch of a case. Raises KeyError for a kernel without a recipe."""
    return RECIPES[case.kernel.fn.__name__](case, Words(case))


def is_uniform(case: Case) -> bool:
    """Whether all programs of a launch do the same, for want of a program number."""
    names = case.kernel.fn.__code__.co_names
    return "program_id" not in names


def recipe(*names: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Register a function of `Words` -> (grid, *arguments) for kernels of these names."""

    def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def build(case: Case, words: Any) -> Launch:
            grid, *arguments = function(words)
            return Launch(grid if isinstance(grid, tuple) else (grid,), tuple(arguments))

        RECIPES.update(dict.fromkeys(names, build))
        return function

    return register


# --- elements -------------------------------------------------------------------------------------


@recipe(
    "copy", "relu", "select_of_masked_load", "scaled", "convert", "to_integer", "there_and_back",
    "named_constants", "literals", "apply", "power", "gate", "update",
)  # fmt: skip
def elements(c: Any) -> Any:
    n = min(ELEMENTS, c.B << 16)
    return n // c.B, (n,), Out((n,)), n


@recipe("power_of_argument")
def power_of_argument(c: Any) -> Any:
    return (
        ELEMENTS // c.B,
        (ELEMENTS,),
        Out((ELEMENTS,)),
        ELEMENTS,
        3 if "i32" in c.types[3:] else 2.5,
    )


@recipe("grid_stride")
def grid_stride(_: Any) -> Any:
    return 8 * PROGRAMS, (ELEMENTS,), Out((ELEMENTS,)), ELEMENTS


@recipe("quotient")
def quotient(c: Any) -> Any:
    return ELEMENTS // c.B, (ELEMENTS,), (ELEMENTS,), Out((ELEMENTS,)), ELEMENTS


@recipe("quotient_by_row", "scaled_by_squares")
def rows_without_stride(c: Any) -> Any:
    n, rows = c.B - 32, ELEMENTS // c.B
    return rows, (rows, n), Out((rows, n)), n


@recipe("gated_row")
def gated_row(_: Any) -> Any:
    return 4096, (4096, 11008), (4096, 11008), Out((4096, 11008)), 11008


@recipe("add_rows")
def add_rows(c: Any) -> Any:
    n = 131069
    return -(-n // c.M), Of((n,), 4096), (n, 128), Out((4096, 128)), n, 128


@recipe("embedding")
def embedding(_: Any) -> Any:
    return 8192, Of((8192,), 32000), (32000, 4096), Out((8192, 4096)), 4096


@recipe("in_place")
def in_place(_: Any) -> Any:
    return 8192, (8192, 4096), 4096, 4096


@recipe("block_pointers")
def block_pointers(c: Any) -> Any:
    return 8192 // c.M, (8192, 4096), Out((8192, 4096)), 8192, 4096


@recipe("three_dimensions")
def three_dimensions(_: Any) -> Any:
    return 8192, (8192, 7, 16, 32), Out((8192, 7, 16, 32)), 7, 16, 32


@recipe("gather")
def gather(c: Any) -> Any:
    n = 1 << 24
    return n // c.B, Of((n,), n), (n,), Out((n,)), n


@recipe("strided")
def strided(c: Any) -> Any:
    n = 1 << 23
    return n // c.B, (3 * n,), Out((n,)), c.odd(n, 2), 3


@recipe("window")
def window(c: Any) -> Any:
    h, w = 4093, 4093
    return -(-h * w // c.B), (h, w), Out((h, w)), h, w


@recipe("rotary_halves")
def rotary_halves(c: Any) -> Any:
    rows = 1 << 17
    half = (rows, c.D // 2)
    return rows // c.M, (rows, c.D), half, half, Out((rows, c.D)), c.D


# --- rows -----------------------------------------------------------------------------------------


@recipe("softmax", "layer_norm")
def norms(c: Any) -> Any:
    rows = ELEMENTS // c.B
    return rows, (rows, c.B), Out((rows, c.B)), c.B, c.B - 32


@recipe("below_maximum")
def below_maximum(c: Any) -> Any:
    rows = ELEMENTS // c.N
    return rows, (rows, c.N), Out((rows, c.N)), c.N


@recipe("quantize_row")
def quantize_row(_: Any) -> Any:
    return 8192, (8192, 4096), Out((8192, 4096)), Out((8192,)), 4096, 4096


@recipe("quantize_groups")
def quantize_groups(c: Any) -> Any:
    rows = 1 << 18
    return rows // c.M, (rows, c.B), Out((rows, c.B)), Out((rows,))


@recipe("dequantize_nibbles")
def dequantize_nibbles(c: Any) -> Any:
    n = 1 << 24
    return n // c.B, Of((n,), 255), (n // 16,), Out((2 * n,)), n


@recipe("dequantize_bytes")
def dequantize_bytes(c: Any) -> Any:
    n = 1 << 24
    return n // c.B, (n,), (n // 128,), Out((n,)), n


@recipe("reduced")
def reduced(c: Any) -> Any:
    programs = ELEMENTS // (c.M * c.N)
    kept = c.M if c.AXIS == 1 else c.N
    return programs, (programs * c.M, c.N), Out((programs, kept)), c.N


@recipe("argmax_of_row")
def argmax_of_row(c: Any) -> Any:
    rows = ELEMENTS // c.B
    return rows, (rows, c.B), Out((rows,)), c.B, c.B - 3


@recipe("sum_of_row")
def sum_of_row(_: Any) -> Any:
    return 8192, (8192, 4096), Out((8192,)), 4096, 4096


@recipe("weighted_rows")
def weighted_rows(c: Any) -> Any:
    return 2 * PROGRAMS, (4093,), (4093, c.N), Out((c.N,)), 4093, c.N


# --- scans ----------------------------------------------------------------------------------------


@recipe("cumsum")
def cumsum(c: Any) -> Any:
    step = 1 if c.types[2] == "i32=1" else 16
    programs = (1 << 24) // c.N
    return programs, (programs * c.N * step,), Out((programs, c.N)), step


@recipe("cumsum_of_tile")
def cumsum_of_tile(c: Any) -> Any:
    return 8192, (c.M, 64), Out((c.M, 64)), 64


@recipe("running_sum")
def running_sum(_: Any) -> Any:
    return PROGRAMS, (16384,), Out((16384,)), 16384


@recipe("recurrence")
def recurrence(c: Any) -> Any:
    shape = (1021, 8192)
    return 8192 // c.B, shape, Of(shape, "small"), Out(shape), *shape


@recipe("rolling_convolution")
def rolling_convolution(c: Any) -> Any:
    shape = (1021, 8192)
    return 8192 // c.B, shape, (8192, 3), Out(shape), 8192, 1021


# --- matmuls --------------------------------------------------------------------------------------

SIZE = 2048


def _tiles(c: Any, m: int = SIZE, n: int = SIZE) -> tuple[int, int]:
    return -(-m // c.BLOCK_M), -(-n // c.BLOCK_N)


@recipe("tutorial_matmul")
def tutorial_matmul(c: Any) -> Any:
    m, n, k = (c.odd(SIZE, place) for place in (3, 4, 5))
    step = 1 if "i32=1" in c.types else 2
    a, out = (k if step == 1 else 2 * k + 1, step), (n if step == 1 else 2 * n + 1, step)
    by_columns = c.types[8] == "i32=1"
    b = (1, k) if by_columns else out
    tiles_m, tiles_n = _tiles(c, m, n)
    return (
        tiles_m * tiles_n, Of((m, a[0]), "small"),
        Of((n, k) if by_columns else (k, b[0]), "small"), Out((m, out[0])), m, n, k, *a, *b, *out,
    )  # fmt: skip


_SQUARE = (SIZE, SIZE)
_A = Of(_SQUARE, "small")


@recipe("indexed_matmul", "masked_matmul", "peeled_matmul")
def bounded(c: Any) -> Any:
    return _tiles(c), _A, _A, Out(_SQUARE), SIZE, SIZE, SIZE, SIZE, SIZE, SIZE


@recipe("persistent_matmul", "wrapping_persistent_matmul", "while_persistent_matmul")
def persistent(c: Any) -> Any:
    return PROGRAMS, _A, _A, Out(_SQUARE), SIZE, SIZE, SIZE, SIZE, SIZE, SIZE


@recipe("stream_k_matmul")
def stream_k(c: Any) -> Any:
    tiles_m, tiles_n = _tiles(c)
    steps = tiles_m * tiles_n * (SIZE // c.BLOCK_K) // 128
    return 128, _A, _A, Out(_SQUARE), SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, steps


@recipe("batched_matmul")
def batched(c: Any) -> Any:
    n, batch = 1024, 8
    tensors = Of((batch, n, n), "small")
    return (
        (*_tiles(c, n, n), batch), tensors, tensors, Out((batch, n, n)), n, n, n,
        n * n, n * n, n * n, n, n, n,
    )  # fmt: skip


@recipe(
    "transposing_matmul", "downward_matmul", "prefetching_matmul", "while_matmul",
    "casting_matmul", "normalized_matmul",
)  # fmt: skip
def looped(c: Any) -> Any:
    return _tiles(c), _A, _A, Out(_SQUARE), SIZE, SIZE, SIZE, SIZE


@recipe("split_k_matmul")
def split_k(c: Any) -> Any:
    return (*_tiles(c), c.SPLITS), _A, _A, Out(_SQUARE), SIZE, SIZE, SIZE, SIZE


@recipe("skipping_matmul")
def skipping(c: Any) -> Any:
    live = Of((SIZE // c.BLOCK_K,), 2)
    return _tiles(c), _A, _A, live, Out(_SQUARE), SIZE, SIZE, SIZE, SIZE


@recipe("gated_matmul")
def gated(c: Any) -> Any:
    return _tiles(c), _A, _A, _A, Out(_SQUARE), SIZE, SIZE, SIZE, SIZE


@recipe("two_accumulators")
def two_accumulators(c: Any) -> Any:
    return _tiles(c), _A, _A, Out(_SQUARE), Out(_SQUARE), SIZE, SIZE, SIZE, SIZE


@recipe("low_rank_matmul")
def low_rank(c: Any) -> Any:
    down, up = Of((SIZE, c.RANK), "small"), Of((c.RANK, SIZE), "small")
    return _tiles(c), _A, _A, down, up, Out(_SQUARE), SIZE, SIZE, SIZE, c.RANK, SIZE


@recipe("two_layers")
def two_layers(c: Any) -> Any:
    rows, hidden, d = PROGRAMS * c.BLOCK_M, 4096, c.D
    return (
        PROGRAMS, (rows, d), Of((d, hidden), "small"), Of((hidden, d), "small"), Out((rows, d)),
        hidden, d, hidden, d, d,
    )  # fmt: skip


@recipe("block_scaled_matmul")
def block_scaled(c: Any) -> Any:
    groups = SIZE // c.GROUP
    scales = Of((SIZE, groups), "ones"), Of((groups, groups), "ones")
    return _tiles(c), _A, _A, *scales, Out(_SQUARE), SIZE, SIZE, SIZE, SIZE, groups, groups


@recipe("int4_matmul")
def int4(c: Any) -> Any:
    packed, scales = Of((SIZE // 8, SIZE), "bits"), Of((SIZE // c.GROUP, SIZE), "small")
    return _tiles(c), _A, packed, scales, Out(_SQUARE), SIZE, SIZE, SIZE, SIZE, SIZE


@recipe("joined_int4_matmul")
def joined_int4(c: Any) -> Any:
    packed = Of((SIZE, SIZE // 2), "bits")
    return _tiles(c), _A, packed, Out(_SQUARE), SIZE, SIZE, SIZE // 2, SIZE


@recipe("scaled_rows_matmul")
def scaled_rows(c: Any) -> Any:
    return _tiles(c), _A, _A, Of((SIZE,), "small"), Out(_SQUARE), SIZE, SIZE, SIZE, SIZE


@recipe("expert_matmul")
def experts(c: Any) -> Any:
    rows, top, count = 4096, 2, 8
    blocks = rows // c.BLOCK_M
    return (
        (blocks, SIZE // c.BLOCK_N), Of((rows // top, SIZE), "small"),
        Of((count, SIZE, SIZE), "small"), Out((rows, SIZE)), Of((rows,), "numbers"),
        Of((blocks,), count), rows - 3, SIZE, SIZE, top, SIZE, SIZE * SIZE, SIZE, SIZE,
    )  # fmt: skip


@recipe("block_sparse_matmul")
def block_sparse(c: Any) -> Any:
    rows, each = SIZE // c.BLOCK_M, 16
    starts = Of((rows + 1,), -each)
    blocks = Of((rows * each,), SIZE // c.BLOCK_K)
    return _tiles(c), _A, _A, Out(_SQUARE), starts, blocks, SIZE, SIZE, SIZE


@recipe("nested_convolution", "flat_convolution")
def convolution(c: Any) -> Any:
    h, w, channels, out = 130, 130, 256, 256
    weights = Of((9 * channels, out), "small")
    by_window = (channels * out,) if len(c.types) == 11 else ()
    return (
        _tiles(c, h * w, out), Of((h, w, channels), "small"), weights, Out((h * w, out)),
        h, w, channels, w * channels, channels, *by_window, out, out,
    )  # fmt: skip


@recipe("matmul")
def small_matmul(c: Any) -> Any:
    n = c.odd(1024, 3)
    stride = c.odd(1024, 6)
    tiles = -(-n // c.BM), -(-n // c.BN)
    return (
        tiles,
        Of((n, stride), "small"),
        Of((n, stride), "small"),
        Out((n, stride)),
        n,
        n,
        n,
        stride,
    )


def _one_tile(c: Any) -> tuple[int, int]:
    return c.M, 128


@recipe("one_dot")
def one_dot(c: Any) -> Any:
    tile = _one_tile(c)
    return 2048, tile, tile, Out(tile), 128


@recipe("chained")
def chained(c: Any) -> Any:
    tile = _one_tile(c)
    return 2048, tile, tile, tile, Out(tile), 128


@recipe("backward")
def backward(c: Any) -> Any:
    tile = _one_tile(c)
    return 2048, tile, tile, Of((c.M,), "decay"), Out(tile), Out(tile), 128


@recipe("low_rank_gates")
def low_rank_gates(c: Any) -> Any:
    tile = (c.T, 128)
    return 2048, tile, tile, tile, Of((c.T, c.R), "small"), Out(tile), 128


# --- attention ------------------------------------------------------------------------------------

HEADS, LENGTH = 32, 2048


@recipe("attention")
def attention(c: Any) -> Any:
    shape = (HEADS, LENGTH, c.HEAD)
    extra = {"segments": Of((LENGTH,), "segments"), "bias": Of((LENGTH, LENGTH), "small")}
    return (
        (LENGTH // c.BLOCK_M, HEADS), shape, shape, shape, Out(shape),
        extra.get(c.KIND, Of((1,), "ones")), LENGTH * c.HEAD, c.HEAD, LENGTH, 0.12, 5.5,
    )  # fmt: skip


@recipe("exp_attention", "two_loops_attention")
def plain_attention(c: Any) -> Any:
    shape = (HEADS, LENGTH, c.HEAD)
    grid = LENGTH // c.BLOCK_M, HEADS
    return grid, shape, shape, shape, Out(shape), LENGTH * c.HEAD, c.HEAD, LENGTH, 0.12


@recipe("paged_attention")
def paged_attention(c: Any) -> Any:
    sequences, heads, tokens = 16, 8, 32768
    rows = sequences * heads * c.ROWS
    cache = (tokens, heads * c.HEAD)
    entries = Of((sequences, c.WIDTH), tokens if c.BY_TOKEN else tokens // c.PAGE)
    lengths = Of((sequences,), "lengths")
    return (
        (sequences, heads), (rows, c.HEAD), cache, cache, entries, lengths, Out((rows, c.HEAD)),
        c.HEAD, c.PAGE * heads * c.HEAD, heads * c.HEAD, 0.12,
    )  # fmt: skip


@recipe("latent_attention")
def latent_attention(c: Any) -> Any:
    rows, tokens, width = 128 * c.ROWS, 8192, c.LATENT + c.ROTARY
    return (
        128, Of((rows, width), "small"), (tokens, width), Of((2048,), tokens),
        Out((rows, c.LATENT)), 2048, width, width, c.LATENT, 0.12,
    )  # fmt: skip


@recipe("linear_attention")
def linear_attention(c: Any) -> Any:
    tensors = Of((256, 1024, c.D), "small")
    return 256, tensors, tensors, tensors, Out((256, 1024, c.D)), 1024, c.D


@recipe("decayed_attention")
def decayed_attention(c: Any) -> Any:
    tensors, decay = Of((256, 1024, c.D), "small"), Of((256, 1024), "decay")
    return 256, tensors, tensors, tensors, decay, Out((256, 1024, c.D)), 1024, c.D


@recipe("gated_chunks")
def gated_chunks(c: Any) -> Any:
    tensors = Of((1024, c.D), "small")
    return 256, tensors, tensors, tensors, Of((1024, c.D), "decay"), Out((1024, c.D)), 1024, c.D


@recipe("chunk_scan")
def chunk_scan(c: Any) -> Any:
    chunk, head, state = 2048, 512, 128
    return (
        (chunk // c.M, head // c.N), Of((chunk, chunk), "small"), Of((chunk, head), "small"),
        Of((chunk,), "falling"), Of((chunk,), "ones"), Of((chunk, state), "small"),
        Of((head, state), "small"), Out((chunk, head)), chunk, head, state,
    )  # fmt: skip
