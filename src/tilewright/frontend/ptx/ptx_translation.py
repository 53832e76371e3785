"""Inline PTX as a function of a group of scalars, in the language.

    mul.rn.f32 $0, $1, $1;        constraints "=f,f"

is, for one element, a function of a scalar that returns its square.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from tilewright import language as tl
from tilewright.frontend.ptx.ptx_instructions import (
    SPECIAL,
    TABLE,
    TYPES,
    joined,
    parts_of,
    typed,
)
from tilewright.language import dtype, tensor
from tilewright.support import errors

_NOTHING = re.compile(r"(?:bar|barrier|membar|fence|griddepcontrol|nanosleep)(?:\..*)?")
"""Instructions without an effect where one thread runs a program."""

_SIZES = {"c": 8, "h": 16, "r": 32, "l": 64, "f": 32, "d": 64}
"""Letter of a constraint -> bits of its registers."""


class Assembly(NamedTuple):
    """A call of inline assembly. args, results: dtypes; pack: elements in a group."""

    text: str
    constraints: str
    args: tuple[dtype, ...]
    results: tuple[dtype, ...]
    pack: int

    @property
    def registers(self) -> list[str]:
        """The constraints of results, then of arguments, without clobbers."""
        parts = [part.strip() for part in self.constraints.split(",")]
        return [part for part in parts if part and part[0] != "~"]

    def share(self, kind: dtype) -> int:
        """Elements of a group that share a register."""
        return min(self.pack, max(1, 32 // max(8, kind.primitive_bitwidth)))

    def registers_of(self, kinds: Sequence[dtype]) -> int:
        """The number of registers for groups of elements."""
        return sum(self.pack // self.share(kind) for kind in kinds)

    def mistake(self) -> tuple[str, str] | None:
        """The constraints that are expected and those found, if they are wrong."""
        results, args = map(self.registers_of, (self.results, self.args))
        written, read = self.registers[:results], self.registers[results:]
        are_results = [part.startswith("=") for part in self.registers]
        if are_results != [True] * results + [False] * args:
            return f"of {results} results, as '=r', and {args} arguments", repr(self.constraints)
        same = [str(number) for number in range(results)]
        for part in [part.lstrip("=&") for part in written] + [r for r in read if r not in same]:
            if part not in _SIZES:
                letters = f"letters of {', '.join(_SIZES)}, or numbers of results"
                return letters, repr(part)
        return None


def translated(assembly: Assembly, args: Sequence[tensor]) -> list[tensor]:
    """The groups of the results, for groups of arguments. Errors: InvalidOperation."""
    return _Translation(assembly).run(args)


class _Translation:
    """One call. registers: values by name."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self.registers: dict[str, tensor] = {}
        self.letters = [part.lstrip("=&") for part in assembly.registers]

    def run(self, args: Sequence[tensor]) -> list[tensor]:
        """The groups of the results. Errors: InvalidOperation for unknown instructions."""
        outputs = self.assembly.registers_of(self.assembly.results)
        for number, value in enumerate(self._packed(args), outputs):
            letter = self.letters[number]
            if letter.isdigit():
                self.registers[f"${letter}"] = value
                letter = self.letters[int(letter)]
            self.registers[f"${number}"] = self._of_size(value, letter)
        for statement in _statements(self.assembly.text):
            self._execute(statement)
        return self._results()

    def _fail(self, what: str, reason: str) -> NoReturn:
        advice = "write it in the language, or launch the kernel on a GPU"
        doing = f"run the assembly '{what}' here"
        raise errors.InvalidOperation(doing, reason, advice)

    def _of_size(self, value: tensor, letter: str) -> tensor:
        size = _SIZES[letter]
        if value.dtype.is_ptr():
            self._fail(self.assembly.constraints, f"a register '{letter}' has no meaning here")
        same = value.dtype.primitive_bitwidth == size
        return value if same else typed(value, tl.get_int_dtype(size, False))

    # -- groups -----------------------------------------------------------------------------------

    def _packed(self, args: Sequence[tensor]) -> list[tensor]:
        packed: list[tensor] = []
        pack = self.assembly.pack
        for start in range(0, len(args), pack):
            count = self.assembly.share(args[start].dtype)
            for first in range(start, start + pack, count):
                group = args[first : first + count]
                packed.append(group[0] if count == 1 else joined(group))
        return packed

    def _results(self) -> list[tensor]:
        results: list[tensor] = []
        number = 0
        for kind in self.assembly.results:
            count = self.assembly.share(kind)
            for _ in range(self.assembly.pack // count):
                results += self._elements(f"${number}", kind, count)
                number += 1
        return results

    def _elements(self, name: str, kind: dtype, count: int) -> list[tensor]:
        size = max(8, kind.primitive_bitwidth)
        whole = typed(self._read(name), tl.get_int_dtype(size * count, False))
        parts = [whole] if count == 1 else parts_of(whole, count)
        return [typed(part, kind) for part in parts]

    # -- statements -------------------------------------------------------------------------------

    def _execute(self, statement: str) -> None:
        match = re.fullmatch(r"(?:@(!?)([\w$%]+)\s+)?(\S+)\s*(.*)", statement)
        assert match is not None
        negated, guard, name, rest = match.groups()
        if name == ".reg" or _NOTHING.fullmatch(name):
            return
        if not rest:
            self._fail(statement, "it is no instruction")
        target, *sources = _operands(rest)
        if re.fullmatch(r"mov\.b\d+", name) and "{" in rest:
            self._move(target, sources[0])
            return
        value = self._computed(name, statement, sources)
        if guard is not None and target in self.registers:
            old, holds = typed(self.registers[target], value.dtype), self._read(guard)
            value = tl.where(holds, old, value) if negated else tl.where(holds, value, old)
        self.registers[target] = value

    def _computed(self, name: str, statement: str, sources: Sequence[str]) -> tensor:
        for pattern, operands, compute in TABLE:
            match = re.fullmatch(pattern, name)
            if match is not None:
                values = [self._read(source, name) for source in sources]
                if operands:
                    values = [typed(value, TYPES[match[operands]]) for value in values]
                try:
                    return compute(match, values)
                except IndexError:
                    self._fail(statement, f"{name} needs more operands")
        self._fail(statement, f"only GPUs have the instruction {name}")

    def _move(self, target: str, source: str) -> None:
        """Several registers to one, or one to several."""
        if source.startswith("{"):
            parts = [self._read(part) for part in _operands(source.strip("{}"))]
            self.registers[target] = joined(parts)
            return
        names = _operands(target.strip("{}"))
        parts = parts_of(self._read(source), len(names))
        self.registers.update(zip(names, parts, strict=True))

    def _read(self, token: str, instruction: str = "") -> tensor:
        value = self.registers.get(token)
        if value is not None:
            return value
        if token in SPECIAL:
            return SPECIAL[token]()
        number = _literal(token)
        if number is None:
            self._fail(token, "no instruction sets this register")
        if isinstance(number, float):
            kind = tl.float64 if "f64" in instruction else tl.float32
            return tl.full((), number, kind)
        return tl.full((), number, tl.uint32 if number >= 2**31 else tl.int32)


def _literal(token: str) -> int | float | None:
    """A number in PTX: decimal, hexadecimal, or 0f and the bits of a float."""
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", token):
        return _float_of(int(token[2:], 16))
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", token):
        return int(token.rstrip("U"), 0)
    return float(token) if re.fullmatch(r"-?\d+\.\d*(?:[eE]-?\d+)?", token) else None


def _float_of(bits: int) -> float:
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        size = float("nan") if fraction else float("inf")
    else:
        size = (fraction + (0x800000 if exponent else 0)) * 2.0 ** (max(exponent, 1) - 150)
    return -size if sign else size


def _statements(text: str) -> list[str]:
    """The statements, without comments and braces of scopes."""
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    # Braces of operands follow an instruction or a comma, those of scopes surround statements.
    parts = [re.sub(r"^[{}\s]+", "", part).strip() for part in bare.split(";")]
    return [" ".join(part.split()) for part in parts if part and part.strip("{} \n")]


def _operands(text: str) -> list[str]:
    """The operands: the text split at commas outside of braces."""
    parts = re.findall(r"\{[^}]*\}|[^,\s][^,]*", text)
    return [part.strip() for part in parts]
