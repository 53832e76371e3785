"""The speed that the split of a dot among warps gains: attention versus a square split.

    python -m benchmarks.gpu warp-split [--length N] [--json FILE]

Needs an NVIDIA GPU and torch. Both sides are the library's kernel with its own options; only how
the warps split the two dots differs (`backends/nvidia/layouts/warp_split.py`).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tilewright
from benchmarks.harness import Case, Work, interleave, print_table, write_results
from benchmarks.kernels.user_attention import attention_kernel
from tilewright.backends.nvidia.layouts import warp_split
from tilewright.kernels.attention_plan import gpu_launch_options
from tilewright.kernels.matmul_plan import current_gpu

CASES = (("float16", 64), ("float16", 128), ("float16", 256), ("float32", 64), ("float32", 128))
HEADS = 16


@contextmanager
def square_shares() -> Iterator[None]:
    """A block in which no product is seen to have neighbours."""
    search: Any = warp_split._Search
    kept = search._have_neighbours
    search._have_neighbours = lambda self: False
    try:
        yield
    finally:
        search._have_neighbours = kept


def launcher(kernel: Any, q: Any, k: Any, v: Any, out: Any, causal: bool) -> Callable[[], object]:
    heads, length, size = q.shape
    words = gpu_launch_options(size, q.element_size(), current_gpu().capability)
    grid = (tilewright.cdiv(length, words["BLOCK_M"]), heads)
    arguments = (q, k, v, out, *q.stride()[:2], length, size**-0.5)
    return lambda: kernel[grid](*arguments, **words, HEAD=size, CAUSAL=causal)


def measured(torch: Any, dtype: str, size: int, length: int, causal: bool) -> Case:
    shape = (HEADS, length, size)
    q, k, v = (torch.randn(shape, device="cuda", dtype=getattr(torch, dtype)) for _ in range(3))
    outs = [torch.empty_like(q) for _ in range(2)]
    runs = {
        name: launcher(tilewright.jit(attention_kernel.fn), q, k, v, out, causal)
        for name, out in zip(("square", "chosen"), outs, strict=True)
    }
    with tilewright.settings().cache.scope(always_compile=True):
        with square_shares():
            runs["square"]()
        runs["chosen"]()
    torch.testing.assert_close(*outs, atol=2e-2, rtol=2e-2)
    work = 4 * HEADS * length * length * size * (0.5 if causal else 1.0)
    name = f"{dtype} {size}{' causal' if causal else ''}"
    rate = Work(work * 1e-12, "TFLOP")
    return interleave(runs, baseline="square", name=name, work=rate, device="cuda")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(arguments)
    import torch

    cases = [
        measured(torch, dtype, size, chosen.length, causal)
        for dtype, size in CASES
        for causal in (False, True)
    ]
    print_table(cases)
    if chosen.json:
        write_results(chosen.json, "Shares of products", cases)


if __name__ == "__main__":
    main()
