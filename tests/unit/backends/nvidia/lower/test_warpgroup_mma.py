"""The text of wgmma: what each instruction reads and sums, and what ptxas makes of it."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from tests.unit.backends.nvidia.requires import needs_ptxas
from tests.unit.layout.wgmma_reads import addresses_read, element_addresses
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.assemble.nvptx_legality import unlisted
from tilewright.backends.nvidia.assemble.ptx_emission import emit_ptx
from tilewright.backends.nvidia.assemble.ptxas import Assembled, assemble, sass
from tilewright.backends.nvidia.layouts.select_wgmma import wgmma_result_layout
from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering
from tilewright.backends.nvidia.lower.warpgroup_mma import (
    WgmmaBlock,
    a_in_registers,
    descriptor_word,
    emit_wgmma,
    emit_wgmma_wait,
    warpgroup_steps,
    wgmma_block,
    wgmma_block_text,
    wgmma_wait_text,
)
from tilewright.ir.types import DType, bf16, f8e4m3, f8e5m2, f16, f32, i8, i32, u8
from tilewright.layout import (
    REGISTER,
    Fragment,
    LinearLayout,
    WgmmaOperand,
    f2,
    operand_layout,
    wgmma_fragment,
    wgmma_operand,
    wgmma_shared_layout,
)
from tilewright.llvm import Code, ModuleText, Val, data_layout, llvm_type
from tilewright.support import errors

H100 = row_for(90)


@dataclass(frozen=True)
class Case:
    """A product; a_dim, b_dim: along which the operands are contiguous; a_dim None: A is in
    registers"""

    shape: tuple[int, int, int]
    types: tuple[DType, DType, DType] = (f16, f16, f32)
    a_dim: int | None = 1
    b_dim: int = 1
    sharing: tuple[int, int] = (64, 1)
    warps: int = 4

    @property
    def bits(self) -> int:
        return self.types[0].bits

    @property
    def fragment(self) -> Fragment:
        return wgmma_fragment(self.sharing[0], self.bits)

    @property
    def result(self) -> LinearLayout:
        return wgmma_result_layout(self.sharing, self.bits, self.shape[:2], self.warps)

    def operand(self, name: str) -> tuple[LinearLayout, WgmmaOperand]:
        m, n, k = self.shape
        shape, k_dim, dim = ((m, k), 1, self.a_dim) if name == "a" else ((k, n), 0, self.b_dim)
        assert dim is not None
        layout = wgmma_shared_layout(shape, self.bits, k_dim, dim)
        assert layout is not None
        operand = wgmma_operand(layout, k_dim=k_dim, element_bits=self.bits)
        assert operand is not None
        return layout, operand

    @property
    def block(self) -> WgmmaBlock:
        a = None if self.a_dim is None else self.operand("a")[1]
        return wgmma_block(self.fragment, self.result, self.types, a, self.operand("b")[1])


CASES = {
    "one": Case((64, 64, 64)),
    "b along k": Case((64, 128, 64), b_dim=0, sharing=(128, 1)),
    "a along m": Case((128, 64, 64), a_dim=0),
    "two groups, a along m": Case((256, 64, 32), a_dim=0, sharing=(64, 2), warps=8),
    "two groups along n": Case((64, 256, 64), sharing=(128, 1), warps=8),
    "both, narrow": Case((128, 32, 64), sharing=(16, 2), warps=16),
    "narrow panels": Case((64, 16, 128), sharing=(16, 1), a_dim=1),
    "a in registers": Case((128, 64, 64), a_dim=None),
    "wide": Case((128, 256, 64), sharing=(256, 2), warps=8),
    "bf16": Case((64, 64, 32), (bf16, bf16, f32)),
    "bf16, a in registers": Case((64, 64, 32), (bf16, bf16, f32), a_dim=None),
    "f16 sums": Case((128, 64, 32), (f16, f16, f16)),
    "tf32": Case((64, 64, 64), (f32, f32, f32), b_dim=0),
    "tf32, a in registers": Case((64, 64, 32), (f32, f32, f32), a_dim=None, b_dim=0),
    "fp8": Case((64, 64, 128), (f8e4m3, f8e5m2, f32), b_dim=0),
    "fp8, a in registers": Case((64, 64, 64), (f8e5m2, f8e5m2, f32), a_dim=None, b_dim=0),
    "s8": Case((64, 64, 128), (i8, i8, i32), b_dim=0),
    "u8 and s8, a in registers": Case((64, 64, 64), (u8, i8, i32), a_dim=None, b_dim=0),
}
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


def lowering_state(case: Case) -> GpuLowering:
    module = ModuleText()
    code = Code(module)
    code.sections = [[], []]
    return GpuLowering(module, code, H100, case.warps, {}, lambda *_: None)


def operands(state: GpuLowering, case: Case, slot: Val) -> tuple[list[Val], Val]:
    """A and B of a slot in shared memory; A in registers is loaded from where the slot says."""
    m, n, k = case.shape
    size, code = case.bits // 8, state.code
    start = code.let_here(f"mul i32 {slot}, {(m + n) * k * size}", "i32")
    start = code.let_here(f"add i32 {start}, %shared", "i32")
    b_start = code.let_here(f"add i32 {start}, {m * k * size}", "i32")
    b = descriptor_word(state, case.operand("b")[1], b_start, case.result, 1)
    if case.a_dim is not None:
        return [descriptor_word(state, case.operand("a")[1], start, case.result, 0)], b
    count = operand_layout(case.fragment, case.result, "a", k).in_size(REGISTER)
    type_ = llvm_type(case.types[0])
    values: list[Val] = []
    for i in range(count):
        offset = code.let_here(f"add i32 {start}, {8 * i}", "i32")
        pointer = code.let_here(f"getelementptr i8, ptr addrspace(1) %in, i32 {offset}", "ptr")
        loaded = code.let_here(f"load {type_}, ptr addrspace(1) {pointer}", type_)
        values.append(loaded)
    return a_in_registers(state, case.fragment, case.result, values, case.types[0]), b


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
    for i, value in enumerate(emit_wgmma_wait(state, new, case.types[2])):
        place = code.let_here(f"mul i32 %tid, {4 * count}", "i32")
        place = code.let_here(f"add i32 {place}, {4 * i}", "i32")
        pointer = code.let_here(f"getelementptr i8, ptr addrspace(1) %out, i32 {place}", "ptr")
        code.line(f"store {value.typed}, ptr addrspace(1) {pointer}")
    return module_text(state, "ptr addrspace(1) %in, ptr addrspace(1) %out, i32 %count")


def module_text(state: GpuLowering, parameters: str) -> str:
    tid = "llvm.nvvm.read.ptx.sreg.tid.x"
    state.module.declare(tid, f"declare i32 @{tid}()")
    state.module.globals.append("@memory = external addrspace(3) global [0 x i8], align 1024")
    head = [
        f"define ptx_kernel void @k({parameters}) #0 {{", "entry:", f"%tid = call i32 @{tid}()",
        "%lane = and i32 %tid, 31", "%warp = lshr i32 %tid, 5",
        "%shared = ptrtoint ptr addrspace(3) @memory to i32",
    ]  # fmt: skip
    entry = [line for lines in state.entry.values() for line in lines]
    body = [*head, *entry, *state.code.sections[0], "br label %start", "start:",
            *state.code.sections[1], "ret void", "}"]  # fmt: skip
    state.module.functions.append("\n".join(body))
    state.module.footer += [
        f'attributes #0 = {{ nounwind "nvvm.reqntid"="{32 * state.warps}" }}',
        "attributes #1 = { convergent nounwind }",
    ]
    return state.module.text(H100.target.triple, data_layout(H100.target))


def assembled(text: str) -> Assembled:
    assert unlisted(text, H100) == []
    return assemble(emit_ptx(text, H100, "k"), H100.cpu, "k")


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
    for i, value in enumerate(emit_wgmma(state, case.block, zeros, a, b, accumulate=False)):
        pointer = f"getelementptr (i8, ptr addrspace(1) null, i32 {4 * i})"
        state.code.line(f"store volatile {value.typed}, ptr addrspace(1) {pointer}")
    done = assembled(module_text(state, "ptr addrspace(1) %in"))
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
