"""Programs of grid functions, which native dispatch runs instead of calling them.

    lambda meta: (cdiv(n, meta["BLOCK"]),)      cell n; argument BLOCK; cdiv

The bytecode of a function is translated if it only computes integers from the arguments, from
variables of the enclosing function, and from globals, and returns one to three of them. Any other
instruction, and any Python version with others, leaves the function to Python.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Sequence
from dataclasses import field
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

from tilewright.language import cdiv, next_power_of_2
from tilewright.runtime.launch.native_dispatch_structures import (
    GRID_CHECKS,
    GRID_OPERATIONS,
    GRID_STACK,
    GridCheck,
    GridProgram,
    GridStep,
)
from tilewright.runtime.launch.native_memory import Memory
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

_OPERATORS = {"+": "add", "-": "subtract", "*": "multiply", "//": "divide", "%": "remainder"}
_FUNCTIONS = {
    id(cdiv): ("cdiv", 2),
    id(min): ("min", 2),
    id(max): ("max", 2),
    id(next_power_of_2): ("power_of_two", 1),
}
"""Functions of integers by identity: the operation and the number of arguments."""
_MAX_DEPTH = 4
"""Maximal depth of calls of functions that compute integers."""
_PLAIN_FLAGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR
_METHOD_BIT = sys.version_info >= (3, 12)
"""Whether LOAD_ATTR also loads methods, as LOAD_METHOD did."""


Step = tuple[str, object, object]
"""(operation, holder, name), as in `GridStep`."""
Check = tuple[str, object, object, object]
"""(kind, holder, name, value), as in `GridCheck`."""


class _Untranslatable(Exception):
    """An instruction that a program cannot have."""


@dataclass(frozen=True)
class _Number:
    """An integer: the steps that compute it, as (operation, holder, name)."""

    steps: tuple[Step, ...]

    @property
    def depth(self) -> int:
        """Maximal number of integers on the stack."""
        height = most = 0
        for operation, _, _ in self.steps:
            pushes = operation in ("number", "argument", "cell", "global")
            height += 1 if pushes else 0 if operation == "power_of_two" else -1
            most = max(most, height)
        return most


@dataclass(frozen=True)
class _Object:
    """A function, module or other object that a name had."""

    value: object


class _Arguments:
    """The dictionary that a grid function is called with."""


_NULL = _Object(None)
"""The empty place beside a callee on Python's stack."""
_ABSENT = object()
"""The value of a name that is not in a dictionary."""


