"""The manifest of the NVIDIA backend: tile IR -> layouts -> LLVM IR -> PTX -> cubin."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, cast

from tilewright.backends.explanation import Explanation, LaunchSizes
from tilewright.backends.manifest import (
    Backend,
    CommonOptions,
    GPUTarget,
    Launcher,
    Metadata,
    Stage,
    StageContext,
)
from tilewright.backends.nvidia.arch import Arch, row_for
from tilewright.backends.nvidia.assemble.call_chains import add_call_chains
from tilewright.backends.nvidia.assemble.ptx_emission import emit_ptx
from tilewright.backends.nvidia.assemble.ptxas import Assembled, Report, assemble, find_ptxas, sass
from tilewright.backends.nvidia.assemble.ptxas import version as ptxas_version
from tilewright.backends.nvidia.assemble.ptxas_workarounds import work_around_ptxas
from tilewright.backends.nvidia.contracts import front_end
from tilewright.backends.nvidia.driver.cuda_driver import driver, unavailable_reason
from tilewright.backends.nvidia.driver.cuda_errors import CudaAfterFork, CudaCallFailed
from tilewright.backends.nvidia.driver.event_timer import CudaEventTimer
from tilewright.backends.nvidia.driver.gpu_launcher import LAUNCH_METADATA, NvidiaLauncher
from tilewright.backends.nvidia.driver.stream_order import MEMORY
from tilewright.backends.nvidia.explain.occupancy import resources_of
from tilewright.backends.nvidia.lower.allocate_shared import allocate_shared, largest_uses
from tilewright.backends.nvidia.lower.gpu_function import lower_function
from tilewright.backends.nvidia.lower.shared_usage import Machine
from tilewright.backends.nvidia.pipeline import front_pipeline, layout_pipeline, options_pipeline
from tilewright.ir import Module, Pipeline, parse_valid_module
from tilewright.llvm import llvm_version
from tilewright.support import TilewrightWarning, errors, import_late, settings


@dataclass(frozen=True, slots=True)
class NvidiaOptions(CommonOptions):
    """Options of a launch on an NVIDIA GPU; names and defaults are Triton's."""

    default_dot_input_precision: str = "tf32"


_MAX_BLOCKS = 16
"""Of a cluster, where the device allows more than the 8 that every one has."""


def _arch(context: StageContext) -> Arch:
    return row_for(int(context.target.arch))


def _pipeline(target: GPUTarget) -> Pipeline:
    return Pipeline(
        "cuda",
        (
            *front_pipeline(int(target.arch)).steps,
            *layout_pipeline(row_for(int(target.arch)), 4, 3).steps,
        ),
    )


def _ttir(module: Module, context: StageContext) -> Module:
    options = context.options
    front_pipeline(int(context.target.arch), options.bulk_loads, options.num_warps).run(module)
    return module


def _ttgir(module: Module, context: StageContext) -> Module:
    laid = Module(tuple(f.clone() for f in module.functions.values()))
    options_pipeline(context).run(laid)
    return laid


def _llir(module: Module, context: StageContext) -> str:
    arch, options = _arch(context), context.options
    _check_cluster(arch, options.num_ctas)
    machine = Machine.of(arch)
    offsets, size = allocate_shared(module.kernel, machine)
    if size > arch.shared_optin:
        notes = largest_uses(module.kernel, machine)
        raise errors.OutOfResources(size, arch.shared_optin, "shared memory", notes=notes)
    lowered = lower_function(
        module.kernel,
        arch,
        options.num_warps,
        offsets,
        maxnreg=options.maxnreg,
        contract=options.enable_fp_fusion,
        num_ctas=options.num_ctas,
    )
    context.metadata.update(name=lowered.symbol, shared=size)
    if lowered.threads != 32 * options.num_warps:
        context.metadata.update(threads=lowered.threads)
    if lowered.is_persistent:
        warps = lowered.threads // arch.warp_size
        resources = resources_of(arch, warps, lowered.registers, 0, size)
        context.metadata.update(resident=resources.programs, shares_copies=lowered.shares_copies)
    if lowered.tensor_maps:
        maps = [source.plain() for source in lowered.tensor_maps]
        context.metadata.update(tensor_maps=maps)
    if lowered.asserts or lowered.prints:
        prints = [astuple(printed) for printed in lowered.prints]
        context.metadata.update(asserts=list(lowered.asserts), prints=prints)
    return lowered.text


def _check_cluster(arch: Arch, num_ctas: int) -> None:
    """Raise InvalidOption for a cluster that the architecture has not."""
    if num_ctas > 1 and not arch.clusters:
        raise errors.InvalidOption("num_ctas", f"1 on {arch.name}, which has no clusters", num_ctas)
    if num_ctas > _MAX_BLOCKS:
        raise errors.InvalidOption("num_ctas", f"at most {_MAX_BLOCKS}", num_ctas)


def _ptx(text: str, context: StageContext) -> str:
    """LLVM ends the process on what it cannot compile; `emit_ptx` keeps that in a child process."""
    ptx = emit_ptx(text, _arch(context), cast("str", context.metadata["name"]))
    return add_call_chains(work_around_ptxas(ptx), text)


def _cubin(ptx: str, context: StageContext) -> bytes:
    """With all registers of a thread where ptxas spills some and takes fewer: what does not fit
    anyway it may give up on, and take 32. Told their number, it does not."""
    made = _assembled(ptx, context)
    most = _most_registers(context)
    if _spilled(made.report) and made.report.registers < most and ".maxnreg" not in ptx:
        limited = re.sub(r"(\.reqntid [^\n]+\n)", rf"\1.maxnreg {most}\n", ptx, count=1)
        made = min(made, _assembled(limited, context), key=lambda one: _spilled(one.report))
    report = made.report
    context.metadata.update(
        registers=report.registers, spills=(report.spill_stores + report.spill_loads) // 4
    )
    return made.cubin


