"""Attention on Hopper beside torch's (cuDNN, flash) and Triton's, and other chains of products.

    python -m benchmarks.gpu attention [--case REGEX] [--rounds N] [--seconds S] [--json FILE]
    python -m benchmarks.gpu attention --first-launches N     # of the textbook's, beside Triton's
    python -m benchmarks.gpu attention --dry-run              # small, on the CPU, without Triton
    python -m benchmarks.gpu attention --list

"ready-made" is `tilewright.kernels`; "tilewright" and "triton" are the kernels of
`user_attention.py` and `user_chains.py`, the same text under both compilers, written as textbooks
write them. Forward and backward have 16,384 tokens in heads of 2,048 numbers in all, normal and
random. `tuned_cases.py` says how they are measured. The goals of a row, at least:

    forward D128            1.05 x cuDNN, causal 1.10; 1.6 x Triton; textbook 0.9 x ready-made
    forward D64, D256       0.98 x cuDNN, causal 1.0; 0.95 of D256
    forward D96, D192/128   none: heads of odd sizes, and of latent attention
    backward D64, D128      0.9 x cuDNN, 1.3 x Triton; none of D96 and D192/128
    fp8 forward D128 full   1.25 x ready-made fp16, with the copy of values turned; others none
    decode                  0.9 of a copy's bandwidth, in rows and in pages
    chain                   as fast as in one stage, and as Triton

Beside them no compiled kernel of attention may have local memory, and a first launch takes at most
half of Triton's time. What `--seconds` leaves out is what stands last in `--list`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.checks import Check
from benchmarks.gpu.attention_cases import cases
from benchmarks.gpu.first_launches import cold_checks, measure_first_launches
from benchmarks.gpu.tuned_cases import Report, Suite, label, options_of, run_suite
from benchmarks.harness import Case
from benchmarks.triton_twins import kernel_of
from tilewright.runtime import JITFunction

PROGRAM = "benchmarks.gpu.attention"
KERNELS = (
    *(f"user_attention.{name}_kernel"
      for name in ("attention", "row_products", "keys_gradient", "queries_gradient")),
    *(f"user_chains.{name}_kernel"
      for name in ("layers", "regression", "log_sum", "linear_attention")),
)  # fmt: skip
BURST_MS = 16.0
"""Bursts of 6 ms change by 10 % from run to run."""


def kernels_of(side: str) -> dict[str, Any]:
    """The users' kernels under one compiler."""
    return {path.partition(".")[2]: kernel_of(side, path) for path in KERNELS}


def local_memory(found: Mapping[str, Case]) -> list[Check]:
    """That what was compiled of attention spills nothing: ready-made kernels, and users' with the
    tiles that were the fastest of a case; the kernels that do are named."""
    modules = [sys.modules[name] for name in sys.modules if "attention" in name]
    kernels = {id(x): x for module in modules for x in vars(module).values()
               if isinstance(x, JITFunction)}  # fmt: skip
    fastest = {(name.startswith("backward"), case.parameters["chosen"].get("tilewright", ""))
               for name, case in found.items()}  # fmt: skip
    made = [
        (described(one), 4 * one.n_spills)
        for kernel in kernels.values()
        for one in kernel.device_caches[0][0].values()
        if kernel.__module__.startswith("tilewright")
        or (kernel.__name__ != "attention_kernel", tile_of(one)) in fastest
    ]
    checks = [Check(f"local memory of {name}", size, 0, "bytes", at_most=True)
              for name, size in made if size]  # fmt: skip
    if checks or not made:
        return checks
    return [Check(f"local memory, most of {len(made)} kernels", 0, 0, "bytes", at_most=True)]


def constants_of(kernel: Any) -> dict[str, Any]:
    """The compile-time arguments of a compiled kernel, and its options, by name."""
    names, options = list(kernel.src.signature), kernel.metadata
    constants = {names[place]: value for (place, *_), value in kernel.src.constants.items()}
    return constants | {name: getattr(options, name) for name in ("num_warps", "num_stages")}


def described(kernel: Any) -> str:
    """With its constants, such as "attention_kernel HEAD=128 num_warps=8"."""
    constants = constants_of(kernel).items()
    return " ".join((kernel.name, *(f"{name}={value}" for name, value in constants)))


def tile_of(kernel: Any) -> str:
    """What the benchmark calls the tile of a user's kernel; that of the queries' gradients has its
    extents the other way round."""
    words = constants_of(kernel)
    if kernel.name == "queries_gradient_kernel":
        words |= {"BLOCK_M": words["BLOCK_N"], "BLOCK_N": words["BLOCK_M"]}
    return label(words)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cases, or first launches alone."""
    parser = options_of((__doc__ or "").splitlines()[0])
    parser.add_argument("--first-launches", type=int, default=0, metavar="N",
                        help="N fresh processes of each side, instead of cases")  # fmt: skip
    options = parser.parse_args(arguments)
    suite = Suite("Attention on Hopper", PROGRAM, cases(), kernels_of, BURST_MS, local_memory)
    report = Report(suite, options.json)
    if not options.first_launches:
        run_suite(suite, options, report)
        return
    cold = measure_first_launches(options.first_launches)
    report.cold = cold
    report.checks = [check for check in cold_checks(cold) if "attention" in check.name]
    report.show_checks()
    report.write()


if __name__ == "__main__":
    main()
