"""Attention on Hopper beside torch's (cuDNN, flash) and Triton's, and other chains of products.

    python benchmarks/gpu.py attention [--case REGEX] [--rounds N] [--seconds S] [--json FILE]
    python benchmarks/gpu.py attention --dry-run      # small, on the CPU, without Triton
    python benchmarks/gpu.py attention --list

"ready-made" is `tilewright.kernels`; "tilewright" and "triton" are the kernels of
`user_attention.py` and `user_chains.py`, the same text under both compilers, written as textbooks
write them. Forward and backward have 16,384 tokens in heads of 2,048 numbers in all, normal and
random. `hopper_bench.py` says how they are measured.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attention_cases import cases
from hopper_bench import Report, Suite, options_of, run_suite
from triton_twins import twin

HERE = Path(__file__).resolve()
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
    found: dict[str, Any] = {}
    for path in KERNELS:
        module, _, name = path.partition(".")
        found[name] = (
            twin(path, sources=HERE.parent)
            if side == "triton"
            else getattr(importlib.import_module(module), name)
        )
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    options = options_of((__doc__ or "").splitlines()[0]).parse_args(arguments)
    suite = Suite("Attention on Hopper", HERE, cases(), kernels_of, BURST_MS)
    run_suite(suite, options, Report(suite, options.json))


if __name__ == "__main__":
    main()
