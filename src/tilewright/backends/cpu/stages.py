"""The stages of the CPU backend: tile IR -> prepared tile IR -> LLVM IR -> object file.

Separate from the manifest, since a kernel from the disk cache needs none of their imports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from tilewright.analysis import MAY_OVERLAP
from tilewright.backends.cpu.contracts import texts_for
from tilewright.backends.cpu.driver.host_cpu import last_level_cache_bytes, own_cache_bytes
from tilewright.backends.cpu.lower.cpu_function import LoweredKernel, lower_function
from tilewright.backends.cpu.lower.lowering_record import LoweringRecord
from tilewright.backends.cpu.microkernel import vector_unit
from tilewright.backends.cpu.pipeline import pipeline_of, run_pipeline
from tilewright.backends.cpu.target_cpu import target_cpu
from tilewright.backends.manifest import GPUTarget, StageContext
from tilewright.ir import Module, Pipeline, parse_valid_module
from tilewright.llvm import compile_ir, cpu_target, emit_assembly
from tilewright.transforms.expand import load_expansion_ops


def prepared(module: Module, context: StageContext) -> Module:
    """The module after the passes of the pipeline."""
    if context.options.may_overlap:
        module.kernel.attrs[MAY_OVERLAP] = True
    run_pipeline(module, target_cpu(context.target), context)
    return module


def passes_of(target: GPUTarget) -> Pipeline:
    """The pass pipeline of a target."""
    return pipeline_of(target_cpu(target))


def lowered(module: Module, context: StageContext) -> str:
    """The kernel as LLVM IR; records how it is launched."""
    function = lowered_function(module, context)
    context.metadata.update(
        name=function.symbol,
        scratch_bytes=function.scratch_bytes,
        alone=function.alone,
        together=function.together,
        waits=[[list(f[:-1]) for f in op.loc.frames()] if op.loc else [] for op in function.waits],
        shared=1,  # a divisor, see `backend._properties`
        global_scratch_size=0,
    )
    return function.text


def lowered_function(
    module: Module, context: StageContext, record: LoweringRecord | None = None
) -> LoweredKernel:
    """The kernel as LLVM IR with its properties. record: receives the choices"""
    cpu = target_cpu(context.target)
    return lower_function(
        module.kernel,
        vector_unit(cpu),
        cpu.function_attributes,
        contract=context.options.enable_fp_fusion,
        stream_above=last_level_cache_bytes() if cpu.is_x86 else 0,
        fetch_above=2 * own_cache_bytes(),
        record=record,
    )


def machine_code(text: str, context: StageContext) -> bytes:
    """The object file of a kernel in LLVM IR."""
    return compile_ir(text, cpu_target(target_cpu(context.target)))


def assembly(artifacts: Mapping[str, str | bytes], target: GPUTarget) -> str:
    """The assembly text of a kernel, from its LLVM IR."""
    return emit_assembly(cast("str", artifacts["llir"]), cpu_target(target_cpu(target)))


def parsed(text: str, context: StageContext) -> Module:
    """The module of a text of the first stage."""
    load_expansion_ops()
    return parse_valid_module(text, texts_for(target_cpu(context.target)))
