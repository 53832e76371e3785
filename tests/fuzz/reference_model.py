"""Runs a program in NumPy: what it must compute, or `Undefined`.

A program runs twice, with its program instances in opposite order and with other poison in the
lanes that a mask leaves out; results that differ then are not defined either.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, cast

import numpy as np

from tests.fuzz.operation_table import OPERATIONS, as_dtype
from tests.fuzz.program_dtypes import (
    NUMPY,
    Array,
    Stops,
    Undefined,
    convert,
    index_dtype,
    is_literal,
    literal,
    literal_dtype,
)
from tests.fuzz.program_tree import (
    ArrayArg,
    Barrier,
    ConstantArg,
    Do,
    Expr,
    For,
    Function,
    If,
    Let,
    NumberArg,
    Program,
    Return,
    Stmt,
    Store,
    Unpack,
    While,
    walk,
)
from tilewright.support.data_class import dataclass

MAX_STEPS = 3000
"""Statements of one program instance; more of them would take the slow devices long."""


def contents(program: Program) -> dict[str, Array]:
    """The arrays of a program at its start, by name; those that are the same are one."""
    found: dict[str, Array] = {}
    for number, arg in enumerate(program.arrays()):
        if arg.same_as:
            found[arg.name] = found[arg.same_as]
        elif isinstance(arg.contents, str):
            rng = np.random.default_rng((program.seed, number))
            found[arg.name] = _numbers(rng, arg)
        else:
            found[arg.name] = np.resize(np.asarray(arg.contents), arg.size).astype(NUMPY[arg.dtype])
    return found


def _numbers(rng: np.random.Generator, arg: ArrayArg) -> Array:
    dtype = NUMPY[arg.dtype]
    if arg.contents == "zero":
        return np.zeros(arg.size, dtype)
    low = 0 if arg.dtype.startswith("uint") else -3
    small = rng.integers(0, 2, arg.size) if arg.dtype == "int1" else rng.integers(low, 4, arg.size)
    if arg.contents == "small" or arg.dtype == "int1":
        return small.astype(dtype)
    raw = rng.integers(0, 256, arg.size * dtype.itemsize, dtype=np.uint8).view(dtype)
    return np.where(rng.random(arg.size) < 0.6, raw, small.astype(dtype)).astype(dtype)


def expected(program: Program) -> dict[str, Array]:
    """The arrays after the launch. Errors: Undefined, Stops."""
    with np.errstate(all="ignore"):
        first = _run(program, reverse=False, poison=0xCD)
        if program.grid == 1 and "masked" not in program.features:
            return first
        second = _run(program, reverse=True, poison=0x5A)
    if any(array.tobytes() != second[name].tobytes() for name, array in first.items()):
        raise Undefined("a result that depends on the order of programs or on poison")
    return first


def _run(program: Program, reverse: bool, poison: int) -> dict[str, Array]:
    arrays = contents(program)
    order = range(program.grid)
    for pid in reversed(order) if reverse else order:
        Machine(program, arrays, pid, poison).run()
    return arrays


class Returned(Exception):
    """A function has come to its end."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


@dataclass
class Touched:
    """Accesses to one memory since the last barrier: (parameter, offsets, those used) of each."""

    reads: list[tuple[str, Array, Array]] = field(default_factory=list["tuple[str, Array, Array]"])
    writes: list[tuple[str, Array, Array]] = field(default_factory=list["tuple[str, Array, Array]"])


