"""Compile-only time for an NVIDIA GPU beside Triton's: the same kernels, target and assembler.

    python -m benchmarks.compile_time --triton PYTHON [--processes N] [--json FILE]
    python -m benchmarks.compile_time --unrolled

Times are of the processor, of the process and of the assembler that it starts: what other programs
take away does not count. With --unrolled: front end and passes by the number of ops of a kernel,
which is unrolled more and more. PYTHON is the interpreter of an environment that has Triton; no GPU
is needed. Each side compiles in fresh processes, in turn, with an empty cache. A process imports
its compiler and compiles one other kernel first; then it compiles every kernel once, in shuffled
order, from Python source to cubin.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.triton_twins import kernel_of

PROGRAM = "benchmarks.compile_time"
CAPABILITY = 90
GOAL = 1.0
UNROLLED_STEPS = (8, 16, 32, 64, 128)

Stages = dict[str, float]


@dataclass(frozen=True)
class Kernel:
    """One variant. types: of its parameters in order, "16" marks what is a multiple of 16."""

    source: str
    types: str
    constants: dict[str, object]
    options: dict[str, int]


def _constants(**values: object) -> dict[str, object]:
    return values


KERNELS = {
    "add": Kernel(
        "elementwise.add_kernel", "*fp32/16 *fp32/16 *fp32/16 i32/16", _constants(BLOCK=1024),
        {"num_warps": 4},
    ),
    "softmax": Kernel(
        "softmax.softmax_kernel", "*fp32/16 *fp32/16 i32/16 i32/16 i32/16",
        _constants(BLOCK=4096), {"num_warps": 8},
    ),
    "layer norm": Kernel(
        "norm.layer_norm_kernel", "*fp32/16 *fp32/16 *fp32/16 *fp32/16 i32/16 i32/16 i32/16 fp32",
        _constants(BLOCK=4096), {"num_warps": 8},
    ),
    "transpose": Kernel(
        "transpose.transpose_kernel", "*fp32/16 *fp32/16 i32/16 i32/16 i32/16 i32/16",
        _constants(BLOCK_M=64, BLOCK_N=64), {"num_warps": 4},
    ),
    "dropout": Kernel(
        "dropout.dropout_kernel", "*fp32/16 *fp32/16 i32/16 fp32 i32", _constants(BLOCK=1024),
        {"num_warps": 4},
    ),
    "matmul": Kernel(
        "matmul.matmul_kernel",
        "*fp16/16 *fp16/16 *fp16/16 i32/16 i32/16 i32/16 i32/16 i32=1 i32/16 i32=1 i32/16 i32=1 "
        "fp32",
        _constants(
            bias_ptr=None, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, GROUP_M=8, ACTIVATION="", PARTS=1,
            UNITS=None, WIDE=False, WRAP=False,
        ),
        {"num_warps": 4, "num_stages": 3},
    ),
    "tutorial 128x128": Kernel(
        "user_matmuls.matmul_kernel",
        "*fp16/16 *fp16/16 *fp16/16 i32/16 i32/16 i32/16 i32/16 i32=1 i32/16 i32=1 i32/16 i32=1",
        _constants(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8, INTEGER=False),
        {"num_warps": 4, "num_stages": 4},
    ),
    "tutorial 128x256": Kernel(
        "user_matmuls.matmul_kernel",
        "*fp16/16 *fp16/16 *fp16/16 i32/16 i32/16 i32/16 i32/16 i32=1 i32/16 i32=1 i32/16 i32=1",
        _constants(BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8, INTEGER=False),
        {"num_warps": 8, "num_stages": 3},
    ),
    "attention": Kernel(
        "user_attention.attention_kernel",
        "*fp16/16 *fp16/16 *fp16/16 *fp16/16 i32/16 i32/16 i32/16 fp32",
        _constants(BLOCK_M=128, BLOCK_N=64, HEAD=64, CAUSAL=True),
        {"num_warps": 4, "num_stages": 3},
    ),
}  # fmt: skip

WARM_UP = Kernel(
    "elementwise.add_kernel", "*fp32/16 *fp32/16 *fp32/16 i32/16", _constants(BLOCK=256), {}
)


def arguments(kernel: Kernel, names: list[str]) -> tuple[dict[str, str], dict[str, Any], Any]:
    """Signature, constants and attributes, as both compilers' `ASTSource` takes them."""
    signature: dict[str, str] = {}
    constants: dict[str, Any] = dict(kernel.constants)
    attributes: dict[tuple[int], list[list[object]]] = {}
    for position, (name, text) in enumerate(zip(names, kernel.types.split(), strict=False)):
        type_, _, value = text.partition("=")
        type_, _, multiple = type_.partition("/")
        signature[name] = "constexpr" if value else type_
        if value:
            constants[name] = int(value)
        if multiple:
            attributes[position,] = [["tt.divisibility", int(multiple)]]
    return signature | dict.fromkeys(kernel.constants, "constexpr"), constants, attributes


