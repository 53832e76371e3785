"""Changes texts of tile IR so that most of them still can be read.

Half of the changes are made to the IR itself: other operands of the same type, other attributes,
ops copied, removed or made at random, types exchanged throughout; what follows is inferred anew.
The rest are made to the tokens of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf, nan
from random import Random
from typing import Any, cast

from tests.fuzz_text.corpus import tile_texts, valid_tile_texts
from tilewright.ir import OPS, Block, Function, Op, Rewriter, Value, parse_module, print_module
from tilewright.ir.types import (
    DType,
    PointerType,
    TileType,
    Type,
    all_dtypes,
    element_of,
    with_element,
)

_NUMBERS = (0, 1, -1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 64, 127, 128, 255, 256, 1000, 70_000, 1 << 20)
_EDGES = (1 << 31, (1 << 31) - 1, -(1 << 31), 1 << 32, 1 << 63, (1 << 64) - 1, 1 << 70, 10**30)
_FLOATS = (0.0, -0.0, 1.0, 0.5, 70_000.0, 1e39, 1e-45, 1e308, inf, -inf, nan)
_WORDS = ("", "gpu", "add", "eq", "exp", "x y", "\u00e9", "\x00", "%", '"')
_TOKENS = (
    "nan", "inf", "-inf", "true", "none", "-0", "0", "1", "9" * 30, "9" * 5000, "1e400", "0.5",
    "nan<0x7ff8000000000001>", "nan<0x1>", '"a"', '"\\u0000"', '"', "%0", "%zzz", "@f", "{", "}",
    "(", ")", "[", "]", ",", ":", "=", "tile<8xf32>", "tile<0xf32>", "tile<3xi8>", "ptr<f32>",
    "ptr<i1, const>", "i32", "f8e4m3", "i1", "cf.return", "cf.yield", "arith.add", "// x\n",
)  # fmt: skip
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|tile<[^>]*>+|ptr<[^>]*>|[\w.%@$-]+|\S')


def tile_text(random: Random) -> str:
    """A text of tile IR, changed in one to six places."""
    if random.random() < 0.3:
        return _with_other_tokens(random, random.choice(tile_texts()))
    text = random.choice(valid_tile_texts())
    for _ in range(random.choice((0, 0, 0, 1))):
        text = _with_other_words(random, text)
    try:
        module = parse_module(text)
    except Exception:
        return text
    for function in module.functions.values():
        for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4, 6))):
            _IrMutation(random, function).apply()
        _infer(function)
    with suppress(Exception):
        text = print_module(module)
    return _with_other_tokens(random, text) if random.random() < 0.1 else text


# ---- text ----------------------------------------------------------------------------------------


def _with_other_tokens(random: Random, text: str) -> str:
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        spans = [match.span() for match in _TOKEN.finditer(text)]
        if not spans:
            return text
        (start, end), (other, last) = random.choice(spans), random.choice(spans)
        new = random.choice((
            "", text[start:end] + " " + text[start:end], random.choice(_TOKENS), text[other:last],
        ))  # fmt: skip
        text = text[:start] + new + text[end:]
    if random.random() < 0.02:
        text = text[: random.randrange(len(text) + 1)]
    return text


def _with_other_words(random: Random, text: str) -> str:
    """One type or one extent exchanged wherever it stands."""
    if random.random() < 0.5:
        names = [dtype.name for dtype in all_dtypes()]
        old, new = random.choice(names), random.choice(names)
        return re.sub(rf"\b(\d+x)?{old}\b", rf"\g<1>{new}", text)
    old, new = (
        random.choice(("64", "16", "8", "4", "32")),
        random.choice(("1", "2", "3", "16", "8")),
    )
    return re.sub(rf"(?<![\w.]){old}(?=x|\b)|(?<=x){old}(?=x)", new, text)


# ---- IR ------------------------------------------------------------------------------------------


class _IrMutation:
    """One change of a function."""

    def __init__(self, random: Random, function: Function) -> None:
        self.random = random
        self.function = function
        self.ops = list(function.walk())

    def apply(self) -> None:
        if self.ops:
            kinds: tuple[Callable[[], None], ...] = (
                self._operand, self._operand, self._attribute, self._attribute, self._attribute,
                self._copy, self._remove, self._insert, self._insert, self._argument,
            )  # fmt: skip
            self.random.choice(kinds)()

    def _operand(self) -> None:
        op = self.random.choice(self.ops)
        if op.operands:
            index = self.random.randrange(len(op.operands))
            same = self.random.random() < 0.8
            choices = [v for v in _visible(op) if not same or v.type is op.operands[index].type]
            if choices:
                op.set_operand(index, self.random.choice(choices))

    def _attribute(self) -> None:
        found = [op for op in self.ops if op.attrs]
        if found:
            op = self.random.choice(found)
            name = self.random.choice(list(op.attrs))
            choices = next((f.choices for f in op.attr_fields if f.name == name), ())
            if choices and self.random.random() < 0.8:
                op.attrs[name] = self.random.choice(choices)
            else:
                op.attrs[name] = self._like(op.attrs[name])

    def _like(self, value: object) -> object:
        """A value, most often of the same kind."""
        random = self.random
        if random.random() < 0.05:
            value = random.choice((None, True, 1, 1.5, "x", (1, 2), ()))
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return random.choice(_NUMBERS if random.random() < 0.9 else _EDGES)
        if isinstance(value, float):
            return random.choice(_FLOATS)
        if isinstance(value, str):
            return random.choice(_WORDS)
        if isinstance(value, tuple):
            return self._like_tuple(cast("tuple[object, ...]", value))
        if isinstance(value, DType | PointerType | TileType):
            return self._type_like(value)
        return random.choice((None, 0, 1, 4))

    def _like_tuple(self, value: tuple[object, ...]) -> tuple[object, ...]:
        random = self.random
        if not value or random.random() < 0.2:
            return (*value, self._like(1))
        if random.random() < 0.2:
            return value[:-1]
        index = random.randrange(len(value))
        return (*value[:index], self._like(value[index]), *value[index + 1 :])

    def _type_like(self, type_: Type) -> Type:
        dtype = self.random.choice(all_dtypes())
        if isinstance(element_of(type_), PointerType):
            return with_element(type_, PointerType(dtype, self.random.random() < 0.3))
        return with_element(type_, dtype)

    def _copy(self) -> None:
        op = self.random.choice(self.ops)
        if op.next is not None and op.parent is not None:
            op.parent.insert(op.clone({}), op)

    def _remove(self) -> None:
        op = self.random.choice(self.ops)
        if op.next is None or op.parent is None:
            return
        visible = list(_visible(op))
        for result in op.results:
            same = [value for value in visible if value.type is result.type]
            if same and result.uses:
                Rewriter.replace_uses(result, self.random.choice(same))
        if not any(result.uses for result in op.results):
            op.parent.detach(op)

    def _insert(self) -> None:
        """An op with random operands that its declaration accepts, and attributes."""
        place = self.random.choice(self.ops)
        visible = list(_visible(place))
        cls = self.random.choice(list(OPS.values()))
        fields: dict[str, Any] = {}
        for field in cls.fields:
            if field.role == "operand":
                accepted = [value for value in visible if field.constraint.accepts(value.type)]
                if not accepted:
                    return
                fields[field.name] = self.random.choice(accepted)
            elif field.role == "attr" and (not field.has_default or self.random.random() < 0.3):
                fields[field.name] = self._attribute_of(field.annotation, field.choices, visible)
            elif field.role == "variadic":
                fields[field.name] = tuple(self.random.sample(visible, min(2, len(visible))))
            elif field.role == "region":
                return
        with suppress(Exception):
            op = cls(**fields)
            assert place.parent is not None
            place.parent.insert(op, place)

    def _attribute_of(
        self, annotation: str, choices: tuple[object, ...], visible: list[Value]
    ) -> object:
        if choices:
            return self.random.choice(choices)
        if annotation in ("Type", "tuple[Type, ...]"):
            type_ = self._type_like(self.random.choice(visible).type) if visible else DType
            return type_ if annotation == "Type" else (type_,)
        samples: dict[str, object] = {
            "int": 1, "bool": True, "str": "", "int | None": 1, "tuple[int, ...]": (8, 4),
            "int | float | bool": self.random.choice((1, 1.5, True)),
        }  # fmt: skip
        return self._like(samples.get(annotation, 1))

    def _argument(self) -> None:
        if self.function.args:
            arg = self.random.choice(self.function.args)
            if self.random.random() < 0.5:
                arg.type = self._type_like(arg.type)
            else:
                name = "aligned" if isinstance(arg.type, PointerType) else "multiple_of"
                arg.facts = {name: cast("int", self._like(16))}


def _visible(op: Op) -> Iterator[Value]:
    """The values that are defined above an op, in its block or one around it."""
    block: Block | None = op.parent
    before: Any = op.prev
    while block is not None:
        yield from block.args
        while before is not None:
            yield from before.results
            before = before.prev
        owner = block.owner
        block, before = (owner.parent, owner.prev) if isinstance(owner, Op) else (None, None)


def _infer(function: Function) -> None:
    """Types of results as operands and attributes give them, where they can be inferred."""
    for op in function.walk():
        with suppress(Exception):
            types = op.infer()
            found = types if isinstance(types, tuple) else (types,)
            for result, type_ in zip(op.results, filter(None, found), strict=True):
                _ = str(type_)  # a shape may be anything
                result.type = type_
