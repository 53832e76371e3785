"""What machine code reads of torch's tensors: the same as Python tells, and nothing of others."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

import tilewright.language as tl
from tilewright import jit
from tilewright.runtime.arguments.torch_tensors import tensor_header
from tilewright.support import errors

pytestmark = pytest.mark.torch


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@jit
def next_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + 1)


def test_the_header_of_this_torch_is_known(torch: Any):
    header = tensor_header()
    assert header is not None
    plain, negated = torch.zeros(3), torch._neg_view(torch.zeros(3))
    for tensor, bit in ((plain, 0), (negated, header.negative)):
        implementation = ctypes.c_uint64.from_address(id(tensor) + header.implementation).value
        assert implementation == tensor._cdata
        keys = ctypes.c_uint64.from_address(implementation + header.keys).value
        assert keys & header.negative == bit


def test_a_torch_that_tells_something_else_is_left_to_python(
    torch: Any, monkeypatch: pytest.MonkeyPatch
):
    tensor_header.cache_clear()
    other = torch._C.DispatchKeySet(torch._C.DispatchKey.Negative)
    monkeypatch.setattr(torch._C, "_dispatch_keys", lambda tensor: other)
    try:
        assert tensor_header() is None
    finally:
        tensor_header.cache_clear()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "bfloat16", "uint16"])
def test_launches_follow_the_dtype_and_the_place_of_a_view(torch: Any, dtype: str):
    x = torch.arange(40).to(getattr(torch, dtype))
    for _ in range(2):  # found by Python first, by machine code then
        for start in (0, 1, 8):
            out = torch.zeros(16, dtype=x.dtype)
            next_kernel[(1,)](x[start:], torch.nn.Parameter(out, requires_grad=False), BLOCK=16)
            assert (out.double() == x[start : start + 16].double() + 1).all()


def test_what_has_no_memory_of_its_own_is_refused_after_tensors_that_have(torch: Any):
    x, out = torch.ones(16), torch.zeros(16)
    next_kernel[(1,)](x, out, BLOCK=16)
    for other in (torch._neg_view(x), torch.ones(16, device="meta"), torch.ones(4, 4).to_sparse()):
        for _ in range(2):
            with pytest.raises(errors.TilewrightError):
                next_kernel[(1,)](other, out, BLOCK=16)
    next_kernel[(1,)](x, out, BLOCK=16)
    assert (out == 2).all()


def test_subclasses_are_asked(torch: Any):
    class Elsewhere(torch.Tensor):
        def data_ptr(self) -> int:
            return self.other.data_ptr()

    x, out = torch.ones(16).as_subclass(Elsewhere), torch.zeros(16)
    x.other = torch.full((16,), 5.0)
    next_kernel[(1,)](torch.ones(16), out, BLOCK=16)
    for _ in range(3):
        next_kernel[(1,)](x, out, BLOCK=16)
    assert (out == 6).all()
