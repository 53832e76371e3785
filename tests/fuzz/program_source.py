"""The source text of a program."""

from __future__ import annotations

from tests.fuzz.function_library import LIBRARY, SCALAR_FUNCTIONS
from tests.fuzz.operation_table import text
from tests.fuzz.program_tree import (
    Barrier,
    ConstantArg,
    Do,
    For,
    Function,
    If,
    Let,
    Program,
    Return,
    Stmt,
    Store,
    Unpack,
    While,
    walk,
)

HEAD = "import tilewright\nimport tilewright.language as tl\n"


def source(program: Program) -> str:
    """A module that defines `kernel`."""
    parts = [HEAD]
    names = _called(program)
    library = LIBRARY | SCALAR_FUNCTIONS
    parts += [library[name].source for name in library if name in names]
    parts += [_function(f) for f in program.functions if f.name in names]
    params = [f"{a.name}: tl.constexpr" if isinstance(a, ConstantArg) else a.name
              for a in program.args]  # fmt: skip
    body = "\n".join(_block(program.body, "    ")) or "    pass"
    parts.append(f"@tilewright.jit\ndef kernel({', '.join(params)}):\n{body}\n")
    return "\n\n".join(part.strip("\n") + "\n" for part in parts)


def _called(program: Program) -> set[str]:
    """The functions that are reached from the kernel."""
    bodies = {f.name: f.body for f in program.functions}
    found: set[str] = set()
    pending = [program.body]
    while pending:
        for statement in walk(pending.pop()):
            for value in statement.values:
                names = {e.data[0] for e in value.walk() if e.op in ("call", *_USERS)} - found
                found |= names
                pending += [bodies[name] for name in names if name in bodies]
    return found


_USERS = ("reduce", "scan", "reduce_pair", "scan_pair", "map")
"""Operations whose first datum is a function."""


def _function(function: Function) -> str:
    params = [f"{name}: tl.constexpr" if type_.dtype in ("int", "float", "bool") else name
              for name, type_ in function.params]  # fmt: skip
    body = "\n".join(_block(function.body, "    "))
    return f"@tilewright.jit\ndef {function.name}({', '.join(params)}):\n{body}\n"


def _block(block: list[Stmt], indent: str) -> list[str]:
    lines: list[str] = []
    for statement in block:
        lines += _lines(statement, indent)
    return lines


def _lines(statement: Stmt, indent: str) -> list[str]:
    inner = indent + "    "
    values = [text(value) for value in statement.values]
    if isinstance(statement, For):
        hints = [f"{word}={value}" for word, value in statement.hints.items()]
        head = f"for {statement.name} in {statement.kind}({', '.join([*values, *hints])}):"
        return [indent + head, *(_block(statement.body, inner) or [f"{inner}pass"])]
    if isinstance(statement, While):
        head = f"while {values[0]}:"
        return [indent + head, *(_block(statement.body, inner) or [f"{inner}pass"])]
    if isinstance(statement, If):
        lines = [f"{indent}if {values[0]}:", *(_block(statement.body, inner) or [f"{inner}pass"])]
        if statement.other:
            lines += [f"{indent}else:", *_block(statement.other, inner)]
        return lines
    return [indent + _simple(statement, values)]


def _simple(statement: Stmt, values: list[str]) -> str:
    joined = ", ".join(values)
    if isinstance(statement, Let | Unpack):
        return f"{', '.join(statement.names)} = {_bare(joined)}"
    if isinstance(statement, Store):
        mask = [f"mask={value}" for value in values[2:]]
        return f"tl.store({', '.join([*map(_bare, values[:2]), *mask])})"
    if isinstance(statement, Barrier):
        return "tl.debug_barrier()"
    assert isinstance(statement, Do | Return)
    return joined if isinstance(statement, Do) else f"return {_bare(joined)}"


def _bare(value: str) -> str:
    """Without parentheses around the whole."""
    if not (value.startswith("(") and value.endswith(")")):
        return value
    depth = 0
    for place, character in enumerate(value):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and place < len(value) - 1:
            return value
    return value[1:-1]
