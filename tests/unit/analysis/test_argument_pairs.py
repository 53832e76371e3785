"""Which pointer arguments of a kernel must not be one array, and under which conditions."""

from typing import Any

import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.figures import source_of
from tests.corpus.variants import CORPUS
from tilewright.analysis import ArgumentPair
from tilewright.backends import GPUTarget
from tilewright.compiler import ASTSource, CompiledKernel, compile

TYPES = {"x": "*fp32", "y": "*fp32", "n": "i32", "s": "i32", "t": "i32", "B": "constexpr"}


def pairs_of(kernel: Any) -> tuple[ArgumentPair, ...]:
    source = ASTSource(kernel, TYPES, {"B": 64})
    return compile(source, target=GPUTarget("cuda", 90, 32)).pairs


@tilewright.jit
def element_by_element(x, y, n, s, t, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@tilewright.jit
def computed_twice(x, y, n, s, t, B: tl.constexpr):
    """The same index, written in two ways."""
    i = tl.arange(0, B)
    p = x + i
    p += tl.program_id(0) * B
    tl.store(y + tl.program_id(0) * B + i, tl.load(p))


@tilewright.jit
def two_passes(x, y, n, s, t, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in range(0, n, B):
        total += tl.load(x + tl.program_id(0) * n + k + i)
    for k in range(0, n, B):
        place = tl.program_id(0) * n + k + i
        tl.store(y + place, tl.load(x + place) - tl.sum(total))


@tilewright.jit
def through_a_table(x, y, n, s, t, B: tl.constexpr):
    """Whatever place that is, it is one of both."""
    i = (tl.arange(0, B) * t) % n
    tl.store(y + i, tl.load(x + i))


@tilewright.jit
def halves(x, y, n, s, t, B: tl.constexpr):
    """A program loads both halves of its row, and stores both."""
    row, i = tl.program_id(0) * (2 * B), tl.arange(0, B)
    a, b = tl.load(x + row + i), tl.load(x + row + B + i)
    tl.store(y + row + i, a - b)
    tl.store(y + row + B + i, a + b)


@tilewright.jit
def only_loaded(x, y, n, s, t, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.device_print("", tl.sum(tl.load(x + i) * tl.load(y + n - i)))


@tilewright.jit
def waits(x, y, n, s, t, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + B - 1 - i)
    tl.debug_barrier()
    tl.store(y + i, v)


@pytest.mark.parametrize(
    "kernel",
    [element_by_element, computed_twice, two_passes, through_a_table, halves],
    ids=lambda k: k.__name__,
)
def test_arguments_that_may_be_one_array(kernel: Any):
    """Unless they begin at different addresses of it."""
    (pair,) = pairs_of(kernel)
    assert (pair.first, pair.second) == (0, 1)
    assert pair.is_element_wise and pair.may_be_one([0] * 5)
    assert ArgumentPair.of_json(pair.as_json()) == pair


@pytest.mark.parametrize("kernel", [only_loaded, waits], ids=lambda k: k.__name__)
def test_arguments_that_may_overlap(kernel: Any):
    assert pairs_of(kernel) == ()


@tilewright.jit
def backwards(x, y, n, s, t, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + B - 1 - i))


@tilewright.jit
def rolled(x, y, n, s, t, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + (i + n) % B))


@tilewright.jit
def shifted(x, y, n, s, t, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i + 1))


@tilewright.jit
def one_for_all(x, y, n, s, t, B: tl.constexpr):
    tl.store(y + tl.program_id(0), tl.load(x))


@tilewright.jit
def neighbours(x, y, n, s, t, B: tl.constexpr):
    """Each pass takes what the other has written."""
    i = tl.arange(0, B)
    for k in range(n):
        tl.store(y + k * B + i, tl.load(x + (k + 1) * B + i))


@tilewright.jit
def gathered(x, y, n, s, t, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + tl.load(x + i).to(tl.int32)))


@tilewright.jit
def added_up(x, y, n, s, t, B: tl.constexpr):
    tl.atomic_add(y + tl.arange(0, B) // 2, tl.load(x + tl.arange(0, B)))


@pytest.mark.parametrize(
    "kernel",
    [backwards, rolled, shifted, one_for_all, neighbours, gathered, added_up],
    ids=lambda k: k.__name__,
)
def test_arguments_that_must_not_be_one_array(kernel: Any):
    assert pairs_of(kernel) == (ArgumentPair(0, 1),)


@tilewright.jit
def rows(x, y, n, s, t, B: tl.constexpr):
    i = tl.arange(0, B)
    r = tl.program_id(0)
    tl.store(y + r * t + i, tl.load(x + r * s + i, mask=i < n), mask=i < n)


@tilewright.jit
def moved(x, y, n, s, t, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + n + i))


@tilewright.jit
def turned(x, y, n, s, t, B: tl.constexpr):
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    tl.store(y + i * s + j * t, tl.load(x + i * t + j * s))


@pytest.mark.parametrize(
    ("kernel", "right", "wrong"),
    [(rows, {"s": 100, "t": 100}, {"s": 100, "t": 64}), (moved, {"n": 0}, {"n": 64}),
     (turned, {"s": 64, "t": 64}, {"s": 64, "t": 1})],
    ids=lambda v: getattr(v, "__name__", ""),
)  # fmt: skip
def test_conditions_on_a_launch(kernel: Any, right: dict[str, int], wrong: dict[str, int]):
    (pair,) = pairs_of(kernel)
    values = {"x": 0, "y": 0, "n": 7, "s": 8, "t": 9}
    assert pair.may_be_one([*(values | right).values()])
    assert not pair.may_be_one([*(values | wrong).values()])


LIBRARY = {
    "add": [], "dropout": [], "softmax": ["out_ptr x_ptr if"], "transpose": ["x_ptr out_ptr if"],
    "layer_norm": ["x_ptr out_ptr if", "weight_ptr out_ptr", "bias_ptr out_ptr"],
    "matmul": ["a_ptr c_ptr", "b_ptr c_ptr"],
    "attention": ["q_ptr out_ptr if", "k_ptr out_ptr", "v_ptr out_ptr"],
}  # fmt: skip
"""Arguments that must not be one array; "if": unless a launch makes it so."""


@pytest.mark.parametrize("name", LIBRARY)
def test_kernels_of_the_library(name: str):
    variant = CORPUS[name][0]
    target = GPUTarget("cuda", variant.capability, 32)
    made: CompiledKernel = compile(source_of(variant), target, variant.options)
    names = made.metadata.names
    found = [
        " ".join([names[p.first], names[p.second], *(["if"] if p.unless else [])])
        for p in made.pairs
        if not p.is_element_wise
    ]
    assert found == LIBRARY[name]
