"""The data structures of tile IR: values, ops, blocks, functions, modules.

Control flow is structured (`cf.for`, `cf.while`, `cf.if`), so a region is exactly one block, and
both are the class `Block`. There is no CFG and no phi. A block is a linked list of ops, with O(1)
insertion and removal. Use lists contain the ops that are in a block; a detached op uses nothing, so
that the interpreter can evaluate ops without building a program.

Only `Builder` and `Rewriter` (builder.py) change IR.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self, dataclass_transform

from tilewright.ir import op_definition
from tilewright.ir.op_definition import (
    Effect,
    Field,
    Trait,
    accessors,
    class_facts,
    constructor,
    declared_fields,
)
from tilewright.ir.types import Type
from tilewright.support.diagnostics import SourceLoc
from tilewright.support.errors import NotOneFunction
from tilewright.support.fresh_stack import nested
from tilewright.support.init_at_first_use import InitAtFirstUse

MAX_REGIONS = 1024
"""The maximum depth of nested regions. Each early `return` or `elif` nests the rest of a function
in another region; the time of texts and of some passes grows as the square of the depth."""


class Value:
    """One SSA value: the result of an op, or an argument of a block.

    uses: the ops that use it, with the number of uses; facts: promises about an argument.
    """

    __slots__ = ("facts", "index", "name", "owner", "type", "uses")

    def __init__(self, type_: Type, owner: Op | Block, index: int, name: str = "") -> None:
        self.type = type_
        self.owner = owner
        self.index = index
        self.name = name
        # a dictionary: the order of a set, and with it the generated code, would vary by address
        self.uses: dict[Op, int] = {}
        self.facts: dict[str, int] | None = None

    @property
    def op(self) -> Op | None:
        """The defining op; None for a block argument."""
        owner = self.owner
        return owner if isinstance(owner, Op) else None

    @property
    def block(self) -> Block | None:
        """The block that defines it; None if its op is detached."""
        owner = self.owner
        return owner if isinstance(owner, Block) else owner.parent

    def __repr__(self) -> str:
        return f"%{self.name or '?'}: {self.type}"


OPS: dict[str, type[Op]] = {}
"""Every op class by opcode."""


class OpMeta(type):
    """Builds an op class from its declaration (op_definition.py)."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        opcode: str = "",
        traits: tuple[Trait, ...] = (),
        effects: tuple[Effect, ...] = (),
    ) -> OpMeta:
        # without its own slots a class would give each op a __dict__
        namespace.setdefault("__slots__", ())
        assert opcode not in OPS, f"two ops are called {opcode}"
        inherited = (field for base in bases for field in getattr(base, "fields", ()))
        declared = declared_fields(namespace)
        fields = tuple({field.name: field for field in (*inherited, *declared)}.values())
        namespace.update(class_facts(opcode, fields, traits, effects))
        namespace.update(accessors(fields))
        if not opcode:
            return super().__new__(mcls, name, bases, namespace)
        cls: Any = super().__new__(mcls, name, bases, namespace)
        cls.__init__ = InitAtFirstUse(lambda cls: constructor(cls, fields, Value))
        OPS[opcode] = cls
        return cls


@dataclass_transform(
    field_specifiers=(
        op_definition.operand,
        op_definition.optional_operand,
        op_definition.variadic,
        op_definition.attr,
        op_definition.region,
    )
)
class Op(metaclass=OpMeta):
    """Base class of every declared op."""

    __slots__ = ("attrs", "loc", "next", "operands", "parent", "prev", "regions", "results")

    opcode: ClassVar[str] = ""
    fields: ClassVar[tuple[Field, ...]] = ()
    operand_fields: ClassVar[tuple[Field, ...]] = ()
    attr_fields: ClassVar[tuple[Field, ...]] = ()
    region_fields: ClassVar[tuple[Field, ...]] = ()
    traits: ClassVar[frozenset[Trait]] = frozenset()
    effects: ClassVar[frozenset[Effect]] = frozenset()
    operands: list[Value]
    attrs: dict[str, Any]
    regions: tuple[Block, ...]
    results: tuple[Value, ...]
    parent: Block | None
    prev: Op | None
    next: Op | None
    loc: SourceLoc | None

    def infer(self) -> Type | tuple[Type, ...] | None:
        """Result type(s) from operands and attributes; None for an op without results.

        Here those of the attribute `result_type` or `result_types`, if the op declares one.
        """
        return self.attrs.get("result_type", self.attrs.get("result_types"))

    def verify(self) -> str | None:
        """The error of this op beyond its declared constraints, or None."""
        return None

    @property
    def result(self) -> Value:
        """The only result."""
        assert len(self.results) == 1, f"{self.opcode} has {len(self.results)} results"
        return self.results[0]

    @property
    def type(self) -> Type:
        """The type of the only result."""
        return self.result.type

    def set_operand(self, index: int, value: Value) -> None:
        """Replace one operand and update the use lists."""
        # A detached op is in no use list.
        if self.parent is not None:
            _drop_use(self.operands[index], self)
            _add_use(value, self)
        self.operands[index] = value

    def walk(self) -> Iterator[Op]:
        """This op and every op in its regions, in pre-order."""
        yield self
        for region in self.regions:
            yield from region.walk()

    def clone(self, mapping: dict[Value, Value]) -> Self:
        """A detached copy, whose operands are mapped by `mapping`; its results are added there."""
        cls = type(self)
        # Without the constructor, which would infer the types of the results again.
        copy = cls.__new__(cls)
        copy.operands = [mapping.get(value, value) for value in self.operands]
        copy.attrs = dict(self.attrs)
        copy.loc = self.loc
        copy.parent = copy.prev = copy.next = None
        copy.results = tuple(Value(v.type, copy, v.index, v.name) for v in self.results)
        for old, new in zip(self.results, copy.results, strict=True):
            mapping[old] = new
        copy.regions = tuple(region.clone(mapping) for region in self.regions)
        for region in copy.regions:
            region.owner = copy
        return copy

    def __repr__(self) -> str:
        return f"<{self.opcode}>"


