"""The corpus: every kernel of `tilewright.kernels`, as its ready-made function launches it, and the
matrix product of the tutorials.

Each kernel has all its element types on one architecture, and some variants on all of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.kernels.tutorial_matmul import tutorial_matmul
from tilewright.backends.nvidia.arch import ARCHITECTURES
from tilewright.kernels.attention import attention_kernel
from tilewright.kernels.attention import gpu_launch_options as attention_options
from tilewright.kernels.dropout import dropout_kernel
from tilewright.kernels.elementwise import add_kernel
from tilewright.kernels.matmul import CONFIGS, matmul_kernel
from tilewright.kernels.matmul_plan import gpu_launch_options as matmul_options
from tilewright.kernels.norm import layer_norm_kernel
from tilewright.kernels.product import PLAIN
from tilewright.kernels.softmax import row_options, softmax_kernel
from tilewright.kernels.transpose import transpose_kernel

HERE = 90
"""The architecture with all element types."""
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "debug")
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
            everywhere = size == 4096 and dtype in sizes
            words = {"BLOCK": size, **row_options(size)}
            types = f"{_pointers(pointers, dtype)} {rest}"
            yield from _on(_rows(everywhere), f"{dtype} {size}", kernel, types, words)


def _softmax() -> Iterator[Variant]:
    yield from _row_wise(softmax_kernel, 2, "i32/16 i32/16 i32/16")


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
        matmul_options(2) | {**PLAIN},
    )
    for config in CONFIGS:
        words = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
        blocks = "x".join(str(words[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
        yield from _on(_rows(False), f"fp16 {blocks}", matmul_kernel, types, words | {**PLAIN})


def _tutorial() -> Iterator[Variant]:
    blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}
    words = blocks | {"EVEN_K": False, "num_warps": 8, "num_stages": 3}
    for label, b in {"fp16 b rows": "i32/16 i32=1", "fp16 b columns": "i32=1 i32/16"}.items():
        types = f"{_pointers(3, 'fp16')} i32/16 i32/16 i32/16 i32/16 i32=1 {b} i32/16 i32=1"
        yield from _on(_rows(True), label, tutorial_matmul, types, words)


def _attention() -> Iterator[Variant]:
    for dtype, heads in {"fp16": (32, 64, 128, 256), "bf16": (64,), "fp32": (32, 64, 128)}.items():
        types = f"{_pointers(4, dtype)} i32/16 i32/16 i32/16 fp32"
        for head in heads:
            words = {**attention_options(head, BYTES[dtype]), "HEAD": head, "CAUSAL": True}
            rows = _rows(head == 64 and dtype != "bf16")
            yield from _on(rows, f"{dtype} {head} causal", attention_kernel, types, words)
        words = {**attention_options(64, BYTES[dtype]), "HEAD": 64, "CAUSAL": False}
        yield from _on(_rows(dtype == "fp16"), f"{dtype} 64", attention_kernel, types, words)


CORPUS = {
    "add": tuple(_add()),
    "attention": tuple(_attention()),
    "dropout": tuple(_dropout()),
    "layer_norm": tuple(_layer_norm()),
    "matmul": tuple(_matmul()),
    "softmax": tuple(_softmax()),
    "transpose": tuple(_transpose()),
    "tutorial": tuple(_tutorial()),
}
"""Variants by the name of the ready-made function; `tutorial` is a kernel as users write it."""
