"""Operators of Liger-Kernel and fla-core with the shapes of a 7B model.

Hidden size 4096, 32 heads of 128 and 8 key-value heads, intermediate size 11008, vocabularies of
32,000 and 128,256; 8,192 tokens, bf16. torch's formulas are those of the tests.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from tests.kernels.liger_operators import (
    OPERATORS,
    Operator,
    Tensors,
    angles,
    distributions,
    labels,
    logs,
    normal,
    rope,
)

F = torch.nn.functional
HEADS, KEY_HEADS, HEAD = 32, 8, 128


@dataclass(frozen=True)
class Shape:
    """Number of tokens, and a divisor of the model's widths."""

    tokens: int = 8192
    divisor: int = 1

    def __call__(self, width: int) -> int:
        return max(16, width // self.divisor)

    def rows(self, width: int) -> Any:
        """A normal matrix with a row for each token."""
        return normal(self.tokens, self(width))

    def heads(self, count: int) -> Any:
        """Queries, keys or values as projections leave them: heads are strided."""
        return normal(2, self.tokens // 2, count, HEAD).transpose(1, 2)


SMALL = Shape(64, 32)


@dataclass(frozen=True)
class Row:
    """A row of the benchmark.

    checked: tokens with which results are compared with fp64, at most
    single: positions of the inputs that stay fp32
    module: what is imported before the library's autotuners are looked for
    """

    name: str
    operator: Operator
    make: Callable[[Shape], Tensors]
    checked: int = 8192
    single: tuple[int, ...] = ()
    library: str = "liger_kernel"
    module: str = ""

    def inputs(self, shape: Shape, device: str) -> Tensors:
        """The inputs: the same in every process."""
        torch.manual_seed(0)
        with torch.device(device):
            made = self.make(shape)
        return tuple(
            value.bfloat16()
            if isinstance(value, torch.Tensor)
            and value.is_floating_point() and position not in self.single
            else value
            for position, value in enumerate(made)
        )  # fmt: skip


def group_norm(shape: Shape) -> Tensors:
    batch, side = (16, 64) if shape.divisor == 1 else (2, 8)
    return normal(batch, 512, side, side), normal(512), normal(512)


def parts_of_rope(shape: Shape) -> Tensors:
    tokens = shape.tokens // 2
    return shape.heads(HEADS), shape.heads(KEY_HEADS), *angles(3, 2, tokens, HEAD)


SECTIONS = [16, 24, 24]


def sections(cosines: Any) -> Any:
    """The cosines (or sines) of time, height and width, each for its part of a head."""
    parts = cosines.split(SECTIONS * 2, -1)
    return torch.cat([part[i % 3] for i, part in enumerate(parts)], -1)


def experts(shape: Shape) -> Tensors:
    tokens, hidden, inner, count = shape.tokens, shape(4096), shape(1408), 16
    chosen = torch.rand(tokens, count).topk(2).indices.int()
    return (
        shape.rows(4096), normal(count, 2 * inner, hidden) / hidden**0.5,
        normal(count, hidden, inner) / inner**0.5, chosen, torch.rand(tokens, 2),
    )  # fmt: skip


def connections(shape: Shape) -> Tensors:
    width = 4 * shape(4096)
    return (
        normal(shape.tokens, 4, shape(4096)), normal(width, 24) / width**0.5, normal(24) * 0.1,
        torch.tensor(0.7), torch.tensor(1.1), torch.tensor(0.9),
    )  # fmt: skip


def policy(shape: Shape) -> Tensors:
    batch, steps, words = 8, shape.tokens // 8, shape(32000)
    logp = -torch.rand(batch, steps) - 9
    ids = torch.randint(0, words, (batch, steps))
    return normal(batch, steps + 1, words), logp, logp + 0.1, ids, normal(batch)


def layers(shape: Shape) -> Tensors:
    """Hidden states, and the weights of a vocabulary."""
    return shape.rows(4096), normal(shape(32000), shape(4096)) / shape(4096) ** 0.5


def targets(shape: Shape, words: int) -> Any:
    return labels(shape.tokens, shape(words))


def ordinary(name: str, operator: str, make: Callable[[Shape], Tensors], **words: Any) -> Row:
    """A row with an operator of the tests."""
    return Row(name, OPERATORS[operator], make, **words)


GROUP_NORM = replace(
    OPERATORS["group norm"],
    liger=lambda ops, x, w, b: ops.LigerGroupNormFunction.apply(x, w, b, 512, 32, 1e-5),
    reference=lambda x, w, b: F.group_norm(x, 32, w, b, 1e-5),
)
SECTIONED_ROPE = replace(
    OPERATORS["rope in three sections"],
    liger=lambda ops, q, k, cos, sin: ops.LigerQwen2VLMRopeFunction.apply(q, k, cos, sin, SECTIONS),
    reference=lambda q, k, cos, sin: rope(q, k, sections(cos), sections(sin)),
)

ACTIVATIONS = (
    ordinary("DyT 4096", "tanh",
             lambda s: (s.rows(4096), normal(1), normal(s(4096)), normal(s(4096)))),
    ordinary("GEGLU 11008", "geglu", lambda s: (s.rows(11008), s.rows(11008))),
    ordinary("SwiGLU 11008", "swiglu", lambda s: (s.rows(11008), s.rows(11008))),
    ordinary("SwiGLU of one tensor 11008", "fused gate and up", lambda s: (s.rows(22016),)),
    ordinary("squared ReLU 11008", "squared relu", lambda s: (s.rows(11008),)),
)  # fmt: skip
NORMS = (
    ordinary("RMS norm 4096", "rms norm, llama, in place",
             lambda s: (s.rows(4096), normal(s(4096)))),
    ordinary("RMS norm 8192", "rms norm, llama, in place",
             lambda s: (s.rows(8192), normal(s(8192)))),
    ordinary("RMS norm of Gemma 4096", "rms norm", lambda s: (s.rows(4096), normal(s(4096)))),
    ordinary("add and RMS norm 4096", "fused add and rms norm",
             lambda s: (s.rows(4096), s.rows(4096), normal(s(4096)))),
    ordinary("modulated RMS norm 4096", "modulated rms norm",
             lambda s: (normal(4, s.tokens // 4, s(4096)), normal(s(4096)),
                        normal(4, s(4096)), normal(4, s(4096)))),
    ordinary("layer norm 4096", "layer norm",
             lambda s: (s.rows(4096), normal(s(4096)), normal(s(4096)))),
    ordinary("poly norm 4096", "poly norm",
             lambda s: (s.rows(4096), normal(3), torch.tensor(0.5))),
    Row("group norm 16x512x64x64", GROUP_NORM, group_norm),
    ordinary("attention over residuals 4096", "attention over residuals",
             lambda s: (normal(8, 2, s.tokens // 2, s(4096)), normal(s(4096)), normal(s(4096))),
             checked=2048),
)  # fmt: skip
LOSSES = (
    ordinary("cross entropy 32000", "cross entropy",
             lambda s: (s.rows(32000), targets(s, 32000)), checked=4096),
    ordinary("cross entropy 128256", "cross entropy",
             lambda s: (s.rows(128256), targets(s, 128256)), checked=1024),
    ordinary("total variation 32000", "total variation",
             lambda s: distributions(s.tokens, s(32000)), checked=4096),
    ordinary("KL divergence 32000", "kl divergence",
             lambda s: (logs(s.tokens, s(32000))[0], distributions(s.tokens, s(32000))[0]),
             checked=4096),
    ordinary("Jensen-Shannon divergence 32000", "jensen-shannon divergence",
             lambda s: logs(s.tokens, s(32000)), checked=2048),
    ordinary("cross entropy and total variation 32000", "cross entropy and total variation",
             lambda s: (s.rows(32000), s.rows(32000), targets(s, 32000)), checked=2048),
    ordinary("vocabulary in parts 32000", "vocabulary in parts",
             lambda s: (normal(4, s.tokens // 4, s(32000)),
                        targets(s, 32000).view(4, -1)), checked=2048),
    ordinary("policy optimization 32000", "policy optimization", policy,
             checked=2048, single=(1, 2, 4)),
    ordinary("linear cross entropy 32000", "linear cross entropy",
             lambda s: (*layers(s), targets(s, 32000), normal(s(32000))), checked=1024),
    ordinary("linear scaled cross entropy 32000", "linear scaled cross entropy",
             lambda s: (*layers(s), targets(s, 32000)), checked=1024),
    ordinary("linear KL divergence 32000", "linear kl divergence",
             lambda s: (*layers(s), distributions(s.tokens, s(32000))[0]), checked=1024),
    ordinary("linear Jensen-Shannon divergence 32000", "linear jensen-shannon divergence",
             lambda s: (*layers(s), *layers(s)), checked=1024),
)  # fmt: skip
OTHERS = (
    ordinary("softmax 4096", "softmax", lambda s: (s.rows(4096),)),
    ordinary("softmax 32000", "softmax", lambda s: (s.rows(32000),), checked=4096),
    ordinary("sparsemax 4096", "sparsemax", lambda s: (s.rows(4096),), checked=2048),
    ordinary("embedding 32000x4096", "embedding",
             lambda s: (normal(s(32000), s(4096)), torch.randint(0, s(32000), (s.tokens,)))),
    ordinary("RoPE", "rope",
             lambda s: (s.heads(HEADS), s.heads(KEY_HEADS), *angles(1, s.tokens // 2, HEAD))),
    Row("RoPE in three sections", SECTIONED_ROPE, parts_of_rope),
    ordinary("RoPE of pairs", "rope of pairs",
             lambda s: (s.heads(HEADS).transpose(1, 2), s.heads(KEY_HEADS).transpose(1, 2),
                        torch.rand(s.tokens // 2, HEAD // 2) * 6), single=(2,)),
    ordinary("neighbourhood attention", "neighbourhood attention",
             lambda s: tuple(normal(1, s(32 * 16) // 16, s.tokens // 4, HEAD) for _ in range(3)),
             checked=2048),
    ordinary("multi-token attention", "multi-token attention",
             lambda s: (normal(1, 16, s.tokens // 8, s.tokens // 8), normal(16, 16, 3, 3) / 12,
                        normal(16)), checked=4096),
    ordinary("connections: coefficients", "coefficients", connections,
             checked=2048, single=(1, 2, 3, 4, 5)),
    ordinary("connections: before", "before",
             lambda s: (normal(2, s.tokens // 2, 4, s(4096)), normal(2, s.tokens // 2, 4)),
             checked=2048),
    ordinary("connections: after", "after",
             lambda s: (normal(2, s.tokens // 2, 4, s(4096)), normal(2, s.tokens // 2, s(4096)),
                        normal(2, s.tokens // 2, 4), normal(2, s.tokens // 2, 4, 4)),
             checked=2048),
    ordinary("mixture of experts", "mixture of experts", experts, checked=1024, single=(4,)),
)  # fmt: skip

# --- fla-core -------------------------------------------------------------------------------------


def recurrence(q: Any, k: Any, v: Any, decay: Any, beta: Any = None) -> Any:
    """o_t = S_t^T q_t / sqrt(K) with S_t = decay_t S_(t-1) + k_t u_t^T; u is v, or with beta the
    delta rule's beta_t (v_t - k_t^T decay_t S_(t-1)). q, k, v: (batch, tokens, heads, width); the
    decay of a head, or of each of its keys."""
    if decay.ndim == 3:
        decay = decay[..., None]
    state = q.new_zeros(*q.shape[:1], *q.shape[2:], v.shape[-1])
    results: list[Any] = []
    for t in range(q.shape[1]):
        state = state * decay[:, t, ..., None]
        update = v[:, t]
        if beta is not None:
            update = beta[:, t, :, None] * (update - (k[:, t, ..., None] * state).sum(-2))
        state = state + k[:, t, ..., None] * update[..., None, :]
        results.append((q[:, t, ..., None] * state).sum(-2) / q.shape[-1] ** 0.5)
    return torch.stack(results, 1)


def retention(q: Any, k: Any, v: Any) -> Any:
    heads = torch.arange(q.shape[2], dtype=q.dtype, device=q.device)
    decay = (1 - 2.0 ** (-5 - heads)).expand(q.shape[:3])
    return recurrence(q, k, v, decay)


def sequence(shape: Shape) -> Tensors:
    """Queries, keys of length 1, and values of one sequence."""
    heads = max(1, HEADS // shape.divisor)
    q, k, v = (normal(1, shape.tokens, heads, HEAD) for _ in range(3))
    return q, F.normalize(k, dim=-1), v


def gates(shape: Shape, *widths: int) -> Any:
    return F.logsigmoid(normal(1, shape.tokens, max(1, HEADS // shape.divisor), *widths))


def plain_attention(q: Any, k: Any, v: Any) -> Any:
    return recurrence(q, k, v, q.new_ones(q.shape[:3]))


def gated_rnn(x: Any, g: Any) -> Any:
    """h_t = exp(g_t) h_(t-1) + x_t; x, g: (batch, tokens, width)."""
    state, results = torch.zeros_like(x[:, 0]), list[Any]()
    for t in range(x.shape[1]):
        state = g[:, t].exp() * state + x[:, t]
        results.append(state)
    return torch.stack(results, 1)


def linear_attention(
    name: str, function: str, reference: Callable[..., Any], make: Callable[[Shape], Tensors],
    single: tuple[int, ...] = (), **options: Any,
) -> Row:  # fmt: skip
    """A row of fla-core; "module.function" is found below `fla.ops`. options: the function's."""
    module, _, called = function.partition(".")
    path = f"fla.ops.{module}"

    def call(_: Any, *inputs: Any) -> Any:
        return getattr(importlib.import_module(path), called)(*inputs, **options)[0]

    operator = Operator(call, reference, lambda: make(SMALL))
    return Row(name, operator, make, 256, single, "fla", path)


LINEAR_ATTENTION = (
    linear_attention(
        "gated delta rule", "gated_delta_rule.chunk_gated_delta_rule",
        lambda q, k, v, g, beta: recurrence(q, k, v, g.exp(), beta),
        lambda s: (*sequence(s), gates(s), gates(s).exp()), single=(3,),
    ),
    linear_attention(
        "simple GLA", "simple_gla.chunk_simple_gla",
        lambda q, k, v, g: recurrence(q, k, v, g.exp()), lambda s: (*sequence(s), gates(s)),
        single=(3,),
    ),
    linear_attention("retention", "retention.chunk_retention", retention, sequence),
    linear_attention(
        "delta rule", "delta_rule.chunk_delta_rule",
        lambda q, k, v, beta: recurrence(q, k, v, q.new_ones(q.shape[:3]), beta),
        lambda s: (*sequence(s), gates(s).exp()),
    ),
    linear_attention(
        "GLA", "gla.chunk_gla", lambda q, k, v, g: recurrence(q, k, v, g.exp()),
        lambda s: (*sequence(s), gates(s, HEAD) / 16), single=(3,),
    ),
    linear_attention(
        "KDA", "kda.chunk_kda",
        lambda q, k, v, g, beta: recurrence(q, k, v, g.exp(), beta),
        lambda s: (*sequence(s), gates(s, HEAD) / 16, gates(s).exp()), single=(3,),
    ),
    linear_attention(
        "linear attention", "linear_attn.chunk_linear_attn", plain_attention, sequence,
        normalize=False,
    ),
    linear_attention(
        "HGRN", "hgrn.chunk_hgrn", gated_rnn,
        lambda s: (normal(1, s.tokens, s(4096)), F.logsigmoid(normal(1, s.tokens, s(4096)))),
    ),
)  # fmt: skip

ROWS = (*ACTIVATIONS, *NORMS, *LOSSES, *OTHERS, *LINEAR_ATTENTION)


def without_a_gpu() -> None:
    """Have the backward pass of tanh split its rows in three on a CPU, of which Liger-Kernel
    requests no number of cores."""
    module: Any = importlib.import_module("liger_kernel.ops.dyt")
    module.infer_device = lambda: "npu"
    module.get_npu_core_count = lambda: 3
