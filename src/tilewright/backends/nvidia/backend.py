"""The manifest of the NVIDIA backend: tile IR -> layouts -> LLVM IR -> PTX -> cubin."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.backends.manifest import (
    Backend,
    CommonOptions,
    GPUTarget,
    Launcher,
    Metadata,
    Stage,
    StageContext,
)
from tilewright.backends.nvidia.assemble.ptxas import find_ptxas, has_ptxas, ptxas_stamp
from tilewright.backends.nvidia.assemble.ptxas import version as ptxas_version
from tilewright.backends.nvidia.driver import device_target
from tilewright.backends.nvidia.driver.cuda_driver import driver, unavailable_reason
from tilewright.backends.nvidia.driver.driver_api import load_api
from tilewright.backends.nvidia.driver.event_timer import CudaEventTimer
from tilewright.backends.nvidia.driver.gpu_launcher import LAUNCH_METADATA, NvidiaLauncher
from tilewright.backends.nvidia.driver.stream_order import MEMORY
from tilewright.backends.nvidia.spill_recovery import RECOMPILATION
from tilewright.llvm import llvm_version
from tilewright.support import errors, function_late, import_late, settings
from tilewright.support.asynchronous_exceptions import suppress
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class NvidiaOptions(CommonOptions):
    """Options of a launch on an NVIDIA GPU; names and defaults are Triton's."""

    default_dot_input_precision: str = "tf32"


def _load(binary: bytes, metadata: Metadata, parameters: Sequence[str]) -> Launcher:
    blocking = settings().cuda.launch_blocking
    return NvidiaLauncher(binary, metadata, parameters, blocking=blocking)


def _same(text: str, _: StageContext) -> Any:
    return text


def _target() -> GPUTarget:
    """The target of the current device, or of the setting."""
    chosen = settings().compilation.override_arch
    if chosen is None:
        return GPUTarget("cuda", device_target.device_capability(), 32)
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
    """The versions of LLVM, which emits PTX, and of ptxas or the driver, which assemble it."""
    return f"llvmlite {llvm_version()} {_assembler(target)} sm_{target.arch}"


def _assembler(target: GPUTarget) -> str:
    if device_target.is_device_target(target):
        return f"driver {driver().version} {ptxas_stamp()}"
    try:
        return f"ptxas {ptxas_version(find_ptxas())}"
    except errors.ToolMissing:
        return "no ptxas"  # the last stage reports it


def _shared_version(target: GPUTarget) -> str:
    """`_version` with the release of ptxas, for which ptxas runs, instead of its file's time."""
    if device_target.is_device_target(target):
        arch = import_late("tilewright.backends.nvidia.arch").row_for(int(target.arch))
        if not has_ptxas(arch.ptx):
            return f"llvmlite {llvm_version()} driver {driver().version}"
    try:
        return f"llvmlite {llvm_version()} ptxas {ptxas_version(find_ptxas())}"
    except errors.ToolMissing:
        return f"llvmlite {llvm_version()} no ptxas"


def _prepare() -> None:
    """Import the bindings, as the search for a GPU does, and query the version of ptxas."""
    with suppress(errors.BackendUnavailable):
        load_api()
    with suppress(errors.ToolMissing):
        ptxas_version(find_ptxas())


def _stage(name: str) -> Callable[..., Any]:
    return function_late(f"tilewright.backends.nvidia.stages:{name}")


BACKEND = Backend(
    name="cuda",
    options=NvidiaOptions,
    profiler=function_late("tilewright.backends.nvidia.driver.activity_profiler:ActivityProfiler"),
    stages=(
        Stage("ttir", _stage("prepared"), _stage("parsed"), _stage("passes_of")),
        Stage("ttgir", _stage("laid_out"), _stage("parsed_with_layouts")),
        Stage("llir", _stage("lowered"), _same),
        Stage("ptx", _stage("assembly"), _same),
        Stage("cubin", _stage("machine_code"), _same),
    ),
    load=_load,
    available=lambda: unavailable_reason() is None,
    orders_overlaps=True,
    target=_target,
    artifacts={"sass": _stage("disassembly"), "sass_lines": _stage("located_disassembly")},
    version=_version,
    clock=CudaEventTimer,
    memory=MEMORY,
    peer_memory=function_late("tilewright.backends.nvidia.driver.peer_memory:peer_memory"),
    launch_metadata=LAUNCH_METADATA,
    explain=function_late("tilewright.backends.nvidia.explain.explain_kernel:explain_kernel"),
    properties=_properties,
    op_modules=("tilewright.backends.nvidia.stages",),
    prepare=_prepare,
    recompilation=RECOMPILATION,
    shared_version=_shared_version,
    device_name=lambda: driver().device(driver().current_device()).name,
)
