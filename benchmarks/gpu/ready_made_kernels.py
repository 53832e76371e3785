"""The NVIDIA backend beside Triton and torch: bandwidth, products, launch and first-launch cost.

    python -m benchmarks.gpu [--rounds N] [--repeats N] [--json FILE]

Kernels are the same source under both compilers, with the same options, on random data. All
contestants of a case are sampled in every round, in an order shuffled anew, each sample one call
after the second-level cache was overwritten, timed by events; a product is timed over several
calls. Outputs hold NaN before and are compared with float64 after. A ratio is taken within rounds:
"copy" is torch's copy of as many bytes as the kernel reads and writes.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.checks import Check, relative_error
from benchmarks.event_clock import EventClock
from benchmarks.gpu.first_launches import (
    COLD_SHARE,
    TWINS,
    first_launches,
    launches,
    measure_first_launches,
)
from benchmarks.harness import Case, Work, interleave, print_table, write_results
from benchmarks.triton_twins import twin

SOFTMAX_COLUMNS = (256, 781, 1024, 2048, 4096, 8192, 12672, 16384, 32768)
SOFTMAX_ROWS = 4096
LARGE_BYTES = 64 << 20
"""Moved by a kernel that should come close to the bandwidth of a copy."""

SOFTMAX_GOAL = 0.97
PRODUCT_TFLOPS = 350.0
COPY_SHARE = 0.9
LAUNCH_US = 8.0


# --- kernels --------------------------------------------------------------------------------------


@dataclass
class Bench:
    """Runs the cases of kernels. twins: Triton's kernels by name."""

    rounds: int
    clock: EventClock
    twins: Mapping[str, Any]

    def compare(
        self, name: str, run: Mapping[str, Callable[[Any], object]], like: Any, reference: Any,
        work: Work, error: float, goals: Mapping[str, float], cold: bool = True,
        parameters: Mapping[str, object] | None = None,
    ) -> Case:  # fmt: skip
        """Time contestants that each write an array like `like`; check what they wrote.

        goals: of tilewright's speed over others'. error: of the norm of the difference from
        `reference`, over its norm.
        """
        import torch

        outs = {who: torch.full_like(like, float("nan")) for who in run}
        calls = {who: (lambda fn=fn, out=outs[who]: fn(out)) for who, fn in run.items()}
        case = interleave(
            calls, self.rounds, min_time=5.0, name=name, baseline="triton", work=work,
            goals={"tilewright": goals["triton"]}, settle_ms=0.0, flush_cache=cold,
            clock=self.clock, parameters=parameters,
        )  # fmt: skip
        for who, out in outs.items():
            if who != "copy":
                found = relative_error(out, reference)
                assert found <= error, f"{name}, {who}: error {found:.3g}"
        return case

    def add(self) -> Case:
        import torch

        from tilewright import kernels

        n = 1 << 27
        x, y = (torch.randn(n, device="cuda") for _ in range(2))
        source = torch.randn(n + n // 2, device="cuda")
        target = torch.empty_like(source)
        kernel = self.twins["elementwise.add_kernel"]
        return self.compare(
            "add 2^27 fp32",
            {"tilewright": lambda out: kernels.add(x, y, out),
             "torch": lambda out: torch.add(x, y, out=out),
             "copy": lambda out: target.copy_(source),
             "triton": lambda out: kernel[(n // 1024,)](x, y, out, n, BLOCK=1024)},
            x, x.double() + y.double(), Work(3 * 4 * n * 1e-9, "GB"), 1e-6, {"triton": 0.99},
        )  # fmt: skip

    def softmax(self, columns: int, dtype: Any) -> Case:
        import torch

        from tilewright import kernels
        from tilewright.kernels.softmax import row_options, softmax_kernel
        from tilewright.runtime import next_power_of_2

        x = torch.randn(SOFTMAX_ROWS, columns, device="cuda").to(dtype)
        kernel, block = self.twins["softmax.softmax_kernel"], next_power_of_2(columns)
        words = row_options(columns, x.element_size())

        def launch(kernel: Any, out: Any) -> Any:
            return kernel[(SOFTMAX_ROWS,)](out, x, columns, columns, columns, BLOCK=block, **words)

        def theirs(out: Any) -> Any:
            return launch(kernel, out)

        registers = {
            "tilewright": launch(softmax_kernel, torch.empty_like(x)).n_regs,
            "triton": theirs(torch.empty_like(x)).n_regs,
        }

        size = "fp32" if dtype == torch.float32 else "fp16"
        return self.compare(
            f"softmax {SOFTMAX_ROWS}x{columns} {size}",
            {"tilewright": lambda out: kernels.softmax(x, out),
             "torch": lambda out: torch.softmax(x, -1, out=out),
             "copy": lambda out: out.copy_(x), "triton": theirs},
            x, torch.softmax(x.double(), -1), Work(2 * x.nbytes * 1e-9, "GB"),
            1e-6 if size == "fp32" else 1e-3, {"triton": SOFTMAX_GOAL},
            parameters={**words, "registers": registers},
        )  # fmt: skip

    def layer_norm(self) -> Case:
        import torch

        from tilewright import kernels
        from tilewright.kernels.softmax import row_options

        size = 4096
        x, weight, bias = (torch.randn(s, device="cuda") for s in ((size, size), size, size))
        kernel, words = self.twins["norm.layer_norm_kernel"], row_options(size, x.element_size())

        def theirs(out: Any) -> None:
            kernel[(size,)](x, weight, bias, out, size, size, size, 1e-5, BLOCK=size, **words)

        moments = [torch.empty(size, 1, device="cuda") for _ in range(2)]

        def of_torch(out: Any) -> None:
            mean, scale = moments
            torch.ops.aten.native_layer_norm.out(
                x, [size], weight, bias, 1e-5, out0=out, out1=mean, out2=scale
            )

        reference = torch.nn.functional.layer_norm(
            x.double(), (size,), weight.double(), bias.double()
        )
        return self.compare(
            f"layer norm {size}x{size} fp32",
            {"tilewright": lambda out: kernels.layer_norm(x, weight, bias, out=out),
             "torch": of_torch,
             "copy": lambda out: out.copy_(x), "triton": theirs},
            x, reference, Work(2 * x.nbytes * 1e-9, "GB"), 1e-5, {"triton": 1.0},
        )  # fmt: skip

    def transpose(self) -> Case:
        import torch

        from tilewright import kernels

        size, block = 8192, 64
        x = torch.randn(size, size, device="cuda")
        kernel = self.twins["transpose.transpose_kernel"]

        def theirs(out: Any) -> None:
            grid = (size // block, size // block)
            kernel[grid](x, out, size, size, size, size, BLOCK_M=block, BLOCK_N=block)

        return self.compare(
            f"transpose {size}x{size} fp32",
            {"tilewright": lambda out: kernels.transpose(x, out),
             "torch": lambda out: out.copy_(x.t()),
             "copy": lambda out: out.copy_(x), "triton": theirs},
            x, x.double().t(), Work(2 * x.nbytes * 1e-9, "GB"), 0.0, {"triton": 0.95},
        )  # fmt: skip

    def matmul(self) -> Case:
        import torch

        from tilewright import kernels
        from tilewright.kernels.matmul_arrays import PLAIN
        from tilewright.kernels.matmul_plan import GPU_BLOCKS, GPU_OPTIONS

        n = 4096
        a, b = (torch.randn(n, n, device="cuda").half() for _ in range(2))
        kernel, words = self.twins["matmul.matmul_kernel"], {**GPU_BLOCKS, **GPU_OPTIONS}
        grid = (n // words["BLOCK_M"] * (n // words["BLOCK_N"]),)

        def theirs(out: Any) -> None:
            kernel[grid](
                a, b, out, n, n, n, n, 1, n, 1, n, 1, 0.0, **words, **PLAIN
            )  # fmt: skip

        return self.compare(
            f"matmul {n}^3 fp16",
            {"tilewright": lambda out: kernels.matmul(a, b, out=out),
             "torch": lambda out: torch.mm(a, b, out=out), "triton": theirs},
            a, a.double() @ b.double(), Work(2 * n**3 * 1e-12, "TFLOP"), 1e-3, {"triton": 0.0},
            cold=False,
        )  # fmt: skip

    def cases(self) -> list[Case]:
        """Every comparison of the speed of kernels."""
        import torch

        found = [self.add()]
        for dtype in (torch.float32, torch.float16):
            found += [self.softmax(columns, dtype) for columns in SOFTMAX_COLUMNS]
        return [*found, self.layer_norm(), self.transpose(), self.matmul()]


# --- launch ---------------------------------------------------------------------------------------


def launch_case(rounds: int) -> Case:
    """Host time of a launch with 7 arguments; the kernels do nothing."""
    import torch

    from benchmarks.kernels import empty_kernel

    x, y, z = (torch.zeros(16, device="cuda") for _ in range(3))
    ours, theirs = empty_kernel.ours(), empty_kernel.theirs()
    return interleave(
        {"tilewright": lambda: ours[(1,)](x, y, z, 5, 6, 7, 9),
         "torch.add": lambda: torch.add(x, y, out=z),
         "triton": lambda: theirs[(1,)](x, y, z, 5, 6, 7, 9)},
        rounds, min_time=4.0, name="launch, 7 arguments", baseline="triton", settle_ms=1.0,
    )  # fmt: skip


# --- first launches -------------------------------------------------------------------------------

COLD_KERNELS = ("add", "softmax", "layer norm", "matmul", "attention")


# --- goals ----------------------------------------------------------------------------------------


def kernel_ratios(cases: list[Case]) -> list[Check]:
    """The goals of each case: beside Triton and, where much is moved, beside a copy."""
    checks: list[Check] = []
    for case in cases:
        goal, ratio = case.goals["tilewright"], case.ratios["tilewright"].median
        if goal:
            checks.append(Check(f"{case.name} / triton", ratio, goal))
        if (
            case.work is not None
            and case.work.amount * 1e9 >= LARGE_BYTES
            and "copy" in case.timings
        ):
            share = _ratio(case, "copy", "tilewright")
            checks.append(Check(f"{case.name} / copy", share, COPY_SHARE))
    return checks


def kernel_checks(cases: list[Case]) -> list[Check]:
    """The goals on kernels, from their cases."""
    checks = kernel_ratios(cases)
    for size in ("fp32", "fp16"):
        ratios = [
            case.ratios["tilewright"].median
            for case in cases
            if case.name.startswith("softmax") and case.name.endswith(size)
        ]
        mean = statistics.geometric_mean(ratios)
        checks.append(Check(f"softmax {size} / triton, geometric mean", mean, 1.0))
    product = cases[-1]
    assert product.work is not None
    rate = product.work.rate(product.timings["tilewright"].spread.median)
    return [*checks, Check(product.name, rate, PRODUCT_TFLOPS, "TFLOP/s")]


def _ratio(case: Case, over: str, under: str) -> float:
    """Median over the rounds of one contestant's time over another's."""
    pairs = zip(case.timings[over].samples_ms, case.timings[under].samples_ms, strict=True)
    return statistics.median(a / b for a, b in pairs)


def cost_checks(launch: Case, cold: dict[str, list[dict[str, float]]]) -> list[Check]:
    """The goals on launches."""
    spent = 1e3 * launch.timings["tilewright"].spread.median
    checks = [Check("launch, 7 arguments", spent, LAUNCH_US, "us", at_most=True)]
    for name in COLD_KERNELS:
        pairs = zip(cold["tilewright"], cold["triton"], strict=True)
        share = statistics.median(ours[name] / theirs[name] for ours, theirs in pairs)
        checks.append(Check(f"first launch, {name} / triton", share, COLD_SHARE, at_most=True))
    return checks


def show(checks: list[Check], cold: dict[str, list[dict[str, float]]]) -> None:
    """First launches in milliseconds, and every goal."""
    print("first launch, ms:        tilewright  triton")
    for name in COLD_KERNELS:
        ours, theirs = (statistics.median(r[name] for r in cold[s]) for s in cold)
        print(f"  {name:20} {ours:12.0f} {theirs:8.0f}")
    for check in checks:
        sign, verdict = "<=" if check.at_most else ">=", "met" if check.met else "MISSED"
        print(f"{check.name:42} {check.value:8.3f} {sign} {check.limit:g} {check.unit} {verdict}")


def write(
    path: Path, cases: list[Case], checks: list[Check], cold: dict[str, list[dict[str, float]]]
) -> None:
    """Everything as JSON."""
    goals = [
        {"name": c.name, "value": c.value, "limit": c.limit, "unit": c.unit,
         "at_most": c.at_most, "met": c.met} for c in checks
    ]  # fmt: skip
    write_results(path, "NVIDIA backend", cases, first_launch_ms=cold, goals=goals)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=61)
    parser.add_argument("--repeats", type=int, default=3, help="fresh processes of each side")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--cold", choices=("tilewright", "triton"), help="one such process")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    if chosen.cold:
        print(json.dumps(first_launches(launches(chosen.cold), chosen.seed)))
        return
    cold = measure_first_launches(chosen.repeats)
    bench = Bench(chosen.rounds, EventClock(), {name: twin(name) for name in TWINS})
    cases, launch = bench.cases(), launch_case(chosen.rounds)
    print_table([*cases, launch])
    for case in cases:
        print(case.name, dict(case.parameters))
    checks = [*kernel_checks(cases), *cost_checks(launch, cold)]
    show(checks, cold)
    if chosen.json is not None:
        write(chosen.json, [*cases, launch], checks, cold)


if __name__ == "__main__":
    main()
