"""The invariants of tile IR. `verify` collects all violations; `report` prints each below its op.

Structure
  * owners of blocks and parents of ops are right, and the links of ops agree in both directions
  * the last op of a block, and no other, is a terminator (trait TERMINATOR)
Values
  * the owner and the index of results and block arguments are right
  * an operand is defined above its use, in the same block or in one that encloses it
  * a value's use list has exactly the ops that use it, with the number of uses
Ops
  * operands: as many as declared, and each type satisfies its constraint
  * attributes: exactly the declared ones, each of its declared type and among its choices
  * regions: as many as declared
  * ELEMENTWISE ops: operands and results have one shape
  * result types are those of `infer`
  * the op's own `verify` reports nothing; for `for`, `while`, `if`, `reduce` and `scan` it checks
    the arguments, results and terminators of blocks
Types
  * extents of tiles are positive, and a tile has less than 2**31 elements
  * facts are positive integers: `aligned` of pointers, `multiple_of` and `non_negative` of integers
Contract of a stage, where one is given
  * all ops are legal, and every value's type and every op satisfies the contract

Results that depend only on an op's class, types and attributes are cached: a valid op takes 1-2 us.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import field
from typing import cast

from tilewright.ir.core import Block, Function, Module, Op, Value
from tilewright.ir.op_definition import Field, Trait
from tilewright.ir.printer import attr_text, print_function, type_text
from tilewright.ir.types import (
    BufferType,
    DType,
    PointerType,
    TileType,
    Type,
    element_of,
    shape_of,
)
from tilewright.support import Diagnostic, Severity
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass
from tilewright.support.fresh_stack import nested

_MAX_REMEMBERED = 1 << 14
"""The most cached kinds of ops per contract: new kernels have new constants."""


_OpShape = tuple[object, ...]


def _shape_of(op: Op) -> _OpShape:
    """The input of the checks of an op without blocks, besides its class: types and attributes."""
    values = op.attrs.values()
    # None separates operands from results, whose numbers vary. Types, since 1 == True == 1.0.
    return (
        *[v.type for v in op.operands],
        None,
        *[v.type for v in op.results],
        *op.attrs,
        *values,
        *map(_types_in, values),
    )


def _types_in(value: object) -> object:
    """The type of an attribute, or those of a tuple's elements."""
    if type(value) is not tuple:
        return type(value)
    return tuple(map(type, cast("tuple[object, ...]", value)))


@dataclass(frozen=True)
class Contract:
    """The legal ops and types after a pass of a pipeline, until a later pass has a contract.

    name: the pass; ops: the legal op classes, None for all; type_problem, op_problem: the error in
    the type of a value, or in a well-formed op of a legal class, or None. The verdict on an op
    depends on its class, attributes and types alone, and is cached by them.
    """

    name: str
    ops: Container[type[Op]] | None = None
    type_problem: Callable[[Type], str | None] | None = None
    op_problem: Callable[[Op], str | None] | None = None
    _legal: set[tuple[object, ...]] = field(
        default_factory=set[tuple[object, ...]], init=False, repr=False, compare=False
    )

    def problem(self, op: Op, shape: _OpShape) -> str | None:
        """The violation of the contract by a well-formed op, or None. shape: see `_shape_of`."""
        if (type(op), shape) in self._legal:
            return None
        if self.ops is not None and type(op) not in self.ops:
            return f"{op.opcode} is not legal after {self.name}"
        problem = self.op_problem(op) if self.op_problem is not None else None
        if problem is not None:
            return f"{problem} (after {self.name})"
        if len(self._legal) < _MAX_REMEMBERED:
            self._legal.add((type(op), shape))
        return None


@dataclass(frozen=True, slots=True)
class Problem:
    """One violation of an invariant, in a function."""

    where: Op | Function
    message: str
    function: Function


def verify(ir: Function | Module, contract: Contract | None = None) -> list[Diagnostic]:
    """All violations of the invariants, in the order of the text."""
    return [
        Diagnostic(Severity.ERROR, problem.message, problem.where.loc)
        for problem in problems(ir, contract)
    ]


