"""What this CPU gives at most: bandwidth of each level of memory, and multiply-adds of each type.

    limits = measure_limits(threads=(1, 2))
    limits.bandwidth("triad", threads=2, bytes=1 << 20)      # GB/s where so much data lives
    limits.peak("fp32", threads=2)                           # GFLOP/s

The loops are LLVM IR of this file's own, not code of the compiler that is measured against them.
Bytes are those that a program asks for: a line that a store makes the memory read does not count,
so a kernel that stores past the caches may exceed 1.0 of "ordinary" copies; the limit is the
faster of both ways to store. Each figure is the best of several samples, all of which are kept.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.backends.cpu.driver.host_cpu import last_level_cache_bytes
from tilewright.ir.types import f16, f32, f64
from tilewright.llvm import (
    LoadedObject,
    compile_ir,
    host_cpu,
    host_target,
    llvm_type,
    load_object,
)

_FLOATS = {"fp32": f32, "fp64": f64, "fp16": f16}

SAMPLES = 5
SAMPLE_SECONDS = 2e-3
SIZES = tuple(1 << p for p in range(13, max(28, (2 * last_level_cache_bytes()).bit_length()) + 1))
"""Bytes that all threads work on together, to more than twice what the last cache holds."""
UNROLL = 4
SUMS = 12
"""Independent sums: 4 cycles in 2 pipes need 8, and 12 fit into 16 registers."""

FLOWS = {"read": (1, 0), "copy": (1, 1), "triad": (2, 1)}
"""Arrays read and written by each loop."""


@dataclass(frozen=True)
class MultiplyAdd:
    """An instruction of the peak. lanes: of the sum in 512 bits; depth: products for each lane."""

    name: str
    feature: str
    sum_type: str
    lanes: int
    operand: str
    depth: int
    intrinsic: str


_DOTS = (
    MultiplyAdd("bf16 dot", "avx512bf16", "float", 16, "<32 x bfloat>", 2,
                "llvm.x86.avx512bf16.dpbf16ps.512"),
    MultiplyAdd("int8 dot", "avx512vnni", "i32", 16, "<64 x i8>", 4,
                "llvm.x86.avx512.vpdpbusd.512"),
)  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """A figure: its best and all samples."""

    best: float
    samples: tuple[float, ...]


@dataclass
class Limits:
    """Measured limits. bandwidths: (flow, threads, bytes) -> GB/s; peaks: (type, threads) -> G/s"""

    threads: Sequence[int]
    bandwidths: dict[tuple[str, int, int], Sample] = field(default_factory=dict)
    peaks: dict[tuple[str, int], Sample] = field(default_factory=dict)
    clock_ghz: list[float] = field(default_factory=list)

    def bandwidth(self, flow: str, threads: int, bytes: int) -> float:
        """GB/s of data of this size, between the measured sizes by the logarithm."""
        sizes = sorted(size for f, t, size in self.bandwidths if (f, t) == (flow, threads))
        at = min(max(bytes, sizes[0]), sizes[-1])
        low = max(i for i, size in enumerate(sizes[:-1]) if size <= at)
        ends = [self.bandwidths[flow, threads, sizes[low + i]].best for i in (0, 1)]
        part = math.log(at / sizes[low]) / math.log(sizes[low + 1] / sizes[low])
        return ends[0] + (ends[1] - ends[0]) * part

    def peak(self, name: str, threads: int) -> float:
        """Billions of operations a second, an addition and a multiplication counting as two."""
        return self.peaks[name, threads].best

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Limits:
        """What `as_json` gave, of another machine perhaps."""
        limits = cls(sorted({entry["threads"] for entry in data["peak"]}))
        for entry in data["bandwidth"]:
            key = entry["flow"], entry["threads"], entry["bytes"]
            limits.bandwidths[key] = Sample(entry["GB/s"], tuple(entry["samples"]))
        for entry in data["peak"]:
            sample = Sample(entry["G/s"], tuple(entry["samples"]))
            limits.peaks[entry["type"], entry["threads"]] = sample
        return limits

    def as_json(self) -> dict[str, object]:
        return {
            "clock_ghz": self.clock_ghz,
            "bandwidth": [
                {"flow": f, "threads": t, "bytes": b, "GB/s": s.best, "samples": s.samples}
                for (f, t, b), s in self.bandwidths.items()
            ],
            "peak": [
                {"type": n, "threads": t, "G/s": s.best, "samples": s.samples}
                for (n, t), s in self.peaks.items()
            ],
        }


# --- the loops ------------------------------------------------------------------------------------


def _stream_loop(flow: str, lanes: int, streaming: bool) -> str:
    """void NAME(dst, a, b, vectors, repeats): one pass over the data `repeats` times."""
    vector = f"<{lanes} x float>"
    hint = ", !nontemporal !0" if streaming else ""
    reads, writes = FLOWS[flow]
    lines, carried = [], []
    for u in range(UNROLL):
        lines.append(f"%j{u} = add i64 %i, {u}")
        names = []
        for array in ("%a", "%b")[:reads]:
            name = f"%{array[1:]}{u}"
            lines.append(f"{name}p = getelementptr {vector}, ptr {array}, i64 %j{u}")
            lines.append(f"{name} = load volatile {vector}, ptr {name}p, align 64")
            names.append(name)
        if writes:
            value = names[0]
            if reads == 2:
                value = f"%s{u}"
                lines.append(f"{value} = call {vector} @llvm.fma.v{lanes}f32({vector} {names[0]}, "
                             f"{vector} splat (float 3.0), {vector} {names[1]})")  # fmt: skip
            lines.append(f"%d{u} = getelementptr {vector}, ptr %dst, i64 %j{u}")
            lines.append(f"store {vector} {value}, ptr %d{u}, align 64{hint}")
        carried += names
    body = "\n  ".join(lines)
    name = f"{flow}_{'streaming' if streaming else 'ordinary'}"
    return f"""
