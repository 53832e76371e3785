"""Recursive-descent parser of tile IR text; printer.py describes the syntax.

    module  = { "func" "@"name "(" args ")" [attrs] "{" { op } "}" [loc] }
    op      = [%result {"," %result} "="] opcode [%operand {"," %operand}] [attrs]
              [":" type {"," type}] { "(" args ")" "{" { op } "}" } [loc]
    args    = [%arg ":" type [attrs] {"," %arg ":" type [attrs]}]
    attrs   = "{" name "=" value {"," name "=" value} "}"
    value   = integer | float | string | true | false | none | type | "[" [value {"," value}] "]"
    loc     = "@" "file" ":" line [":" column [":" last column]] ["in" "function"] ["from" loc]

Comments extend from `//` to the end of the line. A value is defined above its uses and once in a
function. The parser checks the syntax, definitions and the depth of nesting; verifier.py checks
the rest. Opcodes are those of the op modules that have been imported.
"""

from __future__ import annotations

import json
import re
import struct
from math import inf, isnan, nan
from typing import NoReturn, cast

from tilewright.ir.core import MAX_REGIONS, OPS, Block, Function, Module, Op, Value
from tilewright.ir.lexer import END, Positions, tokens_of
from tilewright.ir.printer import RESULT_TYPE_ATTRS
from tilewright.ir.types import BufferType, DType, PointerType, TileType, Type, all_dtypes
from tilewright.support import SourceLoc, fork_waits
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass
from tilewright.support.errors import TileIRSyntaxError, did_you_mean
from tilewright.support.fresh_stack import nested

_POINTER = re.compile(r"ptr<\s*(\w+)\s*(,\s*const\s*)?>")
_BUFFER = re.compile(
    r"buffer<\s*(?:(\d+)\s*\*\s*)?(\d+(?:x\d+)*)x(\w+|ptr<[^<>]*>)(?:,\s*(.*?))?\s*>"
)
_TILE = re.compile(r"tile<\s*(\d+(?:x\d+)*)x(\w+|ptr<[^<>]*>)\s*(?:,\s*(.*?)\s*)?>")
_NAMED_LITERALS: dict[str, object] = {
    "true": True,
    "false": False,
    "none": None,
    "nan": nan,
    "inf": inf,
}
_DIGITS = frozenset("-0123456789")
_MISSING = object()
_MAX_DIGITS = 1000
"""The most digits of an integer; Python neither reads nor prints more than 4300."""

_MAX_TUPLES = 16
_MAX_CALLERS = 1000
"""The most calls of a location: nested tuples, which are hashed and compared by recursion."""
_types: dict[str, Type] = {dtype.name: dtype for dtype in all_dtypes()}


def parse_module(text: str, file: str = "<tile IR>", *, locate: bool = False) -> Module:
    """The module of a text.

    locate: give ops without a location their position in `file`. Raises TileIRSyntaxError.
    """
    return _Parser(text, file, locate).module()


def parse_function(text: str, file: str = "<tile IR>", *, locate: bool = False) -> Function:
    """The function of a text with one function, as `parse_module`."""
    return parse_module(text, file, locate=locate).kernel


def parse_type(text: str) -> Type:
    """The type of a text such as `tile<8xf32>`; ValueError for other texts."""
    type_ = _types.get(text)
    if type_ is None:
        type_ = _types[text] = _build_type(text)
    return type_


def _build_type(text: str) -> Type:
    tile = _TILE.fullmatch(text)
    if tile is not None:
        shape = tuple(int(extent) for extent in tile[1].split("x"))
        element = parse_type(tile[2])
        assert isinstance(element, DType | PointerType)
        return TileType(shape, element, _parse_layout(tile[3]) if tile[3] else None)
    buffer = _BUFFER.fullmatch(text)
    if buffer is not None:
        shape = tuple(int(extent) for extent in buffer[2].split("x"))
        element, slots = parse_type(buffer[3]), int(buffer[1] or 1)
        if not isinstance(element, DType | PointerType) or not slots:
            raise ValueError(text)
        layout = None if buffer[4] is None else _parse_layout(buffer[4])
        return BufferType(shape, element, layout, slots)
    pointer = _POINTER.fullmatch(text)
    element = _types.get(pointer[1]) if pointer else None
    if pointer is None or not isinstance(element, DType):
        raise ValueError(text)
    return PointerType(element, bool(pointer[2]))