def _most_registers(context: StageContext) -> int:
    """Registers that each thread of a program can have, in eights as they are given."""
    arch = _arch(context)
    threads = int(context.metadata.get("threads") or arch.warp_size * context.options.num_warps)
    return min(arch.registers_thread, arch.registers_sm // threads // 8 * 8)


def _spilled(report: Report) -> int:
    """Bytes of a thread that go to local memory and back; as the driver counts, that lie there."""
    return report.spill_stores + report.spill_loads or report.stack


def _assembled(ptx: str, context: StageContext) -> Assembled:
    """By the driver's compiler if the device here is the target and it can, else by ptxas."""
    name, limit = cast("str", context.metadata["name"]), context.options.maxnreg
    if _by_driver(context.target) and not _needs_ptxas(ptx):
        return driver().compile_ptx(ptx, name, driver().current_device(), maxnreg=limit)
    return assemble(ptx, _arch(context).cpu, name, maxnreg=limit)


def _needs_ptxas(ptx: str) -> bool:
    """Whether warps give registers to others, which code from the driver's linker does not do.

    It compiles as for linking with other code (C7504), so consumers would spill: with ptxas
    missing, as they then do, a warning says so.
    """
    if "setmaxnreg" not in ptx:
        return False
    try:
        find_ptxas()
    except errors.ToolMissing as missing:
        warnings.warn(
            f"{missing.tool} was not found: this kernel, whose copies have a warp of their own, "
            "runs slower without it (pip install nvidia-cuda-nvcc)",
            TilewrightWarning,
            stacklevel=2,
        )
        return False
    return True


def _by_driver(target: GPUTarget) -> bool:
    """Whether the driver's compiler makes the machine code: if the device here is the target, and
    the driver works: not so in a child that was forked after its start, nor after a fault."""
    if unavailable_reason() is not None:
        return False
    try:
        return _device_capability() == int(target.arch)
    except (CudaAfterFork, CudaCallFailed):
        return False


def _device_capability() -> int:
    return driver().device(driver().current_device()).capability


def _load(binary: bytes, metadata: Metadata, parameters: Sequence[str]) -> Launcher:
    blocking = settings().cuda.launch_blocking
    return NvidiaLauncher(binary, metadata, parameters, blocking=blocking)


def _explain(module: Module, context: StageContext, sizes: LaunchSizes | None) -> Explanation:
    # at the first use: launches need none of it
    explain_kernel = import_late("tilewright.backends.nvidia.explain.explain_kernel")
    return explain_kernel.explain_kernel(module, context, sizes)


def _sass(artifacts: Mapping[str, str | bytes], target: GPUTarget) -> str:
    return sass(cast("bytes", artifacts["cubin"]))


def _same(text: str, _: StageContext) -> Any:
    return text


def _target() -> GPUTarget:
    """The current device's, or the one that the setting names."""
    chosen = settings().compilation.override_arch
    if chosen is None:
        return GPUTarget("cuda", _device_capability(), 32)
    named = re.fullmatch(r"(?:sm_?)?(\d+)[af]?", chosen)
    if named is None:
        raise errors.InvalidOption("override_arch", "an architecture such as sm90", chosen)
    return GPUTarget("cuda", int(named[1]), 32)


def _properties(index: int) -> dict[str, int]:
    device = driver().device(index)
    return {
        "max_shared_mem": device.shared_optin,
        "max_num_regs": device.registers_block,
        "multiprocessor_count": device.multiprocessors,
        "max_threads_per_sm": device.threads_sm,
        "warpSize": device.warp_size,
        "sm_clock_rate": device.clock,
        "mem_clock_rate": device.memory_clock,
        "mem_bus_width": device.bus_bits,
    }


def _version(target: GPUTarget) -> str:
    """LLVM makes the PTX; the driver or ptxas the code for one architecture."""
    return f"llvmlite {llvm_version()} {_assembler(target)} sm_{target.arch}"


def _assembler(target: GPUTarget) -> str:
    if _by_driver(target):
        return f"driver {driver().version}"
    try:
        return f"ptxas {ptxas_version(find_ptxas())}"
    except errors.ToolMissing:
        return "no ptxas"  # the last stage will say so


def _parsed(text: str, _: StageContext) -> Module:
    return parse_valid_module(text, front_end())


def _parsed_with_layouts(text: str, context: StageContext) -> Module:
    """Lowering relies on what the passes guarantee: layouts for this number of warps, among it."""
    return parse_valid_module(text, options_pipeline(context).guaranteed)


BACKEND = Backend(
    name="cuda",
    options=NvidiaOptions,
    stages=(
        Stage("ttir", _ttir, _parsed, _pipeline),
        Stage("ttgir", _ttgir, _parsed_with_layouts),
        Stage("llir", _llir, _same),
        Stage("ptx", _ptx, _same),
        Stage("cubin", _cubin, _same),
    ),
    load=_load,
    available=lambda: unavailable_reason() is None,
    target=_target,
    artifacts={"sass": _sass},
    version=_version,
    clock=CudaEventTimer,
    memory=MEMORY,
    launch_metadata=LAUNCH_METADATA,
    explain=_explain,
    properties=_properties,
)
