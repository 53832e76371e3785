"""Text of tile IR: one generic syntax for every op, read back by parser.py.

    func @add(%X: ptr<f32> {aligned = 16}, %N: i32 {multiple_of = 16}) {num_warps = 4} {
      %pid = cf.program_id {axis = 0} : i32
      %r = cf.for %lo, %hi, %step, %acc0 {stages = 3} : f32 (%k: i32, %acc: f32) {
        cf.yield %acc
      }
      cf.return
    }

An op is `results = opcode operands {attributes} : types regions @ location`. Empty parts and
attributes equal to their defaults are omitted. `result_type` and `result_types` are printed as the
types only. A region is `(arguments) { ops }`. Absent optional operands are the last.
An SSA name is the value's own name, made unique within the function by `_1`, `_2` ...; values
without a name are numbered. Printing, parsing and printing again yields the same text.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan
from typing import cast

from tilewright.ir.core import Block, Function, Module, Op, Value
from tilewright.ir.types import BufferType, DType, PointerType, TileType, Type
from tilewright.support.diagnostics import SourceLoc
from tilewright.support.fresh_stack import nested

_INDENT = "  "
_SYMBOL = re.compile(r"[A-Za-z_][\w.$]*", re.ASCII)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.$]")
_ABSENT = object()
_DEFAULT_NAN = 0x7FF8000000000000
RESULT_TYPE_ATTRS = ("result_type", "result_types")
"""Attributes that are printed as the types after the colon."""

Notes = Mapping[object, Sequence[str]]
"""Lines to print below an op, or below the header of a function."""

_attrs_to_show: dict[type[Op], tuple[tuple[str, bool, object], ...]] = {}
_type_texts: dict[Type, str] = {}


class Names(dict[Value, str]):
    """Unique names of values, with `%`; a value is named at its first look-up."""

    __slots__ = ("_anonymous", "_taken")

    def __init__(self) -> None:
        super().__init__()
        self._anonymous = 0
        self._taken: dict[str, int] = {}

    def __missing__(self, value: Value) -> str:
        name = self[value] = "%" + self._fresh(value.name)
        return name

    def _fresh(self, proposed: str) -> str:
        if not proposed:
            self._anonymous += 1
            return str(self._anonymous - 1)
        if not proposed.isidentifier() or not proposed.isascii():
            proposed = _NOT_IN_NAMES.sub("_", proposed)
            proposed = f"_{proposed}" if proposed[0].isdigit() else proposed
        taken = self._taken
        if proposed not in taken:
            taken[proposed] = 0
            return proposed
        # from the last number on; otherwise many values of one name would take quadratic time
        number, name = taken[proposed], proposed
        while name in taken:
            number += 1
            name = f"{proposed}_{number}"
        taken[proposed] = number
        taken[name] = 0
        return name


def print_module(module: Module, *, locations: bool = False) -> str:
    """All functions of a module, separated by blank lines; ends with a line break."""
    printer = Printer(locations)
    texts = ["\n".join(printer.function(f)) for f in module.functions.values()]
    return "\n\n".join(texts) + "\n" if texts else ""


def print_function(
    function: Function, *, locations: bool = False, notes: Notes | None = None
) -> str:
    """One function; `notes` are printed below their ops."""
    return "\n".join(Printer(locations, notes).function(function)) + "\n"


class Printer:
    """The lines of functions."""

    def __init__(self, locations: bool = False, notes: Notes | None = None) -> None:
        self.locations = locations
        self.notes = notes
        self.names = Names()
        self.lines: list[str] = []

    def function(self, function: Function) -> list[str]:
        """The lines of one function, with new names."""
        self.names = Names()
        self.lines = lines = list[str]()
        attrs = _attrs_text(function.attrs.items())
        head = f"func {symbol_text(function.name)}({self._args(function.body)}){attrs} {{"
        lines.append(head)
        self._note(function, _INDENT)
        self._block(function.body, _INDENT)
        lines.append("}" + self._location(function.loc))
        return lines

    def op(self, op: Op, indent: str) -> None:
        """One op and its regions."""
        names = self.names
        parts = [indent]
        results = op.results
        if results:
            parts.append(", ".join([names[value] for value in results]))
            parts.append(" = ")
        parts.append(op.opcode)
        if op.operands:
            parts.append(" ")
            parts.append(", ".join([names[value] for value in op.operands]))
        if op.attrs:
            parts.append(_op_attrs(op))
        if results:
            parts.append(" : ")
            parts.append(", ".join([type_text(value.type) for value in results]))
        if op.regions:
            self._regions(op, indent, parts)
        if self.locations and op.loc is not None:
            parts.append(self._location(op.loc))
        self.lines.append("".join(parts))
        if self.notes is not None and not op.regions:
            self._note(op, indent)

    def _regions(self, op: Op, indent: str, parts: list[str]) -> None:
        """Print all regions; the text of the last line remains in `parts`."""
        for number, block in enumerate(op.regions):
            parts.append(f" ({self._args(block)}) {{")
            self.lines.append("".join(parts))
            if number == 0:
                self._note(op, indent)
            self._block(block, indent + _INDENT)
            parts[:] = [indent, "}"]

    @nested
    def _block(self, block: Block, indent: str) -> None:
        for op in block:
            self.op(op, indent)

    def _args(self, block: Block) -> str:
        return ", ".join([self._arg(arg) for arg in block.args])

    def _arg(self, arg: Value) -> str:
        facts = _attrs_text(arg.facts.items()) if arg.facts else ""
        return f"{self.names[arg]}: {type_text(arg.type)}{facts}"

    def _note(self, about: object, indent: str) -> None:
        if self.notes is not None:
            self.lines += [f"{indent}^ {note}" for note in self.notes.get(about, ())]

    def _location(self, loc: SourceLoc | None) -> str:
        if loc is None or not self.locations:
            return ""
        return " @ " + " from ".join([_frame_text(frame) for frame in loc.frames()])


def symbol_text(name: str) -> str:
    """A function's name in text form: `@add`, `@"a name"`."""
    return "@" + (name if _SYMBOL.fullmatch(name) else _string(name))


