"""The registry of NumPy rules: the reference semantics of ops.

    @reference(AddOp)
    def add(op: AddOp, x: Array, y: Array) -> Array:
        return x + y

The interpreter runs these rules, and every rewrite and backend is tested against them. A backend
registers the rules of its own ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tilewright.ir.core import Op

ReferenceRule = Callable[..., Any]
R = TypeVar("R", bound=ReferenceRule)
REFERENCE_RULES: dict[type[Op], ReferenceRule] = {}
"""NumPy semantics of each op: rule(op, *operand arrays) -> array or tuple of arrays."""


def reference(op_class: type[Op]) -> Callable[[R], R]:
    """Register the NumPy rule of an op class."""

    def register(rule: R) -> R:
        assert op_class not in REFERENCE_RULES, f"two reference rules for {op_class.opcode}"
        REFERENCE_RULES[op_class] = rule
        return rule

    return register


REGION_RULES: dict[type[Op], ReferenceRule] = {}
"""Semantics of ops of backends that have regions: rule(op, run, *operand arrays) -> arrays, where
run(block, *arrays) runs a region with these arguments."""


def region_rule(op_class: type[Op]) -> Callable[[R], R]:
    """Register the rule of an op class with regions."""

    def register(rule: R) -> R:
        assert op_class not in REGION_RULES, f"two rules for {op_class.opcode}"
        REGION_RULES[op_class] = rule
        return rule

    return register