def _parse_layout(text: str) -> object:
    with fork_waits():
        from tilewright.layout import LinearLayout  # noqa: PLC0415 -- 7 ms; not for CPUs

    return LinearLayout.parse(text)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The operands, attributes and regions that the text of an op class may have."""

    attrs: dict[str, object]
    """The default of each attribute, or _MISSING, in the order of the fields."""
    required: tuple[str, ...]
    result_attr: str
    regions: int


_shapes: dict[str, _Shape] = {}


def _shape_of(cls: type[Op]) -> _Shape:
    fields = cls.attr_fields
    shape = _shapes[cls.opcode] = _Shape(
        {f.name: f.default if f.has_default else _MISSING for f in fields},
        tuple(f.name for f in fields if not f.has_default and f.name not in RESULT_TYPE_ATTRS),
        next((f.name for f in fields if f.name in RESULT_TYPE_ATTRS), ""),
        len(cls.region_fields),
    )
    return shape


class _Parser:
    """One pass over the tokens of one text."""

    __slots__ = ("at", "depth", "file", "locate", "places", "text", "tokens", "values")

    def __init__(self, text: str, file: str, locate: bool) -> None:
        self.text, self.file, self.locate = text, file, locate
        self.tokens = tokens_of(text)
        self.at = 0
        self.depth = 0
        self.values: dict[str, Value] = {}
        self.places: Positions | None = None

    def module(self) -> Module:
        module = Module()
        while self.tokens[self.at] != END:
            start = self.at
            function = self._function()
            if function.name in module.functions:
                self._fail("a new function name", f"'{function.name}' again", start + 1)
            module.functions[function.name] = function
        return module

    def _function(self) -> Function:
        start = self.at
        self._expect("func")
        name = self._symbol()
        self.values = {}
        body = Block()
        self._args(body)
        attrs: dict[str, object] = {}
        if self._attrs_follow():
            attrs = self._attrs()
        self._body(body)
        return Function(name, body, attrs, self._location(start))

    def _attrs_follow(self) -> bool:
        """Whether `{` opens attributes, `{name =`, not a body; opcodes have a dot."""
        opening, name, equals = (*self.tokens[self.at : self.at + 3], END, END)[:3]
        return opening == "{" and equals == "=" and name.isidentifier()

    def _symbol(self) -> str:
        token = self.tokens[self.at]
        if token[:1] != "@" or len(token) == 1:
            self._fail("a function name such as @kernel")
        self.at += 1
        return self._unquoted(token[1:]) if token[1] == '"' else token[1:]

    def _args(self, block: Block) -> None:
        """`(%a: i32, %b: f32 {fact = 1})`, added to the block."""
        self._expect("(")
        while self.tokens[self.at] != ")":
            if block.args:
                self._expect(",")
            name = self._value_name()
            self.at += 1
            self._expect(":")
            arg = block.add_arg(self._type(), _base_name(name))
            self.values[name] = arg
            if self.tokens[self.at] == "{":
                arg.facts = cast("dict[str, int]", self._attrs())
        self.at += 1

    def _value_name(self) -> str:
        """The current token, which must be the name of a new value."""
        token = self.tokens[self.at]
        if token[:1] != "%" or len(token) == 1:
            self._fail("a value name such as %x")
        if token in self.values:
            self._fail("a new value name", f"{token} again")
        return token

    @nested
    def _body(self, block: Block) -> None:
        """`{ ops }`."""
        self.depth += 1
        if self.depth > MAX_REGIONS:
            self._fail(f"at most {MAX_REGIONS} nested regions", "one more")
        self._expect("{")
        tokens = self.tokens
        while tokens[self.at] != "}":
            self._op(block)
        self.at += 1
        self.depth -= 1

    def _op(self, block: Block) -> None:
        tokens = self.tokens
        start = self.at
        names = self._result_names() if tokens[start][:1] == "%" else ()
        opcode_at = self.at
        cls = OPS.get(tokens[opcode_at])
        if cls is None:
            self._unknown_opcode()
        shape = _shapes.get(cls.opcode) or _shape_of(cls)
        self.at += 1
        # without the constructor, which would infer the result types: the text has them
        op = cls.__new__(cls)
        op.parent = op.prev = op.next = op.loc = None
        op.operands = self._operands() if cls.operand_fields else []
        attrs = shape.attrs.copy()
        if tokens[self.at] == "{":
            self._op_attrs(cls, attrs)
        types = self._types() if tokens[self.at] == ":" else ()
        if len(types) != len(names):
            self._wrong_count(opcode_at, len(names), len(types))
        if shape.required:
            self._check_required(shape, attrs, opcode_at)
        if shape.result_attr == "result_type" and types:
            attrs["result_type"] = types[0]
        elif shape.result_attr:
            attrs[shape.result_attr] = types
        op.attrs = attrs
        op.results = tuple([Value(t, op, i, _base_name(names[i])) for i, t in enumerate(types)])
        for name, value in zip(names, op.results, strict=True):
            self.values[name] = value
        op.regions = self._regions(op, shape.regions) if shape.regions else ()
        if self.locate or tokens[self.at] == "@":
            op.loc = self._location(opcode_at)
        block.insert(op)

    def _result_names(self) -> list[str]:
        names: list[str] = []
        while True:
            names.append(self._value_name())
            self.at += 1
            if self.tokens[self.at] != ",":
                break
            self.at += 1
        if len(names) != len(set(names)):
            self._fail("different names for the results", "one name twice")
        self._expect("=")
        return names

    def _operands(self) -> list[Value]:
        tokens, values = self.tokens, self.values
        operands: list[Value] = []
        while tokens[self.at][:1] == "%":
            value = values.get(tokens[self.at])
            if value is None:
                self._undefined()
            operands.append(value)
            self.at += 1
            if tokens[self.at] != ",":
                break
            self.at += 1
        return operands

    def _attrs(self) -> dict[str, object]:
        """`{name = value, ...}`."""
        attrs: dict[str, object] = {}
        self._expect("{")
        while self.tokens[self.at] != "}":
            if attrs:
                self._expect(",")
            name = self._attr_name(attrs)
            attrs[name] = self._attr_value()
        self.at += 1
        return attrs

    def _attr_name(self, seen: dict[str, object]) -> str:
        name = self.tokens[self.at]
        if not name.isidentifier():
            self._fail("the name of an attribute")
        if name in seen:
            self._fail("each attribute once", f"'{name}' again")
        self.at += 1
        self._expect("=")
        return name

    def _op_attrs(self, cls: type[Op], attrs: dict[str, object]) -> None:
        start = self.at
        given = self._attrs()
        for name in given:
            if name not in attrs or name in RESULT_TYPE_ATTRS:
                candidates = [n for n in attrs if n not in RESULT_TYPE_ATTRS]
                self._fail(f"an attribute of {cls.opcode}", f"'{name}'", start, name, candidates)
        attrs.update(given)

    def _check_required(self, shape: _Shape, attrs: dict[str, object], at: int) -> None:
        for name in shape.required:
            if attrs[name] is _MISSING:
                self._fail(f"the attribute '{name}'", "none", at)

    def _attr_value(self, depth: int = 0) -> object:
        token = self.tokens[self.at]
        first = token[:1]
        if first in _DIGITS and first:
            value = self._number(token)
        elif first == '"':
            value = self._unquoted(token)
        elif first == "[":
            return self._tuple(depth + 1)
        elif token in _NAMED_LITERALS:
            value = _NAMED_LITERALS[token]
        elif token.startswith("nan<"):
            value = self._nan(int(token[4:-1], 16))
        else:
            return self._type("a value")
        self.at += 1
        return value

    def _number(self, token: str) -> int | float:
        if token.removeprefix("-").isdecimal():
            return self._whole(token)
        try:
            return float(token)
        except synchronous(ValueError):
            self._fail("a number")

    def _whole(self, token: str) -> int:
        if len(token) > _MAX_DIGITS:
            self._fail(f"an integer of at most {_MAX_DIGITS} digits", f"one of {len(token)}")
        return int(token)

    def _nan(self, bits: int) -> float:
        """The double with these bits, which must be a NaN."""
        value = 0.0
        if bits < 1 << 64:
            (value,) = struct.unpack("<d", struct.pack("<Q", bits))
        if not isnan(value):
            self._fail("the 64 bits of a NaN")
        return value

    def _unquoted(self, token: str) -> str:
        try:
            return json.loads(token)
        except synchronous(ValueError):
            self._fail("a string as JSON writes it")

    def _tuple(self, depth: int) -> tuple[object, ...]:
        if depth > _MAX_TUPLES:
            self._fail(f"at most {_MAX_TUPLES} nested tuples", "one more")
        self._expect("[")
        items: list[object] = []
        while self.tokens[self.at] != "]":
            if items:
                self._expect(",")
            items.append(self._attr_value(depth))
        self.at += 1
        return tuple(items)

    def _types(self) -> tuple[Type, ...]:
        types: list[Type] = []
        while not types or self.tokens[self.at] == ",":
            self.at += 1
            types.append(self._type())
        return tuple(types)

    def _type(self, expected: str = "a type") -> Type:
        token = self.tokens[self.at]
        type_ = _types.get(token)
        if type_ is None:
            try:
                type_ = parse_type(token)
            except synchronous(ValueError):
                self._fail(expected)
        self.at += 1
        return type_

    def _regions(self, op: Op, count: int) -> tuple[Block, ...]:
        regions: list[Block] = []
        for _ in range(count):
            block = Block()
            self._args(block)
            self._body(block)
            block.owner = op
            regions.append(block)
        return tuple(regions)

    def _location(self, token: int) -> SourceLoc | None:
        """An explicit location, or with `locate` that of a token."""
        if self.tokens[self.at] == "@":
            return self._frames()
        return self._positions().loc(token) if self.locate else None

    def _frames(self) -> SourceLoc:
        """`@ place from place from ...`, the innermost first."""
        frames: list[SourceLoc] = []
        while not frames or self.tokens[self.at] == "from":
            if len(frames) > _MAX_CALLERS:
                self._fail(f"a location of at most {_MAX_CALLERS} calls", "one more")
            self.at += 1
            frames.append(self._frame())
        loc: SourceLoc | None = None
        # from the outermost call, since each frame contains its caller
        for frame in reversed(frames):
            loc = frame._replace(caller=loc)
        assert loc is not None
        return loc

    def _frame(self) -> SourceLoc:
        tokens = self.tokens
        file = self._quoted("a file name in quotes")
        numbers: list[int] = []
        while tokens[self.at] == ":" and len(numbers) < 3:
            self.at += 1
            numbers.append(self._integer())
        if not numbers:
            self._fail("':' and a line number")
        # absent columns: 0 becomes -1 below, which means "unknown", as does an end of -1
        line, col, end = numbers + [0, -1][len(numbers) - 1 :]
        function = ""
        if tokens[self.at] == "in":
            self.at += 1
            function = self._quoted("a function name in quotes")
        return SourceLoc(file, line, col - 1, end, function)

    def _quoted(self, expected: str) -> str:
        token = self.tokens[self.at]
        if token[:1] != '"':
            self._fail(expected)
        text = self._unquoted(token)
        self.at += 1
        return text

    def _integer(self) -> int:
        token = self.tokens[self.at]
        if not token.removeprefix("-").isdecimal():
            self._fail("a number")
        value = self._whole(token)
        self.at += 1
        return value

    def _expect(self, token: str) -> None:
        if self.tokens[self.at] != token:
            self._fail(f"'{token}'")
        self.at += 1

    def _positions(self) -> Positions:
        if self.places is None:
            self.places = Positions(self.text, self.file)
        return self.places

    def _unknown_opcode(self) -> NoReturn:
        self._fail("an operation", None, self.at, self.tokens[self.at], list(OPS))

    def _undefined(self) -> NoReturn:
        token = self.tokens[self.at]
        self._fail("a value defined above", token, self.at, token, list(self.values))

    def _wrong_count(self, at: int, names: int, types: int) -> NoReturn:
        self._fail(f"a type for each of {names} results", f"{types} types", at)

    def _fail(
        self,
        expected: str,
        actual: str | None = None,
        at: int | None = None,
        name: str = "",
        candidates: list[str] | None = None,
    ) -> NoReturn:
        """Raise the error at token `at`, the current one by default."""
        index = self.at if at is None else at
        token = self.tokens[index]
        actual = actual or (f"'{token}'" if token else "the end of the text")
        question = did_you_mean(name, candidates) if name and candidates else None
        places = self._positions()
        raise TileIRSyntaxError(
            expected,
            actual,
            loc=places.loc(index),
            sources=places.sources,
            notes=(question,) if question else (),
        )


def _base_name(name: str) -> str:
    """The name of a value, without the numbers that the printer adds."""
    return "" if name[1:].isdigit() else name[1:]
