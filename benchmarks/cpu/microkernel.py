"""Times the matrix micro-kernel alone, and inside a simulated tiled fp32 product against torch.mm.

    python -m benchmarks.cpu.microkernel [--rounds 15] [--tiles 128x128x64 ...] [--json FILE]

Alone: scratch stays hot in the caches, one thread; the best of the rounds, since this asks what the
code can do. Product: what a program instance of the CPU backend does, written by hand: tiles of A
and B are copied (masked) to scratch, multiplied there, and the sum is written back to C (masked).
Here both sides run alternately on the same threads and medians are compared. Before each sample the
benchmark sleeps, because torch's OpenMP threads spin for some milliseconds when they have finished
and would hold the core that the other side's second thread needs.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from tilewright.backends.cpu.microkernel import (
    AVX2,
    AVX512,
    GENERIC,
    DotSpec,
    vector_unit,
)
from tilewright.backends.cpu.microkernel.blocked_loops import dot_declarations, dot_function
from tilewright.llvm import LoadedObject, compile_ir, host_cpu, host_target, load_object
from tilewright.support import usable_cpus

TILES = ("128x128x64", "128x256x64", "128x128x128", "64x64x32", "32x32x32")
LANES = 16  # of the copy loops; LLVM splits these vectors where registers are narrower
SETTLE = 0.02  # seconds
Tile = tuple[int, int, int]  # M, N, K
DTYPES = {"float": np.float32, "double": np.float64, "i32": np.int32}

REPEAT = """
define void @repeat(ptr %c, ptr %a, ptr %b, i64 %times) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @dot(ptr %c, ptr %a, ptr %b)
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %times
  br i1 %done, label %exit, label %loop
exit:
  ret void
}
"""

# Copies a tile between an array (row stride %stride, %height rows and %width columns left) and
# scratch; {move} holds the masked vectors of one row.
COPY = """
define internal void @{name}(ptr %array, ptr %scratch, i64 %stride, i64 %height, i64 %width) {{
entry:
  %width32 = trunc i64 %width to i32
  %w0 = insertelement <16 x i32> poison, i32 %width32, i64 0
  %w = shufflevector <16 x i32> %w0, <16 x i32> poison, <16 x i32> zeroinitializer
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %ao = mul i64 %i, %stride
  %ap = getelementptr float, ptr %array, i64 %ao
  %so = mul i64 %i, {row}
  %sp = getelementptr float, ptr %scratch, i64 %so
  %inside = icmp slt i64 %i, %height
  %in0 = insertelement <16 x i1> poison, i1 %inside, i64 0
  %in = shufflevector <16 x i1> %in0, <16 x i1> poison, <16 x i32> zeroinitializer
{move}
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, {rows}
  br i1 %done, label %exit, label %loop
exit:
  ret void
}}
"""

ADDRESS = """  %a{v} = getelementptr float, ptr %ap, i64 {at}
  %s{v} = getelementptr float, ptr %sp, i64 {at}
  %c{v} = icmp slt <16 x i32> <{columns}>, %w
  %m{v} = and <16 x i1> %c{v}, %in
"""

MOVE_IN = """  %x{v} = call <16 x float> @llvm.masked.load.v16f32.p0(
      ptr align 4 %a{v}, <16 x i1> %m{v}, <16 x float> zeroinitializer)
  store <16 x float> %x{v}, ptr %s{v}, align 64
"""

MOVE_OUT = """  %x{v} = load <16 x float>, ptr %s{v}, align 64
  call void @llvm.masked.store.v16f32.p0(<16 x float> %x{v}, ptr align 4 %a{v}, <16 x i1> %m{v})
"""

COPY_DECLARATIONS = (
    "declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, <16 x i1>, <16 x float>)",
    "declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, <16 x i1>)",
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
)

PROGRAMS = """
define internal void @program(ptr %C, ptr %A, ptr %B, i64 %n, i64 %row, i64 %column,
                              ptr %c, ptr %a, ptr %b) {{
entry:
  call void @llvm.memset.p0.i64(ptr align 64 %c, i8 0, i64 {c_bytes}, i1 false)
  %height = sub i64 %n, %row
  %width = sub i64 %n, %column
  %ro = mul i64 %row, %n
  %ap = getelementptr float, ptr %A, i64 %ro
  %bp = getelementptr float, ptr %B, i64 %column
  %cr = getelementptr float, ptr %C, i64 %ro
  %cp = getelementptr float, ptr %cr, i64 %column
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %left = sub i64 %n, %k
  %ak = getelementptr float, ptr %ap, i64 %k
  %bo = mul i64 %k, %n
  %bk = getelementptr float, ptr %bp, i64 %bo
  call void @copy_a(ptr %ak, ptr %a, i64 %n, i64 %height, i64 %left)
  call void @copy_b(ptr %bk, ptr %b, i64 %n, i64 %left, i64 %width)
  call void @dot(ptr %c, ptr %a, ptr %b)
  %next = add i64 %k, {k}
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  call void @copy_c(ptr %cp, ptr %c, i64 %n, i64 %height, i64 %width)
  ret void
}}

