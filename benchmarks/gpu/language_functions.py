"""Sorts, scans, histograms, gathers and random numbers on an NVIDIA GPU, beside Triton.

    python -m benchmarks.gpu language [--rounds N] [--json FILE]

The same source under both compilers, interleaved as in `gpu.py`, and checked against float64.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.event_clock import EventClock
from benchmarks.gpu.ready_made_kernels import Bench, kernel_ratios
from benchmarks.harness import Case, Work, print_table, write_results
from benchmarks.kernels import order_kernels
from benchmarks.triton_twins import twin
from tilewright.kernels.dropout import dropout_kernel

ROWS = 8192


def order_cases(bench: Bench) -> list[Case]:
    """Rows of several lengths, one program each."""
    import torch

    cases: list[Case] = []

    def add(
        name: str, inputs: list[Any], like: Any, reference: Any, words: Mapping[str, int]
    ) -> None:
        run: dict[str, Callable[[Any], object]] = {}
        theirs = twin(f"order_kernels.{name}_kernel")
        for who, kernel in (
            ("tilewright", getattr(order_kernels, f"{name}_kernel")),
            ("triton", theirs),
        ):
            run[who] = lambda out, kernel=kernel: kernel[(ROWS,)](*inputs, out, **words)
        moved = sum(x.nbytes for x in [*inputs, like]) * 1e-9
        title = f"{name} {ROWS}x{words['BLOCK']}"
        cases.append(
            bench.compare(
                title, run, like, reference, Work(moved, "GB"), 1e-5, {"triton": 1.0},
                parameters=words,
            )
        )  # fmt: skip

    for block in (256, 1024, 4096):
        words = {"BLOCK": block}
        x = torch.randn(ROWS, block, device="cuda")
        decay = torch.rand_like(x)
        order = torch.randint(0, block, x.shape, device="cuda", dtype=torch.int32)
        add("sort", [x], x, x.double().sort(-1).values, words)
        add("cumsum", [x], x, x.double().cumsum(-1), words)
        add("recurrence", [decay, x], x, recurrence(decay.double(), x.double()), words)
        add("gather", [x, order], x, x.double().gather(-1, order.long()), words)
        bins = torch.randint(0, 256, x.shape, device="cuda", dtype=torch.int32)
        counts = torch.zeros(ROWS, 256, device="cuda", dtype=torch.float64)
        counts.scatter_add_(-1, bins.long(), torch.ones_like(x).double())
        add("histogram", [bins], counts.float(), counts, {**words, "BINS": 256})
    return cases


def recurrence(decay: Any, x: Any) -> Any:
    """y[i] = decay[i] * y[i - 1] + x[i]"""
    y = x.clone()
    for i in range(1, x.shape[-1]):
        y[:, i] += decay[:, i] * y[:, i - 1]
    return y


def dropout_case(bench: Bench, name: str, ours: Any, theirs: Any) -> Case:
    """Philox beside a copy: what it computes should hide behind what it moves."""
    import torch

    n, p, seed, block = 1 << 27, 0.25, 1234, 1024
    x = torch.randn(n, device="cuda")

    def run(kernel: Any, out: Any) -> object:
        return kernel[(n // block,)](x, out, n, p, seed, BLOCK=block)

    kept = torch.empty_like(x)
    run(theirs, kept)
    share = float((kept != 0).double().mean())
    assert abs(share - (1 - p)) < 1e-3, share
    # the numbers are Triton's, bit for bit, so the same elements are kept
    reference = torch.where(kept != 0, x.double() / (1 - p), 0.0)
    return bench.compare(
        f"{name} 2^27 fp32",
        {"tilewright": lambda out: run(ours, out),
         "triton": lambda out: run(theirs, out),
         "copy": lambda out: out.copy_(x)},
        x, reference, Work(2 * x.nbytes * 1e-9, "GB"), 1e-6, {"triton": 1.0},
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(arguments)
    bench = Bench(chosen.rounds, EventClock(), {})
    each = twin("order_kernels.rand_kernel")
    cases = [
        *order_cases(bench),
        dropout_case(bench, "dropout", dropout_kernel, twin("dropout.dropout_kernel")),
        dropout_case(bench, "dropout by rand", order_kernels.rand_kernel, each),
    ]
    print_table(cases)
    for check in kernel_ratios(cases):
        verdict = "met" if check.met else "MISSED"
        print(f"{check.name:42} {check.value:8.3f} >= {check.limit:g} {verdict}")
    if chosen.json is not None:
        write_results(chosen.json, "language functions on an NVIDIA GPU", cases)


if __name__ == "__main__":
    main()
