"""The tutorials' matrix product: grouped programs and `%` narrow no access and stop no pipeline."""

import re
from collections import Counter

import pytest

from tests.corpus.figures import source_of
from tests.corpus.variants import Variant
from tests.kernels.tutorial_matmul import tutorial_matmul
from tilewright import compile as compile_source
from tilewright.backends import GPUTarget

WORDS = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}
OPTIONS = {"num_warps": 8, "num_stages": 3}
BY_ROWS, BY_COLUMNS = "i32/16 i32=1", "i32=1 i32/16"
SIZES = {"multiples of 16": "i32/16 i32/16 i32/16", "any M and N": "i32 i32 i32/16"}


def ptx_of(capability: int, sizes: str, a: str, b: str, even: bool = False) -> str:
    types = f"*fp16/16 *fp16/16 *fp16/16 {sizes} {a} {b} {BY_ROWS}"
    words = tuple({**WORDS, **OPTIONS, "EVEN_K": even}.items())
    variant = Variant(capability, "tutorial", tutorial_matmul, types, words)
    target = GPUTarget("cuda", capability, 32)
    return str(compile_source(source_of(variant), target, variant.options).asm["ptx"])


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


def test_rows_that_wrap_at_any_number_are_loaded_whole():
    ptx = ptx_of(90, SIZES["any M and N"], BY_ROWS, BY_COLUMNS)
    assert set(accesses(ptx)) == {"16"}


def test_columns_that_wrap_at_any_number_are_loaded_one_by_one():
    ptx = ptx_of(90, SIZES["any M and N"], BY_ROWS, BY_ROWS)
    assert set(accesses(ptx)) == {"16", "ld.global.b16"}
