"""Functions of PyTorch that `torch.compile` makes kernels of, compiled and compared with eager.

A program of its own, since PyTorch decides once in a process whether there is a Triton: it prints
one line of JSON for each case. What is installed as `triton` is what compiles.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch._inductor.config as inductor
from torch._dynamo.utils import counters
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.utils import run_and_get_code
from torch.utils._pytree import tree_leaves

from tests.kernels.torch_eager import settle_eager

F = torch.nn.functional
_random = torch.Generator().manual_seed(0)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

Case = tuple[Callable[..., Any], Callable[[], Sequence[torch.Tensor]]]


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=_random)


def below(end: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, end, shape, generator=_random)


def rows(count: int = 1) -> list[torch.Tensor]:
    return [normal(37, 100) for _ in range(count)]


def special_functions(x: torch.Tensor) -> torch.Tensor:
    small, positive, s = x.clamp(-0.9, 0.9), x.abs() + 1.1, torch.special
    parts = [
        torch.erf(x), torch.erfc(x), torch.lgamma(positive), torch.expm1(x), torch.log1p(positive),
        torch.asinh(x), torch.acosh(positive), torch.atanh(small), torch.hypot(x, positive),
        torch.nextafter(x.detach(), positive.detach()), s.erfcx(x), torch.erfinv(small),
        torch.sinc(x), x**3,
        torch.atan2(x, positive), s.ndtri(small.sigmoid()), torch.digamma(positive), x.frac(),
    ]  # fmt: skip
    return torch.stack(parts)


def rounding(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Integers too, which round to either side when they are divided."""
    a = a - 50
    cut = torch.div(a, b + 1, rounding_mode="trunc")
    return (
        x.trunc() + x.round() + x.floor() + x.ceil(),
        torch.fmod(x, 0.7), torch.remainder(x, 0.7), a // (b + 1), a % (b + 1), cut, (a & b) << 1,
    )  # fmt: skip