@dataclass
class _Translation:
    """The translation of a call of `fn` with these values of its parameters."""

    fn: Any
    locals: dict[str, object]
    checks: list[Check]
    depth: int = 0
    stack: list[object] = field(default_factory=list[object])

    def result(self) -> object:
        """The result of the call: a number, or a tuple of numbers."""
        for instruction in dis.get_instructions(self.fn):
            if instruction.opname in ("RETURN_VALUE", "RETURN_CONST"):
                if instruction.opname == "RETURN_CONST":
                    self._load_const(instruction)
                return self.stack.pop()
            translate = self.translations.get(instruction.opname)
            if translate is None:
                raise _Untranslatable
            translate(self, instruction)
        raise _Untranslatable

    def _ignore(self, _instruction: dis.Instruction) -> None:
        pass

    def _load_fast(self, instruction: dis.Instruction) -> None:
        self.stack.append(self.locals[instruction.argval])

    def _store_fast(self, instruction: dis.Instruction) -> None:
        self.locals[instruction.argval] = self.stack.pop()

    def _load_two(self, instruction: dis.Instruction) -> None:
        self.stack += [self.locals[name] for name in instruction.argval]

    def _store_and_load(self, instruction: dis.Instruction) -> None:
        stored, loaded = instruction.argval
        self.locals[stored] = self.stack.pop()
        self.stack.append(self.locals[loaded])

    def _load_const(self, instruction: dis.Instruction) -> None:
        self.stack.append(_constant(instruction.argval))

    def _push_null(self, _instruction: dis.Instruction) -> None:
        self.stack.append(_NULL)

    def _load_deref(self, instruction: dis.Instruction) -> None:
        names, cells = self.fn.__code__.co_freevars, self.fn.__closure__
        if self.depth or cells is None or instruction.argval not in names:
            raise _Untranslatable
        index = names.index(instruction.argval)
        content = cells[index].cell_contents
        if type(content) is not int:
            self.checks.append(("in_cell", None, index, content))
        self.stack.append(_loaded(content, ("cell", None, index)))

    def _load_global(self, instruction: dis.Instruction) -> None:
        if cast("int", instruction.arg) & 1:
            self.stack.append(_NULL)
        name = sys.intern(instruction.argval)
        holder: Any = self.fn.__globals__
        if name not in holder:
            self.checks.append(("in_dict", holder, name, _ABSENT))
            holder = self.fn.__builtins__
        self._load_item(holder, name)

    def _load_attribute(self, instruction: dis.Instruction) -> None:
        owner = self.stack.pop()
        if not isinstance(owner, _Object) or type(owner.value) is not ModuleType:
            raise _Untranslatable
        if instruction.opname == "LOAD_METHOD" or (
            _METHOD_BIT and cast("int", instruction.arg) & 1
        ):
            self.stack.append(_NULL)
        self._load_item(vars(owner.value), sys.intern(instruction.argval))

    def _load_item(self, holder: dict[str, Any], name: str) -> None:
        content = holder[name]
        if type(content) is not int:
            self.checks.append(("in_dict", holder, name, content))
        self.stack.append(_loaded(content, ("global", holder, name)))

    def _subscript(self, _instruction: dis.Instruction) -> None:
        name, owner = self.stack.pop(), self.stack.pop()
        if not isinstance(owner, _Arguments) or not isinstance(name, _Object):
            raise _Untranslatable
        if type(name.value) is not str:
            raise _Untranslatable
        self.stack.append(_Number((("argument", None, sys.intern(name.value)),)))

    def _binary(self, instruction: dis.Instruction) -> None:
        if instruction.argrepr == "[]":
            return self._subscript(instruction)
        operation = _OPERATORS[instruction.argrepr]
        second, first = self.stack.pop(), self.stack.pop()
        return self.stack.append(_combined(operation, [first, second]))

    def _negative(self, _instruction: dis.Instruction) -> None:
        self.stack.append(_combined("subtract", [_constant(0), self.stack.pop()]))

    def _call(self, instruction: dis.Instruction) -> None:
        args = self._popped(instruction)
        callee = next(item for item in (self.stack.pop(), self.stack.pop()) if item is not _NULL)
        if not isinstance(callee, _Object):
            raise _Untranslatable
        self.stack.append(self._called(callee.value, args))

    def _called(self, function: Any, args: list[object]) -> object:
        operation, count = _FUNCTIONS.get(id(function), ("", -1))
        if count == len(args):
            return _combined(operation, args)
        if type(function) is not FunctionType or self.depth == _MAX_DEPTH:
            raise _Untranslatable
        self.checks.append(("code", function, 0, function.__code__))
        names = _parameters(function.__code__)
        if function.__closure__ or len(names) != len(args):
            raise _Untranslatable
        values = dict(zip(names, args, strict=True))
        return _Translation(function, values, self.checks, self.depth + 1).result()

    def _build(self, instruction: dis.Instruction) -> None:
        self.stack.append(tuple(self._popped(instruction)))

    def _popped(self, instruction: dis.Instruction) -> list[object]:
        count = cast("int", instruction.arg)
        start = len(self.stack) - count
        items = self.stack[start:]
        del self.stack[start:]
        return items

    # without an annotation, which would make it a field
    translations = {
        **dict.fromkeys(
            ("RESUME", "NOP", "PRECALL", "COPY_FREE_VARS", "EXTENDED_ARG", "NOT_TAKEN"), _ignore
        ),
        "LOAD_FAST": _load_fast,
        "LOAD_FAST_BORROW": _load_fast,
        "STORE_FAST": _store_fast,
        "LOAD_FAST_LOAD_FAST": _load_two,
        "LOAD_FAST_BORROW_LOAD_FAST_BORROW": _load_two,
        "STORE_FAST_LOAD_FAST": _store_and_load,
        "LOAD_CONST": _load_const,
        "LOAD_SMALL_INT": _load_const,
        "PUSH_NULL": _push_null,
        "LOAD_DEREF": _load_deref,
        "LOAD_GLOBAL": _load_global,
        "LOAD_ATTR": _load_attribute,
        "LOAD_METHOD": _load_attribute,
        "BINARY_SUBSCR": _subscript,
        "BINARY_OP": _binary,
        "UNARY_NEGATIVE": _negative,
        "CALL": _call,
        "BUILD_TUPLE": _build,
        "BUILD_LIST": _build,
    }


