"""Estimates of registers, compared with those of the corpus: loops of wgmma without roles."""

import math
import re
from functools import cache

import pytest

import tilewright
from tests.corpus.figures import source_of
from tests.corpus.test_corpus import FOLDER
from tests.corpus.variants import HERE, READY_MADE, Variant
from tilewright.backends import GPUTarget
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.register_model import (
    Overhead,
    estimated_registers,
    held_registers,
    live_registers,
    resident_programs,
)
from tilewright.ir import parse_module
from tilewright.ops import ForOp

LABELS = {
    "attention": ("fp16 64 causal", "bf16 64", "fp32 32 causal", "fp32 128 causal", "fp16 96 96",
                  "fp8e4nv 128 128"),
    "grouped_matmul": ("fp16", "fp16 planned 128x256", "fp16 planned 128x128",
                       "fp16 planned 64x128", "fp16 planned 64x64"),
    "matmul": ("fp16 parts", "fp16 multiples of 8"),
    "quantized_matmul": ("8 bits, 128 rows", "4 bits, 128 rows, planned 256x128"),
}  # fmt: skip
"""By kernel: loops whose copies are asynchronous, in functions that ptxas gives registers."""

CASES = [(kernel, label) for kernel, labels in LABELS.items() for label in labels]
LEAST, MOST = 0.7, 1.55
"""Bounds of an estimate, relative to the registers in the table."""


def variant_of(kernel: str, label: str) -> Variant:
    return next(v for v in READY_MADE[kernel] if v.capability == HERE and v.label == label)


def in_table(kernel: str, label: str) -> int:
    """The registers that ptxas uses, without spills."""
    text = (FOLDER / f"{kernel}.txt").read_text()
    found = re.search(rf"^sm_{HERE} +{re.escape(label)} {{2,}}(\d+) +0 ", text, re.MULTILINE)
    assert found is not None
    return int(found[1])


@cache
def estimates(kernel: str, label: str) -> tuple[int, int]:
    """The registers that the loops of dots hold, and those of live tiles."""
    variant = variant_of(kernel, label)
    target = GPUTarget("cuda", HERE, 32)
    code = tilewright.compile(source_of(variant), target, variant.options).asm["ttgir"]
    loops = [op for op in parse_module(str(code)).kernel.walk() if isinstance(op, ForOp)]
    dots = [loop for loop in loops if any(isinstance(op, WgmmaOp) for op in loop.body)]
    warps = int(variant.options.get("num_warps", 4))
    held = max(held_registers(loop, warps) for loop in dots)
    return held, max(live_registers(loop, warps) for loop in dots)


def ratio(kernel: str, label: str, overhead: Overhead) -> float:
    """The estimate over the registers in the table."""
    held, _ = estimates(kernel, label)
    return estimated_registers(held, overhead, row_for(HERE)) / in_table(kernel, label)


@pytest.mark.parametrize(("kernel", "label"), CASES)
def test_estimates_are_near_the_registers_of_ptxas(kernel: str, label: str) -> None:
    assert LEAST < ratio(kernel, label, Overhead.DOTS) < MOST


def mean_ratio(overhead: Overhead) -> float:
    return math.exp(sum(math.log(ratio(*case, overhead)) for case in CASES) / len(CASES))


def test_estimates_are_right_on_average() -> None:
    """Another overhead than that of loops of dots is not."""
    assert 0.95 < mean_ratio(Overhead.DOTS) < 1.1
    assert mean_ratio(Overhead.LEAST) < 0.95


@pytest.mark.parametrize(("kernel", "label"), CASES)
def test_live_tiles_need_as_many_registers_as_ptxas_takes(kernel: str, label: str) -> None:
    """Or more, since no fewer than a bound for consumers would do without spills."""
    _, live = estimates(kernel, label)
    needed = estimated_registers(live, Overhead.LEAST, row_for(HERE))
    assert 0.9 < needed / in_table(kernel, label) < MOST


@pytest.mark.parametrize(
    ("shared", "registers", "threads", "programs"),
    [(1024, 64, 128, 8), (100 * 1024, 64, 128, 2), (1024, 255, 128, 2), (1 << 20, 64, 128, 1)],
)
def test_programs_are_limited_by_memory_and_registers(
    shared: int, registers: int, threads: int, programs: int
) -> None:
    assert resident_programs(row_for(HERE), shared, registers, threads) == programs