def processor_ms() -> float:
    """Milliseconds of this process and of those that it has started and waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return 1e3 * sum(u.ru_utime + u.ru_stime for u in used)


def wall_ms() -> float:
    """Milliseconds that have passed."""
    return 1e3 * time.perf_counter()


def as_launched(signature: Any) -> Any:
    """The arguments with what a launch finds out beyond Triton's facts: no size is negative."""
    from dataclasses import replace

    specs = [
        replace(spec, facts={**spec.facts, "non_negative": 1}) if str(spec.type) == "i32" else spec
        for spec in signature.args
    ]
    return replace(signature, args=tuple(specs))


# --- one process ----------------------------------------------------------------------------------


def tilewright_compiler() -> Callable[[Kernel], Stages]:
    """Compiles a kernel with tilewright; milliseconds of each stage."""
    from dataclasses import replace

    from tilewright.backends import GPUTarget, backend_named
    from tilewright.compiler import ASTSource, compile_source, options_of

    stages: Stages = {}

    def clocked(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*values: object) -> Any:
            start = processor_ms()
            result = run(*values)
            stages[name] = processor_ms() - start
            return result

        return timed

    target = GPUTarget("cuda", CAPABILITY, 32)
    plain = backend_named(target.backend)
    backend = replace(
        plain, stages=tuple(replace(s, run=clocked(s.extension, s.run)) for s in plain.stages)
    )

    def compile_one(kernel: Kernel) -> Stages:
        stages.clear()
        function = kernel_of("tilewright", kernel.source)
        source = ASTSource(function, *arguments(kernel, _names(function.fn)))
        source.arguments = as_launched(source.arguments)
        lower = source.lower
        source.lower = clocked("frontend", lower)  # pyright: ignore[reportAttributeAccessIssue]
        made = compile_source(source, backend, target, options_of(backend, kernel.options))
        assert made.asm["cubin"]
        return dict(stages)

    return compile_one


def triton_compiler() -> Callable[[Kernel], Stages]:
    """Compiles a kernel with Triton; milliseconds of each stage."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    stages: Stages = {}

    def listener(*, times: Any, **others: object) -> None:
        stages["frontend"] = 1e-3 * times.ir_initialization
        stages.update((name, 1e-3 * duration) for name, duration in times.lowering_stages)

    triton.knobs.compilation.listener = listener
    twins = {k.source: kernel_of("triton", k.source) for k in (WARM_UP, *KERNELS.values())}

    def compile_one(kernel: Kernel) -> Stages:
        stages.clear()
        function = twins[kernel.source]
        source = ASTSource(function, *arguments(kernel, _names(function.fn)))
        made = triton.compile(
            source, target=GPUTarget("cuda", CAPABILITY, 32), options=kernel.options
        )
        assert made.asm["cubin"]
        return dict(stages)

    return compile_one


COMPILERS = {"tilewright": tilewright_compiler, "triton": triton_compiler}


def _names(function: Any) -> list[str]:
    code = function.__code__
    return list(code.co_varnames[: code.co_argcount])


def measure_here(side: str, seed: int) -> dict[str, Stages]:
    """Milliseconds of each kernel's stages, and "total"."""
    compile_one = COMPILERS[side]()
    compile_one(WARM_UP)
    found: dict[str, Stages] = {}
    for name in random.Random(seed).sample(list(KERNELS), len(KERNELS)):
        start = processor_ms()
        stages = compile_one(KERNELS[name])
        found[name] = stages | {"total": processor_ms() - start}
    return found


def measure_unrolled() -> dict[int, Stages]:
    """Milliseconds of stages, and "ops" of the front end, by the steps of an unrolled kernel."""
    from benchmarks.kernels.unrolled_kernel import unrolled_kernel
    from tilewright.backends import GPUTarget, StageContext, backend_named
    from tilewright.compiler import ASTSource, frontend_options, options_of
    from tilewright.support import collection_paused

    backend, target = backend_named("cuda"), GPUTarget("cuda", CAPABILITY, 32)
    options = options_of(backend, {})
    context = StageContext(target, options, {"name": ""})
    found: dict[int, Stages] = {}
    for steps in (UNROLLED_STEPS[-1], *UNROLLED_STEPS):  # again, after imports and such
        kernel = Kernel("", "*fp32/16 *fp32/16 i32/16", _constants(STEPS=steps, BLOCK=1024), {})
        source = ASTSource(unrolled_kernel, *arguments(kernel, ["x_ptr", "y_ptr", "n"]))
        times: Stages = {}
        with collection_paused():
            start = processor_ms()
            made: Any = source.lower(frontend_options(backend, options, target))
            times["frontend"] = processor_ms() - start
            times["ops"] = sum(1 for _ in made.kernel.walk())
            for stage in backend.stages[:-1]:
                # long functions are compiled by another process, which nobody has waited for yet
                clock = wall_ms if stage.extension == "ptx" else processor_ms
                start = clock()
                made = stage.run(made, context)
                times[stage.extension] = clock() - start
        found.pop(steps, None)
        found[steps] = times
    return found


