"""`TensorWrapper`: an array whose elements are seen as another dtype, with methods of torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.runtime import TensorWrapper, reinterpret


@tilewright.jit
def halve(x, y, n: tl.constexpr):
    at = tl.arange(0, n)
    tl.store(y + at, tl.load(x + at) // 2)


def wrapped(*values: int) -> Any:
    torch = pytest.importorskip("torch")
    # -2 is 254 as an unsigned byte
    return reinterpret(torch.tensor(values, dtype=torch.int8), tl.uint8)


@pytest.mark.torch
def test_arrays_made_from_a_wrapper_are_seen_as_its_dtype() -> None:
    x = wrapped(-2, 2, -4, 4)
    y = x.new_empty(4)
    halve[(1,)](x, y, 4)
    copies = [y, y.cpu(), y.clone(), y.to("cpu"), x.new_empty([4])]
    copies[-1].copy_(y)
    for copy in copies:
        assert isinstance(copy, TensorWrapper)
        assert copy.dtype == tl.uint8
        assert copy.base.tolist() == [127, 1, 126, 2]
        halve[(1,)](copy, x, 4)
        assert x.base.tolist() == [63, 0, 63, 1]


@pytest.mark.torch
def test_a_copy_has_memory_of_its_own() -> None:
    x = wrapped(1, 2)
    copy = x.clone()
    copy.base[0] = 9
    assert x.base.tolist() == [1, 2]
    copy.copy_(x.base)
    assert copy.base.tolist() == [1, 2]


@pytest.mark.torch
def test_a_wrapper_is_where_its_array_is() -> None:
    x = wrapped(1, 2, 3, 4)
    assert str(x.device) == "cpu"
    assert tuple(x.shape) == (4,)
    assert x.data.tolist() == [1, 2, 3, 4]


@pytest.mark.torch
def test_data_that_is_assigned_is_what_kernels_see() -> None:
    x, y = wrapped(1, 2, 3, 4), wrapped(0, 0, 0, 0)
    x.data = wrapped(-2, -4, -6, -8).data
    halve[(1,)](x, y, 4)
    assert y.base.tolist() == [127, 126, 125, 124]


def test_a_wrapper_of_an_array_without_devices_is_on_the_host() -> None:
    assert reinterpret(np.zeros(2, np.int8), tl.uint8).device == "cpu"