def number_formats(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    formats = "half int bool double short float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz"
    # of float32 there and back Inductor makes nothing, unlike eager
    return tuple((x * 2).detach().to(getattr(torch, name)) for name in formats.split())


def reductions(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (
        x.sum(), x.sum(0), x.sum(1), x.amax(1), x.amin(0), x.norm(dim=1), x.logsumexp(1), x.std(0),
        *torch.var_mean(x, 1), (x * 0.1 + 1).prod(1), x.argmax(1), x.argmin(0), (x > 2).any(1),
    )  # fmt: skip


def images(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (
        F.max_pool2d(x, 3, 2), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 5),
        F.interpolate(x, scale_factor=2, mode="bilinear"), F.interpolate(x, scale_factor=2.5),
        F.pad(x, (1, 2, 3, 4), mode="reflect"),
    )  # fmt: skip


def losses(x: torch.Tensor, y: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    divergence = F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean")
    parts = F.mse_loss(x, y) + F.smooth_l1_loss(x, y) + divergence
    return parts + F.cross_entropy(x, labels) + F.binary_cross_entropy_with_logits(x, y.sigmoid())


def shapes(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (
        x.t() + 1, torch.cat([x, y * 2], 1), torch.stack([x, y]), x.flip(0) + y.roll(3, 1),
        x.tril() + y.triu(2), torch.where(x > y, x * 2, y - 1), F.glu(x), F.silu(x) * y,
    )  # fmt: skip


def foreach(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> list[torch.Tensor]:
    many: Any = torch  # whose functions on lists are private
    return list(many._foreach_add(many._foreach_mul([a, b, c], 2.0), 1.0))


def block(x: torch.Tensor, qkv: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """A transformer's: x [batch, tokens, 64]."""
    q, k, v = (F.layer_norm(x, (64,)) @ qkv).unflatten(-1, (3, 4, 16)).permute(2, 0, 3, 1, 4)
    scores = q @ k.transpose(-1, -2) / 4
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).tril()
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), -1)
    x = x + (weights @ v).transpose(1, 2).flatten(-2)
    return x + F.gelu(F.layer_norm(x, (64,)) @ up) @ down


def scans(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Of few columns the products: PyTorch makes up to three kernels of each for the gradient."""
    return x.cumsum(-1), (x[:, :9] * 0.1 + 1).cumprod(-1), x.logcumsumexp(-1)


def permutations() -> torch.Tensor:
    return torch.stack([torch.randperm(100, generator=_random)[:20] for _ in range(37)])


CASES: dict[str, Case] = {
    "pointwise": (lambda x: x.sin() + 1, lambda: [normal(1000)]),
    "special functions": (special_functions, lambda: [normal(300)]),
    "rounding": (rounding, lambda: [normal(300) * 10, below(100, 300), below(9, 300)]),
    "number formats": (number_formats, lambda: [normal(300)]),
    "reductions": (reductions, rows),
    "softmax": (lambda x, y: torch.softmax(torch.sin(x) * y + 1, -1), lambda: rows(2)),
    "wide softmax": (lambda x: torch.softmax(x, -1), lambda: [normal(3, 70000)]),
    "layer norm": (
        lambda x, w, b: F.layer_norm(x, (100,), w, b), lambda: [*rows(), normal(100), normal(100)]
    ),
    "batch norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        lambda: [normal(8, 5, 7, 7), normal(5), normal(5)],
    ),
    "group and rms norm": (
        lambda x, w: F.group_norm(x, 2) + F.rms_norm(x, (5,), w),
        lambda: [normal(4, 6, 5, 5), normal(5)],
    ),
    "scans": (scans, rows),
    "maxima so far": (lambda x: (*x.cummax(-1), *x.cummin(0)), rows),
    "long scan": (lambda x: x.cumsum(0), lambda: [normal(100000)]),
    "sort": (lambda x: x.sort(-1), rows),
    "gather": (
        lambda x, i: (x.gather(1, i), x.index_select(0, i[:, 0] % 37)),
        lambda: [*rows(), below(100, 37, 20)],
    ),
    "scatter": (
        lambda x, i, y: x.scatter(1, i, y) + x.scatter_add(1, i, y),
        lambda: [*rows(), permutations(), normal(37, 20)],
    ),
    "index put": (
        lambda x, i, y: x.index_put((i,), y, accumulate=True),
        lambda: [normal(50, 10), below(50, 20), normal(20, 10)],
    ),
    "embedding": (
        lambda w, i: F.embedding(i, w) * 2, lambda: [normal(50, 10), below(50, 4, 7)]
    ),
    "images": (images, lambda: [normal(2, 3, 20, 20)]),
    "losses": (losses, lambda: [*rows(2), below(100, 37)]),
    "bucketize": (
        lambda x, b: (torch.bucketize(x, b), torch.searchsorted(b, x, right=True)),
        lambda: [normal(1000), torch.linspace(-2, 2, 17)],
    ),
    "shapes": (shapes, lambda: [normal(50, 50), normal(50, 50)]),
    "foreach": (foreach, lambda: [normal(100), normal(33), normal(7, 7)]),
    "convolution": (
        lambda x, w: F.conv2d(x, w).relu(), lambda: [normal(2, 3, 20, 20), normal(8, 3, 3, 3)]
    ),
    "block of a transformer": (
        block,
        lambda: [normal(2, 32, 64), normal(64, 192) / 8, normal(64, 99) / 8, normal(99, 64) / 8],
    ),
    "templates": (
        lambda x, y, b: F.relu(torch.addmm(b, x, y)).sum(0),
        lambda: [normal(60, 70) / 8, normal(70, 50), normal(50)],
    ),
    "dynamic shapes": (
        lambda x, y: F.layer_norm(x, x.shape[1:]) @ torch.softmax(y, 0).t() + len(x),
        lambda: [normal(60, 70), normal(50, 70)],
    ),
}  # fmt: skip

OPTIONS: dict[str, dict[str, Any]] = {
    "templates": {
        "options": {
            "max_autotune_gemm": True,
            "max_autotune_gemm_backends": "TRITON",
            "benchmark_epilogue_fusion": False,
            # two of twenty blocks: all are measured otherwise
            "test_configs.autotune_choice_desc_regex": (
                "BLOCK_K=(16|64), BLOCK_M=32, BLOCK_N=16"
                if DEVICE == "cpu"
                else "BLOCK_K=(16|128), BLOCK_M=32, BLOCK_N=32"
            ),
        }
    },
    "dynamic shapes": {"dynamic": True},
}
"""Words of `torch.compile` for a case."""

SHORTER = ("dynamic shapes",)
"""Cases that run again, with fewer rows."""

IN_FLOAT32 = ("special functions", "number formats")
"""Cases of which float64 computes something else: its next numbers are others."""


def error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest difference over the largest number; NaNs must stand at the same places."""
    assert found.shape == expected.shape
    a, b = found.double(), expected.double()
    assert torch.equal(a.isnan(), b.isnan())
    if not b.numel():
        return 0.0
    largest = b.nan_to_num(posinf=0, neginf=0).abs().max().clamp(min=1)
    return float((a - b).nan_to_num().abs().max() / largest)


def with_gradients(
    function: Callable[..., Any], inputs: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """The results, and the gradients of a sum of all with weights."""
    given = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    results = [x for x in tree_leaves(function(*given)) if isinstance(x, torch.Tensor)]
    smooth = [x for x in results if x.requires_grad]
    if smooth:
        weights = [torch.linspace(0.5, 1, x.numel(), device=DEVICE).view(x.shape) for x in smooth]
        torch.autograd.backward(
            smooth, [w.to(x.dtype) for w, x in zip(weights, smooth, strict=True)]
        )
    return [*results, *(x.grad for x in given if x.grad is not None)]


def outcome(name: str, **options: Any) -> dict[str, Any]:
    """A case compiled and run. error: the largest beside eager; exact: ours and eager's beside
    float64."""
    function, make = CASES[name]
    torch._dynamo.reset()
    counters.clear()
    inputs, began = [x.to(DEVICE) for x in make()], time.perf_counter()
    compiled = torch.compile(function, **OPTIONS.get(name, {}), **options)
    found, sources = run_and_get_code(lambda: with_gradients(compiled, inputs))
    seconds = time.perf_counter() - began
    expected = with_gradients(function, inputs)
    assert [x.dtype for x in found] == [x.dtype for x in expected]
    sizes = [inputs]
    if name in SHORTER:
        sizes.append([x[: len(x) // 2 + 1].contiguous() for x in inputs])
        found += with_gradients(compiled, sizes[1])
        expected += with_gradients(function, sizes[1])
    exact = expected
    if name not in IN_FLOAT32:
        doubled = [[x.double() if x.is_floating_point() else x for x in given] for given in sizes]
        exact = [result for given in doubled for result in with_gradients(function, given)]
    return {
        "name": name,
        "error": max(map(error, found, expected)),
        "exact": [max(map(error, results, exact)) for results in (found, expected)],
        "kernels": sum(text.count("@triton.jit") for text in sources),
        "products": sum(text.count("tl.dot(") for text in sources),
        "graphs": counters["stats"]["unique_graphs"],
        "device": inputs[0].device.type,
        "in C++": sum(text.count("cpp_fused") for text in sources),
        "cache hits": counters["inductor"]["fxgraph_cache_hit"],
        "seconds": seconds,
    }


def graph_outcome(name: str) -> dict[str, Any]:
    """A case whose launches are recorded in a CUDA graph, and launched again by one call."""
    function, make = CASES[name]
    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(function, mode="reduce-overhead")
    errors: list[float] = []
    inputs = [x.to(DEVICE) for x in make()]
    for _ in range(4):  # once without a graph, then it is recorded
        torch.compiler.cudagraph_mark_step_begin()
        found, expected = (tree_leaves(f(*inputs)) for f in (compiled, function))
        errors += map(error, found, expected)
    with torch.profiler.profile() as profile:
        torch.compiler.cudagraph_mark_step_begin()
        compiled(*inputs)
        torch.cuda.synchronize()
    launchers = importlib.import_module("torch._inductor.runtime.static_triton_launcher")
    static = launchers.StaticallyLaunchedCudaKernel
    return {
        "name": name,
        "error": max(errors),
        "skips": counters["inductor"]["cudagraph_skips"],
        "graph launches": sum(
            e.count for e in profile.key_averages() if e.key == "cudaGraphLaunch"
        ),
        "static launchers": sum(issubclass(type(each), static) for each in gc.get_objects()),
    }


def main(names: Sequence[str]) -> None:
    """Print the outcome of each case. `--workers`: compile in processes of their own;
    `--cuda-graphs`: see `graph_outcome`."""
    settle_eager()
    measure = graph_outcome if "--cuda-graphs" in names else outcome
    inductor.cpu_backend = "triton"
    if "--workers" in names:
        AsyncCompile.wait_pool_ready()
    else:
        inductor.compile_threads = 1
    for name in [name for name in names if not name.startswith("--")] or CASES:
        print(json.dumps(measure(name)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
