"""What loops of products hold in PTX: loads are copies ahead, and barriers are few."""

import re
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.kernels import unusual_loops as kernels
from tests.kernels.test_c_kernels import MATMUL, PLAIN_A, PLAIN_B, TRANSPOSED_A, TRANSPOSED_B
from tests.unit.backends.nvidia.compiled import (
    bodies_of_loops,
    compiled,
    loop_of_products,
)
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import compile
from tilewright.backends import GPUTarget
from tilewright.backends.nvidia.assemble.ptxas import assemble
from tilewright.c import CSource

pytestmark = needs_ptxas

HALF, SINGLE = "*fp16/16", "*fp32/16"


@dataclass(frozen=True)
class Body:
    """Instructions of a loop: asynchronous copies, loads from global memory, barriers, statements
    of wgmma and what they wait for, mma.sync, reads and writes of shared memory one by one."""

    copies: int = 8
    loads: int = 0
    barriers: int = 1
    warpgroups: int = 4
    waits: tuple[int, ...] = (1,)
    warps: int = 0
    reads: int = 0
    writes: int = 0


def body_of(ptx: str) -> Body:
    """Counts them."""
    text = loop_of_products(ptx)

    def count(pattern: str) -> int:
        return len(re.findall(pattern, text))

    return Body(
        count(r"cp\.async\.c[ag]"), count(r"ld\.global"), count(r"bar\.sync"),
        count(r"wgmma\.mma_async"),
        tuple(int(left) for left in re.findall(r"wgmma\.wait_group\.sync\.aligned (\d)", text)),
        count(r"mma\.sync"), count(r"ld\.shared"), count(r"st\.shared"),
    )  # fmt: skip


def ampere(body: Body, products: int = 64) -> Body:
    """The same where warps multiply: nothing is waited for but copies."""
    return replace(body, warpgroups=0, waits=(), warps=products)


CASES: list[tuple[Any, str, dict[str, Any], Body, Body]] = []
"""Kernel, types, constants, loop on sm_90, loop on sm_80."""


def case(
    kernel: Any, types: str, hopper: Body, others: Body | None = None, **constants: Any
) -> None:
    CASES.append((kernel, types, constants, hopper, others or ampere(hopper)))


# Of three slots copies have a barrier of their own, in front of that of the next product.
THREE_SLOTS = Body(barriers=2)
# x is read for the norm: 4 vectors.
case(
    kernels.with_norm, f"{HALF} {HALF} {SINGLE} i32/16 i32/16",
    replace(THREE_SLOTS, reads=4), ampere(Body(reads=4)),
)  # fmt: skip
for kernel in (kernels.paged, kernels.paged_ahead):
    case(
        kernel, f"{HALF} {HALF} *i32/16 {SINGLE} i32/16 i32/16",
        replace(THREE_SLOTS, loads=1), ampere(Body(loads=1)),
    )  # fmt: skip
# Each thread loads the numbers of its four rows.
case(
    kernels.gathered, f"{HALF} {HALF} *i32/16 {SINGLE} i32/16 i32/16",
    replace(THREE_SLOTS, loads=4), ampere(Body(loads=4)),
)  # fmt: skip
gated = f"{HALF} {HALF} {HALF} {SINGLE} {SINGLE} i32/16 i32/16 i32/16"
hopper = Body(copies=10, warpgroups=8, waits=(2,))
case(kernels.gated, gated, hopper, ampere(hopper, 96), BW=64)
for kernel in (kernels.prefetched, kernels.prefetched_in_part):
    types = f"{HALF} {HALF} {SINGLE} i32/16 i32/16"
    case(kernel, types, THREE_SLOTS, ampere(Body()), STAGES=3)
case(kernels.prefetched_for_behind, f"{HALF} {HALF} {SINGLE} i32/16 i32/16", Body(), STAGES=3)
# Of two slots one is read until the product ends.
case(
    kernels.prefetched, f"{HALF} {HALF} {SINGLE} i32/16 i32/16", Body(waits=(0,)), STAGES=2
)  # fmt: skip
# The copies of the next tile are on their way while this one is stored: on Hopper warp by warp.
for kernel in (kernels.flat, kernels.flat_select):
    case(
        kernel, f"{HALF} {HALF} {HALF} i32/16 i32/16 i32/16",
        Body(barriers=3, reads=8, waits=(1, 0), writes=8),
        ampere(Body(barriers=3, reads=16, writes=8)),
        PROGRAMS=132,
    )  # fmt: skip


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("chosen", CASES, ids=lambda c: c[0].fn.__name__)
def test_loads_are_copied_ahead(chosen: Any, capability: int) -> None:
    kernel, types, constants, on_hopper, on_ampere = chosen
    words: dict[str, Any] = {"BM": 128, "BN": 128, "BK": 64, "num_warps": 8, **constants}
    done = compiled(kernel, types, capability, **words)
    assert body_of(str(done.asm["ptx"])) == (on_hopper if capability == 90 else on_ampere)
    assert not done.metadata.spills


