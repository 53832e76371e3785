"""Every cell of the promotion oracle, through the semantics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.frontend import promotion_oracle as oracle
from tests.unit.frontend.contexts import BuildBench
from tilewright import language as tl
from tilewright.frontend import dtype_promotion
from tilewright.frontend.semantics import binary, compare, unary
from tilewright.ir import types as ir
from tilewright.support import errors

SHORT = {
    "u1": ir.i1, "i1": ir.i1, "h": ir.f16, "fp16": ir.f16, "b": ir.bf16, "bf16": ir.bf16,
    "f": ir.f32, "fp32": ir.f32, "d": ir.f64, "fp64": ir.f64, "e4": ir.f8e4m3, "e5": ir.f8e5m2,
}  # fmt: skip
OPERATORS = {"+": "add", "/": "truediv", "//": "floordiv", "%": "mod", "<": "lt", "&": "and"}
REFUSED = (errors.DTypeMismatch, errors.InvalidOperation, errors.LiteralOutOfRange)


def dtype(name: str) -> ir.DType:
    return SHORT[name] if name in SHORT else ir.dtype_named(name)


def wanted(cell: str) -> ir.DType | None:
    """The dtype of a cell, None for an error; where the versions differ, the newer one holds."""
    newest = cell.split("→")[-1]
    return None if newest == "E" else dtype(newest)


def rows(table: str) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Each row as its leading cells and its others by column name."""
    header, *lines = (line.split("|") for line in table.splitlines())
    leading = 1 + (header[1] == "op")
    for line in lines:
        yield line[:leading], dict(zip(header[leading:], line[leading:], strict=True))


def outcome(compute: Callable[[], Any]) -> ir.DType | None:
    """The dtype of a result; None if it is refused by a designed error."""
    try:
        result = compute()
    except REFUSED:
        return None
    return ir.dtype_of(result.handle.type)


TENSORS = [
    (name, left[0], right, cell)
    for name, table in (
        ("add", oracle.ADD),
        ("truediv", oracle.TRUEDIV),
        ("floordiv", oracle.FLOORDIV),
        ("mod", oracle.MOD),
    )
    for left, cells in rows(table)
    for right, cell in cells.items()
]


@pytest.mark.parametrize(("name", "left", "right", "cell"), TENSORS)
def test_two_tensors(name: str, left: str, right: str, cell: str) -> None:
    bench = BuildBench()
    x, y = bench.tile(dtype(left)), bench.tile(dtype(right))
    assert outcome(lambda: binary(bench.ctx, name, x, y)) is wanted(cell)
    if name == "add":
        assert outcome(lambda: binary(bench.ctx, "mul", x, y)) is wanted(cell)
        assert outcome(lambda: binary(bench.ctx, "sub", x, y)) is wanted(cell)


@pytest.mark.parametrize(
    ("left", "operator", "literal", "cell"),
    [
        (*leading, literal, cell)
        for leading, cells in rows(oracle.LITERALS)
        for literal, cell in cells.items()
    ],
)
def test_tensor_and_literal(left: str, operator: str, literal: str, cell: str) -> None:
    bench = BuildBench()
    x, value = bench.tile(dtype(left)), eval(literal)
    name = OPERATORS[operator]
    apply = compare if name == "lt" else binary
    assert outcome(lambda: apply(bench.ctx, name, x, value)) is wanted(cell)
    assert outcome(lambda: apply(bench.ctx, name, x, tl.constexpr(value))) is wanted(cell)


def test_a_literal_on_the_left_counts_as_on_the_right() -> None:
    bench = BuildBench()
    x = bench.tile(ir.f16)
    assert outcome(lambda: binary(bench.ctx, "sub", 1, x)) is ir.f16
    assert outcome(lambda: binary(bench.ctx, "truediv", 1.0, x)) is ir.f32
    assert outcome(lambda: binary(bench.ctx, "add", 300, bench.tile(ir.i8))) is None


