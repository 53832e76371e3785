"""Kernels that users launch inside functions which `torch.compile` compiles; a program of its own,
as `torch_compile_cases`. Prints one line of JSON for each case.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import torch
import torch._inductor.config as inductor
from torch._higher_order_ops import triton_kernel_wrap
from torch._inductor.codecache import FxGraphHashDetails
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch._inductor.utils import run_and_get_code
from torch.library import triton_op, wrap_triton
from torch.utils._pytree import tree_leaves
from torch.utils._triton import has_triton

import tilewright as triton
import tilewright.language as tl
from tilewright.support import errors
from tilewright.triton_alias import register_with_inductor

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@triton.jit
def accumulate_kernel(total, x, n, count, BLOCK: tl.constexpr):
    """Stores to `total`, and adds to `count`, which it reads only by the atomic."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(total + i, tl.load(total + i, i < n) + tl.load(x + i, i < n), i < n)
    tl.atomic_add(count, 1)


SIZES = (64, 256)
CONFIGS = [triton.Config({"BLOCK": size}, num_warps=w) for size in SIZES for w in (2, 4)]


@triton.autotune(CONFIGS, key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def double_kernel(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = None if EVEN else i < n
    tl.store(out + i, tl.load(x + i, mask) * 2, mask)


@triton.autotune([triton.Config({"BLOCK": size}) for size in SIZES], key=["n"])
@triton.jit
def scale_kernel(x, out, n, by, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * by, i < n)


@triton.jit
def transpose_kernel(x, out, rows, columns, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [B, B])
    target = tl.make_tensor_descriptor(out, [columns, rows], [rows, 1], [B, B])
    i, j = tl.program_id(0) * B, tl.program_id(1) * B
    target.store([j, i], source.load([i, j]).T)


@triton.jit
def missing_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.no_such_function(tl.load(x + i, i < n)), i < n)


def added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out, n = torch.empty_like(x), x.numel()
    add_kernel[(triton.cdiv(n, 128),)](torch.sin(x), y, out, n, BLOCK=128)
    return out * 2


def accumulated(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    total, y, n = torch.ones_like(x), x + 1, x.numel()
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    accumulate_kernel[(triton.cdiv(n, 128),)](total, y, n, count, BLOCK=128)
    accumulate_kernel[(triton.cdiv(n, 128),)](total, y, n, count, BLOCK=128)
    return total, y, count


def doubled(x: torch.Tensor) -> torch.Tensor:
    out, n = torch.empty_like(x), x.numel()
    double_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n)
    return out + 1


def transposed(x: torch.Tensor) -> torch.Tensor:
    """By descriptors that the kernel makes; rows of 16 bytes."""
    rows = torch.sin(x).view(-1, 40)
    out = rows.new_empty(rows.shape[::-1])
    grid = tuple(triton.cdiv(extent, 16) for extent in rows.shape)
    transpose_kernel[grid](rows, out, *rows.shape, B=16)
    return out * 2


def missing(x: torch.Tensor) -> torch.Tensor:
    out, n = torch.empty_like(x), x.numel()
    missing_kernel[(triton.cdiv(n, 128),)](x, out, n, BLOCK=128)
    return out


def largest(x: torch.Tensor) -> torch.Tensor:
    """Inductor has no kernel for it."""
    return torch.topk(x.sin(), 5).values * 2


def add_both(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out, n = torch.empty_like(x), x.numel()
    wrap_triton(add_kernel)[(triton.cdiv(n, 128),)](x, y, out, n, BLOCK=128)
    return out


add_op: Any = triton_op("tilewright_tests::add", add_both, mutates_args={})
add_op.register_autograd(lambda ctx, gradient: (gradient, gradient))


def by_op(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return add_op(x, y) * y


Case = tuple[Callable[..., Any], int, Callable[..., Any]]
CASES: dict[str, Case] = {
    "launch": (added, 2, lambda x, y: (x.sin() + y) * 2),
    "mutation": (accumulated, 1, lambda x: (2 * x + 3, x + 1, torch.tensor([18], device=x.device))),
    "autotune": (doubled, 1, lambda x: x * 2 + 1),
    "descriptors": (transposed, 1, lambda x: x.sin().view(-1, 40).t() * 2),
    "fall-back": (largest, 1, lambda x: x.sin().sort(descending=True).values[:5] * 2),
    "operator": (by_op, 2, lambda x, y: (x + y) * y),
}


class Warnings(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def outcome(name: str, warnings: Warnings) -> dict[str, Any]:
    function, count, meant = CASES[name]
    torch._dynamo.reset()
    inputs = [torch.randn(1120, device=DEVICE) for _ in range(count)]
    if name == "operator":
        inputs = [x.requires_grad_() for x in inputs]
    measure = CachingAutotuner.bench
    with patch.object(CachingAutotuner, "bench", autospec=True, side_effect=measure) as measured:
        found, sources = run_and_get_code(torch.compile(function, fullgraph=True), *inputs)
    tuned = [call.args[0].fn.__name__ for call in measured.call_args_list]
    expected = meant(*inputs)
    results = [tree_leaves(found), tree_leaves(expected)]
    if name == "operator":
        for each in results:
            each += torch.autograd.grad(each[0].sum(), inputs)
    pairs = zip(*results, strict=True)
    return {
        "name": name,
        "error": max(float((a - b).detach().abs().max()) for a, b in pairs),
        "kernels": sum(text.count("@triton.jit") for text in sources),
        "measured": tuned.count("double_kernel"),
        "warnings": warnings.texts,
    }


def accesses() -> dict[str, Any]:
    """What PyTorch's own analysis finds in the kernels."""
    x = torch.ones(64, device=DEVICE)
    cases = {
        "add": (add_kernel, {"x": x, "y": x, "out": x, "n": 64, "BLOCK": 64}),
        "accumulate": (
            accumulate_kernel, {"total": x, "x": x, "n": 64, "count": x.int(), "BLOCK": 64}
        ),
    }  # fmt: skip
    found: dict[str, Any] = {"name": "accesses"}
    if not hasattr(triton_kernel_wrap, "identify_accessed_tensors"):
        return found  # PyTorch 2.11 tells only what is written
    for name, (kernel, arguments) in cases.items():
        result = triton_kernel_wrap.identify_accessed_tensors(kernel, arguments, {}).read_writes
        found[name] = [sorted(dep.name for dep in deps) for deps in (result.reads, result.writes)]
    return found


def process() -> dict[str, Any]:
    """What holds for all graphs. passes: of back ends, in the keys of cached graphs."""
    details = FxGraphHashDetails(None, [], {}, [])
    return {
        "name": "process",
        "has Triton": has_triton(),
        "passes": details.custom_backend_passes,
    }


def mistake() -> dict[str, Any]:
    """What compiling says of a kernel that needs what is missing."""
    torch._dynamo.reset()
    try:
        torch.compile(missing, fullgraph=True)(torch.ones(300, device=DEVICE))
    except Exception as problem:
        return {"name": "mistake", "text": str(problem)}
    return {"name": "mistake", "text": ""}


def main() -> None:
    """Print the outcome of each case."""
    inductor.cpu_backend, inductor.compile_threads = "triton", 1
    if DEVICE == "cpu":
        with suppress(errors.UnsupportedTorch):
            register_with_inductor()
    warnings = Warnings()
    logging.getLogger("torch._higher_order_ops.triton_kernel_wrap").addHandler(warnings)
    for name in CASES:
        print(json.dumps(outcome(name, warnings)), flush=True)
    for more in (accesses(), process(), mistake()):
        print(json.dumps(more), flush=True)


if __name__ == "__main__":
    main()