define void @programs(ptr %C, ptr %A, ptr %B, i64 %n, i64 %first, i64 %last, i64 %columns,
                      ptr %c, ptr %a, ptr %b) {{
entry:
  br label %loop
loop:
  %p = phi i64 [ %first, %entry ], [ %next, %loop ]
  %i = udiv i64 %p, %columns
  %j = urem i64 %p, %columns
  %row = mul i64 %i, {m}
  %column = mul i64 %j, {n}
  call void @program(ptr %C, ptr %A, ptr %B, i64 %n, i64 %row, i64 %column,
                     ptr %c, ptr %a, ptr %b)
  %next = add i64 %p, 1
  %more = icmp slt i64 %next, %last
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""


def scratch(elements: int, dtype: type = np.float32) -> np.ndarray:
    """Zeros that start at a multiple of 64 bytes."""
    memory = np.zeros(elements * np.dtype(dtype).itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : memory.size - 64 + start].view(dtype)


def compiled(text: str, symbol: str) -> tuple[LoadedObject, float]:
    """Machine code of `text`, and how many milliseconds LLVM took."""
    start = time.perf_counter()
    obj = compile_ir(text, host_target())
    elapsed = (time.perf_counter() - start) * 1e3
    return load_object(obj, [symbol]), elapsed


# -- the micro-kernel alone ------------------------------------------------------------------------


def alone(spec: DotSpec, rounds: int) -> tuple[float, float]:
    """Best GFLOP/s of `spec` on hot scratch, and its compile time in milliseconds."""
    text = "\n".join([*dot_declarations(spec), dot_function("dot", spec), REPEAT])
    loaded, compile_ms = compiled(text, "repeat")
    repeat = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(loaded["repeat"])
    strides = zip((spec.m, spec.m, spec.k), (2, 0, 1), strict=True)
    buffers = [scratch(rows * spec.strides[i], DTYPES[spec.element]) for rows, i in strides]
    pointers = [buffer.ctypes.data for buffer in buffers]
    work = 2 * spec.m * spec.n * spec.k
    times = max(1, int(5e7 / work))
    seconds = min(timed(lambda: repeat(*pointers, times)) for _ in range(rounds))
    return work * times / seconds / 1e9, compile_ms


def report_alone(tiles: list[Tile], rounds: int) -> list[dict[str, object]]:
    widest = vector_unit(host_cpu())
    units = [unit for unit in (AVX512, AVX2, GENERIC) if unit.bits <= widest.bits]
    cases = [(widest, element, tile) for element in DTYPES for tile in tiles]
    cases += [(unit, "float", tiles[0]) for unit in units if unit is not widest]
    rows: list[dict[str, object]] = []
    print(f"micro-kernel alone, one thread, hot scratch\n{'unit':>9} element  tile", end="")
    print(f"{'GFLOP/s':>17} {'compile ms':>11}")
    for unit, element, tile in cases:
        rate, compile_ms = alone(DotSpec(*tile, element, unit), rounds)
        name = "x".join(map(str, tile))
        print(f"{unit.bits:>5} bits {element:8} {name:12} {rate:8.1f} {compile_ms:11.1f}")
        rows.append({"bits": unit.bits, "element": element, "tile": name, "gflops": rate})
    return rows


# -- a whole product -------------------------------------------------------------------------------


def copy_loop(name: str, rows: int, columns: int, row: int, move: str) -> str:
    lines = ""
    for v in range(columns // LANES):
        at = v * LANES
        lanes = ", ".join(f"i32 {at + lane}" for lane in range(LANES))
        lines += (ADDRESS + move).format(v=v, at=at, columns=lanes)
    return COPY.format(name=name, rows=rows, row=row, move=lines)


def product_text(spec: DotSpec) -> str:
    """LLVM IR of `programs`: the program instances first to last of a tiled square product."""
    m, n, k, (lda, ldb, ldc) = spec.m, spec.n, spec.k, spec.strides
    parts = [
        *dict.fromkeys([*COPY_DECLARATIONS, *dot_declarations(spec)]),
        dot_function("dot", spec),
        copy_loop("copy_a", m, k, lda, MOVE_IN),
        copy_loop("copy_b", k, n, ldb, MOVE_IN),
        copy_loop("copy_c", m, n, ldc, MOVE_OUT),
        PROGRAMS.format(m=m, n=n, k=k, c_bytes=m * ldc * 4),
    ]
    return "\n".join(parts)


class Product:
    """C = A @ B of square fp32 arrays by tiles of `spec`, each thread taking its share of them."""

    def __init__(self, spec: DotSpec, pool: ThreadPoolExecutor, threads: int) -> None:
        self._spec, self._pool, self._threads = spec, pool, threads
        self._loaded, self.compile_ms = compiled(product_text(spec), "programs")
        kinds = [*[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 4, *[ctypes.c_void_p] * 3]
        self._programs = ctypes.CFUNCTYPE(None, *kinds)(self._loaded["programs"])
        sizes = (spec.m * spec.strides.ldc, spec.m * spec.strides.lda, spec.k * spec.strides.ldb)
        self._scratch = [[scratch(size) for size in sizes] for _ in range(threads)]

    def __call__(self, c: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        n = len(a)
        columns = -(-n // self._spec.n)
        total = -(-n // self._spec.m) * columns

        def share(thread: int) -> None:
            first, last = (total * t // self._threads for t in (thread, thread + 1))
            arrays = [array.ctypes.data for array in (c, a, b)]
            own = [buffer.ctypes.data for buffer in self._scratch[thread]]
            self._programs(*arrays, n, first, last, columns, *own)

        list(self._pool.map(share, range(self._threads)))


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def sample(work: Callable[[], object]) -> float:
    """Seconds for one call, after others' threads have stopped spinning and a warm-up."""
    time.sleep(SETTLE)
    work()
    return timed(work)


def report_product(
    size: int, threads: int, tiles: list[Tile], rounds: int
) -> list[dict[str, object]]:
    import torch

    torch.set_num_threads(threads)
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((size, size)).astype(np.float32) for _ in range(2))
    c, expected = np.zeros_like(a), a.astype(np.float64) @ b
    theirs = [torch.from_numpy(x) for x in (a, b, np.zeros_like(a))]
    unit = vector_unit(host_cpu())
    rows: list[dict[str, object]] = []
    with ThreadPoolExecutor(threads) as pool:
        sides: dict[str, Callable[[], object]] = {
            "torch.mm": lambda: torch.mm(theirs[0], theirs[1], out=theirs[2])
        }
        for tile in tiles:
            product = Product(DotSpec(*tile, "float", unit), pool, threads)
            product(c, a, b)
            np.testing.assert_allclose(c, expected, rtol=0, atol=1e-3)
            sides["x".join(map(str, tile))] = lambda product=product: product(c, a, b)
        samples: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, work in sides.items():
                samples[name].append(sample(work))
    medians = {name: statistics.median(times) for name, times in samples.items()}
    print(f"\nproduct {size}^3 fp32, {threads} thread(s): median GFLOP/s, ratio to torch.mm")
    for name, seconds in medians.items():
        rate, ratio = 2 * size**3 / seconds / 1e9, medians["torch.mm"] / seconds
        print(f"  {name:12} {rate:8.1f} {ratio:8.2f}")
        rows.append(
            {"size": size, "threads": threads, "side": name, "gflops": rate, "ratio": ratio}
        )
    return rows


def parse_tile(text: str) -> Tile:
    m, n, k = (int(size) for size in text.split("x"))
    if n % LANES or k % LANES:
        raise SystemExit(f"tile {text}: the copy loops want N and K to be multiples of {LANES}")
    return m, n, k


def main() -> None:
    parser = argparse.ArgumentParser(description="times the matrix micro-kernel")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tiles", nargs="+", default=TILES, help="MxNxK; N and K multiples of 16")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    tiles = [parse_tile(text) for text in options.tiles]
    host = host_cpu()
    print(f"{host.name}, {len(usable_cpus())} CPUs, vectors of {host.vector_bits} bits")
    kernels = report_alone(tiles, options.rounds)
    cases = [(size, threads) for size in (1024, 1000) for threads in (1, 2)]
    products = [row for case in cases for row in report_product(*case, tiles, options.rounds)]
    if options.json:
        figures = {"cpu": host.name, "alone": kernels, "product": products}
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
