"""Alignment is known where kernels need it: vectors of 16 bytes, in the dimension of memory."""

# pyright: reportAssignmentType=false, reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import pytest

import tilewright.language as tl
from tilewright.analysis import Alignment, analyze_alignment
from tilewright.frontend.python import ArgSpec, KernelSignature, lower_kernel
from tilewright.frontend.semantics import FrontendOptions
from tilewright.ir.types import PointerType, f16, f32, i32, shape_of
from tilewright.language import device_function
from tilewright.ops import LoadOp, StoreOp
from tilewright.transforms import SHARED

_ALIGNED = {"aligned": 16}


def facts_of(
    kernel: Any, multiple: int = 16, sizes: bool = False, **values: Any
) -> tuple[list[Alignment], ...]:
    """Facts of the addresses of loads, of stores, and of masks; strings are aligned arrays.

    multiple: of integers; sizes: whether these are known not to be negative
    """
    specs: list[ArgSpec] = []
    for name, value in values.items():
        if isinstance(value, PointerType):
            specs.append(ArgSpec(name, "value", value, facts=_ALIGNED))
        elif value is i32:
            facts = {"multiple_of": multiple} | ({"non_negative": 1} if sizes else {})
            specs.append(ArgSpec(name, "value", i32, facts=facts))
        else:
            specs.append(ArgSpec(name, "constexpr", value=value))
    module = lower_kernel(kernel, KernelSignature(tuple(specs)), FrontendOptions())
    SHARED.run(module)
    known = analyze_alignment(module.kernel)
    accesses = [op for op in module.kernel.walk() if isinstance(op, (LoadOp, StoreOp))]
    accesses = [op for op in accesses if shape_of(op.pointer.type)]
    loads = [known[op.pointer] for op in accesses if isinstance(op, LoadOp)]
    stores = [known[op.pointer] for op in accesses if isinstance(op, StoreOp)]
    masks = [known[op.mask] for op in accesses if op.mask is not None]
    return loads, stores, masks


@device_function
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total, mask=mask)


def test_addition():
    pointer = PointerType(f32)
    loads, stores, masks = facts_of(add, x_ptr=pointer, y_ptr=pointer, out_ptr=pointer,
                                    n=i32, BLOCK=1024)  # fmt: skip
    for fact in (*loads, *stores):
        assert fact.contiguity == (1024,)
        assert fact.divisibility == (16,)
    assert all(mask.constancy == (16,) for mask in masks)


def test_addition_of_any_number():
    pointer = PointerType(f32)
    _, stores, masks = facts_of(add, multiple=1, x_ptr=pointer, y_ptr=pointer, out_ptr=pointer,
                                n=i32, BLOCK=1024)  # fmt: skip
    assert stores[0].contiguity == (1024,)
    assert stores[0].divisibility == (16,)
    assert all(mask.constancy == (1,) for mask in masks)


@device_function
def softmax(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + offsets, mask=offsets < columns, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + offsets, e / tl.sum(e, axis=0), mask=offsets < columns)


def test_softmax():
    pointer = PointerType(f16)
    loads, stores, masks = facts_of(softmax, x_ptr=pointer, out_ptr=pointer, stride=i32,
                                    columns=i32, BLOCK=512)  # fmt: skip
    assert {(f.contiguity, f.divisibility) for f in (*loads, *stores)} == {((512,), (16,))}
    assert {mask.constancy for mask in masks} == {(16,)}


@device_function
def matmul(
    a_ptr, b_ptr, c_ptr, rows, columns, depth, stride_a, stride_b, stride_c, inner_a,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, MODULO: tl.constexpr,
):  # fmt: skip
    """`inner_a` is the stride along `depth` in a: 1 unless it is transposed."""
    at_m = tl.program_id(0) * M + tl.arange(0, M)
    at_n = tl.program_id(1) * N + tl.arange(0, N)
    if MODULO:
        at_m = at_m % rows
        at_n = at_n % columns
    at_k = tl.arange(0, K)
    a_ptrs = a_ptr + (at_m[:, None] * stride_a + at_k[None, :] * inner_a)
    b_ptrs = b_ptr + (at_k[:, None] * stride_b + at_n[None, :])
    acc = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, tl.cdiv(depth, K)):
        a = tl.load(a_ptrs, mask=at_k[None, :] < depth - k * K, other=0.0)
        b = tl.load(b_ptrs, mask=at_k[:, None] < depth - k * K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += K * inner_a
        b_ptrs += K * stride_b
    c_ptrs = c_ptr + at_m[:, None] * stride_c + at_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=at_n[None, :] < columns)


