"""x[t] = a[t] x[t-1] + b[t] along sequences of any length, forward and backward.

After proger/accelerated-scan, `accelerated_scan/triton.py`: pairs are scanned block by block with a
carry that is read from the last lane, keywords of `tl` in another order than its own, a launch by
keyword, and a default for a constexpr.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.triton_alias.alias_fixture import triton_alias

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

with triton_alias():
    import triton
    import triton.language as tl


@triton.jit
def after(x1, a1, x2, a2):
    return x1 * a2 + x2, a1 * a2


@triton.jit
def states_kernel(gates, tokens, states, length, BLOCK: tl.constexpr = 64):
    row = tl.num_programs(axis=1) * tl.program_id(axis=0) + tl.program_id(axis=1)
    lane = tl.arange(0, BLOCK)
    carried = tl.zeros((), dtype=tl.float32)
    for block in tl.range(0, tl.cdiv(length, BLOCK)):
        t = block * BLOCK + lane
        at = row * length + t
        b = tl.load(tokens + at, mask=t < length, other=0.0)
        a = tl.load(gates + at, mask=t < length, other=1.0)
        x, product = tl.associative_scan((b, a), axis=0, combine_fn=after)
        last = tl.sum(tl.where(lane == BLOCK - 1, x, 0.0), axis=0)
        all_gates = tl.sum(tl.where(lane == BLOCK - 1, product, 0.0), axis=0)
        tl.store(states + at, x + carried * product, mask=t < length)
        carried = last + carried * all_gates


@triton.jit
def gradients_kernel(gates, states, d_states, d_tokens, d_gates, length, BLOCK: tl.constexpr = 64):
    row = tl.num_programs(axis=1) * tl.program_id(axis=0) + tl.program_id(axis=1)
    lane = tl.arange(0, BLOCK)
    blocks = tl.cdiv(length, BLOCK)
    carried = tl.zeros((), dtype=tl.float32)
    for step in tl.range(0, blocks):
        t = (blocks - 1 - step) * BLOCK + lane
        at = row * length + t
        d = tl.load(d_states + at, mask=t < length, other=0.0)
        a = tl.load(gates + at + 1, mask=t < length - 1, other=1.0)
        d, product = tl.associative_scan((d, a), axis=0, combine_fn=after, reverse=True)
        first = tl.sum(tl.where(lane == 0, d, 0.0), axis=0)
        all_gates = tl.sum(tl.where(lane == 0, product, 0.0), axis=0)
        d = d + carried * product
        tl.store(d_tokens + at, d, mask=t < length)
        before = tl.load(states + at - 1, mask=(t > 0) & (t < length), other=0.0)
        tl.store(d_gates + at, before * d, mask=t < length)
        carried = first + carried * all_gates


class Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Any, tokens: Any) -> Any:
        batch, channels, length = gates.shape
        states = torch.empty_like(tokens)
        states_kernel[(batch, channels)](
            gates, tokens, states, length=length, enable_fp_fusion=False
        )
        ctx.save_for_backward(gates, states)
        return states

    @staticmethod
    def backward(ctx: Any, d_states: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        gates, states = ctx.saved_tensors
        batch, channels, length = gates.shape
        d_gates, d_tokens = torch.empty_like(gates), torch.empty_like(states)
        gradients_kernel[(batch, channels)](
            gates, states, d_states.contiguous(), d_tokens, d_gates,
            length=length, enable_fp_fusion=False,
        )  # fmt: skip
        return d_gates, d_tokens


def recurrence(gates: Any, tokens: Any) -> Any:
    x, states = torch.zeros_like(tokens[..., 0]), []
    for t in range(tokens.shape[-1]):
        x = gates[..., t] * x + tokens[..., t]
        states.append(x)
    return torch.stack(states, -1)


@pytest.mark.parametrize("length", [1, 64, 150])
def test_states_and_gradients_are_those_of_the_loop(device: str, length: int) -> None:
    gates = torch.rand(2, 3, length, device=device).requires_grad_()
    tokens = torch.randn(2, 3, length, device=device).requires_grad_()
    weights = torch.randn(2, 3, length, device=device)
    wide = [x.detach().double().requires_grad_() for x in (gates, tokens)]
    expected = recurrence(*wide)
    found = Recurrence.apply(gates, tokens)
    expected.backward(weights.double())
    found.backward(weights)
    pairs = [(found, expected), (gates.grad, wide[0].grad), (tokens.grad, wide[1].grad)]
    for mine, true in pairs:
        torch.testing.assert_close(mine.double(), true, rtol=1e-5, atol=1e-5)
