"""Layouts of whole kernels: coalesced accesses, few conversions, and none where none is needed."""

import re
from typing import Any

import pytest

import tilewright.language as tl
from tests.corpus.figures import source_of
from tests.corpus.variants import CORPUS, HERE, Variant
from tests.unit.backends.nvidia.compiled import bodies_of_loops, compiled, ops
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import compile, jit
from tilewright.backends import GPUTarget, StageContext
from tilewright.backends.nvidia.backend import BACKEND
from tilewright.ir import Module, print_module
from tilewright.layout import LANE, REGISTER, LinearLayout

pytestmark = needs_ptxas

CONVERSIONS = {
    "add": (0, 0),
    # what warps leave of their two reductions
    "softmax": (2, 0),
    "layer_norm": (2, 0),
    "dropout": (0, 0),
    "transpose": (1, 0),
    # the result, after its cast to fp16; products read the operands where copies put them
    "matmul": (1, 1),
    # the result; the queries are put into shared memory before the loop
    "attention": (1, 0),
}
"""In all, and of these inside loops."""

FIRST = {
    "matmul": "fp16",
    "attention": "fp16 64 causal",
    "softmax": "fp16 4096",
    "layer_norm": "fp16 4096",
}


TARGET = GPUTarget("cuda", HERE, 32)


def variant_of(name: str, label: str) -> Variant:
    return next(v for v in CORPUS[name] if v.capability == HERE and v.label == label)


def ttgir(name: str, label: str, target: GPUTarget = TARGET) -> str:
    variant = variant_of(name, label)
    return str(compile(source_of(variant), target, variant.options).asm["ttgir"])


@pytest.mark.parametrize("name", ["matmul", "attention"])
def test_text_with_layouts_and_buffers_is_read_again(name: str) -> None:
    """It satisfies the contract that code generation relies on."""
    text = ttgir(name, FIRST[name])
    options = BACKEND.options(**variant_of(name, FIRST[name]).options)
    stage = next(s for s in BACKEND.stages if s.extension == "ttgir")
    parsed = stage.parse(text, StageContext(TARGET, options))
    assert isinstance(parsed, Module)
    assert print_module(parsed) == text


def conversions_in(text: str) -> int:
    """Through registers, and through shared memory."""
    return ops(text)["nvidia.convert"] + ops(text)["nvidia.write"]


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions_are_few(name: str) -> None:
    text = ttgir(name, FIRST.get(name, "fp16"))
    assert (conversions_in(text), conversions_in(bodies_of_loops(text))) == CONVERSIONS[name]
    assert ops(bodies_of_loops(text))["nvidia.share"] == 0


@pytest.mark.parametrize(("name", "conversions"), [("matmul", (1, 0)), ("attention", (2, 0))])
def test_conversions_are_few_where_warps_multiply(name: str, conversions: tuple[int, int]) -> None:
    """Attention: of the queries before the loop, of the result after it."""
    text = ttgir(name, FIRST[name], GPUTarget("cuda", 80, 32))
    assert (conversions_in(text), conversions_in(bodies_of_loops(text))) == conversions


def test_a_conversion_comes_after_elementwise_code_that_makes_its_value_smaller() -> None:
    lines = [
        line for line in ttgir("matmul", "fp16 leaky").splitlines() if "in_warps = true" in line
    ]
    assert len(lines) == 1 and "xf16," in lines[0]


# --- coalescing -----------------------------------------------------------------------------------


@jit
def copy_tile(x, out, STRIDE_I: tl.constexpr, STRIDE_J: tl.constexpr, ROWS: tl.constexpr,
              COLUMNS: tl.constexpr):  # fmt: skip
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    place = i[:, None] * STRIDE_I + j[None, :] * STRIDE_J
    tl.store(out + place, tl.load(x + place))


def layout_of_load(**words: Any) -> LinearLayout:
    text = str(compiled(copy_tile, "*fp32/16 *fp32/16", **words).asm["ttgir"])
    found = re.search(r"= mem\.load .*: tile<[\dx]+xf32, (.*)>", text)
    assert found
    return LinearLayout.parse(found[1])


@pytest.mark.parametrize("rows, columns", [(64, 64), (16, 256), (256, 16)])
@pytest.mark.parametrize("contiguous", [0, 1])
def test_a_warp_reads_whole_lines_with_16_bytes_a_lane(
    rows: int, columns: int, contiguous: int
) -> None:
    """Along the dim that is contiguous in memory, whichever it is."""
    extent = (rows, columns)[contiguous]
    strides = (
        {"STRIDE_I": columns, "STRIDE_J": 1} if contiguous else {"STRIDE_I": 1, "STRIDE_J": rows}
    )
    layout = layout_of_load(ROWS=rows, COLUMNS=columns, **strides)
    at = [layout.apply(register=r)[contiguous] for r in range(4)]
    assert at == [0, 1, 2, 3]
    together = min(32, extent // 4)
    assert [layout.apply(lane=lane)[contiguous] for lane in range(together)] == [
        4 * lane for lane in range(together)
    ]
    assert layout.in_size(REGISTER) == rows * columns // 128
    assert layout.in_size(LANE) == 32


@pytest.mark.parametrize("columns, width", [(32, 1), (128, 1), (256, 2), (512, 4), (1024, 4)])
def test_small_tiles_are_shared_out_before_lanes_take_vectors(columns: int, width: int) -> None:
    layout = layout_of_load(ROWS=1, COLUMNS=columns, STRIDE_I=columns, STRIDE_J=1)
    run = 1
    while run < layout.in_size(REGISTER) and layout.apply(register=run)[1] == run:
        run *= 2
    assert run == width


# --- loops ----------------------------------------------------------------------------------------


@jit
def invariant(x, y, out, n):
    """A row of y is wanted in the layout of x, in each iteration the same."""
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    turned = tl.trans(tl.load(y + i * 64 + j) * 2)
    for k in range(n):
        tl.store(out + k * 4096 + i * 64 + j, tl.load(x + k * 4096 + i * 64 + j) + turned)


def test_conversions_of_what_a_loop_does_not_change_stand_before_it() -> None:
    text = str(compiled(invariant, "*fp32/16 *fp32/16 *fp32/16 i32").asm["ttgir"])
    assert conversions_in(text) == 1
    assert conversions_in(bodies_of_loops(text)) == 0


@jit
def sliding_window(x, out, n):
    """Columns of a tall matrix pass through six values; the last one is added to the first."""
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    zero = tl.zeros((64, 64), tl.float32)
    a, b, c, d, e, f = zero, zero, zero, zero, zero, zero
    for k in range(n):
        new = tl.load(x + k * 64 + i + j * 4096)
        tl.store(out + k * 64 + i + j * 4096, a + f)
        a, b, c, d, e, f = b, c, d, e, f, new


def test_what_moves_through_a_loop_keeps_its_layout() -> None:
    text = str(compiled(sliding_window, "*fp32/16 *fp32/16 i32").asm["ttgir"])
    assert conversions_in(text) == 0


@jit
def exchanged_products(x, out, n):
    """Two products of different shapes lie differently, and change places in each iteration."""
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    x1 = tl.load(x + i * 64 + j)
    a = tl.dot(x1, x1)
    b = tl.trans(tl.dot(x1, x1))
    for _ in range(n):
        for _ in range(n):
            a, b = b, a
        a, b = b + 1, a
    tl.store(out + i * 64 + j, a + b)


def test_layouts_that_chase_each_other_come_to_rest() -> None:
    assert compiled(exchanged_products, "*fp16/16 *fp32/16 i32").asm["ttgir"]
