"""The stages of the NVIDIA backend: tile IR -> layouts -> LLVM IR -> PTX -> cubin.

Separate from the manifest, since a kernel from the disk cache needs none of their imports.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import astuple
from typing import cast

from tilewright.analysis import MAY_OVERLAP
from tilewright.backends.explanation import Resources
from tilewright.backends.manifest import GPUTarget, StageContext
from tilewright.backends.nvidia.arch import Arch, row_for
from tilewright.backends.nvidia.assemble.call_chains import add_call_chains
from tilewright.backends.nvidia.assemble.ptx_emission import emit_ptx
from tilewright.backends.nvidia.assemble.ptxas import Assembled, Report, assemble, has_ptxas, sass
from tilewright.backends.nvidia.assemble.ptxas_workarounds import work_around_ptxas
from tilewright.backends.nvidia.contracts import front_end
from tilewright.backends.nvidia.driver import device_target
from tilewright.backends.nvidia.driver.cuda_driver import driver
from tilewright.backends.nvidia.explain.occupancy import resources_of
from tilewright.backends.nvidia.lower.gpu_function import lower_function
from tilewright.backends.nvidia.pipeline import (
    Choices,
    choices_of,
    front_pipeline,
    layout_pipeline,
)
from tilewright.backends.nvidia.register_model import needed_warps
from tilewright.backends.nvidia.shared_memory.allocate_shared import allocate_shared, largest_uses
from tilewright.backends.nvidia.spill_recovery import WARPS, note_effective
from tilewright.ir import Module, Pipeline, parse_valid_module
from tilewright.support import TilewrightWarning, errors

_MAX_BLOCKS = 16
"""Blocks of a cluster, where the device allows more than the portable 8."""


def _arch(context: StageContext) -> Arch:
    return row_for(int(context.target.arch))


def passes_of(target: GPUTarget) -> Pipeline:
    """The passes of a target, for the default options."""
    defaults = Choices(row_for(int(target.arch)))
    front, layouts = front_pipeline(defaults), layout_pipeline(defaults)
    return Pipeline("cuda", front.steps + layouts.steps, front.given + layouts.given)


def prepared(module: Module, context: StageContext) -> Module:
    """The module after the passes before layouts; records the warps of a program if there are more
    than the launch requests."""
    options, arch = context.options, _arch(context)
    warps = needed_warps(module.kernel, options.num_warps, arch)
    if warps > options.num_warps and options.maxnreg is None:
        context.metadata[WARPS] = warps
    if options.may_overlap:
        module.kernel.attrs[MAY_OVERLAP] = True
    front_pipeline(choices_of(context)).run(module)
    return module


def laid_out(module: Module, context: StageContext) -> Module:
    """A copy of the module after the layout passes."""
    laid = Module(tuple(f.clone() for f in module.functions.values()))
    effective = set[str]()
    layout_pipeline(choices_of(context)).run(laid, effective)
    note_effective(effective, context.metadata)
    return laid


def lowered(module: Module, context: StageContext) -> str:
    """The kernel as LLVM IR; records its resources and how it is launched."""
    arch, options = _arch(context), context.options
    _check_cluster(arch, options.num_ctas)
    offsets, size = allocate_shared(module.kernel, arch)
    if size > arch.shared_optin:
        notes = largest_uses(module.kernel, arch)
        raise errors.OutOfResources(size, arch.shared_optin, "shared memory", notes=notes)
    function = lower_function(
        module.kernel,
        arch,
        choices_of(context).warps,
        offsets,
        maxnreg=options.maxnreg,
        contract=options.enable_fp_fusion,
        num_ctas=options.num_ctas,
    )
    context.metadata.update(name=function.symbol, shared=size)
    if function.threads != 32 * options.num_warps:
        context.metadata.update(threads=function.threads)
    if function.is_persistent:
        warps = function.threads // arch.warp_size
        resources = resources_of(arch, warps, function.registers, 0, size)
        context.metadata.update(resident=resources.programs, shares_copies=function.shares_copies)
    if function.tensor_maps:
        maps = [source.plain() for source in function.tensor_maps]
        context.metadata.update(tensor_maps=maps)
    if function.asserts or function.prints:
        prints = [astuple(printed) for printed in function.prints]
        context.metadata.update(asserts=list(function.asserts), prints=prints)
    return function.text


def _check_cluster(arch: Arch, num_ctas: int) -> None:
    """Raise InvalidOption for a cluster that the architecture does not support."""
    if num_ctas > 1 and not arch.clusters:
        expected = f"1 on {arch.name}, which has no clusters"
        triton = "num_ctas > 1 requires NVIDIA SM90+ (Hopper)"
        raise errors.InvalidOption("num_ctas", expected, num_ctas, triton=triton)
    if num_ctas > _MAX_BLOCKS:
        raise errors.InvalidOption("num_ctas", f"at most {_MAX_BLOCKS}", num_ctas)


def assembly(text: str, context: StageContext) -> str:
    """The PTX of LLVM IR; `emit_ptx` isolates crashes of LLVM in a child process."""
    ptx = emit_ptx(text, _arch(context), cast("str", context.metadata["name"]))
    return add_call_chains(work_around_ptxas(ptx), text)


def machine_code(ptx: str, context: StageContext) -> bytes:
    """The cubin; assembled again with a register limit where that may be better."""
    made = _assembled(ptx, context)
    limit = _register_limit(made.report, ptx, context)
    if limit is not None:
        limited = re.sub(r"(\.reqntid [^\n]+\n)", rf"\1.maxnreg {limit}\n", ptx, count=1)
        made = min(_assembled(limited, context), made, key=lambda one: _spilled(one.report))
    report = made.report
    context.metadata.update(
        registers=report.registers, spills=(report.spill_stores + report.spill_loads) // 4
    )
    return made.cubin


def _register_limit(report: Report, ptx: str, context: StageContext) -> int | None:
    """A limit with which ptxas may do better than without.

    Where registers do not suffice, ptxas may fall back to 32, but not with an explicit limit.
    Otherwise a limit may let more programs run on a multiprocessor. MMAs hide latency themselves: a
    kernel with MMAs keeps its registers.
    """
    if ".maxnreg" in ptx:
        return None
    if _spilled(report):
        most = _most_registers(context)
        return most if report.registers < most else None
    return None if "mma." in ptx else _limit_for_more_programs(report.registers, context)


_LEAST_REGISTERS = 0.8
"""The lowest limit, as a fraction of the registers in use: a lower one costs spills, or loads in
flight."""

_LEAST_GAIN = 1.25
"""Programs of a multiprocessor with a limit, as a multiple of those without."""

_FEW_PROGRAMS, _LOW_OCCUPANCY = 4, 0.5
"""A limit may pay where so few programs run on a multiprocessor, or so few of its warps."""


def _limit_for_more_programs(registers: int, context: StageContext) -> int | None:
    """Registers per thread with which more programs run on a multiprocessor."""
    arch, threads = _arch(context), _threads(context)
    shared = int(context.metadata.get("shared") or 0)

    def resources(number: int) -> Resources:
        return resources_of(arch, threads // arch.warp_size, number, 0, shared)

    before = resources(registers)
    many = before.programs > _FEW_PROGRAMS and before.occupancy >= _LOW_OCCUPANCY
    if before.limit != "registers" or many:
        return None
    programs = resources(-(-int(_LEAST_REGISTERS * registers) // 8) * 8).programs
    if programs < _LEAST_GAIN * before.programs:
        return None
    return arch.registers_sm // (threads * programs) // 8 * 8


def _threads(context: StageContext) -> int:
    """Threads of a program."""
    by_warps = _arch(context).warp_size * context.options.num_warps
    return int(context.metadata.get("threads") or by_warps)


def _most_registers(context: StageContext) -> int:
    """Registers that each thread of a program can have, in units of eight."""
    arch = _arch(context)
    return min(arch.registers_thread, arch.registers_sm // _threads(context) // 8 * 8)


def _spilled(report: Report) -> int:
    """Bytes per thread that are spilled and reloaded; in the driver's report, its local memory."""
    return report.spill_stores + report.spill_loads or report.stack


