"""Triton-C beside Python: add, transpose and matmul, one configuration; launches; parsing.

    python -m benchmarks.cpu.triton_c [--device cuda] [--rounds N] [--threads N] [--json FILE]

Both sides of a case are the same kernel in the two languages, launched with the same arguments and
options, and interleaved. Outputs hold NaN before and are compared with float64 after, outside of
what is timed. On the CPU arrays are NumPy's, on a GPU tensors of torch, in fp16 for the product;
there each sample of a kernel starts from cold caches. "parse and lower" is the way from text to the
front end's tile IR, in a process that has done it before.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tilewright
import tilewright.language as tl
from benchmarks.harness import Case, Work, fix_threads, interleave, print_table, write_results

GOAL = 0.98
LOWERING_MS = 60.0

ADD = """
__global__ void add(const float *a, const float *b, float *c, int N) {
    int off[SIZE] = get_program_id(0) * SIZE + 0 ... SIZE;
    bool mask[SIZE] = off < N;
    *?(mask) (c + off) = *?(mask) (a + off) + *?(mask) (b + off);
}
"""

TRANSPOSE = """
__global__ void transpose(const float *X, float *Y, int M, int N, int ldx, int ldy) {
    int rm[TM] = get_program_id(0) * TM + 0 ... TM;
    int rn[TN] = get_program_id(1) * TN + 0 ... TN;
    bool checkx[TM, TN] = (rm[:, newaxis] < M) && (rn[newaxis, :] < N);
    bool checky[TN, TM] = (rm[newaxis, :] < M) && (rn[:, newaxis] < N);
    float x[TM, TN] = *?(checkx) (X + rm[:, newaxis] * ldx + rn[newaxis, :]);
    *?(checky) (Y + rm[newaxis, :] + rn[:, newaxis] * ldy) = ^x;
}
"""

MATMUL = """
__global__ void matmul(const TYPE *A, const TYPE *B, float *C, int M, int N, int K,
                       int lda, int ldb, int ldc) {
    int rm[TM] = get_program_id(0) * TM + 0 ... TM;
    int rn[TN] = get_program_id(1) * TN + 0 ... TN;
    int rk[TK] = 0 ... TK;
    float c[TM, TN] = 0;
    const TYPE *pa[TM, TK] = A + rm[:, newaxis] * lda + rk[newaxis, :];
    const TYPE *pb[TK, TN] = B + rk[:, newaxis] * ldb + rn[newaxis, :];
    for (int k = 0; k < K; k += TK) {
        TYPE a[TM, TK] = *pa;
        TYPE b[TK, TN] = *pb;
        c += a @ b;
        pa += TK;
        pb += TK * ldb;
    }
    *(C + rm[:, newaxis] * ldc + rn[newaxis, :]) = c;
}
"""

EMPTY = "__global__ void empty(float *a, float *b, float *c, int i, int j, int k, int n) { }"


@tilewright.jit
def add(a, b, c, N, SIZE: tl.constexpr):
    off = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    mask = off < N
    tl.store(c + off, tl.load(a + off, mask) + tl.load(b + off, mask), mask)


@tilewright.jit
def transpose(X, Y, M, N, ldx, ldy, TM: tl.constexpr, TN: tl.constexpr):
    rm = tl.program_id(0) * TM + tl.arange(0, TM)
    rn = tl.program_id(1) * TN + tl.arange(0, TN)
    checkx = (rm[:, None] < M) & (rn[None, :] < N)
    checky = (rm[None, :] < M) & (rn[:, None] < N)
    x = tl.load(X + rm[:, None] * ldx + rn[None, :], checkx)
    tl.store(Y + rm[None, :] + rn[:, None] * ldy, tl.trans(x), checky)


@tilewright.jit
def matmul(A, B, C, M, N, K, lda, ldb, ldc,
           TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr):  # fmt: skip
    rm = tl.program_id(0) * TM + tl.arange(0, TM)
    rn = tl.program_id(1) * TN + tl.arange(0, TN)
    rk = tl.arange(0, TK)
    c = tl.zeros((TM, TN), tl.float32)
    pa = A + rm[:, None] * lda + rk[None, :]
    pb = B + rk[:, None] * ldb + rn[None, :]
    for _ in range(0, K, TK):
        a = tl.load(pa)
        b = tl.load(pb)
        c = tl.dot(a, b, c)
        pa += TK
        pb += TK * ldb
    tl.store(C + rm[:, None] * ldc + rn[None, :], c)


@tilewright.jit
def empty(a, b, c, i, j, k, n):
    pass


# --- where it runs --------------------------------------------------------------------------------


class Host:
    """NumPy arrays in the memory of the CPU."""

    sizes = {"add": 1 << 24, "transpose": 4096, "matmul": 1024}
    tiles = {"SIZE": 4096, "TM": 128, "TN": 128, "TK": 64}
    square = 64
    word, dtype, tolerance = "float", "float32", 1e-6
    timing: dict[str, Any] = {}  # noqa: RUF012 -- the harness's defaults

    def normal(self, *shape: int, dtype: str = "float32") -> Any:
        import numpy as np

        return np.random.default_rng().standard_normal(shape, np.float32).astype(dtype)

    def poisoned(self, *shape: int) -> Any:
        import numpy as np

        return np.full(shape, np.nan, np.float32)

    def double(self, x: Any) -> Any:
        return x.astype("float64")

    def norm(self, x: Any) -> float:
        """Infinite if anything is not finite."""
        import numpy as np

        return float(np.linalg.norm(x.ravel())) if np.isfinite(x).all() else float("inf")


class Cuda:
    """Tensors of torch on the current GPU."""

    sizes = {"add": 1 << 27, "transpose": 8192, "matmul": 4096}
    tiles = {"SIZE": 1024, "TM": 128, "TN": 128, "TK": 64}
    square = 64
    word, dtype, tolerance = "half", "float16", 1e-3

    def __init__(self) -> None:
        from benchmarks.event_clock import EventClock

        clock = EventClock()
        self.timing = {"clock": clock, "flush_cache": True, "settle_ms": 0.0}

    def normal(self, *shape: int, dtype: str = "float32") -> Any:
        import torch

        return torch.randn(*shape, device="cuda").to(getattr(torch, dtype))

    def poisoned(self, *shape: int) -> Any:
        import torch

        return torch.full(shape, float("nan"), device="cuda")

    def double(self, x: Any) -> Any:
        return x.double()

    def norm(self, x: Any) -> float:
        """Infinite if anything is not finite."""
        return float(x.norm()) if bool(x.isfinite().all()) else float("inf")


# --- cases ----------------------------------------------------------------------------------------


@dataclass
class Bench:
    """Runs the cases on a device."""

    device: Any
    rounds: int

    def compare(
        self, name: str, c: Callable[[Any], Any], python: Callable[[Any], Any], shape: Any,
        reference: Any, work: Work,
    ) -> Case:  # fmt: skip
        """Time both sides writing one array, so that its place in memory is the same for both;
        check what each writes before and after."""
        sides, out = {"triton-c": c, "python": python}, self.device.poisoned(*shape)
        self._check(name, sides, out, reference)
        texts = [side(out).asm for side in sides.values()]
        same = [stage for stage in texts[0] if _same_text(stage, *texts)]
        case = interleave(
            {"triton-c": lambda: c(out), "python": lambda: python(out)},
            self.rounds, name=name, work=work, goals={"triton-c": GOAL},
            parameters={"equal stages": " ".join(same)}, **self.device.timing,
        )  # fmt: skip
        self._check(name, sides, out, reference)
        return case

    def _check(
        self, name: str, sides: dict[str, Callable[[Any], Any]], out: Any, reference: Any
    ) -> None:
        device = self.device
        for who, launch in sides.items():
            out[...] = float("nan")
            launch(out)
            error = device.norm(device.double(out) - reference) / device.norm(reference)
            assert error <= device.tolerance, f"{name}, {who}: error {error:.3g}"

    def add(self) -> Case:
        device, n, size = self.device, self.device.sizes["add"], self.device.tiles["SIZE"]
        a, b = device.normal(n), device.normal(n)
        c = tilewright.c.kernel(ADD, {"SIZE": size}, num_warps=4)
        grid = (n // size,)
        return self.compare(
            f"add 2^{n.bit_length() - 1} fp32",
            lambda out: c[grid](a, b, out, n),
            lambda out: add[grid](a, b, out, n, SIZE=size, num_warps=4),
            (n,), device.double(a) + device.double(b), Work(12 * n * 1e-9, "GB"),
        )  # fmt: skip

    def transpose(self) -> Case:
        device, n, side = self.device, self.device.sizes["transpose"], self.device.square
        x = device.normal(n, n)
        tiles = {"TM": side, "TN": side}
        c = tilewright.c.kernel(TRANSPOSE, tiles, num_warps=4)
        grid = (n // side, n // side)
        return self.compare(
            f"transpose {n}^2 fp32",
            lambda out: c[grid](x, out, n, n, n, n),
            lambda out: transpose[grid](x, out, n, n, n, n, **tiles, num_warps=4),
            (n, n), device.double(x).T, Work(8 * n * n * 1e-9, "GB"),
        )  # fmt: skip

    def matmul(self) -> Case:
        device, n = self.device, self.device.sizes["matmul"]
        tiles = {name: device.tiles[name] for name in ("TM", "TN", "TK")}
        a, b = device.normal(n, n, dtype=device.dtype), device.normal(n, n, dtype=device.dtype)
        c = tilewright.c.kernel(MATMUL, {**tiles, "TYPE": device.word}, num_warps=8)
        grid = (n // tiles["TM"], n // tiles["TN"])
        sizes = (n,) * 6
        return self.compare(
            f"matmul {n}^3 {device.word}",
            lambda out: c[grid](a, b, out, *sizes),
            lambda out: matmul[grid](a, b, out, *sizes, **tiles, num_warps=8),
            (n, n), device.double(a) @ device.double(b), Work(2e-9 * n**3, "GFLOP"),
        )  # fmt: skip

    def launches(self) -> Case:
        """Host time of launches that do nothing; "list": with a macro that has been tuned."""
        x, y, z = (self.device.normal(16) for _ in range(3))
        plain = tilewright.c.kernel(EMPTY)
        tuned = tilewright.c.kernel(EMPTY, {"SIZE": [16, 32]}, warmup=1, rep=1)
        return interleave(
            {"triton-c": lambda: plain[(1,)](x, y, z, 5, 6, 7, 9),
             "triton-c, list": lambda: tuned[(1,)](x, y, z, 5, 6, 7, 9),
             "python": lambda: empty[(1,)](x, y, z, 5, 6, 7, 9)},
            self.rounds, min_time=4.0, name="launch, 7 arguments", settle_ms=1.0,
        )  # fmt: skip


def _same_text(stage: str, ours: Any, theirs: Any) -> bool:
    """Whether a stage that is text is the same on both sides."""
    text = ours.get(stage)
    return isinstance(text, str) and text == theirs.get(stage)


# --- parsing and lowering -------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """Milliseconds, the median of some runs, with the most that it may be."""

    name: str
    ms: float
    limit: float

    @property
    def met(self) -> bool:
        return self.ms <= self.limit


def lowering(repeats: int) -> Cost:
    """From the text of the matmul to its tile IR, warm."""
    from tilewright.frontend.semantics import FrontendOptions

    samples: list[float] = []
    macros = {"TM": 64, "TN": 64, "TK": 16, "TYPE": "float"}
    for _ in range(repeats + 1):
        start = time.perf_counter()
        tilewright.c.CSource(MATMUL, macros).lower(FrontendOptions())
        samples.append(1e3 * (time.perf_counter() - start))
    return Cost("parse and lower the matmul, warm", sorted(samples[1:])[repeats // 2], LOWERING_MS)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    if chosen.device == "cpu":
        fix_threads(chosen.threads)
    bench = Bench(Host() if chosen.device == "cpu" else Cuda(), chosen.rounds)
    cases = [bench.add(), bench.transpose(), bench.matmul(), bench.launches()]
    cost = lowering(31)
    print_table(cases, f"Triton-C beside Python on {chosen.device}")
    for case in cases[:-1]:
        print(f"{case.name}: the same text in {case.parameters['equal stages'] or 'no stage'}")
    print(f"{cost.name}: {cost.ms:.1f} ms, at most {cost.limit:g}", "met" if cost.met else "MISSED")
    if chosen.json is not None:
        write_results(chosen.json, f"Triton-C beside Python, {chosen.device}", cases)
        record = json.loads(chosen.json.read_text())
        record["costs"] = [{**asdict(cost), "met": cost.met}]
        chosen.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
