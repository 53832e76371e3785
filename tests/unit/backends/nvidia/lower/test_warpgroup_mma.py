"""The text of wgmma: what each instruction reads and sums, and what ptxas makes of it."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from tests.unit.backends.nvidia.lower.wgmma_cases import (
    CASES,
    PARAMETERS,
    Case,
    assembled,
    lowering_state,
    module_text,
    operands,
    store_sums,
)
from tests.unit.backends.nvidia.requires import needs_ptxas
from tests.unit.layout.wgmma_reads import addresses_read, element_addresses
from tilewright.backends.nvidia.assemble.ptxas import sass
from tilewright.backends.nvidia.lower.gpu_lowering import BODY
from tilewright.backends.nvidia.lower.warpgroup_mma import (
    emit_wgmma,
    emit_wgmma_wait,
    warpgroup_steps,
    wgmma_block_text,
    wgmma_wait_text,
)
from tilewright.ir.types import f16
from tilewright.layout import (
    REGISTER,
    f2,
)
from tilewright.llvm import Val, llvm_type
from tilewright.support import errors

cases = pytest.mark.parametrize("name", CASES)

_ADD = re.compile(r"add\.u32 t(\w), \$(\d+), (\d+);")
_PRODUCT = re.compile(r"wgmma\.mma_async\S+ \{([^}]*)\}, (da|\{[^}]*\}), db, (\S+?)(?:, (.*))?;")


def numbers(text: str) -> list[int]:
    return [int(word) for word in re.findall(r"\$(\d+)", text)]


@dataclass(frozen=True)
class Product:
    """One instruction as the hardware sees it: its step along K, the origin of its sums in the
    tile, and the descriptors of the operands that are in shared memory"""

    step: int
    origin: tuple[int, ...]
    descriptors: dict[str, int]


def products_of(case: Case, group: int) -> Iterator[Product]:
    """The instructions of a warpgroup, by running the text."""
    low: dict[str, int] = {}
    steps: Counter[int] = Counter()
    for line in wgmma_block_text(case.block, None, 0).text.split("\\0A"):
        if added := _ADD.match(line):
            low[added[1]] = first_word(case, added[1], group) + int(added[3])
        elif found := _PRODUCT.match(line):
            sums = numbers(found[1])
            assert sums == list(range(sums[0], sums[0] + len(sums)))
            element = sums[0] * (32 // case.types[2].bits)
            descriptors = {x: case.operand(x)[1].high << 32 | word for x, word in low.items()}
            origin = case.result.apply(register=element, warp=4 * group)
            yield Product(steps[element], origin, descriptors)
            steps[element] += 1


def first_word(case: Case, name: str, group: int) -> int:
    """The low word of an operand at address 0, for a warpgroup."""
    operand = case.operand(name)[1]
    steps = warpgroup_steps(operand, case.result, 0 if name == "a" else 1)
    return operand.low + f2.apply(steps, group)


@cases
def test_every_instruction_reads_the_blocks_that_its_sums_want(name):
    case = CASES[name]
    depth, size = case.fragment.k, case.bits // 8
    in_shared = {"a": 1, "b": 0} if case.a_dim is not None else {"b": 0}
    places = {x: element_addresses(case.operand(x)[0], k, size) for x, k in in_shared.items()}
    extents = {"a": 64, "b": case.sharing[0]}
    for group in range(case.warps // 4):
        found = list(products_of(case, group))
        assert len(found) == len(case.block.parts) * case.shape[2] // depth
        for one, (x, descriptor) in ((p, d) for p in found for d in p.descriptors.items()):
            read = addresses_read(descriptor, case.operand(x)[1].k_major, extents[x], size)
            start = one.origin[0 if x == "a" else 1]
            ks = slice(depth * one.step, depth * (one.step + 1))
            assert np.array_equal(read, places[x][start : start + extents[x], ks]), one


@cases
def test_the_statement_has_its_operands_in_order(name):
    block = CASES[name].block
    sums, steps = block.registers, block.steps
    asm = wgmma_block_text(block, None, 1)
    inputs = asm.constraints.split(",")
    a = block.a_registers or 1
    assert inputs == [*[f"={block.kind}"] * sums, *map(str, range(sums)), *["r"] * (a + 1), "b",
                      "~{memory}"]  # fmt: skip
    products = [m for line in asm.text.split("\\0A") if (m := _PRODUCT.match(line))]
    assert [m[3] for m in products[: len(block.parts)]] == [f"${2 * sums + a + 1}"] * len(
        block.parts
    )
    assert {m[3] for m in products[len(block.parts) :]} <= {"1"}
    if block.a is None:
        rows = sorted({row for row, _ in block.parts})
        wanted = [
            [2 * sums + 4 * (steps * rows.index(row) + step) + i for i in range(4)]
            for step in range(steps)
            for row, _ in block.parts
        ]
        assert [numbers(m[2]) for m in products] == wanted
    fresh = wgmma_block_text(block, False, None)
    assert fresh.constraints == ",".join(
        [*[f"=&{block.kind}"] * sums, *["r"] * (a + 1), "~{memory}"]
    )
    assert "wait_group" not in fresh.text and "wait_group.sync.aligned 1;" in asm.text
    assert fresh.text.count(", 0,") + fresh.text.count(", 0;") >= len(block.parts)


def test_modifiers_are_those_of_the_types():
    def modifiers(name: str) -> str:
        return CASES[name].block.modifiers

    assert modifiers("one") == ", 1, 1, 0, 1"
    assert modifiers("b along k") == ", 1, 1, 0, 0"
    assert modifiers("a along m") == ", 1, 1, 1, 1"
    assert modifiers("a in registers") == ", 1, 1, 1"
    assert modifiers("tf32") == modifiers("fp8") == ", 1, 1"
    assert modifiers("s8") == ""


def test_waits_tie_the_sums():
    asm = wgmma_wait_text(2, 3, "f")
    assert asm.text == "wgmma.wait_group.sync.aligned 2;"
    assert asm.constraints == "=f,=f,=f,0,1,2,~{memory}"


# ---- assembled ----------------------------------------------------------------------------------


def kernel(case: Case, wait: int | None) -> str:
    """Products of as many slots as an argument says, each at once; then the sums are stored."""
    state = lowering_state(case)
    code, type_ = state.code, llvm_type(case.types[2])
    count = case.result.in_size(REGISTER)
    sums = [Val(f"%sum{i}", type_, BODY) for i in range(count)]
    code.line("br label %loop")
    code.line("loop:")
    head = len(code.sections[-1])
    a, b = operands(state, case, Val("%i", "i32", BODY))
    later = code.let_here("icmp ne i32 %i, 0", "i1")
    new = emit_wgmma(state, case.block, sums, a, b, later, wait)
    zero = "0" if type_ == "i32" else "0.0"
    phis = ["%i = phi i32 [ 0, %start ], [ %next, %loop ]"]
    phis += [
        f"{s} = phi {type_} [ {zero}, %start ], [ {v}, %loop ]"
        for s, v in zip(sums, new, strict=True)
    ]
    code.sections[-1][head:head] = phis
    code.line("%next = add i32 %i, 1")
    code.line("%more = icmp slt i32 %next, %count")
    code.line("br i1 %more, label %loop, label %done")
    code.line("done:")
    store_sums(state, case, emit_wgmma_wait(state, new, case.types[2]))
    return module_text(state, f"{PARAMETERS}, i32 %count")


def products_in(cubin: bytes) -> int:
    try:
        text = sass(cubin)
    except errors.ToolMissing:
        pytest.skip("nvdisasm is not installed")
    return len(re.findall(r"\b[HQI]GMMA\.", text))


@needs_ptxas
@cases
def test_products_of_a_loop_stay_asynchronous(name):
    """ptxas says so if it makes each instruction wait for the one before."""
    # A in registers is written for each block: no group that reads it may go on.
    wait = 0 if CASES[name].a_dim is None else 1
    # Two sums of 16 bits share a register: to take them apart is to read it.
    wait = 0 if CASES[name].types[2] is f16 else wait
    done = assembled(kernel(CASES[name], wait))
    assert done.report.warnings == () and not re.search(r"C75\d\d", done.log)
    assert done.report.spill_stores == done.report.stack == 0


@needs_ptxas
def test_sums_that_are_read_too_early_are_noticed():
    assert "C7514" in "".join(assembled(kernel(CASES["f16 sums"], 1)).report.warnings)


@needs_ptxas
@pytest.mark.parametrize("name", ["one", "b along k", "a in registers", "tf32", "fp8", "s8"])
def test_one_instruction_for_each_step_and_part(name):
    case = CASES[name]
    state = lowering_state(case)
    a, b = operands(state, case, Val("0", "i32"))
    zeros = [Val("0", llvm_type(case.types[2]))] * case.result.in_size(REGISTER)
    store_sums(state, case, emit_wgmma(state, case.block, zeros, a, b, accumulate=False))
    done = assembled(module_text(state, PARAMETERS))
    assert done.report.warnings == ()
    assert products_in(done.cubin) == case.block.steps * len(case.block.parts)


@needs_ptxas
def test_a_wide_product_takes_few_registers_beside_its_sums():
    done = assembled(kernel(CASES["wide"], 1))
    assert 128 < done.report.registers <= 168


def test_the_number_of_the_warpgroup_is_made_once():
    case = CASES["both, narrow"]
    state = lowering_state(case)
    for slot in range(3):
        operands(state, case, Val(str(slot), "i32"))
    assert [*state.entry] == ["%warpgroup"] and len(state.entry["%warpgroup"]) == 2
    # The part of each operand stands at the entry, once.
    assert sum("%warpgroup" in line for line in state.code.sections[0]) == 2
    assert not any("%warpgroup" in line for line in state.code.sections[1])


def test_one_warpgroup_needs_no_number():
    state = lowering_state(CASES["one"])
    operands(state, CASES["one"], Val("0", "i32"))
    assert not state.entry
