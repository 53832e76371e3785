"""Which loads through pointers the copy engine makes, and why it does not make others."""

# pyright: reportOperatorIssue=false

from typing import Any

import pytest

import tilewright.language as tl
from tests.kernels.tutorial_matmul import tutorial_matmul
from tests.unit.backends.nvidia.test_code_dots import persistent
from tilewright import jit
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.passes.select_mma import SelectMma
from tilewright.backends.nvidia.passes.select_tma import SelectTma
from tilewright.backends.nvidia.pipeline import Choices, front_pipeline
from tilewright.compiler import ASTSource
from tilewright.frontend.semantics import FrontendOptions
from tilewright.runtime import MockTensor


def reasons(kernel: Any, *args: Any, warps: int = 4, stages: int = 3, **words: Any) -> list[str]:
    """Why each load for products is not promoted at a launch; "" where it is."""
    signature = kernel.bind(*args, **words).signature
    module = ASTSource.of(kernel, signature).lower(FrontendOptions(backend="cuda"))
    front_pipeline(Choices(row_for(90))).run(module)
    SelectMma(warps=warps).run(module.kernel)
    return list(SelectTma(stages=stages).select(module.kernel).reasons.values())


@jit
def indices(table, rows, M, A: tl.constexpr):
    at = rows
    if A == "remainder":
        at = rows % M
    elif A == "choice":
        at = tl.where(rows < M, rows, 0)
    elif A == "another remainder":
        at = (rows * 2) % M
    elif A == "of 64 bits":
        at = tl.program_id(0).to(tl.int64) * 32 + tl.arange(0, 64)
    elif A == "table":
        at = tl.load(table + rows)
    return at[:, None]


@jit
def mask_of(at, M, first, LIMIT: tl.constexpr, MASK: tl.constexpr):
    inside = at >= 0
    if MASK == "rows":
        inside = at < LIMIT * M
    elif MASK == "half of the rows":
        inside = at < (M + 1) // 2
    elif MASK == "what is left of pairs":
        inside = at < (M - 64 * first) // 2
    elif MASK == "a tile":
        inside = (at < M) & (tl.arange(0, 64)[:, None] < 64)
    elif MASK == "a part of a tile":
        inside = (at < M) & (tl.arange(0, 64)[:, None] < 63)
    elif MASK == "from 0":
        inside &= at < M
    elif MASK == "from 1":
        inside = (at >= 1) & (at < M)
    elif MASK == "equal":
        inside = at != M
    elif MASK == "program":
        inside = (at < M) & (tl.program_id(0) < first)
    return inside