def report(ir: Function | Module, contract: Contract | None = None) -> str | None:
    """The text of the invalid functions with each message below its op; None if all are valid."""
    notes: dict[Function, dict[object, list[str]]] = {}
    for problem in problems(ir, contract):
        lines = notes.setdefault(problem.function, {}).setdefault(problem.where, [])
        lines.append(f"error: {problem.message}")
    texts = [print_function(function, notes=marks) for function, marks in notes.items()]
    return "\n".join(texts) if texts else None


def problems(ir: Function | Module, contract: Contract | None = None) -> list[Problem]:
    """All violations, as `verify`, each with its op or function."""
    functions = (ir,) if isinstance(ir, Function) else ir.functions.values()
    collected: list[Problem] = []
    for function in functions:
        collected += _Verifier(function, contract).run()
    return collected


_MAX_ELEMENTS = (1 << 31) - 1


def _is_type(value: object) -> bool:
    return isinstance(value, DType | PointerType | TileType | BufferType)


def _is_tuple_of(test: Callable[[object], bool]) -> Callable[[object], bool]:
    def accepts(value: object) -> bool:
        return isinstance(value, tuple) and all(map(test, cast("tuple[object, ...]", value)))

    return accepts


def _is_int(value: object) -> bool:
    return type(value) is int


_KINDS: dict[str, Callable[[object], bool]] = {
    "int": _is_int,
    "bool": lambda value: type(value) is bool,
    "str": lambda value: type(value) is str,
    "int | None": lambda value: value is None or type(value) is int,
    "int | float | bool": lambda value: type(value) in (int, float, bool),
    "tuple[int, ...]": _is_tuple_of(_is_int),
    "tuple[float, ...]": _is_tuple_of(lambda value: type(value) is float),
    "Type": _is_type,
    "tuple[Type, ...]": _is_tuple_of(_is_type),
}
"""Predicates on values by the declared type of an attribute."""


class _Plan:
    """The checks of one op class, and its verified type signatures and ops without blocks."""

    __slots__ = ("attrs", "choices", "is_local", "kinds", "regions", "right", "terminator",
                 "verified")  # fmt: skip

    def __init__(self, cls: type[Op]) -> None:
        self.attrs = dict.fromkeys(f.name for f in cls.attr_fields).keys()
        self.kinds = tuple((f.name, f.annotation) for f in cls.attr_fields)
        self.choices = tuple((f.name, f.choices) for f in cls.attr_fields if f.choices)
        self.verified: set[tuple[Type | None, ...]] = set()
        self.right: set[_OpShape] = set()
        self.regions = len(cls.region_fields)
        self.terminator = Trait.TERMINATOR in cls.traits
        self.is_local = not self.regions and not self.terminator


_plans: dict[type[Op], _Plan] = {}


def _plan(cls: type[Op]) -> _Plan:
    plan = _plans.get(cls)
    if plan is None:
        plan = _plans[cls] = _Plan(cls)
    return plan


