"""The registry of NumPy rules: the reference semantics of ops.

    @reference(AddOp)
    def add(op: AddOp, x: Array, y: Array) -> Array:
        return x + y

The interpreter runs these rules, and every rewrite and backend is tested against them. A backend
registers the rules of its own ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.core import Op
from tilewright.support.registration import Registration

ReferenceRule = Callable[..., Any]
REFERENCE_RULES: dict[type[Op], ReferenceRule] = {}
"""NumPy semantics of each op: rule(op, *operand arrays) -> array or tuple of arrays."""


reference = Registration(REFERENCE_RULES)
"""Registers the NumPy rule of op classes."""

REGION_RULES: dict[type[Op], ReferenceRule] = {}
"""Semantics of ops of backends that have regions: rule(op, run, *operand arrays) -> arrays, where
run(block, *arrays) runs a region with these arguments."""

region_rule = Registration(REGION_RULES)
"""Registers the rule of op classes with regions."""
