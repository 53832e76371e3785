"""The tutorials' matrix product: grouped programs and `%` narrow no access and stop no pipeline."""

import re
from collections import Counter

import pytest

from tests.corpus.figures import source_of
from tests.corpus.variants import Variant
from tests.kernels.tutorial_matmul import tutorial_matmul
from tilewright import compile as compile_source
from tilewright.backends import GPUTarget
from tilewright.compiler import ASTSource, KernelSource
from tilewright.runtime import MockTensor

WORDS = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}
OPTIONS = {"num_warps": 8, "num_stages": 3, "bulk_loads": "descriptors"}
BY_ROWS, BY_COLUMNS = "i32/16 i32=1", "i32=1 i32/16"
SIZES = {"multiples of 16": "i32/16 i32/16 i32/16", "any M and N": "i32 i32 i32/16"}


def ptx_of(capability: int, sizes: str, a: str, b: str, even: bool = False) -> str:
    types = f"*fp16/16 *fp16/16 *fp16/16 {sizes} {a} {b} {BY_ROWS}"
    words = tuple({**WORDS, **OPTIONS, "EVEN_K": even}.items())
    variant = Variant(capability, "tutorial", tutorial_matmul, types, words)
    return compiled(capability, source_of(variant))


def compiled(capability: int, source: KernelSource, **options: str) -> str:
    target = GPUTarget("cuda", capability, 32)
    return str(compile_source(source, target, {**OPTIONS, **options}).asm["ptx"])


def ptx_of_launch(capability: int, size: int, a: str, b: str, **options: str) -> str:
    """What a launch with contiguous square matrices of fp16 compiles."""
    strides = [size if text.startswith("i32/") else 1 for text in f"{a} {b} {BY_ROWS}".split()]
    arrays = [MockTensor("float16")] * 3
    call = tutorial_matmul.bind(*arrays, *[size] * 3, *strides, **WORDS, EVEN_K=False)
    return compiled(capability, ASTSource.of(tutorial_matmul, call.signature), **options)


def accesses(ptx: str) -> Counter[str]:
    """The widths of asynchronous copies, and all other loads from global memory."""
    copies = re.findall(r"cp\.async\.c[ag][\w.:]* \[[^]]*\], \[[^]]*\], (\d+)", ptx)
    return Counter([*copies, *re.findall(r"ld\.global[\w.:]*", ptx)])


@pytest.mark.parametrize("even", [False, True], ids=["masked", "whole blocks"])
@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("a", [BY_ROWS, BY_COLUMNS], ids=["A [M, K]", "A [K, M]"])
@pytest.mark.parametrize("b", [BY_ROWS, BY_COLUMNS], ids=["B [K, N]", "B [N, K]"])
def test_both_operands_are_copied_ahead_by_16_bytes(capability: int, a: str, b: str, even: bool):
    ptx = ptx_of(capability, SIZES["multiples of 16"], a, b, even)
    assert set(accesses(ptx)) == {"16"}
    assert set(re.findall(r"st\.global[\w.:]*", ptx)) == {"st.global.v4.b32"}


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("a", [BY_ROWS, BY_COLUMNS], ids=["A [M, K]", "A [K, M]"])
@pytest.mark.parametrize("b", [BY_ROWS, BY_COLUMNS], ids=["B [K, N]", "B [N, K]"])
def test_sizes_of_1000_are_copied_like_multiples_of_16(capability: int, a: str, b: str):
    """1000 is a multiple of 8, so rows of 2000 bytes begin at multiples of 16 bytes."""
    ptx = ptx_of_launch(capability, 1000, a, b)
    assert set(accesses(ptx)) == {"16"}
    assert set(re.findall(r"st\.global[\w.:]*", ptx)) == {"st.global.v4.b32"}
    # copies of later iterations are under way when one begins
    assert re.search(r"cp\.async\.wait_group\s+[1-9]", ptx)


@pytest.mark.parametrize("a", [BY_ROWS, BY_COLUMNS], ids=["A [M, K]", "A [K, M]"])
@pytest.mark.parametrize("b", [BY_ROWS, BY_COLUMNS], ids=["B [K, N]", "B [N, K]"])
def test_the_copy_engine_of_hopper_makes_these_copies(a: str, b: str):
    ptx = ptx_of_launch(90, 1000, a, b, bulk_loads="all")
    assert not accesses(ptx)
    assert "cp.async.bulk.tensor.2d.shared::cluster.global" in ptx


def test_sizes_of_1004_are_loaded_one_by_one():
    """A launch does not tell multiples of 4 from others; a promise would."""
    assert set(accesses(ptx_of_launch(90, 1004, BY_ROWS, BY_ROWS))) == {"ld.global.b16"}
    rows, sizes = BY_ROWS.replace("/16", "/4"), "i32/4 i32/4 i32/4"
    assert set(accesses(ptx_of(90, sizes, rows, rows))) == {"8"}


def test_rows_that_wrap_at_any_number_are_loaded_whole():
    ptx = ptx_of(90, SIZES["any M and N"], BY_ROWS, BY_COLUMNS)
    assert set(accesses(ptx)) == {"16"}


def test_columns_that_wrap_at_any_number_are_loaded_one_by_one():
    ptx = ptx_of(90, SIZES["any M and N"], BY_ROWS, BY_ROWS)
    assert set(accesses(ptx)) == {"16", "ld.global.b16"}
