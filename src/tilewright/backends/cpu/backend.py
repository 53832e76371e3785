"""The manifest of the CPU backend: tile IR -> prepared tile IR -> LLVM IR -> object file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

from tilewright.backends.cpu.contracts import front_end
from tilewright.backends.cpu.driver.cpu_launcher import CpuLauncher
from tilewright.backends.cpu.driver.host_cpu import last_level_cache_bytes
from tilewright.backends.cpu.lower.cpu_function import lower_function
from tilewright.backends.cpu.microkernel import vector_unit
from tilewright.backends.cpu.pipeline import pipeline_of, run_pipeline
from tilewright.backends.manifest import (
    DEVICE_PROPERTIES,
    Backend,
    CommonOptions,
    GPUTarget,
    Launcher,
    Metadata,
    Stage,
    StageContext,
)
from tilewright.ir import Module, Pipeline, parse_valid_module
from tilewright.llvm import (
    CPU_NAMES,
    TargetCpu,
    compile_ir,
    cpu_named,
    cpu_target,
    emit_assembly,
    host_cpu,
    llvm_version,
)
from tilewright.support import errors, import_late, settings, thread_count
from tilewright.transforms.expand import load_expansion_ops

_UNLIMITED_BYTES = 2**31 - 1
"""Reported as shared memory: a program uses ordinary memory instead."""


@dataclass(frozen=True, slots=True)
class CpuOptions(CommonOptions):
    """Options of a CPU launch.

    `num_warps`, `num_stages`, `num_ctas`, `maxnreg` and the options of GPU launches mean nothing
    here: a program instance is one thread. `enable_fp_fusion` lets a * b + c round once.
    """

    def meaningful(self) -> Self:
        """Without those."""
        return replace(self, **{name: getattr(_DEFAULTS, name) for name in _MEANINGLESS})


_DEFAULTS = CpuOptions()
_MEANINGLESS = (
    "num_warps",
    "num_stages",
    "num_ctas",
    "maxnreg",
    "launch_pdl",
    "launch_cooperative_grid",
    "bulk_loads",
    "persistent",
)


def _cpu(target: GPUTarget) -> TargetCpu:
    """The CPU that a target names. Errors: UnknownTarget."""
    cpu = cpu_named(str(target.arch))
    if cpu is None:
        raise errors.UnknownTarget(f"cpu:{target.arch}", (host_cpu().name, *CPU_NAMES))
    return cpu


def _ttir(module: Module, context: StageContext) -> Module:
    run_pipeline(module, _cpu(context.target), context)
    return module


def _pipeline(target: GPUTarget) -> Pipeline:
    return pipeline_of(_cpu(target))


def _llir(module: Module, context: StageContext) -> str:
    cpu = _cpu(context.target)
    lowered = lower_function(
        module.kernel,
        vector_unit(cpu),
        cpu.function_attributes,
        contract=context.options.enable_fp_fusion,
        stream_above=last_level_cache_bytes() if cpu.is_x86 else 0,
    )
    context.metadata.update(
        name=lowered.symbol,
        scratch_bytes=lowered.scratch_bytes,
        alone=lowered.alone,
        together=lowered.together,
        shared=0,
        global_scratch_size=0,
    )
    return lowered.text


def _obj(text: str, context: StageContext) -> bytes:
    return compile_ir(text, cpu_target(_cpu(context.target))).obj


def _load(binary: bytes, metadata: Metadata, parameters: Sequence[str]) -> Launcher:
    target = metadata.get("target")
    if target is not None and not _cpu(target).runs_here:
        what = f"the kernel was compiled for {target.arch}"
        raise errors.BackendUnavailable("cpu", what, "compile it without naming a target")
    # Checked programs run in order: they note which of them have used what.
    threads = 1 if "checks" in metadata else settings().cpu.threads
    return CpuLauncher(binary, metadata, parameters, threads)


def _drop_lines(spans: Sequence[tuple[int, int]]) -> bool:
    # at the first use: only benchmarks drop memory
    cache_flush = import_late("tilewright.backends.cpu.driver.cache_flush")
    return cache_flush.drop_lines(spans, settings().cpu.threads)


def _assembly(artifacts: Mapping[str, str | bytes], target: GPUTarget) -> str:
    return emit_assembly(cast("str", artifacts["llir"]), cpu_target(_cpu(target)))


def _same(text: str, _: StageContext) -> Any:
    return text


def _target() -> GPUTarget:
    return GPUTarget("cpu", host_cpu().name, 1)


def _properties(_device: int) -> dict[str, int]:
    """A thread of the pool counts as a multiprocessor; it runs one program, in ordinary memory."""
    measured = {
        "max_shared_mem": _UNLIMITED_BYTES,
        "multiprocessor_count": settings().cpu.threads or thread_count(),
        "max_threads_per_sm": 1,
        "warpSize": 1,
    }
    return {name: measured.get(name, 0) for name in DEVICE_PROPERTIES}


def _version(target: GPUTarget) -> str:
    """Changes with whatever changes the machine code: LLVM and the CPU's features."""
    cpu = _cpu(target)
    return f"llvmlite {llvm_version()} {cpu.name} {cpu.features}"


def _parsed(text: str, _: StageContext) -> Module:
    load_expansion_ops()
    return parse_valid_module(text, front_end())


BACKEND = Backend(
    name="cpu",
    options=CpuOptions,
    stages=(
        Stage("ttir", _ttir, _parsed, _pipeline),
        Stage("llir", _llir, _same),
        Stage("obj", _obj, _same),
    ),
    load=_load,
    available=lambda: True,
    target=_target,
    artifacts={"asm": _assembly},
    version=_version,
    properties=_properties,
    architectures=CPU_NAMES,
    drop_lines=_drop_lines,
    launch_metadata=("scratch_bytes", "alone", "together", "checks"),
    checks=True,
)
