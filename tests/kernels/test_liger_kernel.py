"""Liger-Kernel as it is on PyPI, through `import triton`: all operators, forward and backward.

Each is compared with torch's formula in fp64, on tensors of the CPU and, if there is one, the GPU.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.unit.triton_alias.alias_fixture import triton_alias

torch: Any = pytest.importorskip("torch")
pytest.importorskip("liger_kernel")
pytestmark = pytest.mark.torch

from tests.kernels import liger_operators  # noqa: E402
from tests.kernels.liger_operators import (  # noqa: E402
    OPERATORS,
    Operator,
    prepared,
    results_and_gradients,
    tuple_of,
)


@pytest.fixture(scope="module")
def ops() -> Generator[Any]:
    """The package of operators, with ours as triton."""
    with triton_alias():
        try:
            yield importlib.import_module("liger_kernel.ops")
        finally:
            for name in [name for name in sys.modules if name.startswith("liger_kernel")]:
                del sys.modules[name]


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def assert_like_torch(ops: Any, case: Operator, device: str) -> None:
    inputs = tuple(i.to(device) if isinstance(i, torch.Tensor) else i for i in case.inputs())
    # products of fp32 are TF32's on GPUs, as they are in Triton
    tolerance = case.tolerance if device == "cpu" else 5e-3
    wide = prepared(inputs, case.constant, widen=True)
    expected = tuple_of(case.reference(*wide))
    weights = [torch.randn_like(r) for r in expected if r.requires_grad]
    wanted = results_and_gradients(expected, wide, weights)
    own = prepared(inputs, case.constant, widen=False)
    # some operators write into their inputs: they get what is no leaf
    given = [i.clone() if isinstance(i, torch.Tensor) and i.requires_grad else i for i in own]
    found = results_and_gradients(tuple_of(case.liger(ops, *given)), own, weights)
    assert len(found) == len(wanted)
    for mine, true in zip(found, wanted, strict=True):
        assert mine is not None
        assert mine.shape == true.shape
        error = (mine.double() - true.double()).abs().max()
        assert error <= tolerance * max(1.0, float(true.double().abs().max())), float(error)


@pytest.fixture
def multiprocessors(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backward pass of tanh asks for a number of multiprocessors, and of CPUs not at all."""
    module = sys.modules["liger_kernel.ops.dyt"]
    monkeypatch.setattr(module, "infer_device", lambda: "npu")
    monkeypatch.setattr(module, "get_npu_core_count", lambda: 3, raising=False)


@pytest.mark.usefixtures("multiprocessors")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", OPERATORS)
def test_operator_is_as_torch_computes_it(ops: Any, name: str, device: str) -> None:
    case = OPERATORS[name]
    if device == "cuda" and name == "linear scaled cross entropy":
        if torch.cuda.get_device_capability() == (9, 0) and not find_spec("cutlass"):
            pytest.skip(
                "Liger chooses its CuTe implementation on sm_90, which needs NVIDIA's cutlass"
            )
    assert case.tolerance < 1e-3
    assert_like_torch(ops, case, device)


UNTESTED = {
    "LigerMLPFunction": "refuses tensors that are not on a GPU",
    "LigerFusedLinearScaledCrossEntropyTPFunction": "needs several processes",
}


def test_every_operator_has_a_case(ops: Any) -> None:
    source = Path(liger_operators.__file__).read_text(encoding="utf-8")
    functions = {name for name in dir(ops) if name.endswith("Function")}
    missing = {name for name in functions if f"ops.{name}.apply" not in source}
    assert missing == set(UNTESTED)