@jit
def store(c, acc, rows, k, M, BK: tl.constexpr, STORE: tl.constexpr):
    pointers, inside = c + rows[:, None] * BK + k[None, :], rows[:, None] < M
    if STORE == "masked":
        tl.store(pointers, acc, inside)
    elif STORE == "of the next":
        tl.store(pointers, acc, rows[:, None] + 1 < M)
    elif STORE == "sums":
        tl.store(c + rows, tl.sum(acc, 1), rows < M)
    elif STORE == "sums of columns":
        tl.store(c + k, tl.sum(acc, 0))
    elif STORE == "turned":
        tl.store(c + rows[None, :] * BK + k[:, None], tl.trans(acc) * 2, (rows < M)[None, :])
    elif STORE == "pairs":
        tl.store(pointers, acc.reshape(acc.shape[0], 2, BK // 2).reshape(acc.shape[0], BK), inside)
    elif STORE == "cut":
        halves = tl.cumsum(acc.reshape(acc.shape[0] * 2, BK // 2), 0)
        tl.store(pointers, halves.reshape(acc.shape[0], BK), inside)
    elif STORE == "added":
        tl.atomic_add(pointers, acc, inside)
    elif STORE == "addresses":
        tl.store(c + acc.to(tl.int32), 1.0, inside)
    else:
        tl.store(pointers, acc)


@jit
def rows_of_product(
    a, b, c, table, M, K, stride, first, BM: tl.constexpr, BK: tl.constexpr, A: tl.constexpr,
    LIMIT: tl.constexpr, MASK: tl.constexpr, OTHER: tl.constexpr, STORE: tl.constexpr,
):  # fmt: skip
    """A product whose rows are chosen, masked and stored in different ways."""
    d, k = tl.arange(0, BM), tl.arange(0, BK)
    rows = tl.program_id(0) * BM + d
    if A == "behind the first":
        rows += first * BM
    at = indices(table, rows, M, A)
    acc = tl.zeros((BM, BK), tl.float32)
    for start in range(0, K, BK):
        inside = k[None, :] < K - start
        if MASK != "":
            inside &= mask_of(at, M, first, LIMIT, MASK)
        x = tl.load(a + at * stride + start + k[None, :], inside, other=OTHER)
        y = tl.load(b + k[:, None] * BK + k[None, :])
        acc = tl.dot(x, y, acc)
    store(c, acc, rows, k, M, BK, STORE)


ARRAYS = [MockTensor("float16"), MockTensor("float16"), MockTensor("float32"), MockTensor("int32")]
USUAL = {"BM": 64, "BK": 64, "A": "", "LIMIT": 1, "MASK": "rows", "OTHER": 0.0, "STORE": "masked"}


def reason(
    m: int = 1000, k: int = 1000, stride: int = 1000, first: int = 3, a: Any = None, **words: Any
) -> str:
    """Of the load of A."""
    arrays = [a or ARRAYS[0], *ARRAYS[1:]]
    return reasons(rows_of_product, *arrays, m, k, stride, first, **{**USUAL, **words})[0]


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"MASK": "from 0"},
        {"MASK": "half of the rows"},
        {"MASK": "a tile"},
        {"A": "behind the first"},
        {"A": "remainder", "MASK": ""},
        {"A": "choice", "MASK": ""},
        {"A": "remainder", "MASK": "", "STORE": "sums"},
        {"A": "remainder", "MASK": "", "STORE": "turned"},
        {"A": "remainder", "MASK": "", "STORE": "pairs"},
        {"A": "remainder", "MASK": "", "STORE": "added"},
        {"m": 1003, "k": 1003},
        {"OTHER": None},
        {"MASK": ""},
        {"A": "of 64 bits"},
    ],
    ids=str,
)
def test_blocks_of_arrays_are_promoted(words: dict[str, Any]) -> None:
    assert reason(**words) == ""


REFUSED = {
    "rows or columns that wrap around are used": [
        {"A": "remainder", "MASK": "", "STORE": ""},
        {"A": "remainder", "MASK": "", "STORE": "of the next"},
        {"A": "remainder", "MASK": "", "STORE": "sums of columns"},
        {"A": "remainder", "MASK": "", "STORE": "cut"},
        {"A": "remainder", "MASK": "", "STORE": "addresses"},
        {"A": "choice", "MASK": "", "STORE": ""},
    ],
    "its indices do not wrap around at an extent": [{"A": "another remainder", "MASK": ""}],
    "its address depends on what is loaded or carried": [{"A": "table"}],
    "an index without an end is not computed in 32 bits": [{"MASK": "", "A": "of 64 bits"}],
    "its mask says more than where rows and columns end": [{"MASK": "equal"}, {"MASK": "program"}],
    "its mask begins behind the first row or column": [{"MASK": "from 1"}],
    "its mask ends at no argument of int32": [
        {"LIMIT": 2},
        {"m": 1 << 33},
        {"MASK": "what is left of pairs"},
    ],
    "two masks end its rows or columns": [{"MASK": "a part of a tile"}],
    "its indices may be negative": [{"A": "behind the first", "first": -1}],
    "TMA fills masked elements with zeros only": [{"OTHER": 1.0}, {"OTHER": -0.0}],
    "its stride is not known to be a multiple of 16 bytes": [{"stride": 1004}],
    "its stride may be negative, or more than an int32": [{"stride": -1000}, {"stride": 1 << 33}],
    "num_stages is less than 2": [{"stages": 1}],
}


@pytest.mark.parametrize(
    ("expected", "words"),
    [(text, words) for text, several in REFUSED.items() for words in several],
    ids=str,
)
def test_what_the_copy_engine_would_read_otherwise(expected: str, words: dict[str, Any]) -> None:
    assert reason(**words) == expected


def product_of_tutorials(size: int, even: bool = False, **words: Any) -> list[str]:
    blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}
    strides = (size, 1, 1, size, size, 1)
    arrays = [MockTensor("float16")] * 3
    return reasons(
        tutorial_matmul, *arrays, size, size, size, *strides, EVEN_K=even, **{**blocks, **words}
    )


@pytest.mark.parametrize("even", [False, True], ids=["", "without masks"])
def test_both_operands_of_the_tutorials_product(even: bool) -> None:
    assert product_of_tutorials(1000, even, warps=8) == ["", ""]


def test_blocks_of_more_rows_than_a_box_has() -> None:
    boxes = "its box has more than 256 rows, or its buffer no TMA swizzle"
    assert product_of_tutorials(1000, warps=16, BLOCK_M=512, BLOCK_N=64) == [boxes, ""]


def test_operands_that_do_not_fit_twice() -> None:
    too_much = "the operands of the loop do not fit twice"
    assert product_of_tutorials(1000, warps=8, BLOCK_K=256) == [too_much, too_much]


def test_loops_around_loops_that_copy_on_their_own() -> None:
    """What only the outer loop loads at constant indices could be promoted otherwise."""
    inside = "a loop nested in its loop has copies of its own"
    found = reasons(persistent, *ARRAYS[:3], 1003, 1003)
    assert inside in found and "" not in found