FUNCTIONS: dict[str, Callable[[BuildBench, tl.tensor], Any]] = {
    "tl.sum(av,0)": lambda b, x: b.call(tl.sum, x, 0),
    "tl.max(av,0)": lambda b, x: b.call(tl.max, x, 0),
    "tl.max(av,0,return_indices=True)[0]": lambda b, x: b.call(tl.max, x, 0, return_indices=True)[
        0
    ],
    "tl.cumsum(av,0)": lambda b, x: b.call(tl.cumsum, x, 0),
    "tl.cumprod(av,0)": lambda b, x: b.call(tl.cumprod, x, 0),
    "-av": lambda b, x: unary(b.ctx, "neg", x),
    "~av": lambda b, x: unary(b.ctx, "invert", x),
    "tl.abs(av)": lambda b, x: b.call(tl.abs, x),
    "tl.maximum(av,0)": lambda b, x: b.call(tl.maximum, x, 0),
    "tl.maximum(av,av)": lambda b, x: b.call(tl.maximum, x, x),
    "tl.where(av>0,av,0.5)": lambda b, x: b.call(tl.where, compare(b.ctx, "gt", x, 0), x, 0.5),
    "tl.clamp(av,0,1)": lambda b, x: b.call(tl.clamp, x, 0, 1),
    "tl.exp(av)": lambda b, x: b.call(tl.exp, x),
    "tl.sqrt(av)": lambda b, x: b.call(tl.sqrt, x),
    "tl.floor(av)": lambda b, x: b.call(tl.floor, x),
    "tl.sigmoid(av)": lambda b, x: b.call(tl.sigmoid, x),
    "tl.softmax(av)": lambda b, x: b.call(tl.softmax, x),
    "tl.fma(av,av,av)": lambda b, x: b.call(tl.fma, x, x, x),
    "tl.fdiv(av,av)": lambda b, x: b.call(tl.fdiv, x, x),
    "av<<1": lambda b, x: binary(b.ctx, "lshift", x, 1),
    "av>>1": lambda b, x: binary(b.ctx, "rshift", x, 1),
    "av**2": lambda b, x: binary(b.ctx, "pow", x, 2),
}
COMPUTED_IN_FP32 = ("tl.exp(av)", "tl.sqrt(av)", "tl.floor(av)", "tl.sigmoid(av)")
"""Triton refuses floats below 32 bits here; this language rounds the fp32 result back."""


def expected(expression: str, column: str, cell: str) -> ir.DType | None:
    narrow = dtype(column).is_float and dtype(column).bits < 32
    return dtype(column) if expression in COMPUTED_IN_FP32 and narrow else wanted(cell)


@pytest.mark.parametrize(
    ("expression", "column", "cell"),
    [
        (leading[0], column, cell)
        for leading, cells in rows(oracle.FUNCTIONS)
        for column, cell in cells.items()
    ],
)
def test_functions(expression: str, column: str, cell: str) -> None:
    bench = BuildBench()
    x = bench.tile(dtype(column))
    found = outcome(lambda: FUNCTIONS[expression](bench, x))
    assert found is expected(expression, column, cell)


def test_every_row_of_the_oracle_is_tested() -> None:
    assert {leading[0] for leading, _ in rows(oracle.FUNCTIONS)} == set(FUNCTIONS)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (True, ir.i1),
        (0, ir.i32),
        (-(2**31), ir.i32),
        (2**31 - 1, ir.i32),
        (2**31, ir.u32),
        (2**32 - 1, ir.u32),
        (2**32, ir.i64),
        (-(2**31) - 1, ir.i64),
        (2**63, ir.u64),
        (2**64, None),
        (-(2**63) - 1, None),
        (0.0, ir.f32),
        (1.5, ir.f32),
        (float("inf"), ir.f32),
        (float("nan"), ir.f32),
        (2.0**-126, ir.f32),
        (2.0**-127, ir.f64),
        (3.4028234663852886e38, ir.f32),
        (1e300, ir.f64),
    ],
)
def test_literal_dtype(value: float, found: ir.DType | None) -> None:
    assert dtype_promotion.literal_dtype(value) is found


def test_mixed_fp8_meets_in_fp16() -> None:
    bench = BuildBench()
    x, y = bench.tile(ir.f8e4m3), bench.tile(ir.f8e5m2)
    assert outcome(lambda: binary(bench.ctx, "add", x, y)) is ir.f16
    assert outcome(lambda: binary(bench.ctx, "add", x, bench.tile(ir.i32))) is None
