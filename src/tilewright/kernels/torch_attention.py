"""Attention for PyTorch, with gradients: a custom operator that `torch.compile` supports, and a
function with the signature of `torch.nn.functional.scaled_dot_product_attention`.

    from tilewright.kernels.torch_attention import scaled_dot_product_attention
"""

from __future__ import annotations

import importlib
from typing import Any

from tilewright.kernels.arrays import strides
from tilewright.kernels.attention import attention
from tilewright.kernels.attention_backward import attention_backward
from tilewright.kernels.attention_blocks import add_mask

torch: Any = importlib.import_module("torch")
Tensor = Any

_REST = "Tensor? mask, Tensor? seed, bool causal, float scale, int[] window, float dropout"


def _words(
    q: Tensor, keys: int, mask: Tensor, seed: Tensor, causal: bool, scale: float,
    window: list[int], dropout: float,
) -> dict[str, Any]:  # fmt: skip
    """The arguments of the kernels that are not arrays."""
    words: dict[str, Any] = {
        "causal": causal, "scale": scale, "window": tuple(window), "dropout": dropout,
        "seed": 0 if seed is None else seed,
    }  # fmt: skip
    if mask is None:
        return words
    everywhere = mask.expand(*q.shape[:-1], keys)
    steps = (0, *strides(everywhere))[-4:]
    args = (mask, *steps, int(q.shape[-2]), keys)
    return words | {"score": add_mask, "score_args": args}


def _forward(q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    lse = q.new_empty(q.shape[:-1], dtype=torch.float32)
    return attention(q, k, v, lse=lse, **_words(q, int(k.shape[-2]), *rest)), lse


def _backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, *rest: Any
) -> tuple[Tensor, Tensor, Tensor]:
    words = _words(q, int(k.shape[-2]), *rest)
    return attention_backward(grad.contiguous(), q, k, v, out, lse, **words)


forward_op = torch.library.custom_op(
    "tilewright::attention", _forward, mutates_args=(),
    schema=f"(Tensor q, Tensor k, Tensor v, {_REST}) -> (Tensor, Tensor)",
)  # fmt: skip
"""(q, k, v, mask, seed, causal, scale, window, dropout) -> the result, and logarithms of sums."""

backward_op = torch.library.custom_op(
    "tilewright::attention_backward", _backward, mutates_args=(),
    schema=f"(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, {_REST})"
           " -> (Tensor, Tensor, Tensor)",
)  # fmt: skip
"""The gradients of q, k and v."""


@forward_op.register_fake
def _forward_shapes(q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    result = q.new_empty((*q.shape[:-1], v.shape[-1]))
    return result, q.new_empty(q.shape[:-1], dtype=torch.float32)


@backward_op.register_fake
def _backward_shapes(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, *rest: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, mask, seed, *rest = inputs
    ctx.save_for_backward(q, k, v, *output, mask, seed)
    ctx.rest = rest


def _gradients(ctx: Any, grad: Tensor, grad_lse: Tensor) -> tuple[Tensor | None, ...]:
    gradients = backward_op(grad, *ctx.saved_tensors, *ctx.rest)
    return (*gradients, *[None] * (2 + len(ctx.rest)))


forward_op.register_autograd(_gradients, setup_context=_keep)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    window: tuple[int, int] = (-1, -1),
) -> Tensor:
    """As torch.nn.functional.scaled_dot_product_attention, and `window` of `attention`.

    query, key, value: ([batch,] heads, length, head size); attn_mask: bool, or numbers that are
    added, of a shape that expands to ([batch,] heads, queries, keys); it gets no gradient.
    Raises ValueError: attn_mask with is_causal, or an attn_mask that needs a gradient; heads that
    differ without enable_gqa.
    """
    if attn_mask is not None and (is_causal or attn_mask.requires_grad):
        what = "stands beside is_causal" if is_causal else "gets no gradient"
        raise ValueError(f"attn_mask {what}")
    if not enable_gqa and query.shape[-3] != key.shape[-3]:
        raise ValueError(
            f"{query.shape[-3]} heads of queries share {key.shape[-3]} of keys with enable_gqa=True"
        )
    seed = torch.randint(2**31 - 1, (1,), device=query.device) if dropout_p else None
    result, _ = forward_op(
        query, key, value, attn_mask, seed, is_causal, scale or 0.0, list(window), dropout_p
    )
    return result
