"""The corpus: every kernel of `tilewright.kernels`, as its ready-made function launches it, the
matmul of the tutorials, and users' kernels (`tests/corpus/users`).

Each ready-made kernel has all its element types on one architecture, and some variants on all of
them. Users' kernels have all cases on the architectures `USERS_ON`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.corpus.users import FAMILIES
from tests.kernels.tutorial_matmul import tutorial_matmul
from tilewright.backends.nvidia.arch import ARCHITECTURES
from tilewright.kernels.attention import attention_kernel
from tilewright.kernels.attention_backward import keys_gradient_kernel, queries_gradient_kernel
from tilewright.kernels.attention_decode import decode_kernel, join_kernel
from tilewright.kernels.attention_descriptors import descriptor_attention_kernel
from tilewright.kernels.attention_plan import gpu_backward_options as backward_options
from tilewright.kernels.attention_plan import gpu_launch_options as attention_options
from tilewright.kernels.attention_score_gradients import (
    SCORE_GRADIENT_TILES,
    queries_product_kernel,
)
from tilewright.kernels.attention_values import ROUND, transpose_values_kernel
from tilewright.kernels.dropout import dropout_kernel
from tilewright.kernels.elementwise import add_kernel
from tilewright.kernels.grouped_matmul import grouped_matmul_kernel
from tilewright.kernels.matmul import CONFIGS, matmul_kernel, sum_parts_kernel
from tilewright.kernels.matmul_arrays import PLAIN, pack_kernel
from tilewright.kernels.matmul_plan import (
    GROUP_TILES,
    ROUNDED_TILES,
    TILES,
    WEIGHT_TILES,
    options_of,
)
from tilewright.kernels.matmul_plan import gpu_launch_options as matmul_options
from tilewright.kernels.norm import layer_norm_kernel
from tilewright.kernels.quantized_matmul import convert_kernel, quantized_matmul_kernel
from tilewright.kernels.softmax import row_options, softmax_ahead_kernel, softmax_kernel
from tilewright.kernels.transpose import transpose_kernel

HERE = 90
"""The architecture with all element types."""
USERS_ON = (80, 90, 120)
OPTIONS = (
    "num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "debug",
    "launch_cooperative_grid", "bulk_loads", "persistent", "ieee_rounding",
)  # fmt: skip
BYTES = {"fp64": 8, "i64": 8, "fp32": 4, "i32": 4, "fp16": 2, "bf16": 2}
"""Of element types that have not one."""

Words = dict[str, Any]


@dataclass(frozen=True)
class Variant:
    """One compilation.

    types: of the run-time parameters in order; `/16` marks a multiple of 16, `=1` a constant;
    words: compile-time parameters and launch options
    """

    capability: int
    label: str
    kernel: Any
    types: str
    words: tuple[tuple[str, Any], ...]

    @property
    def constants(self) -> Words:
        """The compile-time parameters."""
        return {name: value for name, value in self.words if name not in OPTIONS}

    @property
    def options(self) -> Words:
        """The launch options."""
        return {name: value for name, value in self.words if name in OPTIONS}


def _on(
    rows: Iterator[int] | tuple[int, ...], label: str, kernel: Any, types: str, words: Words
) -> Iterator[Variant]:
    for capability in rows:
        yield Variant(capability, label, kernel, types, tuple(words.items()))


def _rows(everywhere: bool) -> tuple[int, ...]:
    return tuple(ARCHITECTURES) if everywhere else (HERE,)


def _pointers(count: int, dtype: str) -> str:
    return " ".join([f"*{dtype}/16"] * count)


def _add() -> Iterator[Variant]:
    for dtype in "fp32 fp16 bf16 fp64 fp8e4nv fp8e5 i1 i8 i16 i32 i64 u8 u16 u32 u64".split():
        types = f"{_pointers(3, dtype)} i32/16"
        yield from _on(_rows(dtype in ("fp32", "fp16")), dtype, add_kernel, types, {"BLOCK": 1024})
    types = "*fp32 *fp32/16 *fp32/16 i32"
    yield from _on(_rows(False), "fp32 unaligned", add_kernel, types, {"BLOCK": 1024})


def _row_wise(kernel: Any, pointers: int, rest: str) -> Iterator[Variant]:
    sizes = {"fp32": (256, 1024, 4096, 16384, 32768), "fp16": (256, 4096, 32768)}
    for dtype in ("fp32", "fp16", "bf16", "fp64"):
        for size in sizes.get(dtype, (4096,)):
            everywhere = size >= 4096 if dtype == "fp32" else (dtype, size) == ("fp16", 4096)
            words = {"BLOCK": size, **row_options(size, BYTES[dtype])}
            types = f"{_pointers(pointers, dtype)} {rest}"
            yield from _on(_rows(everywhere), f"{dtype} {size}", kernel, types, words)


def _softmax() -> Iterator[Variant]:
    yield from _row_wise(softmax_kernel, 2, "i32/16 i32/16 i32/16")
    words = {"BLOCK": 32768, **row_options(32768, 2)}
    types = f"{_pointers(2, 'fp16')} i32/8 i32/8 i32 i32/8"
    yield from _on(_rows(False), "fp16 32768 ahead", softmax_ahead_kernel, types, words)


def _layer_norm() -> Iterator[Variant]:
    yield from _row_wise(layer_norm_kernel, 4, "i32/16 i32/16 i32/16 fp32")


def _transpose() -> Iterator[Variant]:
    for dtype in "fp32 fp16 bf16 fp64 i8 fp8e4nv".split():
        types = f"{_pointers(2, dtype)} i32/16 i32/16 i32/16 i32/16"
        words = {"BLOCK_M": 64, "BLOCK_N": 64}
        yield from _on(_rows(dtype in ("fp32", "fp16")), dtype, transpose_kernel, types, words)


def _dropout() -> Iterator[Variant]:
    for dtype in "fp32 fp16 bf16 fp64".split():
        types = f"{_pointers(2, dtype)} i32/16 fp32 i32"
        yield from _on(_rows(dtype == "fp32"), dtype, dropout_kernel, types, {"BLOCK": 1024})


_MATMUL = "i32/16 i32/16 i32/16 i32/16 i32=1 i32/16 i32=1 i32/16 i32=1 fp32"


def _matmul() -> Iterator[Variant]:
    for dtype in "fp16 bf16 fp32 fp8e4nv fp8e5".split():
        types = f"{_pointers(3, dtype)} {_MATMUL}"
        words = {**matmul_options(BYTES.get(dtype, 1)), **PLAIN}
        yield from _on(_rows(dtype in ("fp16", "fp32")), dtype, matmul_kernel, types, words)
        if dtype == "fp8e4nv":
            yield from _on((80, 89, 120), dtype, matmul_kernel, types, words)
    types = f"{_pointers(3, 'fp16')} {_MATMUL}"
    words = {**matmul_options(2), **PLAIN, "ACTIVATION": "leaky_relu"}
    yield from _on(_rows(False), "fp16 leaky", matmul_kernel, types, words)
    turned = types.replace(
        "i32/16 i32=1 i32/16 i32=1 i32/16 i32=1", "i32=1 i32/16 " * 2 + "i32/16 i32=1"
    )
    yield from _on(
        _rows(False),
        "fp16 transposed",
        matmul_kernel,
        turned,
        matmul_options(2) | PLAIN,
    )
    for config in CONFIGS:
        words = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
        blocks = "x".join(str(words[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
        yield from _on(_rows(False), f"fp16 {blocks}", matmul_kernel, types, words | PLAIN)

    types = f"{_pointers(3, 'fp64')} {_MATMUL}"
    yield from _on(_rows(True), "fp64", matmul_kernel, types, matmul_options(8) | PLAIN)
    yield from _planned()
    parts = "*fp32/16 *fp16/16 i32/16 i32/16 i32/16 i32=1 fp32 *fp16/16"
    words = {"BLOCK_M": 8, "BLOCK_N": 128, "PARTS": 4, "ACTIVATION": "gelu_tanh"}
    yield from _on(_rows(False), "fp16 sum of parts", sum_parts_kernel, parts, words)
    words = {"BLOCK_M": 64, "BLOCK_N": 64}
    for label, steps in {"rows": "i32 i32=1", "columns": "i32=1 i32"}.items():
        types = f"*fp16 *fp16/16 i32 i32 i32/16 {steps}"
        yield from _on(_rows(False), f"fp16 packed {label}", pack_kernel, types, words)


_ROWS, _COLUMNS = "i32/16 i32=1", "i32=1 i32/16"


def _planned() -> Iterator[Variant]:
    """What `matmul` chooses from on Hopper."""
    sizes = "i32/16 i32/16 i32/16"
    wrapping = PLAIN | {"WRAP": True}
    for dtype, out, tiles in (
        ("fp16", "fp16", TILES),
        ("fp8e4nv", "fp32", TILES),
        ("i8", "i32", TILES),
        ("fp32", "fp32", ROUNDED_TILES),
    ):
        b = _COLUMNS if BYTES.get(dtype, 1) == 1 else _ROWS
        types = f"*{dtype}/16 *{dtype}/16 *{out}/16 {sizes} {_ROWS} {b} {_ROWS} fp32"
        for tile in tiles:
            words = options_of(tile, BYTES.get(dtype, 1)) | wrapping
            label = f"{dtype} planned {tile.m}x{tile.n}x{words['BLOCK_K']}"
            yield from _on(_rows(False), label, matmul_kernel, types, words)
    large = options_of(TILES[1], 2) | wrapping
    types = f"{_pointers(3, 'fp16')} {_MATMUL}"
    for layout, of_a, of_b in (("a", _COLUMNS, _ROWS), ("b", _ROWS, _COLUMNS)):
        turned = f"{_pointers(3, 'fp16')} {sizes} {of_a} {of_b} {_ROWS} fp32"
        yield from _on(_rows(False), f"fp16 {layout} columns", matmul_kernel, turned, large)
    for activation in ("relu", "leaky_relu", "gelu_tanh", "silu"):
        words = large | {"ACTIVATION": activation}
        del words["bias_ptr"]
        fused = f"{types} *fp16/16"
        yield from _on(_rows(False), f"fp16 bias {activation}", matmul_kernel, fused, words)
    parts = types.replace("*fp16/16 i32", "*fp32/16 i32", 1)
    words = options_of(TILES[-1], 2) | wrapping | {"PARTS": 16}
    yield from _on(_rows(False), "fp16 parts", matmul_kernel, parts, words)
    loose = types.replace("i32/16", "i32")
    words = options_of(TILES[5], 2) | wrapping | {"UNITS": (8, 8, 8, 8, 1, 8, 1, 8, 1)}
    yield from _on(_rows(False), "fp16 multiples of 8", matmul_kernel, loose, words)
    words = options_of(TILES[-1], 2) | wrapping
    yield from _on(_rows(False), "fp16 unaligned 64x64", matmul_kernel, loose, words)


def _grouped_matmul() -> Iterator[Variant]:
    known = {"COUNT": 16, "UNITS": (False, True) * 3, "UNIT": 8, "ACTIVATION": ""}
    types = f"*i64/16 i32 {_pointers(3, 'fp16')} fp32"
    words = matmul_options(2) | {"num_warps": 8} | known
    yield from _on(_rows(True), "fp16", grouped_matmul_kernel, types, words)
    for tile in GROUP_TILES:
        words = options_of(tile, 2) | known
        label = f"fp16 planned {tile.m}x{tile.n}"
        yield from _on(_rows(False), label, grouped_matmul_kernel, types, words)
    words = options_of(GROUP_TILES[-1], 2) | known | {"UNIT": 1, "UNITS": (False,) * 6}
    yield from _on(_rows(False), "fp16 unaligned", grouped_matmul_kernel, types, words)


def _quantized_matmul() -> Iterator[Variant]:
    for bits, stored in {8: "i8", 4: "u8"}.items():
        for scales, group in {"a column": 0, "128 rows": 128}.items():
            types = f"*fp16/16 *{stored}/16 *fp16/16 *fp16/16 {_MATMUL}"
            known = {
                "bias_ptr": None,
                "ACTIVATION": "",
                "BITS": bits,
                "GROUP_K": group,
                "WRAP": False,
            }
            words = matmul_options(2) | {"BLOCK_K": 64, "num_warps": 8} | known
            label = f"{bits} bits, {scales}"
            yield from _on(_rows(True), label, quantized_matmul_kernel, types, words)
            for tile in WEIGHT_TILES:
                words = options_of(tile, 2) | known | {"WRAP": True}
                planned = f"{label}, planned {tile.m}x{tile.n}"
                yield from _on(_rows(False), planned, quantized_matmul_kernel, types, words)
            words = {"BLOCK_K": 64, "BLOCK_N": 64, "BITS": bits, "GROUP_K": group}
            types = f"*{stored}/16 *fp16/16 *fp16/16 i32/16 i32/16 i32/16 i32=1"
            yield from _on(_rows(False), f"{label}, converted", convert_kernel, types, words)


def _tutorial() -> Iterator[Variant]:
    blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}
    words = blocks | {"EVEN_K": False, "num_warps": 8, "num_stages": 3}
    for label, b in {"fp16 b rows": "i32/16 i32=1", "fp16 b columns": "i32=1 i32/16"}.items():
        types = f"{_pointers(3, 'fp16')} i32/16 i32/16 i32/16 i32/16 i32=1 {b} i32/16 i32=1"
        yield from _on(_rows(True), label, tutorial_matmul, types, words)


_STEP = "i32/16 "
_ATTENTION_REST = f"{_STEP * 5} i32 {_STEP * 2} fp32 i32 i32"
_ATTENTION = f"{'*fp32 ' * 3} {_STEP * 9} i32=1 {_ATTENTION_REST}"
_TURNED_ATTENTION = f"{'*fp32 ' * 3} {_STEP * 8} i32=1 i32/16 {_ATTENTION_REST}"
"""With columns of values that follow each other."""


def _attention() -> Iterator[Variant]:
    for dtype, heads in {"fp16": (32, 64, 128, 256), "bf16": (64,), "fp32": (32, 64, 128)}.items():
        types = f"{_pointers(4, dtype)} {_ATTENTION}"
        for head in heads:
            label, rows = f"{dtype} {head} causal", _rows(head == 64 and dtype != "bf16")
            yield from _attention_on(rows, label, types, head, BYTES[dtype], True)
        rows = _rows(dtype == "fp16")
        yield from _attention_on(rows, f"{dtype} 64", types, 64, BYTES[dtype], False)
    types = f"{_pointers(4, 'fp16')} {_ATTENTION}"
    yield from _attention_on((HERE,), "fp16 128", types, 128, 2, False)
    for head, value in ((80, 80), (96, 96), (192, 128)):
        yield from _attention_on((HERE,), f"fp16 {head} {value}", types, head, 2, False, value)
    types = f"{_pointers(3, 'fp8e4nv')} *fp16/16 {_TURNED_ATTENTION}"
    for head, value in ((64, 64), (96, 96), (128, 128), (192, 128), (256, 256)):
        yield from _attention_on((HERE,), f"fp8e4nv {head} {value}", types, head, 1, False, value)
    types = types.replace("fp8e4nv", "fp8e5")
    yield from _attention_on((HERE,), "fp8e5 128", types, 128, 1, False)
    types = f"{_pointers(2, 'fp8e4nv')} *i32 {_STEP * 6} i32 i32 i32/16"
    for label, starts in (("turned", {"starts": None}), ("packed", {})):
        words = {"BLOCK_M": 128, "BLOCK_N": 128, "ROUND": ROUND, "num_warps": 8} | starts
        yield from _on((HERE,), f"fp8e4nv {label}", transpose_values_kernel, types, words)


def _attention_on(
    rows: tuple[int, ...], label: str, types: str, head: int, item_bytes: int, causal: bool,
    value: int = 0,
) -> Iterator[Variant]:  # fmt: skip
    value = value or head
    for capability in rows:
        words = _attention_words(capability, head, item_bytes, causal, value)
        words |= dict.fromkeys(("q_starts", "k_starts", "scales"))
        words["ROUND"] = ROUND if item_bytes == 1 else 1
        yield from _on((capability,), label, attention_kernel, types, words)


def _attention_words(
    capability: int, head: int, item_bytes: int, causal: bool, value: int
) -> Words:  # fmt: skip
    words = {"PARTS": 1} | attention_options(head, item_bytes, capability, value)
    words |= {"HEAD": head, "VALUE": value, "SHARED": 1, "LEFT": -1, "AT_END": False,
              "RIGHT": 0 if causal else -1, "DROPOUT": 0.0, "score_args": (), "SCORE": None,
              "lse_ptr": None, "GROUP": 8 if causal else 1}  # fmt: skip
    return words


def _attention_by_descriptors() -> Iterator[Variant]:
    for dtype, head, causal, rows in (
        ("fp16", 64, True, _rows(True)), ("fp16", 64, False, (HERE,)),
        ("fp16", 128, True, (HERE,)), ("fp16", 128, False, (HERE,)),
        ("bf16", 256, True, (HERE,)), ("fp32", 64, True, (HERE,)),
    ):  # fmt: skip
        types = f"{_pointers(4, dtype)} *fp32 {_STEP * 14} i32 {_STEP * 2} fp32 i32"
        label = f"{dtype} {head}{' causal' if causal else ''}"
        for row in rows:
            words = _attention_words(row, head, BYTES[dtype], causal, head)
            yield from _on((row,), label, descriptor_attention_kernel, types, words)


def _attention_backward() -> Iterator[Variant]:
    """The kernels for the gradients of keys and of queries."""
    rest = "i32/16 i32/16 i32 i32/16 i32/16 fp32 i32 i32"
    words = dict.fromkeys(("q_starts", "k_starts", "SCORE", "SLOPE"))
    words |= {"SHARED": 1, "LEFT": -1, "AT_END": False, "RIGHT": 0, "DROPOUT": 0.0,
              "score_args": (), "GROUP": 1}  # fmt: skip
    for dtype, head, value, rows in (
        ("fp16", 64, 64, _rows(True)), ("fp16", 128, 128, _rows(True)), ("fp32", 64, 64, (HERE,)),
        ("fp16", 96, 96, (HERE,)), ("fp16", 192, 128, (HERE,)),
    ):  # fmt: skip
        words |= {"HEAD": head, "VALUE": value}
        pointers = f"{_pointers(4, dtype)} *fp32/16 *fp32/16"
        keys = f"{pointers} {_pointers(2, dtype)} *i32 *i32 {'i32/16 ' * 18} {rest}"
        queries = f"{pointers} {_pointers(1, dtype)} *i32 *i32 {'i32/16 ' * 15} {rest}"
        for row in rows:
            of_keys, of_queries = backward_options(head, BYTES[dtype], row, value)
            label = f"{dtype} {head}"
            of_keys |= {"changes_ptr": None, "of_change": 0, "of_key": 0, "first": 0}
            of_keys["ROUND"] = of_keys["BLOCK_M"]
            yield from _on((row,), f"{label} keys", keys_gradient_kernel, keys, words | of_keys)
            yield from _on(
                (row,), f"{label} queries", queries_gradient_kernel, queries, words | of_queries
            )
            if row == HERE and dtype == "fp16" and head == 128:
                yield from _kept_changes(keys, head, words | of_keys | {"RIGHT": -1})


def _kept_changes(keys: str, head: int, words: Words) -> Iterator[Variant]:
    """The kernels of gradients with those of scores that are kept."""
    m, n, warps, stages = SCORE_GRADIENT_TILES[False]
    for name in ("changes_ptr", "of_change", "of_key", "first"):
        words.pop(name)
    types = f"{keys} *fp16/16 i32/16 i32/16 i32"
    yield from _on((HERE,), f"fp16 {head} keys, kept", keys_gradient_kernel, types,
                   words | {"ROUND": m})  # fmt: skip
    chosen = {name: words[name] for name in ("HEAD", "SHARED", "LEFT", "RIGHT", "AT_END", "GROUP")}
    chosen |= {"BLOCK_M": m, "BLOCK_N": n, "num_warps": warps, "num_stages": stages}
    types = f"{_pointers(3, 'fp16')} i32/16 i32/16 i32 {'i32/16 ' * 6} i32 i32/16 i32/16 fp32"
    yield from _on((HERE,), f"fp16 {head} product", queries_product_kernel, types, chosen)


def _attention_decode() -> Iterator[Variant]:
    """Four queries that share keys, in rows and in pages of 64; and the parts' sum."""
    step = "i32/16"
    arrays = f"{_pointers(3, 'fp16')} *fp32/16 *fp32/16 *i32/16"
    rest = f"{' '.join([step] * 9)} i32 {step} fp32"
    words = {"BLOCK_N": 64, "ROWS": 16, "SHARED": 4, "HEAD": 128, "VALUE": 128, "SPLITS": 4,
             "num_warps": 4, "num_stages": 3}  # fmt: skip
    for label, page, pages in (("rows", 0, {"pages_ptr": None}), ("pages", 64, {})):
        types = f"{arrays} *i32/16 {rest}"
        chosen = words | {"PAGE": page} | pages
        yield from _on(_rows(True), f"fp16 128 {label}", decode_kernel, types, chosen)
    joined = {"VALUE": 128, "SPLITS": 4, "PADDED": 4}
    types = f"*fp32/16 *fp32/16 {_pointers(1, 'fp16')}"
    yield from _on(_rows(True), "fp16 128 join", join_kernel, types, joined)


def _users(family: str) -> Iterator[Variant]:
    for case in FAMILIES[family]:
        for capability in USERS_ON:
            yield Variant(capability, case.label, case.kernel, case.types, case.words)


READY_MADE = {
    "add": tuple(_add()),
    "attention": tuple(_attention()),
    "attention_backward": tuple(_attention_backward()),
    "attention_by_descriptors": tuple(_attention_by_descriptors()),
    "attention_decode": tuple(_attention_decode()),
    "dropout": tuple(_dropout()),
    "grouped_matmul": tuple(_grouped_matmul()),
    "layer_norm": tuple(_layer_norm()),
    "matmul": tuple(_matmul()),
    "quantized_matmul": tuple(_quantized_matmul()),
    "softmax": tuple(_softmax()),
    "transpose": tuple(_transpose()),
    "tutorial": tuple(_tutorial()),
}
"""Variants by the name of the ready-made function; `tutorial` is a kernel as users write it."""
USERS = {f"users/{family}": tuple(_users(family)) for family in FAMILIES}
CORPUS = READY_MADE | USERS
