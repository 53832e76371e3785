"""Operators of Liger-Kernel, torch's formulas of them, and small inputs.

The tests run them with the small inputs, `benchmarks.torch.liger` with those of a 7B model.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch as _torch

torch: Any = _torch
F = torch.nn.functional
Tensors = tuple[Any, ...]


def normal(*shape: int, dtype: Any = None) -> Any:
    return torch.randn(*shape, dtype=dtype or torch.float32)


@dataclass
class Operator:
    """liger(ops, *inputs), reference(*inputs in fp64) -> results; inputs that are floats have
    gradients, but for those at the positions `constant`. tolerance: relative to the largest."""

    liger: Callable[..., Any]
    reference: Callable[..., Any]
    inputs: Callable[[], Tensors]
    constant: tuple[int, ...] = ()
    tolerance: float = 2e-5


def tuple_of(results: Any) -> Tensors:
    several = results if isinstance(results, tuple | list) else (results,)
    return tuple(result for result in several if result is not None)


def prepared(inputs: Tensors, constant: tuple[int, ...], widen: bool) -> list[Any]:
    made: list[Any] = []
    for position, value in enumerate(inputs):
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            made.append(value)
            continue
        copy = (value.double() if widen else value).detach().clone()
        made.append(copy.requires_grad_(position not in constant))
    return made


def results_and_gradients(results: Tensors, inputs: list[Any], weights: list[Any]) -> list[Any]:
    floats = [r for r in results if r.is_floating_point() and r.requires_grad]
    torch.autograd.backward(floats, [w.to(r.dtype) for r, w in zip(floats, weights, strict=True)])
    gradients = [i.grad for i in inputs if isinstance(i, torch.Tensor) and i.requires_grad]
    return [*(r.detach() for r in results), *gradients]


def labels(rows: int, classes: int, ignored: tuple[int, ...] = (2,)) -> Any:
    chosen = torch.randint(0, classes, (rows,))
    chosen[list(ignored)] = -100
    return chosen


# --- normalizations -------------------------------------------------------------------------------


def rms(x: Any, eps: float) -> Any:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)


def poly_norm(x: Any, w: Any, b: Any) -> Any:
    return w[0] * rms(x**3, 1e-6) + w[1] * rms(x**2, 1e-6) + w[2] * rms(x, 1e-6) + b


def attention_residual(v: Any, query: Any, norm: Any) -> Any:
    scores = (rms(v, 1e-6) * norm * query).sum(-1)
    return (scores.softmax(0).unsqueeze(-1) * v).sum(0)


NORMS = {
    "layer norm": Operator(
        lambda ops, x, w, b: ops.LigerLayerNormFunction.apply(x, w, b, 1e-5),
        lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
        lambda: (normal(3, 5, 77), normal(77), normal(77)),
    ),
    "rms norm": Operator(
        lambda ops, x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 1.0, "gemma", False),
        lambda x, w: rms(x, 1e-6) * (1 + w),
        lambda: (normal(4, 7, 100), normal(100)),
    ),
    "rms norm, llama, in place": Operator(
        lambda ops, x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6),
        lambda x, w: rms(x, 1e-6) * w,
        lambda: (normal(9, 33), normal(33)),
    ),
    "fused add and rms norm": Operator(
        lambda ops, x, r, w: ops.LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6),
        lambda x, r, w: (rms(x + r, 1e-6) * w, x + r),
        lambda: (normal(5, 65), normal(5, 65), normal(65)),
    ),
    "modulated rms norm": Operator(
        lambda ops, x, w, scale, shift: ops.LigerModulatedRMSNormFunction.apply(
            x, w, scale, shift, 1e-6, 0.0, "llama", False
        ),
        lambda x, w, scale, shift: rms(x, 1e-6) * w * (1 + scale[:, None]) + shift[:, None],
        lambda: (normal(2, 6, 48), normal(48), normal(2, 48), normal(2, 48)),
    ),
    "group norm": Operator(
        lambda ops, x, w, b: ops.LigerGroupNormFunction.apply(x, w, b, 6, 3, 1e-5),
        lambda x, w, b: F.group_norm(x, 3, w, b, 1e-5),
        lambda: (normal(2, 6, 37), normal(6), normal(6)),
    ),
    "poly norm": Operator(
        lambda ops, x, w, b: ops.LigerPolyNormFunction.apply(x, w, b, 1e-6, False),
        poly_norm,
        lambda: (normal(6, 40), normal(3), torch.tensor(0.5)),
    ),
    "attention over residuals": Operator(
        lambda ops, v, q, w: ops.LigerAttnResFunction.apply(v, q, w, 1e-6),
        attention_residual,
        lambda: (normal(3, 2, 5, 36), normal(36), normal(36)),
    ),
}

# --- activations and products ---------------------------------------------------------------------


def experts(x: Any, up: Any, down: Any, index: Any, weights: Any) -> Any:
    out = torch.zeros_like(x)
    for expert in range(up.shape[0]):
        for k in range(index.shape[1]):
            rows = (index[:, k] == expert).nonzero().flatten()
            gate, value = (x[rows] @ up[expert].T).chunk(2, -1)
            made = (F.silu(gate) * value) @ down[expert].T
            out = out.index_add(0, rows, made * weights[rows, k, None])
    return out


def tiled(ops: Any, x: Any, w: Any) -> Any:
    module = torch.nn.Linear(w.shape[1], w.shape[0], bias=False, device=w.device)
    module.weight.data.copy_(w.detach())
    return ops.LigerTiledMLPFunction.apply(lambda mlp, part: F.silu(mlp(part)), module, x, 3)


def halves(silu_mul: Callable[..., Any]) -> Callable[..., Any]:
    return lambda y: silu_mul(*y.chunk(2, -1))


ACTIVATIONS = {
    "geglu": Operator(
        lambda ops, a, b: ops.LigerGELUMulFunction.apply(a, b),
        lambda a, b: F.gelu(a, approximate="tanh") * b,
        lambda: (normal(3, 5, 50), normal(3, 5, 50)),
    ),
    "swiglu": Operator(
        lambda ops, a, b: ops.LigerSiLUMulFunction.apply(a, b),
        lambda a, b: F.silu(a) * b,
        lambda: (normal(4, 99), normal(4, 99)),
    ),
    "fused gate and up": Operator(
        lambda ops, y: ops.LigerFusedGateUpSiLUMulFunction.apply(y),
        halves(lambda a, b: F.silu(a) * b),
        lambda: (normal(4, 60),),
    ),
    "squared relu": Operator(
        lambda ops, x: ops.LigerReLUSquaredFunction.apply(x),
        lambda x: F.relu(x) ** 2,
        lambda: (normal(7, 61),),
    ),
    "tanh": Operator(
        lambda ops, x, a, g, b: ops.LigerDyTFunction.apply(x, a, g, b),
        lambda x, a, g, b: g * torch.tanh(a * x) + b,
        lambda: (normal(5, 70), normal(1), normal(70), normal(70)),
    ),
    "softmax": Operator(
        lambda ops, x: ops.LigerSoftmaxFunction.apply(x),
        lambda x: x.softmax(-1),
        lambda: (normal(3, 4, 83),),
    ),
    "embedding": Operator(
        lambda ops, table, index: ops.LigerEmbeddingFunction.apply(table, index),
        lambda table, index: F.embedding(index, table),
        lambda: (normal(20, 36), torch.randint(0, 20, (3, 7))),
    ),
    "tiled mlp": Operator(
        tiled,
        lambda x, w: F.silu(x @ w.T),
        lambda: (normal(7, 10), normal(10, 10)),
        constant=(1,),
    ),
    "mixture of experts": Operator(
        lambda ops, *args: ops.LigerFusedMoEFunction.apply(*args),
        experts,
        lambda: (
            normal(9, 32), normal(4, 48, 32) * 0.2, normal(4, 32, 24) * 0.2,
            torch.stack([torch.randperm(4)[:2] for _ in range(9)]).int(), torch.rand(9, 2),
        ),
        tolerance=1e-4,
    ),
}  # fmt: skip


def sparsemax(x: Any) -> Any:
    ordered = x.sort(-1, descending=True).values
    count = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
    inside = 1 + count * ordered > ordered.cumsum(-1)
    support = inside.sum(-1, keepdim=True)
    threshold = ((ordered * inside).sum(-1, keepdim=True) - 1) / support
    return (x - threshold).clamp(min=0)


ACTIVATIONS["sparsemax"] = Operator(
    lambda ops, x: ops.LigerSparsemaxFunction.apply(x, -1), sparsemax, lambda: (normal(5, 44),)
)

# --- attention and positions ----------------------------------------------------------------------


def rotated(x: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def rope(q: Any, k: Any, cos: Any, sin: Any) -> Tensors:
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * cos + rotated(q) * sin, k * cos + rotated(k) * sin


def angles(*shape: int) -> Tensors:
    half = torch.rand(*shape[:-1], shape[-1] // 2) * 6
    both = torch.cat((half, half), -1)
    return both.cos(), both.sin()


def sections(cos: Any) -> Any:
    parts = cos.split([4, 6, 6] * 2, -1)
    return torch.cat([part[i % 3] for i, part in enumerate(parts)], -1)


def complex_rope(q: Any, k: Any, turns: Any) -> Tensors:
    factor = torch.polar(torch.ones_like(turns), turns)[None, :, None]

    def turned(x: Any) -> Any:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(pairs * factor).flatten(-2)

    return turned(q), turned(k)


def llama4(ops: Any, q: Any, k: Any, turns: Any) -> Any:
    return ops.LigerLlama4RopeFunction.apply(q, k, torch.polar(torch.ones_like(turns), turns))


def neighbourhood(q: Any, k: Any, v: Any) -> Any:
    length = q.shape[-2]
    place = torch.arange(length, device=q.device)
    near = (place[:, None] - place[None]).abs() <= 2
    scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(~near, -torch.inf)
    return scores.softmax(-1) @ v


def multi_token(scores: Any, weight: Any, bias: Any) -> Any:
    future = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
    probabilities = scores.masked_fill(future, -1e9).softmax(-1)
    return F.conv2d(probabilities, weight, bias, padding=1).masked_fill(future, 0)


ATTENTION = {
    "rope": Operator(
        lambda ops, *args: ops.LigerRopeFunction.apply(*args),
        rope,
        lambda: (normal(2, 4, 9, 16), normal(2, 2, 9, 16), *angles(1, 9, 16)),
        constant=(2, 3),
    ),
    "rope in three sections": Operator(
        lambda ops, q, k, cos, sin: ops.LigerQwen2VLMRopeFunction.apply(q, k, cos, sin, [4, 6, 6]),
        lambda q, k, cos, sin: rope(q, k, sections(cos), sections(sin)),
        lambda: (normal(2, 4, 5, 32), normal(2, 2, 5, 32), *angles(3, 2, 5, 32)),
        constant=(2, 3),
    ),
    "rope of pairs": Operator(
        llama4,
        complex_rope,
        lambda: (normal(2, 7, 4, 16), normal(2, 7, 2, 16), torch.rand(7, 8) * 6),
        constant=(2,),
    ),
    "neighbourhood attention": Operator(
        lambda ops, q, k, v: ops.LigerFusedNeighborhoodAttentionFunction.apply(q, k, v, 5, 1),
        neighbourhood,
        lambda: (normal(1, 2, 19, 16), normal(1, 2, 19, 16), normal(1, 2, 19, 16)),
        tolerance=1e-4,
    ),
    "multi-token attention": Operator(
        lambda ops, s, w, b: ops.LigerMultiTokenAttentionFunction.apply(s, w, b, 1, 1),
        multi_token,
        lambda: (normal(2, 3, 13, 13), normal(4, 3, 3, 3), normal(4)),
    ),
}

# --- hyper-connections ----------------------------------------------------------------------------


def coefficients(x: Any, phi: Any, b: Any, pre: Any, post: Any, res: Any) -> Tensors:
    n, streams, _ = x.shape
    flat = x.reshape(n, -1)
    mix = (flat @ phi) * torch.rsqrt((flat * flat).mean(-1, keepdim=True) + 1e-6)
    first, second, third = mix.split([streams, streams, streams**2], -1)
    b1, b2, b3 = b.split([streams, streams, streams**2])
    h_pre = (pre * first + b1).sigmoid() + 1e-6
    h_post = 2.0 * (post * second + b2).sigmoid()
    m = (res * third + b3).view(n, streams, streams).softmax(-1) + 1e-6
    m = m / (m.sum(-2, keepdim=True) + 1e-6)
    for _ in range(4):
        m = m / (m.sum(-1, keepdim=True) + 1e-6)
        m = m / (m.sum(-2, keepdim=True) + 1e-6)
    return h_pre, h_post, m


CONNECTIONS = {
    "coefficients": Operator(
        lambda ops, *args: ops.LigerMHCCoeffsFunction.apply(
            *args, True, 5, 1e-6, 1e-6, 1e-6, 2.0
        ),
        coefficients,
        lambda: (normal(7, 4, 20), normal(80, 24) * 0.1, normal(24) * 0.1,
                 torch.tensor(0.7), torch.tensor(1.1), torch.tensor(0.9)),
        tolerance=2e-4,
    ),
    "before": Operator(
        lambda ops, x, h: ops.LigerMHCPreFunction.apply(x, h),
        lambda x, h: (x * h[..., None]).sum(-2),
        lambda: (normal(2, 5, 4, 36), normal(2, 5, 4)),
    ),
    "after": Operator(
        lambda ops, *args: ops.LigerMHCPostResFunction.apply(*args),
        lambda x, f, post, res: res @ x + post[..., None] * f[..., None, :],
        lambda: (normal(2, 5, 4, 36), normal(2, 5, 36), normal(2, 5, 4), normal(2, 5, 4, 4)),
    ),
}  # fmt: skip

# --- losses ---------------------------------------------------------------------------------------


def jsd(x: Any, y: Any, keep: Any = None, beta: float = 0.5) -> Any:
    p, q = y.exp(), x.exp()
    m = (beta * p + (1 - beta) * q).log()
    terms = beta * p * (y - m) + (1 - beta) * q * (x - m)
    return terms.sum() / x.shape[0] if keep is None else terms[keep].sum() / keep.sum()


def scaled_logits(x: Any, w: Any, temperature: float = 1.0) -> Any:
    return x @ w.T / temperature


def grpo(logits: Any, old: Any, ref: Any, ids: Any, advantages: Any) -> Any:
    logp = (logits[:, :-1] / 0.9).log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1)
    ratio = (logp - old).exp()
    clipped = ratio.clamp(0.8, 1.2)
    loss = -torch.minimum(ratio * advantages[:, None], clipped * advantages[:, None])
    loss = loss + 0.1 * ((ref - logp).exp() - (ref - logp) - 1)
    return loss.mean(-1).mean()


def grpo_inputs() -> Tensors:
    logits = normal(2, 6, 30)
    ids = torch.randint(0, 30, (2, 5))
    logp = (logits[:, :-1] / 0.9).log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1)
    return (logits, logp + 0.3 * normal(2, 5), logp + 0.2 * normal(2, 5), ids, normal(2))


def distributions(rows: int, classes: int) -> Tensors:
    return normal(rows, classes).softmax(-1), normal(rows, classes).softmax(-1)


def logs(rows: int, classes: int) -> Tensors:
    return normal(rows, classes).log_softmax(-1), normal(rows, classes).log_softmax(-1)


def softened(logits: Any, target: Any) -> Any:
    z = logits.logsumexp(-1)
    keep = target != -100
    loss = F.cross_entropy(logits, target, label_smoothing=0.1)
    return loss + 1e-2 * (z[keep] ** 2).mean()


LOSSES = {
    "cross entropy": Operator(
        lambda ops, x, y: ops.LigerCrossEntropyFunction.apply(x, y, None)[0],
        F.cross_entropy,
        lambda: (normal(9, 101), labels(9, 101)),
    ),
    "cross entropy with z loss, smoothed": Operator(
        lambda ops, x, y: ops.LigerCrossEntropyFunction.apply(x, y, None, -100, 1e-2, 0.1)[0],
        softened,
        lambda: (normal(9, 101), labels(9, 101)),
    ),
    "cross entropy with weights and a cap": Operator(
        lambda ops, x, y, w: ops.LigerCrossEntropyFunction.apply(
            x, y, w, -100, 0.0, 0.0, "sum", 5.0
        )[0],
        lambda x, y, w: F.cross_entropy(5 * torch.tanh(x / 5), y, w, reduction="sum"),
        lambda: (normal(9, 101) * 3, labels(9, 101), torch.rand(101)),
        constant=(2,),
    ),
    "cross entropy and total variation": Operator(
        lambda ops, x, t, y: ops.LigerFusedCETVDFunction.apply(x, t, y),
        lambda x, t, y: (
            F.cross_entropy(x, y, reduction="none"),
            0.5 * (x.softmax(-1) - t.softmax(-1)).abs().sum(-1) * (y != -100),
        ),
        lambda: (normal(6, 50), normal(6, 50), labels(6, 50)),
        constant=(1,),
    ),
    "linear cross entropy": Operator(
        lambda ops, x, w, y, b: ops.LigerFusedLinearCrossEntropyFunction.apply(x, w, y, b)[0],
        lambda x, w, y, b: F.cross_entropy(x @ w.T + b, y),
        lambda: (normal(11, 24), normal(50, 24) * 0.3, labels(11, 50), normal(50)),
    ),
    "linear scaled cross entropy": Operator(
        lambda ops, x, w, y: ops.LigerFusedLinearScaledCrossEntropyFunction.apply(x, w, y, 0.7),
        lambda x, w, y: F.cross_entropy(scaled_logits(x, w, 0.7), y, reduction="none"),
        lambda: (normal(8, 24), normal(40, 24) * 0.3, labels(8, 40)),
    ),
    "vocabulary in parts": Operator(
        lambda ops, x, y: ops.LigerVocabParallelCEFunction.apply(
            x, y, None, -100, 0.0, "pytorch", "global"
        ),
        lambda x, y: F.cross_entropy(x.flatten(0, 1), y.flatten(), reduction="none").view(y.shape),
        lambda: (normal(4, 3, 61), labels(12, 61).view(4, 3)),
    ),
    "kl divergence": Operator(
        lambda ops, x, y: ops.LigerKLDivLossFunction.apply(x, y),
        lambda x, y: F.kl_div(x, y, reduction="batchmean"),
        lambda: (normal(6, 70).log_softmax(-1), normal(6, 70).softmax(-1)),
        constant=(1,),
    ),
    "linear kl divergence": Operator(
        lambda ops, x, w, y: ops.LigerFusedLinearKLDivFunction.apply(x, w, y, None),
        lambda x, w, y: F.kl_div(scaled_logits(x, w).log_softmax(-1), y, reduction="batchmean"),
        lambda: (normal(7, 20), normal(33, 20) * 0.3, normal(7, 33).softmax(-1)),
        constant=(2,),
    ),
    "jensen-shannon divergence": Operator(
        lambda ops, x, y: ops.LigerJSDFunction.apply(x, y),
        jsd,
        lambda: logs(6, 70),
        constant=(1,),
    ),
    "linear jensen-shannon divergence": Operator(
        lambda ops, x, w, tx, tw: ops.LigerFusedLinearJSDFunction.apply(x, w, tx, tw),
        lambda x, w, tx, tw: jsd(
            scaled_logits(x, w).log_softmax(-1), scaled_logits(tx, tw).log_softmax(-1)
        ),
        lambda: (normal(7, 20), normal(33, 20) * 0.3, normal(7, 24), normal(33, 24) * 0.3),
        constant=(2, 3),
    ),
    "total variation": Operator(
        lambda ops, p, q: ops.LigerTVDLossFunction.apply(p, q),
        lambda p, q: 0.5 * (p - q).abs().sum() / p.shape[0],
        lambda: distributions(6, 70),
        constant=(1,),
    ),
    "policy optimization": Operator(
        lambda ops, logits, old, ref, ids, advantages: ops.GrpoLossFunction.apply(
            logits, old, ref, ids, advantages, None, 0.9, 0.1, 0.2, 0.2, False
        )[0],
        grpo,
        grpo_inputs,
        constant=(1, 2, 4),
    ),
}

OPERATORS = {**NORMS, **ACTIVATIONS, **ATTENTION, **CONNECTIONS, **LOSSES}
