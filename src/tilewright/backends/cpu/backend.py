"""The manifest of the CPU backend: tile IR -> prepared tile IR -> LLVM IR -> object file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

from tilewright.backends.cpu.driver.cpu_launcher import CpuLauncher
from tilewright.backends.cpu.target_cpu import target_cpu
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
from tilewright.llvm import CPU_NAMES, host_cpu, llvm_version
from tilewright.support import errors, function_late, import_late, settings, thread_count
from tilewright.support.data_class import dataclass

_UNLIMITED_BYTES = 2**31 - 1
"""Reported as shared memory: a program uses ordinary memory instead."""
_UNLIMITED_REGISTERS = 1 << 16
"""Reported as registers: as many as a multiprocessor of a GPU has."""


@dataclass(frozen=True, slots=True)
class CpuOptions(CommonOptions):
    """Options of a CPU launch.

    `num_warps`, `num_stages`, `num_ctas`, `maxnreg` and the options of GPU launches mean nothing
    here: a program instance is one thread. `enable_fp_fusion` lets a * b + c round once.
    """

    def meaningful(self) -> Self:
        """These options with the meaningless ones at their defaults."""
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


def _load(binary: bytes, metadata: Metadata, parameters: Sequence[str]) -> Launcher:
    target = metadata.get("target")
    if target is not None and not target_cpu(target).runs_here:
        what = f"the kernel was compiled for {target.arch}"
        raise errors.BackendUnavailable("cpu", what, "compile it without naming a target")
    # Checked programs run in order: each records the memory that it has used.
    threads = 1 if "checks" in metadata else settings().cpu.threads
    return CpuLauncher(binary, metadata, parameters, threads)


def _drop_lines(spans: Sequence[tuple[int, int]]) -> bool:
    # at the first use: only benchmarks flush caches
    cache_flush = import_late("tilewright.backends.cpu.driver.cache_flush")
    return cache_flush.drop_lines(spans, settings().cpu.threads)


def _target() -> GPUTarget:
    return GPUTarget("cpu", host_cpu().name, 1)


def _properties(_device: int) -> dict[str, int]:
    """A thread of the pool counts as a multiprocessor; it runs one program, in ordinary memory.

    Kernels count one register and one byte of shared memory (`CpuLauncher.n_regs`), by which
    programs divide these limits to find how many of them fit.
    """
    measured = {
        "max_shared_mem": _UNLIMITED_BYTES,
        "max_num_regs": _UNLIMITED_REGISTERS,
        "multiprocessor_count": settings().cpu.threads or thread_count(),
        "max_threads_per_sm": 1,
        "warpSize": 1,
    }
    return {name: measured.get(name, 0) for name in DEVICE_PROPERTIES}


def _version(target: GPUTarget) -> str:
    """The version of the machine code: LLVM and the CPU's features."""
    cpu = target_cpu(target)
    return f"llvmlite {llvm_version()} {cpu.name} {cpu.features}"


def _same(text: str, _: StageContext) -> Any:
    return text


def _stage(name: str) -> Callable[..., Any]:
    return function_late(f"tilewright.backends.cpu.stages:{name}")


BACKEND = Backend(
    name="cpu",
    options=CpuOptions,
    profiler=function_late("tilewright.backends.cpu.driver.line_profiler:LineProfiler"),
    stages=(
        Stage("ttir", _stage("prepared"), _stage("parsed"), _stage("passes_of")),
        Stage("llir", _stage("lowered"), _same),
        Stage("obj", _stage("machine_code"), _same),
    ),
    load=_load,
    available=lambda: True,
    target=_target,
    artifacts={"asm": _stage("assembly")},
    version=_version,
    properties=_properties,
    architectures=CPU_NAMES,
    drop_lines=_drop_lines,
    explain=function_late("tilewright.backends.cpu.explain.explain_cpu_kernel:explain_kernel"),
    launch_metadata=("scratch_bytes", "alone", "together", "waits", "checks"),
    checks=True,
    orders_overlaps=True,
    op_modules=(
        "tilewright.backends.cpu.stages",
        "tilewright.transforms.expand.avx512_ops",
        "tilewright.transforms.expand.rare_branch",
    ),
)
