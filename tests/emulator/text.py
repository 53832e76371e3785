"""The LLVM text that the NVIDIA lowering writes, taken apart: types, operands, blocks."""

from __future__ import annotations

import functools
import re
import struct
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

DTYPES: dict[str, Any] = {
    "i1": np.bool_, "i8": np.uint8, "i16": np.uint16, "i32": np.uint32, "i64": np.uint64,
    "half": np.float16, "bfloat": ml_dtypes.bfloat16, "float": np.float32, "double": np.float64,
    "ptr": np.uint64,
}  # fmt: skip
"""NumPy dtype of a register; integers are unsigned, i128 is an object array of ints."""

_FIRST_TYPE = re.compile(
    r"\s*(<\d+ x [\w ]+>|\{[^{}]*\}|\[[^\]]*\]|ptr addrspace\(\d+\)|(?:range\([^)]*\) )?[\w.]+)\s*"
)


@functools.cache
def dtype_of(type_: str) -> Any:
    """Of a scalar type, or of the elements of a vector."""
    element = type_.split(" x ")[1][:-1] if type_.startswith("<") else type_
    if element.startswith("ptr"):
        return np.uint64
    return DTYPES.get(element, object)


@functools.cache
def lanes_of(type_: str) -> int:
    """Elements of a vector; 0 for a scalar."""
    return int(type_[1:].split(" ", 1)[0]) if type_.startswith("<") else 0


def split_type(text: str) -> tuple[str, str]:
    """The type at the start of `text`, and the rest."""
    match = _FIRST_TYPE.match(text)
    assert match, text
    return match[1], text[match.end() :]


_NESTED = re.compile(r'["(\[{<]')


def split_commas(text: str) -> list[str]:
    """Parts between the commas that are in no brackets and no quotes."""
    if not _NESTED.search(text):
        found = [part.strip() for part in text.split(",")]
        return found if found[-1] else found[:-1]
    parts, depth, start, quoted = list[str](), 0, 0, False
    for i, c in enumerate(text):
        if c == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif c in "([{<":
            depth += 1
        elif c in ")]}>":
            depth -= 1
        elif c == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def literal(text: str, type_: str) -> Any:
    """The value of a constant."""
    dtype, lanes = dtype_of(type_), lanes_of(type_)
    if text.startswith("splat ("):
        inner, value = split_type(text[7:-1])
        return np.full(lanes, literal(value, inner), dtype)
    if lanes and text.startswith("<"):
        return np.array(
            [literal(*reversed(split_type(t))) for t in split_commas(text[1:-1])], dtype
        )
    if text in ("poison", "undef", "zeroinitializer", "null"):
        return np.zeros(lanes, dtype) if lanes else np.zeros((), dtype)[()]
    if text.startswith("inttoptr"):
        return np.uint64(int(re.findall(r"-?\d+", text)[1]))
    return _scalar(text, type_, dtype)


def _scalar(text: str, type_: str, dtype: Any) -> Any:
    if type_ == "i1":
        return np.bool_(text in ("true", "1"))
    if text.startswith(("0xH", "0xR")):
        return np.uint16(int(text[3:], 16)).view(dtype)
    if text.startswith("0x"):
        number = struct.unpack("<d", struct.pack("<Q", int(text[2:], 16)))[0]
        return dtype(number)
    if dtype in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16):
        return dtype(float(text))
    if dtype is object:
        return int(text) & ((1 << 128) - 1)
    return dtype(int(text) & ((1 << (8 * np.dtype(dtype).itemsize)) - 1))


@dataclass
class Instruction:
    """One line: the name it defines ("" for none), the first word, and the rest."""

    result: str
    word: str
    rest: str


@dataclass
class Block:
    label: str
    instructions: list[Instruction] = field(default_factory=list[Instruction])


@dataclass
class Text:
    """A module: parameters of its kernel as (type, name), blocks, and constants of bytes."""

    parameters: list[tuple[str, str]]
    blocks: list[Block]
    constants: dict[str, bytes]
    variables: dict[str, int]


_NAMED_TYPE = re.compile(r"^(%[\w.]+) = type (\{.*\})$", re.MULTILINE)
_LINE = re.compile(r"(?:(%[\w.]+) = )?(?:tail )?(\w+)\s*(.*)")
_CONSTANT = re.compile(r'(@[\w.]+) = .*constant \[\d+ x i8\] c"((?:[^"\\]|\\..)*)"')
_VARIABLE = re.compile(r"(@[\w.]+) = (?!external).*global \[(\d+) x i(\d+)\]")


def parse(text: str) -> Text:
    """Take the module apart; it has one function with a body."""
    for name, members in _NAMED_TYPE.findall(text):
        text = text.replace(f" {name} ", f" {members} ")
    start = text.index("define ")
    head, _, rest = text[start:].partition("{\n")
    body = rest[: rest.index("\n}")]
    arguments = head[head.index("(") + 1 : head.rindex(")")]
    parameters = [_parameter(part) for part in split_commas(arguments)]
    blocks: list[Block] = []
    for raw in body.split("\n"):
        line = raw.partition(", !dbg ")[0].strip()
        if line.endswith(":"):
            blocks.append(Block(line[:-1]))
        elif line:
            match = _LINE.match(line)
            assert match, line
            blocks[-1].instructions.append(Instruction(match[1] or "", match[2], match[3]))
    constants = {m[1]: _bytes(m[2]) for m in _CONSTANT.finditer(text)}
    variables = {m[1]: int(m[2]) * int(m[3]) // 8 for m in _VARIABLE.finditer(text)}
    return Text(parameters, blocks, constants, variables)


def _parameter(text: str) -> tuple[str, str]:
    type_, rest = split_type(text)
    return type_, rest.split()[-1]


def _bytes(text: str) -> bytes:
    return re.sub(rb"\\([0-9A-Fa-f]{2})", lambda m: bytes([int(m[1], 16)]), text.encode("latin-1"))
