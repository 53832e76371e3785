"""The comparisons on torch tensors of every kind; skipped without torch."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.testing import assert_close, relative_error

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    "name",
    ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
     "int8", "int64", "uint8", "uint16", "uint64", "bool", "complex64"],
)  # fmt: skip
def test_every_dtype(name: str) -> None:
    x = torch.tensor([1.0, 0.0, 1.0]).to(getattr(torch, name))
    assert_close(x, [1, 0, 1], atol=0.0)
    assert_close(np.array([1.0, 0.0, 1.0]), x, atol=0.0)
    with pytest.raises(AssertionError, match=r"1 of 3 elements differ.*\n  worst at \[1\]"):
        assert_close(x, [1, 1, 1])


def test_tensors_with_gradient_strides_and_conjugation() -> None:
    x = torch.arange(6.0, requires_grad=True).reshape(2, 3).T
    assert_close(x, [[0, 3], [1, 4], [2, 5]])
    assert_close(torch.tensor([1 + 2j]).conj(), [1 - 2j])
    assert_close([torch.tensor(1.0), torch.tensor(2.0, dtype=torch.bfloat16)], [1, 2])


def test_tolerance_functions_get_the_torch_dtype() -> None:
    seen: list[object] = []
    x = torch.ones(1, dtype=torch.bfloat16)
    assert_close(x, x, atol=lambda dtype: seen.append(dtype) or 0.0)
    assert seen == [torch.bfloat16]


def test_relative_error_of_bfloat16_is_its_rounding() -> None:
    reference = torch.rand(1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert 2.0**-12 < relative_error(reference.bfloat16(), reference) <= 2.0**-8