class Block:
    """Arguments and a linked list of ops; the body of a function or a region of an op."""

    __slots__ = ("args", "first", "last", "owner")

    def __init__(self, arg_types: tuple[Type, ...] = (), names: tuple[str, ...] = ()) -> None:
        names = names or ("",) * len(arg_types)
        self.args: list[Value] = [
            Value(t, self, i, n) for i, (t, n) in enumerate(zip(arg_types, names, strict=True))
        ]
        self.first: Op | None = None
        self.last: Op | None = None
        self.owner: Op | Function | None = None

    def __iter__(self) -> Iterator[Op]:
        """The ops in order; the current op may be removed or replaced while iterating."""
        op = self.first
        while op is not None:
            following = op.next
            yield op
            op = following

    def __reversed__(self) -> Iterator[Op]:
        op = self.last
        while op is not None:
            preceding = op.prev
            yield op
            op = preceding

    def add_arg(self, type_: Type, name: str = "") -> Value:
        value = Value(type_, self, len(self.args), name)
        self.args.append(value)
        return value

    def remove_arg(self, index: int) -> None:
        """Drop an argument that has no uses."""
        assert not self.args[index].uses, "argument still used"
        del self.args[index]
        for i, arg in enumerate(self.args):
            arg.index = i

    def insert(self, op: Op, before: Op | None = None) -> None:
        """Insert a detached op before `before`, or at the end."""
        assert op.parent is None, f"{op.opcode} is already in a block"
        preceding = self.last if before is None else before.prev
        op.parent, op.prev, op.next = self, preceding, before
        if preceding is None:
            self.first = op
        else:
            preceding.next = op
        if before is None:
            self.last = op
        else:
            before.prev = op
        for value in op.operands:
            # `_add_use`, inlined, since every new op is inserted here
            uses = value.uses
            uses[op] = uses.get(op, 0) + 1

    def detach(self, op: Op) -> None:
        """Unlink an op and remove its uses of operands; its regions are unchanged."""
        assert op.parent is self
        if op.prev is None:
            self.first = op.next
        else:
            op.prev.next = op.next
        if op.next is None:
            self.last = op.prev
        else:
            op.next.prev = op.prev
        op.parent = op.prev = op.next = None
        for value in op.operands:
            _drop_use(value, op)

    @property
    def terminator(self) -> Op:
        assert self.last is not None, "empty block"
        return self.last

    @nested
    def clone(self, mapping: dict[Value, Value]) -> Block:
        copy = Block()
        for arg in self.args:
            new = copy.add_arg(arg.type, arg.name)
            new.facts = dict(arg.facts) if arg.facts else None
            mapping[arg] = new
        for op in self:
            copy.insert(op.clone(mapping))
        return copy

    def walk(self) -> Iterator[Op]:
        """Every op, regions included, in pre-order."""
        pending: list[Op | Block | None] = [self]
        while pending:
            op = pending.pop()
            if isinstance(op, Block):
                op = op.first
            while op is not None:
                # The next op is read before the yield, since the caller may remove this one; its
                # regions after it, since the caller may change them.
                following = op.next
                yield op
                if op.regions:
                    pending += (following, *reversed(op.regions))
                    break
                op = following


class Function:
    """A kernel: a name, a body whose arguments are the parameters, and attributes."""

    __slots__ = ("attrs", "body", "loc", "name")

    def __init__(
        self,
        name: str,
        body: Block,
        attrs: Mapping[str, Any] | None = None,
        loc: SourceLoc | None = None,
    ) -> None:
        self.name = name
        self.body = body
        self.attrs: dict[str, Any] = dict(attrs or {})
        self.loc = loc
        body.owner = self

    @property
    def args(self) -> list[Value]:
        return self.body.args

    def walk(self) -> Iterator[Op]:
        return self.body.walk()

    def clone(self) -> Function:
        return Function(self.name, self.body.clone({}), self.attrs, self.loc)


class Module:
    """Functions by name."""

    __slots__ = ("functions",)

    def __init__(self, functions: tuple[Function, ...] = ()) -> None:
        self.functions: dict[str, Function] = {f.name: f for f in functions}

    @property
    def kernel(self) -> Function:
        """The only function. Errors: NotOneFunction."""
        if len(self.functions) != 1:
            raise NotOneFunction(tuple(self.functions))
        (function,) = self.functions.values()
        return function


def _add_use(value: Value, op: Op) -> None:
    value.uses[op] = value.uses.get(op, 0) + 1


def _drop_use(value: Value, op: Op) -> None:
    count = value.uses[op] - 1
    if count:
        value.uses[op] = count
    else:
        del value.uses[op]
