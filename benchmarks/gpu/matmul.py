"""Matrix products on Hopper beside cuBLAS through torch, and Triton, in one run.

    python -m benchmarks.gpu matmul [--case REGEX] [--rounds N] [--seconds S] [--json FILE]
    python -m benchmarks.gpu matmul --dry-run      # small, on the CPU, without Triton
    python -m benchmarks.gpu matmul --list

The kernels are those of `user_matmuls.py`, the same text under both compilers, and what
`tilewright.kernels.matmul` makes of the case ("ready-made"). Data are random and normal.
`tuned_cases.py` says how they are measured.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.checks import Check
from benchmarks.gpu.first_launches import cold_checks, first_launches, measure_first_launches
from benchmarks.gpu.matmul_cases import LARGE, SMALL, cases, launch
from benchmarks.gpu.tuned_cases import Call, Report, Suite, options_of, run_suite
from benchmarks.harness import Case
from benchmarks.triton_twins import kernel_of

PROGRAM = "benchmarks.gpu.matmul"
KERNELS = ("matmul_kernel", "fused_matmul_kernel", "weights_matmul_kernel", "grouped_matmul_kernel")


def kernels_of(side: str) -> dict[str, Any]:
    """The users' kernels under one compiler."""
    return {name: kernel_of(side, f"user_matmuls.{name}") for name in KERNELS}


# --- first launches -------------------------------------------------------------------------------


def cold_calls(side: str) -> dict[str, Call]:
    """A launch of each kernel at 4096^3; "warm-up" is one that shares nothing with the others."""
    import torch

    kernels = kernels_of(side)
    n, config = 4096, LARGE[1]
    a, b = (torch.randn(n, n, device="cuda").half() for _ in range(2))
    out, small, weights = torch.empty_like(a), torch.randn(64, 64, device="cuda"), a.to(torch.int8)
    wide = torch.empty(n, n, device="cuda", dtype=torch.int32)
    turned, byte_config = weights.t(), {**config, "BLOCK_K": 128}
    return {
        "warm-up": launch(kernels["matmul_kernel"], small, small, small.clone(), SMALL[4],
                          INTEGER=False),
        "matmul": launch(kernels["matmul_kernel"], a, b, out, config, INTEGER=False),
        "B stored [N,K]": launch(kernels["matmul_kernel"], a, b.t(), out, config, INTEGER=False),
        "fused": launch(kernels["fused_matmul_kernel"], a, b, out, config, a[0]),
        "int8": launch(kernels["matmul_kernel"], weights, turned, wide, byte_config, INTEGER=True),
        "fp16 x int8": launch(kernels["weights_matmul_kernel"], a, weights, out, config, a[0]),
    }  # fmt: skip


def means(found: Mapping[str, Case]) -> list[Check]:
    """Geometric means over the large products of each type."""
    checks: list[Check] = []
    sizes = ("4096^3", "8192^3", "16384^3", "8192x1024x8192")
    for kind in ("fp16", "bf16"):
        ratios = [
            found[name].ratios["tilewright"].median
            for name in (f"{kind} {size}" for size in sizes)
            if name in found and "tilewright" in found[name].ratios
        ]
        if len(ratios) == len(sizes):
            mean = statistics.geometric_mean(ratios)
            checks.append(Check(f"{kind}, large: tilewright / torch, mean", mean, 1.0))
    return checks


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cases, or first launches alone."""
    parser = options_of((__doc__ or "").splitlines()[0])
    parser.add_argument("--first-launches", type=int, default=0, metavar="N",
                        help="N fresh processes of each side, instead of cases")  # fmt: skip
    parser.add_argument("--cold", choices=("tilewright", "triton"), help="one fresh process")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.cold:
        print(json.dumps(first_launches(cold_calls(options.cold), options.seed)))
        return
    suite = Suite("Matrix products on Hopper", PROGRAM, cases(), kernels_of, summary=means)
    report = Report(suite, options.json)
    if not options.first_launches:
        run_suite(suite, options, report)
        return
    cold = measure_first_launches(options.first_launches, PROGRAM)
    report.cold, report.checks = cold, cold_checks(cold)
    report.show_checks()
    report.write()


if __name__ == "__main__":
    main()
