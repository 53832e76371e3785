"""Microscaling numbers on the host: rounding, packing, scales."""

import ml_dtypes
import numpy as np
import pytest

from tilewright.support import errors
from tilewright.triton_alias.mxfp import MXFP4Tensor, MXScaleTensor

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def test_floats_round_to_nearest_even_and_saturate():
    values = np.concatenate([np.linspace(-7, 7, 281), [100.0, -np.inf, 0.25, 0.75, -0.25]])
    expected = values.clip(-6, 6).astype(ml_dtypes.float4_e2m1fn)
    numbers = MXFP4Tensor(data=torch.tensor(values))
    assert numbers.data.tolist() == expected.view(np.uint8).tolist()
    assert numbers.to(torch.float32).tolist() == expected.astype(float).tolist()


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_packing_is_undone_by_unpacking(dim: int):
    numbers = MXFP4Tensor(size=(4, 3, 5)).random()
    packed = numbers.to_packed_tensor(dim)
    assert packed.shape[dim] == (numbers.data.shape[dim] + 1) // 2
    unpacked = numbers.unpack_packed_tensor(packed, dim, (4, 3, 5))
    assert torch.equal(unpacked, numbers.data)


def test_the_first_of_two_is_in_the_low_bits():
    numbers = MXFP4Tensor(data=torch.tensor([1.0, -6.0]))
    assert numbers.to_packed_tensor(0).tolist() == [0xF2]


def test_scales_are_powers_of_two():
    scales = MXScaleTensor(data=torch.tensor([1.0, 3.0, 0.49, 2.0**-127, 0.0, float("nan")]))
    assert scales.data.tolist() == [127, 128, 125, 0, 255, 255]
    assert scales.to(torch.float32)[:4].tolist() == [1.0, 2.0, 0.25, 2.0**-127]
    assert scales.to(torch.float32)[4:].isnan().all()


def test_random_scales_lie_in_their_range():
    scales = MXScaleTensor(size=(64,)).random(low=0.5, high=8.0)
    assert scales.data.min() >= 126 and scales.data.max() <= 130
    with pytest.raises(errors.InvalidValue, match="at most high"):
        MXScaleTensor(size=4).random(low=8.0, high=0.5)


def test_a_tensor_without_data_and_size_is_refused():
    with pytest.raises(errors.MissingArgument):
        MXFP4Tensor()
