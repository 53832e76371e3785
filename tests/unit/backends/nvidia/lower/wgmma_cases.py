"""Products of warpgroups for tests: different ways of addressing, all types, and their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.analysis.access_forms import MemoryForms
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.assemble.nvptx_legality import unlisted
from tilewright.backends.nvidia.assemble.ptx_emission import emit_ptx
from tilewright.backends.nvidia.assemble.ptxas import Assembled, assemble
from tilewright.backends.nvidia.layouts.select_wgmma import wgmma_result_layout
from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering
from tilewright.backends.nvidia.lower.warpgroup_mma import (
    WgmmaBlock,
    a_in_registers,
    descriptor_word,
    wgmma_block,
)
from tilewright.ir import Block, Function
from tilewright.ir.types import DType, bf16, f8e4m3, f8e5m2, f16, f32, i8, i32, u8
from tilewright.layout import (
    REGISTER,
    Fragment,
    LinearLayout,
    WgmmaOperand,
    operand_layout,
    wgmma_fragment,
    wgmma_operand,
    wgmma_shared_layout,
)
from tilewright.llvm import Code, ModuleText, Val, data_layout, llvm_type

H100 = row_for(90)
PARAMETERS = "ptr addrspace(1) %in, ptr addrspace(1) %out"


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


def lowering_state(case: Case) -> GpuLowering:
    """For a kernel that is made by hand, with the code of its body in section 1."""
    module = ModuleText()
    code = Code(module)
    code.sections = [[], []]
    forms = MemoryForms(Function("made_by_hand", Block()))
    return GpuLowering(module, code, H100, case.warps, {}, forms, lambda *_: None)


def operands(state: GpuLowering, case: Case, slot: Val) -> tuple[list[Val], Val]:
    """A and B of a slot in shared memory; A in registers lies in memory, thread by thread."""
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
    whole = code.let_here(f"mul i32 {slot}, {32 * case.warps * count * size}", "i32")
    own = code.let_here(f"mul i32 %tid, {count * size}", "i32")
    own = code.let_here(f"add i32 {own}, {whole}", "i32")
    for i in range(count):
        offset = code.let_here(f"add i32 {own}, {size * i}", "i32")
        pointer = code.let_here(f"getelementptr i8, ptr addrspace(1) %in, i32 {offset}", "ptr")
        loaded = code.let_here(f"load {type_}, ptr addrspace(1) {pointer}", type_)
        values.append(loaded)
    return a_in_registers(state, case.fragment, case.result, values, case.types[0]), b


def store_sums(state: GpuLowering, case: Case, sums: Sequence[Val]) -> None:
    """The sums of each thread behind each other."""
    code, size = state.code, case.types[2].bits // 8
    first = code.let_here(f"mul i32 %tid, {size * len(sums)}", "i32")
    for i, value in enumerate(sums):
        place = code.let_here(f"add i32 {first}, {size * i}", "i32")
        pointer = code.let_here(f"getelementptr i8, ptr addrspace(1) %out, i32 {place}", "ptr")
        code.line(f"store {value.typed}, ptr addrspace(1) {pointer}")


def module_text(state: GpuLowering, parameters: str) -> str:
    """The kernel `k` of what was emitted so far."""
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
    """By ptxas; all that the text is made of is known to compile."""
    assert unlisted(text, H100) == []
    return assemble(emit_ptx(text, H100, "k"), H100.cpu, "k")