class Machine:
    """One program instance."""

    def __init__(self, program: Program, arrays: dict[str, Array], pid: int, poison: int) -> None:
        self.program, self.arrays, self.pid, self.poison = program, arrays, pid, poison
        self.functions: dict[str, Function] = {f.name: f for f in program.functions}
        self.same = {a.name: a.same_as or a.name for a in program.arrays()}
        self.shared = {a.same_as for a in program.arrays()} - {""}
        self.touched: dict[str, Touched] = {}
        self.steps = 0
        self.env: dict[str, Any] = {}
        for arg in program.args:
            if isinstance(arg, NumberArg):
                self.env[arg.name] = literal(arg.value, arg.dtype)
            elif isinstance(arg, ConstantArg):
                self.env[arg.name] = arg.value

    def run(self) -> None:
        self.block(self.program.body)

    # ---- statements ------------------------------------------------------------------------------

    def block(self, block: list[Stmt]) -> None:
        for statement in block:
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise Undefined("a program that takes too long")
            getattr(self, f"_{type(statement).__name__.lower()}")(statement)

    def _let(self, statement: Let) -> None:
        found = [self.value(value) for value in statement.values]
        self.env.update(zip(statement.names, found, strict=True))

    def _unpack(self, statement: Unpack) -> None:
        found = self.value(statement.values[0])
        self.env.update(zip(statement.names, found, strict=True))

    def _do(self, statement: Do) -> None:
        self.value(statement.values[0])

    def _barrier(self, statement: Barrier) -> None:
        self.touched.clear()

    def _return(self, statement: Return) -> None:
        found = [self.value(value) for value in statement.values]
        raise Returned(found[0] if len(found) == 1 else tuple(found))

    def _if(self, statement: If) -> None:
        condition = statement.values[0]
        holds = bool(np.all(self.value(condition) != 0))
        self.block(statement.body if holds else statement.other)

    def _enter(self, body: list[Stmt]) -> None:
        """Variables that begin as literals are tensors from their loop's start on."""
        for statement in walk(body):
            for name in statement.names if isinstance(statement, Let | Unpack) else ():
                value = self.env.get(name)
                if isinstance(value, int | float):
                    self.env[name] = literal(value, literal_dtype(value))

    def _while(self, statement: While) -> None:
        self._enter(statement.body)
        while bool(np.all(self.value(statement.values[0]) != 0)):
            self.block(statement.body)
            self.steps += 1

    def _for(self, statement: For) -> None:
        bounds = [self.value(value) for value in statement.values]
        if len(bounds) == 3 and bounds[2] == 0:
            raise Stops("a step of 0")
        if statement.kind == "tl.static_range":
            for index in range(*bounds):
                self.env[statement.name] = index
                self.block(statement.body)
            return
        self._enter(statement.body)
        dtype = index_dtype([
            literal_dtype(bound) if is_literal(expr.dtype) else expr.dtype
            for expr, bound in zip(statement.values, bounds, strict=True)
        ])  # fmt: skip
        for index in range(*map(int, bounds)):
            self.env[statement.name] = np.asarray(index).astype(NUMPY[dtype])
            self.block(statement.body)
            self.steps += 1

    def _store(self, statement: Store) -> None:
        pointer, value = statement.values[:2]
        offsets, mask = self._access(pointer, statement.values[2:3])
        array = self._array(pointer)
        number = self.value(value)
        new = as_dtype(value, number, self._element(pointer))
        places = offsets[mask]
        if len(np.unique(places)) < len(places):
            raise Undefined("two stores to one element")
        self._note(pointer, places, offsets, is_write=True)
        array[places] = np.broadcast_to(new, offsets.shape)[mask]

    # ---- expressions -----------------------------------------------------------------------------

    def value(self, expr: Expr) -> Any:
        special = getattr(self, f"_value_{expr.op}", None)
        if special is not None:
            return special(expr)
        compute = OPERATIONS[expr.op].compute
        assert compute is not None, expr.op
        found: Any = compute(expr, [self.value(arg) for arg in expr.args])
        if isinstance(found, tuple) or is_literal(expr.dtype):
            return cast("object", found)
        found = np.asarray(found)
        assert found.dtype == NUMPY[expr.dtype], (expr.op, found.dtype, expr.type)
        assert found.shape == expr.shape, (expr.op, found.shape, expr.type)
        return found

    def _value_var(self, expr: Expr) -> Any:
        found = self.env[expr.data[0]]
        if not is_literal(expr.dtype) and isinstance(found, int | float):
            raise Undefined("a variable that is still a literal")
        return found

    def _value_program_id(self, expr: Expr) -> Any:
        return np.int32(self.pid) + np.zeros((), np.int32)

    def _value_num_programs(self, expr: Expr) -> Any:
        return np.int32(self.program.grid) + np.zeros((), np.int32)

    def _value_pointer(self, expr: Expr) -> Any:
        return np.zeros((), np.int64)

    def _value_offset(self, expr: Expr) -> Any:
        base, offset = (np.asarray(self.value(arg)) for arg in expr.args)
        wide = offset.astype(np.int64)
        return base + wide if expr.data[0] == "+" else base - wide

    def _value_ternary(self, expr: Expr) -> Any:
        chosen = expr.args[1 if bool(np.all(self.value(expr.args[0]) != 0)) else 2]
        return as_dtype(chosen, self.value(chosen), expr.dtype)

    def _value_call(self, expr: Expr) -> Any:
        function = self.functions[expr.data[0]]
        values = [self.value(arg) for arg in expr.args]
        outer = self.env
        self.env = {name: v for (name, _), v in zip(function.params, values, strict=True)}
        try:
            self.block(function.body)
        except Returned as returned:
            return returned.value
        finally:
            self.env = outer
        raise AssertionError("a function without an end")

    # ---- memory ----------------------------------------------------------------------------------

    def _element(self, pointer: Expr) -> str:
        return self.program.array(pointer.dtype[1:]).dtype

    def _array(self, pointer: Expr) -> Array:
        return self.arrays[pointer.dtype[1:]]

    def _access(self, pointer: Expr, masks: tuple[Expr, ...]) -> tuple[Array, Array]:
        """Offsets, and which of them are accessed, in one shape."""
        offsets = np.asarray(self.value(pointer))
        mask = np.asarray(self.value(masks[0])) if masks else np.ones((), bool)
        offsets, mask = np.broadcast_arrays(offsets, mask)
        used = offsets[mask]
        if np.any((used < 0) | (used >= len(self._array(pointer)))):
            raise Undefined("an access outside an array")
        return offsets, mask

    def _note(self, pointer: Expr, places: Array, offsets: Array, is_write: bool) -> None:
        """Through two parameters memory is ordered by barriers only, but for work in place."""
        name = pointer.dtype[1:]
        memory = self.same[name]
        if memory not in self.shared:
            return
        touched = self.touched.setdefault(memory, Touched())
        for other, _, used in touched.writes:
            if other != name and np.isin(places, used).any():
                raise Undefined("accesses through two parameters without a barrier between")
        for other, whole, used in touched.reads if is_write else ():
            if other != name and np.isin(places, used).any() and not np.array_equal(whole, offsets):
                raise Undefined("accesses through two parameters without a barrier between")
        (touched.writes if is_write else touched.reads).append((name, offsets, places))

    def _value_load(self, expr: Expr) -> Any:
        pointer, *rest = expr.args
        offsets, mask = self._access(pointer, tuple(rest[:1]))
        array = self._array(pointer)
        self._note(pointer, offsets[mask], offsets, is_write=False)
        if len(rest) > 1:
            other = as_dtype(rest[1], self.value(rest[1]), expr.dtype)
            found = np.array(np.broadcast_to(other, offsets.shape))
        else:
            byte = self.poison & (1 if array.dtype == bool else 255)
            raw = np.full(offsets.size * array.dtype.itemsize, byte, np.uint8)
            found = cast("Array", raw.view(array.dtype)).reshape(offsets.shape).copy()
        found[mask] = array[offsets[mask]]
        return found

    def _value_atomic(self, expr: Expr) -> Any:
        pointer, value = expr.args[:2]
        offsets, mask = self._access(pointer, expr.args[2:])
        array, kind = self._array(pointer), expr.data[0]
        self._note(pointer, offsets[mask], offsets, is_write=True)
        operand = as_dtype(value, self.value(value), self._element(pointer))
        new = np.broadcast_to(operand, offsets.shape)
        found = np.zeros(offsets.shape, array.dtype)
        found[mask] = array[offsets[mask]]
        places = offsets[mask]
        if (kind == "xchg" or expr.data[1]) and len(np.unique(places)) < len(places):
            raise Undefined("what one of several atomics on an element finds or leaves")
        if kind == "xchg":
            array[places] = new[mask]
        else:
            _UFUNCS[kind].at(array, places, new[mask])
        return found

    def _value_cas(self, expr: Expr) -> Any:
        pointer = expr.args[0]
        offsets, _ = self._access(pointer, ())
        array = self._array(pointer)
        self._note(pointer, offsets.reshape(-1), offsets, is_write=True)
        if len(np.unique(offsets)) < offsets.size:
            raise Undefined("two exchanges of one element")
        old, new = (convert(self.value(arg), self._element(pointer)) if not is_literal(arg.dtype)
                    else literal(self.value(arg), self._element(pointer))
                    for arg in expr.args[1:])  # fmt: skip
        found = np.array(array[offsets])
        array[offsets] = np.where(found == old, new, found)
        return found


_UFUNCS: dict[str, Any] = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