def show_unrolled(found: dict[int, Stages]) -> None:
    """Front end and passes, and all stages to PTX, by the number of ops."""
    print("ops    front end and passes, ms    us/op    ptx, ms    us/op")
    for times in found.values():
        ops, ptx = times["ops"], times["ptx"]
        passes = sum(times[name] for name in ("frontend", "ttir", "ttgir"))
        print(f"{ops:4.0f} {passes:26.1f} {1e3 * passes / ops:8.1f} {ptx:10.1f}"
              f" {1e3 * ptx / ops:8.1f}")  # fmt: skip


# --- all processes --------------------------------------------------------------------------------


def measure(pythons: dict[str, str], ptxas: str, processes: int) -> dict[str, list[Any]]:
    """Results of every process, by side."""
    found: dict[str, list[Any]] = {side: [] for side in pythons}
    for number in range(processes):
        for side in random.Random(number).sample(list(pythons), len(pythons)):
            with tempfile.TemporaryDirectory(prefix="compile-time-") as folder:
                found[side].append(_in_process(side, pythons[side], ptxas, folder, number))
    return found


def _in_process(side: str, python: str, ptxas: str, folder: str, seed: int) -> Any:
    chosen = {
        "TILEWRIGHT_CACHE_DIR": folder,
        "TRITON_CACHE_DIR": folder,
        "TILEWRIGHT_PTXAS_PATH": ptxas,
        "TRITON_PTXAS_PATH": ptxas,
        "TRITON_PTXAS_BLACKWELL_PATH": ptxas,
    }
    command = [python, "-m", PROGRAM, "--side", side, "--seed", str(seed)]
    done = subprocess.run(
        command, env=os.environ | chosen, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def summarize(found: dict[str, list[Any]]) -> dict[str, Any]:
    """For each kernel: medians of each side by stage, and the ratio with its interval."""
    import statistics

    from benchmarks.harness import spread_of

    result: dict[str, Any] = {}
    for name in KERNELS:
        sides: dict[str, Any] = {}
        for side, runs in found.items():
            stages = {s for run in runs for s in run[name]}
            sides[side] = {
                s: statistics.median(run[name].get(s, 0.0) for run in runs) for s in stages
            }
        pairs = zip(found["tilewright"], found["triton"], strict=True)
        ratio = spread_of([ours[name]["total"] / theirs[name]["total"] for ours, theirs in pairs])
        result[name] = {
            "ms": sides, "goal": GOAL, "met": ratio.median <= GOAL,
            "ratio": {"median": ratio.median, "low95": ratio.low, "high95": ratio.high},
        }  # fmt: skip
    return result


def show(summary: dict[str, Any]) -> None:
    """The table of times, and ours by stage."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"Compile-only, sm_{CAPABILITY}, ms (medians)")
    stages = ("frontend", "ttir", "ttgir", "llir", "ptx", "cubin")
    for heading in ("kernel", "tilewright", "triton", "ratio", "95 %", "goal", *stages):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, entry in summary.items():
        ours, theirs, ratio = entry["ms"]["tilewright"], entry["ms"]["triton"], entry["ratio"]
        table.add_row(
            name, f"{ours['total']:.0f}", f"{theirs['total']:.0f}", f"{ratio['median']:.2f}",
            f"{ratio['low95']:.2f}-{ratio['high95']:.2f}", "met" if entry["met"] else "MISSED",
            *(f"{ours.get(s, 0):.0f}/{theirs.get(s, 0):.0f}" for s in stages),
        )  # fmt: skip
    Console(width=140).print(table)


def write(path: Path, summary: dict[str, Any], processes: int, ptxas: str, triton: str) -> None:
    """Results, machine and versions as JSON."""
    from benchmarks.harness import write_record

    asked = [triton, "-c", "import triton; print(triton.__version__)"]
    version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    release = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True)
    write_record(
        path, "Compile-only time",
        target=f"sm_{CAPABILITY}", processes=processes, kernels=summary,
        compilers={"triton": version, "ptxas": release.stdout.split()[-1]},
        unrolled=measure_unrolled(),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--triton", help="Python of an environment with Triton")
    parser.add_argument("--processes", type=int, default=7, help="of each side")
    parser.add_argument("--ptxas", default=shutil.which("ptxas"), help="assembler of both sides")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--unrolled", action="store_true", help="by the number of ops, ours alone")
    parser.add_argument("--side", choices=list(COMPILERS), help="measure one side, print JSON")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.side:
        print(json.dumps(measure_here(chosen.side, chosen.seed)))
        return
    if chosen.unrolled:
        show_unrolled(measure_unrolled())
        return
    if not chosen.triton or not chosen.ptxas:
        parser.error("--triton is needed, and ptxas on PATH or --ptxas")
    pythons = {"tilewright": sys.executable, "triton": chosen.triton}
    summary = summarize(measure(pythons, chosen.ptxas, chosen.processes))
    show(summary)
    if chosen.json is not None:
        write(chosen.json, summary, chosen.processes, chosen.ptxas, chosen.triton)


if __name__ == "__main__":
    main()
