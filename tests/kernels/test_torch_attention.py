"""The operator of PyTorch beside its own attention, in float64."""

import importlib
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
module = importlib.import_module("tilewright.kernels.torch_attention")
ours = module.scaled_dot_product_attention
theirs = torch.nn.functional.scaled_dot_product_attention

pytestmark = pytest.mark.torch

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]

CASES: dict[str, dict[str, Any]] = {
    "full": {},
    "causal": {"is_causal": True},
    "scale": {"scale": 0.3},
    "bits": {"attn_mask": "bool"},
    "numbers": {"attn_mask": "float"},
    "shared keys": {"enable_gqa": True, "is_causal": True},
}


def operands(device: str, shared: bool) -> list[Any]:
    torch.manual_seed(0)
    heads = 2 if shared else 4
    shapes = (2, 4, 37, 16), (2, heads, 37, 16), (2, heads, 37, 32)
    return [torch.randn(shape, device=device, requires_grad=True) for shape in shapes]


def mask_of(kind: str, device: str) -> Any:
    """Of all heads, of which some queries see nothing."""
    seen = torch.rand(2, 1, 37, 37, device=device) < 0.7
    seen[:, :, 5] = False
    return seen if kind == "bool" else torch.randn(37, 37, device=device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_torchs(name: str, device: str):
    words = dict(CASES[name])
    inputs = operands(device, "enable_gqa" in words)
    if "attn_mask" in words:
        words["attn_mask"] = mask_of(words["attn_mask"], device)
    found = ours(*inputs, **words)
    weights = torch.randn_like(found)
    gradients = torch.autograd.grad((found * weights).sum(), inputs)
    wide = [x.detach().double().requires_grad_() for x in inputs]
    if words.get("attn_mask") is not None and words["attn_mask"].is_floating_point():
        words["attn_mask"] = words["attn_mask"].double()
    expected = theirs(*wide, **words).nan_to_num(0)
    # GPUs multiply fp32 as tf32
    tolerance = {"atol": 1e-2, "rtol": 1e-2} if device == "cuda" else {"atol": 1e-4, "rtol": 1e-4}
    torch.testing.assert_close(found.double(), expected, **tolerance)
    exact = torch.autograd.grad((expected * weights.double()).sum(), wide)
    for one, gradient in zip(gradients, exact, strict=True):
        torch.testing.assert_close(one.double(), gradient.nan_to_num(0), **tolerance)


@pytest.mark.parametrize("device", DEVICES)
def test_compiled_graphs_hold_the_operator(device: str):
    inputs = operands(device, shared=False)

    def loss(q: Any, k: Any, v: Any) -> Any:
        return ours(q * 2, k, v, is_causal=True).square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    expected, found = loss(*inputs), compiled(*inputs)
    torch.testing.assert_close(found, expected)
    for one, other in zip(
        torch.autograd.grad(found, inputs), torch.autograd.grad(expected, inputs), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_the_operator_keeps_the_rules_of_torch():
    inputs = [x.double().float().detach().requires_grad_() for x in operands("cpu", shared=False)]
    rest = None, None, True, 0.0, [-1, -1], 0.0
    report = torch.library.opcheck(module.forward_op, (*inputs, *rest))
    assert set(report.values()) == {"SUCCESS"}


def test_dropout_follows_the_seed_of_torch():
    inputs = operands("cpu", shared=False)
    torch.manual_seed(3)
    first = ours(*inputs, dropout_p=0.5)
    other = ours(*inputs, dropout_p=0.5)
    torch.manual_seed(3)
    assert torch.equal(first, ours(*inputs, dropout_p=0.5))
    assert not torch.equal(first, other)


def test_what_is_refused():
    q, k, v = operands("cpu", shared=True)
    with pytest.raises(ValueError, match="enable_gqa"):
        ours(q, k, v)
    with pytest.raises(ValueError, match="beside is_causal"):
        ours(q, k, v, torch.ones(37, 37), is_causal=True, enable_gqa=True)
    with pytest.raises(ValueError, match="no gradient"):
        ours(q, k, v, torch.ones(37, 37, requires_grad=True), enable_gqa=True)
