"""First launches in fresh processes with empty caches, Triton's and ours in turn.

A process has a context and has launched one other kernel; then it launches each kernel once, in
shuffled order, and waits for it.
"""

from __future__ import annotations

import compileall
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import tilewright
from benchmarks.checks import Check
from benchmarks.triton_twins import kernel_of

PROGRAM = "benchmarks.gpu.ready_made_kernels"
COLD_SHARE = 0.5
TWINS = (
    "elementwise.add_kernel",
    "softmax.softmax_kernel",
    "norm.layer_norm_kernel",
    "transpose.transpose_kernel",
    "matmul.matmul_kernel",
    "user_attention.attention_kernel",
)


def launches(side: str) -> dict[str, Callable[[], object]]:
    """Launches by kernel; "warm-up" has a signature that no other one shares."""
    import torch

    kernel = {name: kernel_of(side, name) for name in TWINS}
    x, y, out = (torch.randn(1024, 1024, device="cuda") for _ in range(3))
    a, b, c, d = (torch.randn(1024, 1024, device="cuda").half() for _ in range(4))
    n = 1024

    def transpose() -> None:
        kernel["transpose.transpose_kernel"][(16, 16)](x, out, n, n, n, n, BLOCK_M=64, BLOCK_N=64)

    def add() -> None:
        kernel["elementwise.add_kernel"][(n * n // 1024,)](x, y, out, n * n, BLOCK=1024)

    def softmax() -> None:
        kernel["softmax.softmax_kernel"][(n,)](out, x, n, n, n, BLOCK=n, num_warps=4)

    def layer_norm() -> None:
        kernel["norm.layer_norm_kernel"][(n,)](
            x, y[0], y[1], out, n, n, n, 1e-5, BLOCK=n, num_warps=4
        )

    def matmul() -> None:
        kernel["matmul.matmul_kernel"][(64,)](
            a, b, c, n, n, n, n, 1, n, 1, n, 1, 0.0, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32,
            GROUP_M=8, num_warps=4, num_stages=3, bias_ptr=None, ACTIVATION="", PARTS=1,
            UNITS=None, WIDE=False, WRAP=False,
        )  # fmt: skip

    def attention() -> None:
        kernel["user_attention.attention_kernel"][(8, 16)](
            a, b, c, d, 1024 * 64, 64, 1024, 0.125, BLOCK_M=128, BLOCK_N=64, HEAD=64,
            CAUSAL=False, num_warps=4, num_stages=3,
        )  # fmt: skip

    return {
        "warm-up": transpose, "add": add, "softmax": softmax,
        "layer norm": layer_norm, "matmul": matmul, "attention": attention,
    }  # fmt: skip


def first_launches(launches: dict[str, Callable[[], object]], seed: int) -> dict[str, float]:
    """Milliseconds from each kernel's first launch to its end, in this process.

    launches: by kernel; "warm-up" is launched before and not measured.
    """
    import torch

    launches.pop("warm-up")()
    torch.cuda.synchronize()
    found: dict[str, float] = {}
    for name in random.Random(seed).sample(list(launches), len(launches)):
        start = time.perf_counter()
        launches[name]()
        torch.cuda.synchronize()
        found[name] = 1e3 * (time.perf_counter() - start)
    return found


def measure_first_launches(
    repeats: int, program: str = PROGRAM
) -> dict[str, list[dict[str, float]]]:
    """First launches of every process, by side.

    program: prints `first_launches` for `--cold SIDE --seed N`
    """
    found: dict[str, list[dict[str, float]]] = {"tilewright": [], "triton": []}
    # as pip has done for what is installed, and for Triton
    compileall.compile_dir(Path(tilewright.__file__).parent, quiet=1)
    for number in range(repeats):
        for side in random.Random(number).sample(list(found), 2):
            found[side].append(_cold_process(program, side, number))
    return found


def _cold_process(program: str, side: str, seed: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="cold-") as folder:
        caches = {
            "TILEWRIGHT_CACHE_DIR": folder, "TRITON_CACHE_DIR": folder, "CUDA_CACHE_DISABLE": "1"
        }  # fmt: skip
        command = [sys.executable, "-m", program, "--cold", side, "--seed", str(seed)]
        done = subprocess.run(
            command, env=os.environ | caches, stdout=subprocess.PIPE, text=True, check=True
        )
    return json.loads(done.stdout.splitlines()[-1])


def cold_checks(cold: Mapping[str, Sequence[Mapping[str, float]]]) -> list[Check]:
    """First launches beside Triton's."""
    pairs = list(zip(cold["tilewright"], cold["triton"], strict=True))
    return [
        Check(
            f"first launch, {name} / triton",
            statistics.median(ours[name] / theirs[name] for ours, theirs in pairs),
            COLD_SHARE,
            at_most=True,
        )
        for name in pairs[0][0]
    ]
