"""Runs programs and compares every value with the alignment facts and the range that are claimed of
it.

Facts need not hold where a program does what is undefined, or where a number wraps whose runs or
whose sign matter (see the head of `analysis/alignment.py`); `NotDefined` says that it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from tests.property.integer_programs import IntegerPrograms, arguments
from tilewright.analysis import Alignment, IntegerRange, analyze_alignment, integer_range
from tilewright.interp import Array, ConcreteValue, Interpreter, Machine, Memory, numpy_dtype
from tilewright.ir import Block, Function, Op, Value, print_function, verify
from tilewright.ir.types import DType, PointerType, element_of, shape_of
from tilewright.ops import (
    AddOp,
    CastOp,
    DivOp,
    HintOp,
    MulOp,
    NegOp,
    OffsetOp,
    RemOp,
    ShlOp,
    ShrOp,
    Sign,
    SubOp,
)
from tilewright.support import errors


class NotDefined(Exception):
    """The program does what the facts need not hold for."""


class Checker(Interpreter):
    """Runs a function and compares every value with its facts."""

    def __init__(self, function: Function, facts: dict[Value, Alignment]) -> None:
        super().__init__(Machine(Memory(), grid=(5, 1, 1), program=(3, 0, 0)))
        self.function, self.facts, self.wrapped = function, facts, False
        self.ranges: dict[Value, IntegerRange | None] = {}

    def run(self, op: Op, inputs: Sequence[ConcreteValue]) -> list[ConcreteValue]:
        self._refuse_undefined(op, inputs)
        try:
            results = super().run(op, inputs)
        except errors.NegativeTileIndex:
            raise NotDefined from None
        for result, value in zip(op.results, results, strict=True):
            self._check(result, value.data)
        return results

    def run_block(self, block: Block, args: Sequence[ConcreteValue]) -> list[ConcreteValue]:
        for arg, value in zip(block.args, args, strict=True):
            self._check(arg, value.data)
        return super().run_block(block, args)

    def _refuse_undefined(self, op: Op, inputs: Sequence[ConcreteValue]) -> None:
        data = [exact(v.data) for v in inputs]
        if isinstance(op, (DivOp, RemOp)) and np.any(data[1] == 0):
            raise NotDefined
        if isinstance(op, (ShlOp, ShrOp)):
            bits = element_of(op.operands[0].type).bits
            if np.any((data[1] < 0) | (data[1] >= bits)):
                raise NotDefined
        self.wrapped = self.wrapped or wraps(op, data)
        if widens(op) and not self._counts(op.operands[-1], data[-1]):
            raise NotDefined

    def _counts(self, value: Value, data: Array) -> bool:
        """Whether the runs that are claimed count up without wrapping."""
        fact = self.facts[value]
        return all(
            np.all(np.diff(groups(data, d, run)) == 1) for d, run in enumerate(fact.contiguity)
        )

    def _check(self, value: Value, data: Array) -> None:
        fact = self.facts[value]
        if fact.natural and element_is_integer(value) and np.any(exact(data) < 0):
            if self.wrapped:
                raise NotDefined
            self._fail(value, data, "is negative")
        wrong = breach(fact, value, data)
        if wrong:
            self._fail(value, data, wrong)
        if value not in self.ranges:
            self.ranges[value] = integer_range(value)
        known = self.ranges[value]
        if known and not (known.low <= exact(data).min() and exact(data).max() <= known.high):
            self._fail(value, data, f"is not within {known}")

    def _fail(self, value: Value, data: Array, what: str) -> None:
        text = print_function(self.function)
        raise AssertionError(f"{value} {what}\n{self.facts[value]}\n{data}\n{text}")


def element_is_integer(value: Value) -> bool:
    element = element_of(value.type)
    return isinstance(element, DType) and element.is_integer


def exact(data: Array) -> Array:
    """As Python integers; floats as they are."""
    return data.astype(object) if data.dtype.kind in "biu" else data


def groups(data: Array, dim: int, size: int) -> Array:
    """Aligned groups of `size` elements along a dimension, one in each row."""
    shaped = data.reshape(data.shape or (1,))
    return np.moveaxis(shaped, dim, -1).reshape(-1, size)


def wraps(op: Op, data: list[Any]) -> bool:
    """Whether an integer op leaves the range of its type."""
    if not isinstance(op, (AddOp, SubOp, MulOp, ShlOp, NegOp)):
        return False
    element = element_of(op.type)
    if not isinstance(element, DType) or not element.is_integer:
        return False
    functions = {AddOp: np.add, SubOp: np.subtract, MulOp: np.multiply, ShlOp: np.left_shift}
    found = -data[0] if isinstance(op, NegOp) else functions[type(op)](*data)
    return bool(np.any((found < element.min_int) | (found > element.max_int)))


def widens(op: Op) -> bool:
    if isinstance(op, OffsetOp):
        return element_of(op.offset.type).bits < 64
    if not isinstance(op, CastOp):
        return False
    source, target = element_of(op.x.type), element_of(op.type)
    both = all(isinstance(e, PointerType) or e.is_integer for e in (source, target))
    return both and source.bits < target.bits


def breach(fact: Alignment, value: Value, data: Array) -> str | None:
    """The first claim that the elements break."""
    if fact.value is not None and np.any(exact(data) != fact.value):
        return f"is not always {fact.value}"
    if data.dtype.kind == "f":
        data = data.view(f"u{data.dtype.itemsize}")
    for d in fact.dims:
        c, k, multiple = fact.contiguity[d], fact.constancy[d], fact.divisibility[d]
        extent = (shape_of(value.type) or (1,))[d]
        assert all(n & (n - 1) == 0 for n in (c, k, multiple))
        assert extent % c == 0 == extent % k
        runs, equal = groups(data, d, c), groups(data, d, k)
        if c > 1:
            with np.errstate(over="ignore"):
                steps = runs - runs[:, :1]
            if np.any(steps != (np.arange(c) * fact.unit).astype(data.dtype)):
                return f"does not count up in groups of {c} along {d}"
        if np.any(exact(runs[:, 0]) % multiple):
            return f"starts no multiple of {multiple} along {d}"
        if np.any(equal != equal[:, :1]):
            return f"is not constant in groups of {k} along {d}"
    return None


class Observer(Interpreter):
    """Collects what the operands of hints are."""

    def __init__(self) -> None:
        super().__init__(Machine(Memory(), grid=(5, 1, 1), program=(3, 0, 0)))
        self.seen: dict[Op, list[Array]] = {}

    def run(self, op: Op, inputs: Sequence[ConcreteValue]) -> list[ConcreteValue]:
        if isinstance(op, HintOp):
            self.seen.setdefault(op, []).append(inputs[0].data)
        return super().run(op, inputs)


def promise_truth(hint: HintOp, seen: list[Array], random: Random) -> None:
    """Let a hint say some of what holds of its operand."""
    element = element_of(hint.type)
    unit = element.element.bytes if isinstance(element, PointerType) else 1
    shape = shape_of(hint.type) or (1,)
    runs: list[int] = []
    starts: list[int] = []
    equal: list[int] = []
    for d, extent in enumerate(shape):
        sizes = [1 << n for n in range(8) if extent % (1 << n) == 0]
        runs.append(max(s for s in sizes if all(_counts(groups(x, d, s), unit) for x in seen)))
        equal.append(max(s for s in sizes if all(np.ptp(groups(x, d, s), axis=1).max() == 0
                                                 for x in map(exact, seen))))  # fmt: skip
        firsts = [int(n) for x in seen for n in groups(x, d, runs[-1])[:, 0]]
        starts.append(max(m for m in (1, 2, 4, 8, 16, 32) if all(n % m == 0 for n in firsts)))
    promises = {"contiguity": runs, "divisibility": starts, "constancy": equal}
    for name, numbers in promises.items():
        if random.random() < 0.7 or name == "contiguity":
            hint.attrs[name] = tuple(numbers)


def _counts(rows: Array, unit: int) -> bool:
    numbers = exact(rows)
    return bool(np.all(numbers[:, 1:] - numbers[:, :-1] == unit))


def eager_arguments(function: Function, numbers: Sequence[int]) -> list[ConcreteValue]:
    return [
        ConcreteValue(arg.type, np.array(number, numpy_dtype(arg.type)))
        for arg, number in zip(function.args, numbers, strict=True)
    ]


def assert_facts_of_random_program(random: Random) -> bool:
    """Whether a program ran to its end; AssertionError if a fact is wrong."""
    programs = IntegerPrograms(random)
    function = programs.function(random.randrange(1, 24))
    assert not verify(function)
    args = eager_arguments(function, arguments(function, random))
    for parameter, arg in zip(function.args, args, strict=True):
        number = isinstance(element_of(parameter.type), DType)
        if number and arg.data >= 0 and random.random() < 0.5:
            parameter.facts = {**(parameter.facts or {}), "non_negative": 1}
            arg.sign = Sign.NON_NEGATIVE
    if programs.hints:
        observer = Observer()
        observer.run_block(function.body, args)
        for hint in programs.hints:
            if hint in observer.seen:
                promise_truth(hint, observer.seen[hint], random)
    try:
        Checker(function, analyze_alignment(function)).run_block(function.body, args)
    except NotDefined:
        return False
    return True