def _matmul(**changed: Any) -> tuple[list[Alignment], ...]:
    pointer = PointerType(f16)
    strides = dict.fromkeys(("rows", "columns", "depth", "stride_a", "stride_b", "stride_c"), i32)
    values = {
        "a_ptr": pointer, "b_ptr": pointer, "c_ptr": pointer, **strides, "inner_a": 1,
        "M": 64, "N": 128, "K": 32, "MODULO": False,
    }  # fmt: skip
    return facts_of(matmul, **(values | changed))


def test_matrix_product():
    (a, b), (c,), masks = _matmul()
    assert a.contiguity == (1, 32)
    assert b.contiguity == c.contiguity == (1, 128)
    assert a.divisibility[1] == b.divisibility[1] == c.divisibility[1] == 16
    assert masks[0].constancy == (64, 16)
    assert masks[1].constancy == (16, 128)
    assert masks[2].constancy == (64, 16)


@pytest.mark.parametrize("modulo", [False, True])
def test_rows_of_multiples_of_8(modulo: bool):
    """8 numbers of 16 bits are one access of 16 bytes, and under one bit of each mask."""
    (a, b), (c,), masks = _matmul(multiple=8, MODULO=modulo)
    wrapped = 8 if modulo else 128
    assert (a.contiguity, b.contiguity, c.contiguity) == ((1, 32), (1, wrapped), (1, wrapped))
    assert a.divisibility[1] == b.divisibility[1] == c.divisibility[1] == 16
    assert masks[0].constancy == (64, 8)
    assert masks[1].constancy == (8, 128)
    assert masks[2].constancy == (64, 8)


def test_transposed_operand():
    """Contiguous along the first dimension, if that has the stride 1."""
    (a, _), _, _ = _matmul(stride_a=1, inner_a=i32)
    assert a.contiguity == (64, 1)
    assert a.divisibility[0] == 16


def test_rows_modulo_an_aligned_number():
    (a, b), _, _ = _matmul(MODULO=True)
    assert a.contiguity == (1, 32)
    assert b.contiguity == (1, 16)
    assert b.divisibility[1] == 16


def test_rows_modulo_a_known_number():
    """Of 100 only the factor 4 helps."""
    _, (c,), _ = _matmul(MODULO=True, columns=100)
    assert c.contiguity == (1, 4)


@device_function
def wrapped_rows(x_ptr, out_ptr, rows, stride, M: tl.constexpr, PROMISE: tl.constexpr):
    at = (tl.program_id(0) * M + tl.arange(0, M)) % rows
    if PROMISE:
        at = tl.max_contiguous(tl.multiple_of(at, M), M)
    tl.store(out_ptr + at, tl.load(x_ptr + at * stride))


def test_rows_modulo_any_number_need_a_promise():
    pointer = PointerType(f32)
    values = {"x_ptr": pointer, "out_ptr": pointer, "rows": i32, "stride": i32, "M": 64}
    _, (plain,), _ = facts_of(wrapped_rows, multiple=1, **values, PROMISE=False)
    _, (promised,), _ = facts_of(wrapped_rows, multiple=1, **values, PROMISE=True)
    assert plain.contiguity == (1,)
    assert promised.contiguity == (64,)
    assert promised.divisibility == (16,)


@device_function
def swizzled(x_ptr, out_ptr, rows, columns, B: tl.constexpr):
    tiles = tl.cdiv(columns, B)
    pid = tl.program_id(0)
    _, at = tl.swizzle2d(pid // tiles, pid % tiles, tl.cdiv(rows, B), tiles, 8)
    i = tl.arange(0, B)
    tl.store(out_ptr + at * B + i, tl.load(x_ptr + (at * B + i) % columns))


def test_products_of_sizes_that_are_not_negative():
    """Numbers of tiles are factors there; x // n * n is between 0 and x, whatever n is."""
    pointer = PointerType(f16)
    values = {"x_ptr": pointer, "out_ptr": pointer, "rows": i32, "columns": i32, "B": 128}
    (unknown,), _, _ = facts_of(swizzled, **values)
    (known,), _, _ = facts_of(swizzled, sizes=True, **values)
    assert unknown.contiguity == known.contiguity == (16,)
