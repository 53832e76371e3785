"""One step of a selective state space: the state in place, and what it gives out.

After state-spaces/mamba, `mamba_ssm/ops/triton/selective_state_update.py`: stacked heuristics, of
which some ask whether an array is None, pointers advanced by `+=`, variables that only some
variants have, strides of an expanded array, a number of warps that the host chooses.
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


@triton.heuristics({"HAS_BIAS": lambda args: args["bias_ptr"] is not None})
@triton.heuristics({"HAS_SKIP": lambda args: args["skip_ptr"] is not None})
@triton.heuristics({"HAS_GATE": lambda args: args["gate_ptr"] is not None})
@triton.heuristics({"STATES": lambda args: triton.next_power_of_2(args["states"])})
@triton.jit
def update_kernel(
    state_ptr, x_ptr, dt_ptr, bias_ptr, a_ptr, b_ptr, c_ptr, skip_ptr, gate_ptr, out_ptr,
    channels, states, state_batch, state_channel, state_state, x_batch, x_channel,
    dt_batch, dt_channel, bias_channel, a_channel, a_state, b_batch, b_state, c_batch, c_state,
    skip_channel, gate_batch, gate_channel, out_batch, out_channel,
    SOFTPLUS: tl.constexpr, CHANNELS: tl.constexpr, HAS_BIAS: tl.constexpr,
    HAS_SKIP: tl.constexpr, HAS_GATE: tl.constexpr, STATES: tl.constexpr,
):  # fmt: skip
    block, batch = tl.program_id(axis=0), tl.program_id(axis=1)
    state_ptr += batch * state_batch
    x_ptr += batch * x_batch
    dt_ptr += batch * dt_batch
    b_ptr += batch * b_batch
    c_ptr += batch * c_batch
    out_ptr += batch * out_batch
    if HAS_GATE:
        gate_ptr += batch * gate_batch
    channel = block * CHANNELS + tl.arange(0, CHANNELS)
    n = tl.arange(0, STATES)
    there = channel < channels
    inside = there[:, None] & (n[None, :] < states)
    state_ptrs = state_ptr + (channel[:, None] * state_channel + n[None, :] * state_state)
    if HAS_BIAS:
        bias_ptrs = bias_ptr + channel * bias_channel
    if HAS_SKIP:
        skip_ptrs = skip_ptr + channel * skip_channel
    state = tl.load(state_ptrs, mask=inside, other=0.0)
    x = tl.load(x_ptr + channel * x_channel, mask=there, other=0.0).to(tl.float32)
    dt = tl.load(dt_ptr + channel * dt_channel, mask=there, other=0.0).to(tl.float32)
    if HAS_BIAS:
        dt += tl.load(bias_ptrs, mask=there, other=0.0).to(tl.float32)
    if SOFTPLUS:
        dt = tl.where(dt <= 20.0, tl.math.log(tl.math.exp(dt) + 1), dt)
    a_ptrs = a_ptr + (channel[:, None] * a_channel + n[None, :] * a_state)
    decay = tl.exp(tl.load(a_ptrs, mask=inside, other=0.0).to(tl.float32) * dt[:, None])
    b = tl.load(b_ptr + n * b_state, mask=n < states, other=0.0).to(tl.float32)
    c = tl.load(c_ptr + n * c_state, mask=n < states, other=0.0).to(tl.float32)
    if HAS_SKIP:
        skip = tl.load(skip_ptrs, mask=there, other=0.0).to(tl.float32)
    if HAS_GATE:
        gate = tl.load(gate_ptr + channel * gate_channel, mask=there, other=0.0).to(tl.float32)
    state = state * decay + b[None, :] * dt[:, None] * x[:, None]
    tl.store(state_ptrs, state, mask=inside)
    out = tl.sum(state * c[None, :], axis=1)
    if HAS_SKIP:
        out += x * skip
    if HAS_GATE:
        out *= gate * tl.sigmoid(gate)
    tl.store(out_ptr + channel * out_channel, out, mask=there)


def strides(x: Any, rank: int) -> tuple[int, ...]:
    return x.stride() if x is not None else (0,) * rank


def update(
    state: Any, x: Any, dt: Any, a: Any, b: Any, c: Any, skip: Any = None, gate: Any = None,
    bias: Any = None, softplus: bool = False,
) -> Any:  # fmt: skip
    batch, channels, states = state.shape
    out = torch.empty_like(x)
    block, warps = (32, 4) if states <= 16 else ((16, 4) if states <= 32 else (4, 8))
    grid = lambda meta: (triton.cdiv(channels, meta["CHANNELS"]), batch)
    update_kernel[grid](
        state, x, dt, bias, a, b, c, skip, gate, out, channels, states, *state.stride(),
        *x.stride(), *dt.stride(), *strides(bias, 1), *a.stride(), *b.stride(), *c.stride(),
        *strides(skip, 1), *strides(gate, 2), *out.stride(), softplus, block, num_warps=warps,
    )  # fmt: skip
    return out


def reference(state: Any, inputs: Any, extras: Any) -> Any:
    x, dt, a, b, c = inputs
    softplus = extras.get("softplus", False)
    dt = dt + extras["bias"].double() if "bias" in extras else dt
    dt = torch.nn.functional.softplus(dt) if softplus else dt
    state = state * (dt[..., None] * a).exp() + (dt * x)[..., None] * b[:, None]
    out = (state * c[:, None]).sum(-1)
    out = out + x * extras["skip"].double() if "skip" in extras else out
    return state, out * torch.nn.functional.silu(
        extras["gate"].double()
    ) if "gate" in extras else out


@pytest.mark.parametrize("names", [(), ("bias", "softplus"), ("skip", "gate")])
def test_states_and_results_of_a_step(device: str, names: tuple[str, ...]) -> None:
    batch, channels, states = 2, 37, 11
    make = lambda *shape: torch.randn(*shape, device=device)
    extras: dict[str, Any] = {
        "bias": make(channels), "softplus": True, "skip": make(channels),
        "gate": make(batch, channels),
    }  # fmt: skip
    extras = {name: extras[name] for name in names}
    # one step and one decay for all channels of a head
    dt = torch.rand(batch, 1, device=device).expand(batch, channels)
    a = -torch.rand(channels, 1, device=device).expand(channels, states)
    inputs = [make(batch, channels), dt, a, make(batch, states), make(batch, states)]
    state = make(batch, channels, states)
    expected = reference(state.double(), [x.double() for x in inputs], extras)
    out = update(state, *inputs, **extras)
    for mine, true in zip((state, out), expected, strict=True):
        torch.testing.assert_close(mine.double(), true, rtol=1e-5, atol=1e-5)