def type_text(type_: Type) -> str:
    """The text of a type, cached, since types are interned."""
    text = _type_texts.get(type_)
    if text is None:
        text = _type_texts[type_] = str(type_)
    return text


def attr_text(value: object) -> str:
    """The text of an attribute; the parser returns an equal value of the same Python type."""
    kind = type(value)
    if kind is int:
        return int.__repr__(cast("int", value))
    writer = _ATTR_WRITERS.get(kind)
    assert writer is not None, f"an attribute cannot be a {kind.__name__}"
    return writer(value)


def _string(value: object) -> str:
    return json.dumps(value)


def _float(value: object) -> str:
    number = cast("float", value)
    if not isnan(number):
        return repr(number)
    # repr would omit the sign and the payload
    (bits,) = struct.unpack("<Q", struct.pack("<d", number))
    return "nan" if bits == _DEFAULT_NAN else f"nan<{bits:#x}>"


def _tuple(value: object) -> str:
    return f"[{', '.join([attr_text(item) for item in cast('tuple[object, ...]', value)])}]"


_ATTR_WRITERS: dict[type, Callable[[object], str]] = {
    bool: lambda value: "true" if value else "false",
    float: _float,
    str: _string,
    tuple: _tuple,
    type(None): lambda value: "none",
    DType: str,
    PointerType: str,
    TileType: str,
    BufferType: str,
}


def _attrs_text(items: Iterable[tuple[str, object]]) -> str:
    text = ", ".join([f"{name} = {attr_text(value)}" for name, value in items])
    return f" {{{text}}}" if text else ""


def _op_attrs(op: Op) -> str:
    attrs = op.attrs
    shown = _attrs_to_show.get(type(op)) or _shown_attrs(type(op))
    parts: list[str] = []
    for name, has_default, default in shown:
        value = attrs.get(name, _ABSENT)
        if value is _ABSENT:  # an invalid op, in a report of the verifier
            continue
        if has_default and (value is default or _same(value, default)):
            continue
        parts.append(f"{name} = {attr_text(value)}")
    return f" {{{', '.join(parts)}}}" if parts else ""


def _shown_attrs(cls: type[Op]) -> tuple[tuple[str, bool, object], ...]:
    fields = cls.attr_fields
    shown = tuple(
        (f.name, f.has_default, f.default) for f in fields if f.name not in RESULT_TYPE_ATTRS
    )
    _attrs_to_show[cls] = shown
    return shown


def _same(value: object, default: object) -> bool:
    """Whether values are equal and of the same types: 0, 0.0 and False differ."""
    return value == default and attr_text(value) == attr_text(default)


def _frame_text(frame: SourceLoc) -> str:
    """`"file":line:column:end in "function"`; the column is 1-based, the end the last column."""
    text = f"{_string(frame.file)}:{frame.line}"
    if frame.col >= 0:
        text += f":{frame.col + 1}"
        if frame.end_col >= 0:
            text += f":{frame.end_col}"
    return f"{text} in {_string(frame.function)}" if frame.function else text