@pytest.mark.parametrize(
    ("kernel", "types", "constants"),
    [
        (kernels.flat, f"{HALF} {HALF} {HALF} i32/16 i32/16 i32/16", {"PROGRAMS": 132}),
        (kernels.scaled_columns, f"{HALF} *i8/16 {HALF} {SINGLE} i32/16 i32/16", {}),
    ],
    ids=["across a branch", "of computed operands"],
)
@pytest.mark.parametrize("columns", [128, 256])
def test_products_that_go_on_are_not_serialized(
    kernel: Any, types: str, constants: dict[str, Any], columns: int
) -> None:
    """ptxas says so of products whose registers it sees used too early (codes C75xx)."""
    words: dict[str, Any] = {"BM": 128, "BN": columns, "BK": 64, "num_warps": 8, **constants}
    ptx = str(compiled(kernel, types, **words).asm["ptx"])
    assert 1 in body_of(ptx).waits
    done = assemble(ptx, "sm_90a", kernel.fn.__name__)
    assert done.report.warnings == () and not done.report.spill_stores


SCALED = f"{SINGLE} {SINGLE} {SINGLE} i32/16 i32/16"
# Each thread loads the scale of its column, and reads the weights as the product has them.
COLUMNS = Body(copies=6, loads=1, waits=(1, 1), reads=16)
# Each thread loads the scales of its two rows, and four of its 32 columns': lanes exchange these.
SUMS = Body(copies=4, loads=6, warpgroups=2, waits=(0,))


@pytest.mark.parametrize(
    ("kernel", "types", "expected"),
    [
        (kernels.scaled_columns, f"{HALF} *i8/16 {HALF} {SINGLE} i32/16 i32/16", COLUMNS),
        (kernels.scaled_sums, f"*i8/16 *i8/16 {SCALED}", SUMS),
        (kernels.scaled_sums, f"*fp8e4nv/16 *fp8e4nv/16 {SCALED}", SUMS),
    ],
    ids=["columns", "int8", "fp8"],
)
def test_scales_are_loaded_ahead(kernel: Any, types: str, expected: Body) -> None:
    words: dict[str, Any] = {"BM": 128, "BN": 128, "BK": 64, "num_warps": 8}
    if kernel is kernels.scaled_sums:
        words["PERIOD"] = 2
    done = compiled(kernel, types, **words)
    assert body_of(str(done.asm["ptx"])) == expected
    # What is loaded goes to the next iteration, or to its operand behind the last product.
    inside = bodies_of_loops(str(done.asm["ttgir"]))
    behind = inside[inside.rindex("= nvidia.wgmma ") :].splitlines()
    copied = re.findall(r"nvidia\.async_copy (%\w+),", inside)
    ahead = set(re.findall(r"(%\w+) = mem\.load", inside)) - set(copied)
    assert ahead
    for name in ahead:
        users = [line for line in inside.splitlines() if re.search(rf"{name}\b(?! =)", line)]
        assert users and all(user in behind for user in users)
    assert not done.metadata.spills


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("word", ["half", "float"])
@pytest.mark.parametrize("operands", [PLAIN_A | PLAIN_B, TRANSPOSED_A | TRANSPOSED_B])
def test_a_product_that_prefetches_is_as_good_as_one_that_does_not(
    operands: dict[str, Any], word: str, capability: int
) -> None:
    tile = {"TYPE": word, "TM": 128, "TN": 128, "TK": 64 if word == "half" else 32}
    facts = {name: {"aligned": 16} for name in "ABC"}
    plain, prefetching = (
        body_of(str(compile(
            CSource(MATMUL, {**operands, **tile, **macros}, facts=facts),
            GPUTarget("cuda", capability, 32), {"num_warps": 8},
        ).asm["ptx"])) for macros in ({}, {"PREFETCH": None})
    )  # fmt: skip
    # Which of them has three slots, whose copies take a barrier more, depends on what is exchanged.
    assert replace(prefetching, barriers=plain.barriers) == plain
    assert (plain.copies, plain.loads) == (8, 0)
    assert max(plain.barriers, prefetching.barriers) <= (2 if capability == 90 else 1)