def _constant(value: object) -> object:
    if type(value) is tuple:
        return tuple(map(_constant, cast("tuple[object, ...]", value)))
    return _loaded(value, ("number", None, value))


def _loaded(content: object, step: Step) -> _Number | _Object:
    return _Number((step,)) if type(content) is int else _Object(content)


def _combined(operation: str, operands: Sequence[object]) -> _Number:
    steps = list[Step]()
    for operand in operands:
        if not isinstance(operand, _Number):
            raise _Untranslatable
        steps += operand.steps
    return _Number((*steps, (operation, None, 0)))


def _parameters(code: CodeType) -> tuple[str, ...]:
    """The parameters of a function that takes them by position only."""
    if code.co_flags & _PLAIN_FLAGS or code.co_kwonlyargcount:
        raise _Untranslatable
    return code.co_varnames[: code.co_argcount]


def grid_program(grid: FunctionType, memory: Memory) -> GridProgram:
    """The program of a grid function in `memory`; without extents if it cannot have one."""
    try:
        (parameter,) = _parameters(grid.__code__)
        translation = _Translation(grid, {parameter: _Arguments()}, [])
        return _program(grid, translation.result(), translation.checks, memory)
    except synchronous(_Untranslatable, KeyError, ValueError, IndexError, StopIteration):
        return GridProgram(code=memory.object(grid.__code__))


def _program(
    grid: FunctionType, result: object, checks: Sequence[Check], memory: Memory
) -> GridProgram:
    extents = cast("tuple[object, ...]", result) if isinstance(result, tuple) else (result,)
    numbers = _combined("number", extents).steps[:-1]
    if not 1 <= len(extents) <= 3 or _Number(numbers).depth > GRID_STACK:
        raise _Untranslatable
    steps = [_step(memory, step) for step in numbers]
    return GridProgram(
        code=memory.object(grid.__code__),
        globals=memory.object(grid.__globals__),
        checks=len(checks),
        check_list=memory.structures(GridCheck, [_check(memory, check) for check in checks]),
        steps=len(steps),
        step_list=memory.structures(GridStep, steps),
        extents=len(extents),
    )


def _check(memory: Memory, check: Check) -> GridCheck:
    kind, holder, name, value = check
    return GridCheck(
        GRID_CHECKS.index(kind),
        memory.object(holder),
        _named(memory, name),
        None if value is _ABSENT else memory.object(value),
    )


def _step(memory: Memory, step: Step) -> GridStep:
    operation, holder, name = step
    return GridStep(GRID_OPERATIONS.index(operation), memory.object(holder), _named(memory, name))


def _named(memory: Memory, name: object) -> int:
    """The address of a name; an index or number itself, in 64 bits."""
    if not isinstance(name, int):
        return memory.object(name)
    if not -(2**63) <= name < 2**63:
        raise _Untranslatable
    return name % 2**64
