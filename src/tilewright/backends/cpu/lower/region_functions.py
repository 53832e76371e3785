"""Combine and mapped functions with branches or loops: LLVM functions of scalars, one call per
lane.

Those without control flow need none: lane_reductions.py emits their ops on whole vectors.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.evaluate_lanes import RegionFunction
from tilewright.backends.cpu.lower.lane_values import Address, uniform
from tilewright.backends.cpu.lower.structured_control import scalar_operand
from tilewright.ir import Block, Function, Value
from tilewright.ir.types import DType, element_of
from tilewright.llvm import Code, Val, llvm_type
from tilewright.ops import ConstantOp, MapOp, ReduceOp, ScanOp


def define_region_functions(state: CpuLowering, function: Function) -> None:
    """Define a function for each region that is not straight-line code."""
    for op in function.walk():
        for block in op.regions if isinstance(op, ReduceOp | ScanOp | MapOp) else ():
            if any(inner.regions for inner in block):
                state.env.functions[block] = _defined(state, block)


def _defined(state: CpuLowering, block: Block) -> RegionFunction:
    outside = tuple(dict.fromkeys(_outside(block)))
    captured = tuple(value for value in outside if not isinstance(value.op, ConstantOp))
    name = f"region{len(state.env.functions)}"
    code = Code(state.module, state.code.float_flags, extrema=state.code.extrema)
    inner = CpuLowering(state.module, code, state.unit, state.lower_block, state.alignments)
    parameters = (*block.args, *captured)
    for number, value in enumerate(parameters):
        operand = Val(f"%x{number}", llvm_type(element_of(value.type)))
        is_number = isinstance(element_of(value.type), DType)
        inner.env.scalars[value] = uniform(operand) if is_number else Address(operand)
    ev = inner.evaluator()
    for value in outside:
        # Control flow reads its operands from the environment, which evaluators do not write.
        if value not in captured:
            inner.env.scalars[value] = ev.at(value, ())
    state.lower_block(inner, block)
    ev = inner.evaluator()
    results = [scalar_operand(ev.at(value, ())) for value in block.terminator.operands]
    type_ = f"{{ {', '.join(value.type for value in results)} }}"
    joined = "poison"
    for number, value in enumerate(results):
        text = f"insertvalue {type_} {joined}, {value.typed}, {number}"
        joined = code.let_here(text, type_).text
    typed = ", ".join(
        f"{llvm_type(element_of(value.type))} %x{number}" for number, value in enumerate(parameters)
    )
    head = f"define internal {type_} @{name}({typed}) alwaysinline {{"
    ends = [f"ret {type_} {joined}", "}"]
    body = [head, "entry:", *inner.entry, *code.sections[0], *ends]
    state.module.functions.append("\n".join(body))
    return RegionFunction(name, captured, tuple(value.type for value in results))


def _outside(block: Block) -> Iterator[Value]:
    """Values defined outside a region that its ops use."""
    inner = [op for outer in block for op in outer.walk()]
    own = {value for op in inner for value in op.results}
    own |= {arg for op in inner for region in op.regions for arg in region.args}
    own |= set(block.args)
    for op in inner:
        for value in op.operands:
            if value not in own:
                yield value