class _Verifier:
    """One walk over one function."""

    __slots__ = (
        "collected", "contract", "function", "legal_types", "opened", "operands", "values",
        "visible",
    )  # fmt: skip

    def __init__(self, function: Function, contract: Contract | None) -> None:
        self.function = function
        self.contract = contract
        self.collected: list[Problem] = []
        self.values: list[Value] = []
        self.opened: list[Value] = []  # visible values, in the order of their definition
        self.visible: set[Value] = set()
        self.legal_types: set[Type] = set()
        self.operands = 0

    def run(self) -> list[Problem]:
        for arg in self.function.args:
            self._check_facts(arg)
        self._block(self.function.body, self.function)
        uses = 0
        for value in self.values:
            if value.uses:
                uses += sum(value.uses.values())
        # each operand is in its use list, so an equal number leaves no stale uses
        if uses != self.operands:
            self._stale_uses()
        return self.collected

    def _fail(self, where: Op | Function, message: str) -> None:
        self.collected.append(Problem(where, message, self.function))

    def _check_facts(self, arg: Value) -> None:
        element, name = element_of(arg.type), f"%{arg.name or arg.index}"
        if isinstance(element, PointerType):
            allowed = ("aligned", "descriptor")
        else:
            allowed = ("multiple_of", "non_negative") if element.is_integer else ()
        for fact, amount in (arg.facts or {}).items():
            if fact not in allowed:
                self._fail(self.function, f"{fact} is not a fact about {name}: {element}")
            elif type(amount) is not int or not 0 < amount < 1 << 31:
                message = f"{fact} of {name} must be a positive integer, not {attr_text(amount)}"
                self._fail(self.function, message)

    @nested
    def _block(self, block: Block, owner: Op | Function) -> None:
        if block.owner is not owner:
            self._fail(owner, "the block has a wrong owner")
        first_value = len(self.opened)
        self._define(block.args, block, owner)
        previous: Op | None = None
        op = block.first
        while op is not None:
            if op.prev is not previous or op.parent is not block:
                # a list whose links are wrong cannot be followed any further
                self._fail(op, "the op's links and its block do not agree")
                break
            self._op(op)
            previous, op = op, op.next
        if block.last is not previous:
            self._fail(owner, "the block's last op is not the end of its list")
        if previous is None:
            self._fail(owner, "the block has no terminator")
        # values of a block are not visible after it
        self.visible.difference_update(self.opened[first_value:])
        del self.opened[first_value:]

    def _define(
        self, values: list[Value] | tuple[Value, ...], owner: object, where: Op | Function
    ) -> None:
        for index, value in enumerate(values):
            if value.owner is not owner or value.index != index:
                self._fail(where, f"value {index} has a wrong owner or index")
            if self.contract is not None and value.type not in self.legal_types:
                self._check_type(value.type, where)
            self.values.append(value)
            self.opened.append(value)
            self.visible.add(value)

    def _op(self, op: Op) -> None:
        cls = type(op)
        plan = _plans.get(cls) or _plan(cls)
        operands, results = op.operands, op.results
        visible = self.visible
        for value in operands:
            if value not in visible or value.uses.get(op) != operands.count(value):
                self._bad_operand(op, value)
        self.operands += len(operands)
        if plan.terminator is not (op.next is None):
            wrong = "must be the last op" if plan.terminator else "cannot be the last op"
            self._fail(op, f"{op.opcode} {wrong} of a block")
        self._check_alone(op, plan)
        for block in op.regions:
            self._block(block, op)
        self._define(results, op, op)

    def _check_alone(self, op: Op, plan: _Plan) -> None:
        """The checks of an op that do not depend on its position."""
        shape = _shape_of(op)
        try:
            known = shape in plan.right
        except TypeError:  # an attribute that cannot be hashed has none of the declared types
            self._is_well_formed(op, plan)
            return
        if not known:
            before = len(self.collected)
            if not self._is_well_formed(op, plan) or not self._check_types(op, plan):
                return
            self._check_by_class(op)
            if len(self.collected) > before:
                return
            if plan.is_local and len(plan.right) < _MAX_REMEMBERED:
                plan.right.add(shape)
        if self.contract is not None:
            self._fail_if(op, lambda contract=self.contract: contract.problem(op, shape))

    def _is_well_formed(self, op: Op, plan: _Plan) -> bool:
        """Whether attributes and regions exist, so that the op's own methods can be called."""
        if op.attrs.keys() != plan.attrs:
            self._fail(op, f"expected the attributes {list(plan.attrs)}, found {list(op.attrs)}")
            return False
        if len(op.regions) != plan.regions:
            self._fail(op, f"expected {plan.regions} regions, found {len(op.regions)}")
            return False
        for name, kind in plan.kinds:
            if not _KINDS[kind](op.attrs[name]):
                self._fail(op, f"{name} must be of type {kind}, not {attr_text(op.attrs[name])}")
                return False
        for name, choices in plan.choices:
            if op.attrs[name] not in choices:
                allowed = ", ".join(attr_text(choice) for choice in choices)
                self._fail(op, f"{name} must be one of {allowed}, not {op.attrs[name]!r}")
                return False
        return True

    def _check_by_class(self, op: Op) -> None:
        """The checks of the op's class: `verify`, and the result types that it infers."""
        self._fail_if(op, lambda: op.verify() or self._wrong_result(op))

    def _fail_if(self, op: Op, check: Callable[[], str | None]) -> None:
        try:
            message = check()
        except synchronous(
            Exception
        ) as error:  # a malformed op may raise anything, which is reported
            message = f"cannot be checked: {type(error).__name__}: {error}"
        if message is not None:
            self._fail(op, message)

    @staticmethod
    def _wrong_result(op: Op) -> str | None:
        inferred, results = op.infer(), op.results
        if len(results) == 1 and results[0].type is inferred:
            return None
        expected = inferred if isinstance(inferred, tuple) else (inferred,) if inferred else ()
        actual = tuple([v.type for v in results])
        if actual == expected or _without_layouts(actual) == _without_layouts(expected):
            return None
        return f"expected result types ({_listed(expected)}), found ({_listed(actual)})"

    def _check_types(self, op: Op, plan: _Plan) -> bool:
        """Check a new combination of types, and cache it if it is valid."""
        signature = (*[v.type for v in op.operands], None, *[v.type for v in op.results])
        if signature in plan.verified:
            return True
        before = len(self.collected)
        self._check_operands(op)
        for type_ in signature:
            if isinstance(type_, TileType) and min(type_.shape) <= 0:
                self._fail(op, f"dimensions must be positive: {type_}")
            elif isinstance(type_, TileType) and type_.numel > _MAX_ELEMENTS:
                self._fail(op, f"a tile has at most {_MAX_ELEMENTS} elements: {type_}")
        if Trait.ELEMENTWISE in op.traits:
            shapes = {shape_of(v.type) for v in (*op.operands, *op.results)}
            if len(shapes) > 1:
                types = _listed(tuple(v.type for v in (*op.operands, *op.results)))
                self._fail(op, f"operands and results must have one shape: {types}")
        if len(self.collected) > before:
            return False
        plan.verified.add(signature)
        return True

    def _check_operands(self, op: Op) -> None:
        fields = op.operand_fields
        least = sum(f.role == "operand" for f in fields)
        endless = any(f.role == "variadic" for f in fields)
        count = len(op.operands)
        if count < least or (count > len(fields) and not endless):
            self._fail(op, f"takes {_operand_count(fields)}, found {count}")
            return
        for index, value in enumerate(op.operands):
            field = fields[min(index, len(fields) - 1)]
            if not field.constraint.accepts(value.type):
                expected = field.constraint.name
                self._fail(op, f"operand '{field.name}' must be {expected}, not {value.type}")

    def _bad_operand(self, op: Op, value: Value) -> None:
        if value not in self.visible:
            name = value.name or "?"
            self._fail(op, f"operand %{name} is not defined above, in this block or one around it")
            return
        listed, used = value.uses.get(op, 0), op.operands.count(value)
        name = f"%{value.name}" if value.name else f"operand {op.operands.index(value)}"
        self._fail(op, f"{name} is used {used} times, its use list says {listed}")

    def _stale_uses(self) -> None:
        """Report uses by ops that are not in the function or do not use the value."""
        ops = set(self.function.walk())
        for value in self.values:
            for user in value.uses:
                if user not in ops:
                    owner = value.op or self.function
                    self._fail(owner, f"the use list names a {user.opcode} outside the function")
                elif value not in user.operands:
                    self._fail(
                        user, f"is in the use list of %{value.name or '?'}, but unused there"
                    )

    def _check_type(self, type_: Type, where: Op | Function) -> None:
        assert self.contract is not None
        test = self.contract.type_problem
        message = test(type_) if test is not None else None
        if message is None:
            self.legal_types.add(type_)
        else:
            self._fail(where, f"{message} (after {self.contract.name})")


def _listed(types: tuple[Type, ...]) -> str:
    return ", ".join([type_text(t) for t in types])


def _operand_count(fields: tuple[Field, ...]) -> str:
    least = sum(f.role == "operand" for f in fields)
    if any(f.role == "variadic" for f in fields):
        return f"at least {least} operands"
    return f"{least} operands" if least == len(fields) else f"{least} to {len(fields)} operands"


def _without_layouts(types: tuple[Type, ...]) -> tuple[Type, ...]:
    """Layouts are chosen, not inferred; the contract of a backend's stage checks them."""
    return tuple(TileType(t.shape, t.element) if isinstance(t, TileType) else t for t in types)
