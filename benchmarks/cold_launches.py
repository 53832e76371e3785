"""One launch of each kernel whose first launch is measured, by either compiler."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

TWINS = (
    "elementwise.add_kernel",
    "softmax.softmax_kernel",
    "norm.layer_norm_kernel",
    "transpose.transpose_kernel",
    "matmul.matmul_kernel",
    "user_attention.attention_kernel",
)
HERE = Path(__file__).resolve().parent


def _ours(name: str) -> Any:
    module, _, function = name.partition(".")
    where = module if _is_users(name) else f"tilewright.kernels.{module}"
    return getattr(importlib.import_module(where), function)


def theirs(name: str) -> Any:
    from triton_twins import twin

    return twin(name, sources=HERE) if _is_users(name) else twin(name)


def _is_users(name: str) -> bool:
    return name.startswith("user_")


def launches(side: str) -> dict[str, Callable[[], object]]:
    """Launches by kernel; "warm-up" has a signature that no other one shares."""
    import torch

    kernel = {name: (_ours if side == "tilewright" else theirs)(name) for name in TWINS}
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
