"""What is computed of literals while code is written."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.backends.nvidia.lower.literal_folding import float_number, folded, is_literal
from tilewright.ir.types import f32
from tilewright.llvm import Val, constant
from tilewright.ops import AddOp, CompareOp, ConstantOp, DivOp, MaxOp, MulOp, SelectOp


def literal(number: float) -> Val:
    return constant(number, f32)


def operand(number: float = 1.0):
    return ConstantOp(number, f32).result


VARIABLE = Val("%x", "float")


@pytest.mark.parametrize(
    ("op", "x", "y", "expected"),
    [
        (AddOp, 1.0, 2.0, 3.0),
        (MulOp, 0.5, -3.0, -1.5),
        (DivOp, 6.0, 4.0, 1.5),
        (DivOp, 2.0, 6.0, float(np.float32(2) / np.float32(6))),
        (DivOp, 1.0, 0.1, float(np.float32(1) / np.float32(0.1))),
    ],
)
def test_results_are_rounded_as_by_ieee_754(op: type, x: float, y: float, expected: float) -> None:
    found = folded(op(operand(), operand()), [literal(x), literal(y)])
    assert found is not None and float_number(found) == expected


@pytest.mark.parametrize(
    ("op", "x", "y"),
    [
        (AddOp, literal(0.1), literal(0.2)),  # sums that are rounded are LLVM's
        (AddOp, literal(1.0), VARIABLE),
        (DivOp, literal(1.0), literal(0.0)),
        (MulOp, literal(float("inf")), literal(2.0)),
        (MaxOp, literal(1.0), literal(2.0)),
    ],
)
def test_what_is_left_to_be_computed(op: type, x: Val, y: Val) -> None:
    assert folded(op(operand(), operand()), [x, y]) is None


def test_choices_by_literals() -> None:
    compare = CompareOp(operand(), operand(), predicate="lt")
    below = folded(compare, [literal(1.0), literal(2.0)])
    assert below is not None and below.constant == 1
    select = SelectOp(compare.result, operand(), operand())
    assert folded(select, [below, VARIABLE, literal(0.0)]) is VARIABLE
    assert folded(select, [Val("%c", "i1"), VARIABLE, literal(0.0)]) is None


def test_what_is_a_literal() -> None:
    assert is_literal(literal(2.5)) and is_literal(Val("7", "i32"))
    assert not is_literal(VARIABLE) and not is_literal(Val("@memory", "ptr"))