define void @{name}(ptr %dst, ptr %a, ptr %b, i64 %vectors, i64 %repeats) #0 {{
entry:
  br label %again
again:
  %r = phi i64 [ 0, %entry ], [ %r.next, %ended ]
  br label %step
step:
  %i = phi i64 [ 0, %again ], [ %i.next, %step ]
  {body}
  %i.next = add i64 %i, {UNROLL}
  %more = icmp ult i64 %i.next, %vectors
  br i1 %more, label %step, label %ended
ended:
  %r.next = add i64 %r, 1
  %go = icmp ult i64 %r.next, %repeats
  br i1 %go, label %again, label %done
done:
  ret void
}}"""


def _peak_loop(name: str, vector: str, operand: str, call: str) -> str:
    """void NAME(data, _, _, turns, _): SUMS independent chains; `call` with {x} for the sum."""
    loads, phis, steps, stores = [], [], [], []
    for s in range(SUMS):
        # of volatile loads, or LLVM would find that all chains are one
        loads.append(f"%init{s} = load volatile {vector}, ptr %data, align 1")
        phis.append(f"%x{s} = phi {vector} [ %init{s}, %entry ], [ %y{s}, %step ]")
        steps.append(f"%y{s} = {call.format(x=f'%x{s}')}")
        stores.append(f"store volatile {vector} %y{s}, ptr %data, align 1")
    newline = "\n  "
    return f"""
define void @{name}(ptr %data, ptr %p, ptr %q, i64 %turns, i64 %unused) #0 {{
entry:
  {newline.join(loads)}
  %a = load volatile {operand}, ptr %data, align 1
  %b = load volatile {operand}, ptr %data, align 1
  br label %step
step:
  %i = phi i64 [ 0, %entry ], [ %i.next, %step ]
  {newline.join(phis)}
  {newline.join(steps)}
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %turns
  br i1 %more, label %step, label %done
done:
  {newline.join(stores)}
  ret void
}}"""


_CLOCK_LOOP = """
define void @clock(ptr %data, ptr %p, ptr %q, i64 %turns, i64 %unused) #0 {
entry:
  %y = load volatile i64, ptr %data
  br label %step
step:
  %i = phi i64 [ 0, %entry ], [ %i.next, %step ]
  %x = phi i64 [ %y, %entry ], [ %x4, %step ]
  %x1 = mul i64 %x, %y
  %x2 = xor i64 %x1, %y
  %x3 = mul i64 %x2, %y
  %x4 = xor i64 %x3, %y
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %turns
  br i1 %more, label %step, label %done