def _assembled(ptx: str, context: StageContext) -> Assembled:
    """Assemble by ptxas; without it, by the driver's compiler if the device here is the target.

    The driver compiles for linking with other code: without an occupancy target, it uses up to four
    times the registers (ADR 0061); `setmaxnreg` is ignored (C7504).
    """
    name, limit = cast("str", context.metadata["name"]), context.options.maxnreg
    arch = _arch(context)
    if device_target.is_device_target(context.target) and not has_ptxas(arch.ptx):
        warnings.warn(_NO_PTXAS, TilewrightWarning, stacklevel=2)
        return driver().compile_ptx(ptx, name, driver().current_device(), maxnreg=limit)
    return assemble(ptx, arch.cpu, name, maxnreg=limit)


_NO_PTXAS = (
    "ptxas was not found, or is older than the GPU: the driver compiles kernels instead, which "
    "then take more registers and run slower (pip install nvidia-cuda-nvcc)"
)


def disassembly(artifacts: Mapping[str, str | bytes], target: GPUTarget) -> str:
    """The text of the machine code."""
    return sass(cast("bytes", artifacts["cubin"]))


def located_disassembly(artifacts: Mapping[str, str | bytes], target: GPUTarget) -> str:
    """The text of the machine code with the source lines."""
    return sass(cast("bytes", artifacts["cubin"]), lines=True)


def parsed(text: str, _: StageContext) -> Module:
    """The module of a text of the first stage."""
    return parse_valid_module(text, front_end())


def parsed_with_layouts(text: str, context: StageContext) -> Module:
    """The module of a text with layouts, verified as the passes guarantee it to lowering."""
    return parse_valid_module(text, layout_pipeline(choices_of(context)).legal_after)
