"""One of the likeliest tokens, drawn at random: by temperature, top-k, top-p and min-p.

After alipay/PainlessInferenceAcceleration, `flood/ops/sample.py`: an early return, a scan from the
end, a tile of one element that broadcasts, results that go through memory from a tile to scalars,
random numbers of a scalar offset, and a flag that branches inside of a loop set.
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
def sample_kernel(
    values_ptr, tokens_ptr, temperature, top_k, top_p, min_p, probabilities_ptr, draws_ptr,
    out_ptr, seed, longest, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    k = tl.load(top_k + row)
    if k == 1:
        token = tl.load(tokens_ptr + row * longest)
        tl.store(out_ptr + row, token)
        return
    p = tl.load(top_p + row)
    least = tl.load(min_p + row)
    i = tl.arange(0, BLOCK)
    values = tl.load(values_ptr + row * longest + i, mask=i < k, other=-10000.0)
    values = values / tl.load(temperature + row)
    nothing = tl.full((1,), 0.0, dtype=values.dtype)
    weights = tl.exp(values - tl.max(values))
    share = weights / tl.sum(weights, axis=0)
    share = tl.where(share >= least, share, nothing)
    share = share / tl.sum(share, axis=0)
    from_here = tl.cumsum(share, reverse=True)
    share = tl.where(from_here >= p, share, nothing)
    share = share / tl.sum(share)
    tl.store(probabilities_ptr + row * BLOCK + i, share)
    draw = tl.rand(seed, row)
    tl.store(draws_ptr + row, draw)
    passed = 0.0
    found = False
    for j in range(0, k):
        if not found:
            mine = tl.load(probabilities_ptr + row * BLOCK + j)
            if draw >= passed:
                if draw <= passed + mine:
                    token = tl.load(tokens_ptr + row * longest + j)
                    tl.store(out_ptr + row, token)
                    found = True
            passed += mine
    if not found:
        token = tl.load(tokens_ptr + row * longest)
        tl.store(out_ptr + row, token)


def sample(logits: Any, temperature: Any, top_k: Any, top_p: Any, min_p: Any, seed: int) -> Any:
    rows, longest = logits.size(0), int(top_k.max())
    block = triton.next_power_of_2(longest)
    values, tokens = torch.topk(logits, longest, dim=-1, largest=True, sorted=True)
    out = torch.zeros((rows,), dtype=tokens.dtype, device=logits.device)
    probabilities = torch.full((rows, block), -10000.0, device=logits.device)
    draws = torch.zeros(rows, device=logits.device)
    grid = lambda meta: (rows,)
    sample_kernel[grid](
        values, tokens, temperature, top_k, top_p, min_p, probabilities, draws, out, seed, longest,
        BLOCK=block, num_warps=1, num_stages=1,
    )  # fmt: skip
    return out, draws, probabilities, tokens


def distribution(logits: Any, temperature: float, k: int, p: float, least: float) -> Any:
    """Of the k largest, from the largest."""
    share = (logits.double().sort(descending=True).values[:k] / temperature).softmax(0)
    share = torch.where(share >= least, share, 0)
    share = share / share.sum()
    share = torch.where(share.flip(0).cumsum(0).flip(0) >= p, share, 0)
    return share / share.sum()


def test_tokens_are_drawn_from_what_is_left(device: str) -> None:
    logits = torch.randn(12, 50, device=device) * 2
    temperature = torch.rand(12, device=device) + 0.5
    top_k = torch.tensor([1, 2, 13, 5] * 3, device=device)
    top_p = torch.rand(12, device=device) * 0.3
    min_p = torch.rand(12, device=device) * 0.05
    found, draws, probabilities, tokens = sample(logits, temperature, top_k, top_p, min_p, 7)
    chosen = set()
    for row in range(12):
        k = int(top_k[row])
        if k == 1:
            assert found[row] == logits[row].argmax()
            continue
        settings = (float(each[row]) for each in (temperature, top_p, min_p))
        heat, p, least = settings
        share = distribution(logits[row], heat, k, p, least)
        torch.testing.assert_close(probabilities[row, :k].double(), share, rtol=1e-5, atol=1e-6)
        place = int((share.cumsum(0) < draws[row].double()).sum())
        assert found[row] == tokens[row, place]
        chosen.add(place)
    assert len(set(draws.tolist())) == 10  # nine draws, and the zero of rows without one
    assert len(chosen) > 1