done:
  store volatile i64 %x4, ptr %data
  ret void
}"""
CLOCK_CYCLES = 8
"""Of a turn: a product of 64-bit integers takes 3 on every x86 core since 2008 and most of Arm's,
and the exclusive or between, which keeps LLVM from reordering the products, takes 1."""


def peak_loops() -> dict[str, tuple[str, float]]:
    """Name -> the text of its loop, and operations of one turn."""
    cpu = host_cpu()
    bits, made = cpu.vector_bits, {}
    for name, suffix, size in (("fp32", "f32", 32), ("fp64", "f64", 64), ("fp16", "f16", 16)):
        if name == "fp16" and not {"avx512fp16", "fullfp16"} & cpu.enabled:
            continue
        lanes = bits // size
        vector = f"<{lanes} x {llvm_type(_FLOATS[name])}>"
        call = f"call {vector} @llvm.fma.v{lanes}{suffix}({vector} %a, {vector} %b, {vector} {{x}})"
        made[name] = (_peak_loop(_symbol(name), vector, vector, call), 2.0 * lanes * SUMS)
    for dot in _DOTS:
        if dot.feature in cpu.enabled and bits == 512:
            vector = f"<{dot.lanes} x {dot.sum_type}>"
            operands = f"{vector} {{x}}, {dot.operand} %a, {dot.operand} %b"
            text = _peak_loop(_symbol(dot.name), vector, dot.operand,
                              f"call {vector} @{dot.intrinsic}({operands})")  # fmt: skip
            made[dot.name] = (text, 2.0 * dot.lanes * dot.depth * SUMS)
    if "amx-bf16" in cpu.enabled:
        made["bf16 tiles"] = (_tile_loop("bf16"), 2.0 * 16 * 16 * 32 * 4)
    if "amx-int8" in cpu.enabled:
        made["int8 tiles"] = (_tile_loop("int8"), 2.0 * 16 * 16 * 64 * 4)
    return made


def _symbol(name: str) -> str:
    return "peak_" + name.replace(" ", "_")


def _tile_loop(kind: str) -> str:
    """Four sums in tiles of 16 x 64 bytes; palette 1 is configured by the loop itself."""
    name = "tdpbf16ps" if kind == "bf16" else "tdpbssd"
    steps = "\n  ".join(f"call void @llvm.x86.{name}(i8 {t}, i8 4, i8 5)" for t in range(4))
    zeros = "\n  ".join(f"call void @llvm.x86.tilezero(i8 {t})" for t in range(6))
    config = ", ".join(f"i8 {v}" for v in (
        1, *[0] * 15, *[64, 0] * 8, *[0] * 16, *[16] * 8, *[0] * 8))  # fmt: skip
    return f"""
@config_{kind} = internal constant [64 x i8] [{config}]
define void @peak_{kind}_tiles(ptr %data, ptr %p, ptr %q, i64 %turns, i64 %unused) #0 {{
entry:
  call void @llvm.x86.ldtilecfg(ptr @config_{kind})
  {zeros}
  br label %step
step:
  %i = phi i64 [ 0, %entry ], [ %i.next, %step ]
  {steps}
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %turns
  br i1 %more, label %step, label %done
done:
  call void @llvm.x86.tilerelease()
  ret void
}}"""


# --- measuring ------------------------------------------------------------------------------------

_FUNCTION = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


class _Loops:
    """The compiled loops, called by as many threads as wanted at once."""

    def __init__(self) -> None:
        cpu = host_cpu()
        lanes = cpu.vector_bits // 32
        self.vector_bytes = 4 * lanes
        self.peaks = peak_loops()
        texts = [_stream_loop(f, lanes, s) for f in FLOWS for s in (False, True)]
        texts += [text for text, _ in self.peaks.values()]
        source = "\n".join([*texts, _CLOCK_LOOP, f"attributes #0 = {{ {cpu.function_attributes} }}",
                            "!0 = !{i32 1}"])  # fmt: skip
        declared = declarations(source)
        names = [f"{f}_{s}" for f in FLOWS for s in ("ordinary", "streaming")]
        names += [_symbol(name) for name in self.peaks] + ["clock"]
        self.object: LoadedObject = load_object(
            compile_ir("\n".join([*declared, source]), host_target()), names
        )
        self.functions = {name: _FUNCTION(self.object[name]) for name in names}

    def seconds(
        self, name: str, arguments: Sequence[tuple[int, int, int, int, int]]
    ) -> list[float]:
        """Of one call on each thread. They begin one after the other, as each wakes up: the rate of
        all is the sum of their own rates."""
        function = self.functions[name]
        if len(arguments) == 1:
            start = time.perf_counter()
            function(*arguments[0])
            return [time.perf_counter() - start]
        barrier = threading.Barrier(len(arguments))

        def run(given: tuple[int, ...]) -> float:
            barrier.wait()
            start = time.perf_counter()
            function(*given)
            return time.perf_counter() - start

        with ThreadPoolExecutor(len(arguments)) as pool:
            return list(pool.map(run, arguments))


def declarations(source: str) -> list[str]:
    """Declarations of the intrinsics that a text calls, from the types of the calls."""
    calls = re.findall(r"call (.*) @(llvm\.[\w.]+)\((.*)\)", source)
    lines = {
        f"declare {result} @{name}({', '.join(map(_type_of, arguments.split(', ')))})"
        for result, name, arguments in calls
    }
    return sorted(lines)


def _type_of(argument: str) -> str:
    kind, _, rest = argument.partition("> ")
    if rest:
        return f"{kind}>"
    kind = argument.split(" ")[0]
    return f"{kind} immarg" if kind == "i8" else kind


def _best(amount: float, run: Callable[[int], list[float]]) -> Sample:
    """Rates of `amount` on each thread for one repeat; run(repeats) -> seconds of each."""
    repeats = 1
    while (spent := min(run(repeats))) < SAMPLE_SECONDS / 2 and repeats < 1 << 40:
        repeats *= max(2, min(16, int(SAMPLE_SECONDS / max(spent, 1e-7))))
    rates = tuple(
        sum(amount * repeats / seconds for seconds in run(repeats)) * 1e-9 for _ in range(SAMPLES)
    )
    return Sample(max(rates), rates)


def measure_limits(
    threads: Sequence[int], report: Callable[[str], None] = lambda _: None
) -> Limits:
    """All limits for these numbers of threads."""
    loops, limits = _Loops(), Limits(threads)
    limits.clock_ghz.append(_clock(loops))
    # in pages as `malloc` and torch get them: NumPy asks for huge ones, where copies are up to a
    # fifth faster; written, since pages that were only read are all one page of zeros
    memory = np.frombuffer(mmap.mmap(-1, SIZES[-1] + (1 << 20)), np.float64)
    memory[:] = 1.0
    base = (memory.ctypes.data + 63) & ~63
    for count in threads:
        for flow in FLOWS:
            report(f"bandwidth of {flow}, {count} threads")
            for size in SIZES:
                limits.bandwidths[flow, count, size] = _bandwidth(loops, flow, count, size, base)
        for name, (_, operations) in loops.peaks.items():
            limits.peaks[name, count] = _peak(loops, name, operations, count)
    limits.clock_ghz.append(_clock(loops))
    return limits


def _bandwidth(loops: _Loops, flow: str, threads: int, size: int, base: int) -> Sample:
    """The better of ordinary and streaming stores."""
    arrays = sum(FLOWS[flow])
    step = UNROLL * loops.vector_bytes
    length = max(size // arrays // threads // step, 1) * step
    # 128 bytes more, so that the arrays do not lie a power of two apart
    places = [base + (length + 2 * step) * n for n in range(arrays * threads)]
    groups = [places[n * arrays : (n + 1) * arrays] for n in range(threads)]
    amount = arrays * length

    def run(kind: str) -> Callable[[int], list[float]]:
        def repeated(repeats: int) -> list[float]:
            calls = [
                (g[0], g[-1] if arrays < 3 else g[1], g[-1], length // loops.vector_bytes, repeats)
                for g in groups
            ]
            return loops.seconds(f"{flow}_{kind}", calls)

        return repeated

    ordinary = _best(amount, run("ordinary"))
    if not FLOWS[flow][1]:
        return ordinary
    streaming = _best(amount, run("streaming"))
    samples = (*ordinary.samples, *streaming.samples)
    return Sample(max(samples), samples)


def _peak(loops: _Loops, name: str, operations: float, threads: int) -> Sample:
    data = [np.zeros(64) for _ in range(threads)]

    def run(turns: int) -> list[float]:
        return loops.seconds(_symbol(name), [(d.ctypes.data, 0, 0, turns, 0) for d in data])

    return _best(operations, run)


def _clock(loops: _Loops) -> float:
    """GHz of one core at work."""
    data = np.ones(1, np.int64)
    return _best(
        CLOCK_CYCLES, lambda n: loops.seconds("clock", [(data.ctypes.data, 0, 0, n, 0)])
    ).best


# --- the machine ----------------------------------------------------------------------------------


def cache_levels(cpu: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> dict[str, int]:
    """Bytes of each level of data cache, from Linux's sysfs."""
    levels: dict[str, int] = {}
    for index in sorted(cpu.glob("index*")):
        kind = (index / "type").read_text().strip()
        if kind != "Instruction":
            level = (index / "level").read_text().strip()
            levels[f"L{level}"] = int((index / "size").read_text().strip().rstrip("K")) << 10
    return levels or {"L3": last_level_cache_bytes()}


def level_of(size: int, threads: int, levels: Mapping[str, int]) -> str:
    """Where so many bytes live that threads share among them: the last level is one for all."""
    last = max(levels)
    for name, held in sorted(levels.items()):
        if size <= held * (1 if name == last else threads):
            return name
    return "DRAM"


def machine_state() -> dict[str, object]:
    """What may change from one run to the next: load, frequency, memory, time stolen by others."""
    state: dict[str, object] = {"time": time.time()}
    if hasattr(os, "getloadavg"):
        state["load"] = os.getloadavg()
    for name, path in _STATE_FILES.items():
        try:
            state[name] = Path(path).read_text().split("\n", 1)[0].strip()
        except OSError:
            continue
    return state


_STATE_FILES = {
    "cpu_ticks": "/proc/stat",  # user nice system idle iowait irq softirq steal ..., of all CPUs
    "governor": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "frequency_khz": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
    "huge_pages": "/sys/kernel/mm/transparent_hugepage/enabled",
    "memory_total": "/proc/meminfo",
    "pressure": "/proc/pressure/cpu",
}
