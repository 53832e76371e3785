"""Makes a failing program small: it takes things away for as long as the program still fails.

The model refuses whatever loses its meaning on the way, so that every step is a valid program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from tests.fuzz.program_dtypes import BOOL, FLOATS, NUMBERS, Type
from tests.fuzz.program_tree import (
    ArrayArg,
    ConstantArg,
    Expr,
    For,
    If,
    Let,
    NumberArg,
    Program,
    Stmt,
    Store,
    While,
    blocks_of,
    copied,
    walk,
)
from tests.fuzz.run_program import Failure

StillFails = Callable[[Program], bool]
Steps = Callable[[Program], Iterator[Program]]
Path = tuple[tuple[int, int], ...]
"""(place in a block, number of the block inside that statement) ... down to a block."""


def fails_alike(
    candidate: Program, failure: Failure, run: Callable[[Program], Failure | None]
) -> bool:
    """Whether a smaller program fails in the same way."""
    try:
        found = run(candidate)
    except Exception:  # it has lost its meaning
        return False
    return found is not None and found.signature == failure.signature


def reduced(program: Program, still_fails: StillFails, seconds: float) -> Program:
    """A smaller program that still fails."""
    deadline = time.monotonic() + seconds
    best = program
    shrunk = True
    while shrunk and time.monotonic() < deadline:
        shrunk = False
        for steps in (_without_statements, _flattened, _simpler_launch, _simpler_values,
                      _simpler_arguments):  # fmt: skip
            found = _exhausted(best, steps, still_fails, deadline)
            shrunk = shrunk or found is not best
            best = found
    return tidied(best)


def _exhausted(program: Program, steps: Steps, still_fails: StillFails, deadline: float) -> Program:
    """Take each kind of step where it can be taken, going on where the last one was."""
    best, place = program, 0
    while True:
        candidate = next(islice(steps(best), place, None), None)
        if candidate is None or time.monotonic() > deadline:
            return best
        if still_fails(tidied(candidate)):
            best = candidate
        else:
            place += 1


# ---- places --------------------------------------------------------------------------------------


def _paths(block: list[Stmt], path: Path = ()) -> Iterator[Path]:
    """All blocks, the outer ones first."""
    yield path
    for place, statement in enumerate(block):
        for number, inner in enumerate(blocks_of(statement)):
            yield from _paths(inner, (*path, (place, number)))


def _roots(program: Program) -> list[list[Stmt]]:
    return [program.body, *(f.body for f in program.functions)]


def _block_at(program: Program, root: int, path: Path) -> list[Stmt]:
    block = _roots(program)[root]
    for place, number in path:
        block = blocks_of(block[place])[number]
    return block


def _all_blocks(program: Program) -> list[tuple[int, Path]]:
    return [(n, path) for n, root in enumerate(_roots(program)) for path in _paths(root)]


def _changed(
    program: Program, root: int, path: Path, edit: Callable[[list[Stmt]], None]
) -> Program:
    found = copied(program)
    edit(_block_at(found, root, path))
    return found


# ---- statements ----------------------------------------------------------------------------------


def _without_statements(program: Program) -> Iterator[Program]:
    """Halves, quarters ... of each block left out, from its end."""
    for root, path in _all_blocks(program):
        count = len(_block_at(program, root, path))
        size = count
        while size:
            for start in range(count - size, -1, -size):
                yield _changed(program, root, path, _remove(start, size))
            size //= 2


def _remove(start: int, size: int) -> Callable[[list[Stmt]], None]:
    def edit(block: list[Stmt]) -> None:
        del block[start : start + size]

    return edit


def _flattened(program: Program) -> Iterator[Program]:
    """Bodies in the place of loops and branches; plain loops in the place of others."""
    for root, path in _all_blocks(program):
        for place, statement in enumerate(_block_at(program, root, path)):
            for other in _instead(statement):
                yield _changed(program, root, path, _put(place, other))


def _put(place: int, statements: list[Stmt]) -> Callable[[list[Stmt]], None]:
    def edit(block: list[Stmt]) -> None:
        block[place : place + 1] = statements

    return edit


def _instead(statement: Stmt) -> Iterator[list[Stmt]]:
    if isinstance(statement, If):
        yield statement.body
        yield statement.other
        if statement.other:
            yield [replace(statement, other=[])]
    elif isinstance(statement, While):
        yield statement.body
    elif isinstance(statement, For):
        start = statement.values[0] if len(statement.values) > 1 else _literal(0)
        yield [Let((statement.name,), (start,)), *statement.body]
        for hint in statement.hints:
            rest = {word: v for word, v in statement.hints.items() if word != hint}
            yield [replace(statement, hints=rest)]
        if statement.kind != "range" and not statement.hints:
            yield [replace(statement, kind="range")]
    elif isinstance(statement, Let) and len(statement.names) > 1:
        yield [Let((n,), (v,)) for n, v in zip(statement.names, statement.values, strict=True)]


# ---- expressions ---------------------------------------------------------------------------------


def _literal(value: Any) -> Expr:
    return Expr("literal", (), Type(type(value).__name__), (value,))


def _simpler_values(program: Program) -> Iterator[Program]:
    """A constant or a part of it for each expression; masks and initial sums left out."""
    for root, path in _all_blocks(program):
        for place, statement in enumerate(_block_at(program, root, path)):
            for values in _smaller_values(statement):
                yield _changed(program, root, path, _exchange(place, values))


def _smaller_values(statement: Stmt) -> Iterator[tuple[Expr, ...]]:
    values = statement.values
    if isinstance(statement, Store) and len(values) > 2:
        yield values[:2]
    for number, value in enumerate(values):
        for new in _smaller(value):
            yield (*values[:number], new, *values[number + 1 :])


def _exchange(place: int, values: tuple[Expr, ...]) -> Callable[[list[Stmt]], None]:
    def edit(block: list[Stmt]) -> None:
        block[place].values = values  # type: ignore[assignment]

    return edit


def _smaller(expr: Expr) -> Iterator[Expr]:
    """Simpler expressions of the same type, the simplest first."""
    yield from _constants(expr)
    for part in expr.walk():
        if part is not expr and part.type == expr.type:
            yield part
    if expr.op == "load" and len(expr.args) > 1:
        yield replace(expr, args=expr.args[:-1])
        yield replace(expr, args=expr.args[:1])
    if expr.op in ("atomic", "dot") and len(expr.args) > 2:
        yield replace(expr, args=expr.args[:2])
    for place, arg in enumerate(expr.args):
        for new in _smaller(arg):
            yield replace(expr, args=(*expr.args[:place], new, *expr.args[place + 1 :]))


def _constants(expr: Expr) -> Iterator[Expr]:
    if expr.op in ("zeros", "full", "literal", "arange", "pointer") or expr.dtype[0] == "*":
        return
    if expr.op == "constant":
        yield _literal(expr.data[1])
    if expr.dtype not in (*NUMBERS, BOOL):
        return
    for number in (0, 1):
        value = float(number) if expr.dtype in FLOATS else bool(number) if (
            expr.dtype == BOOL) else number  # fmt: skip
        if expr.shape:
            yield Expr("full", (_literal(value),), expr.type, (expr.dtype,))
        else:
            yield Expr("full", (_literal(value),), expr.type, (expr.dtype,))


# ---- arguments -----------------------------------------------------------------------------------


def _simpler_launch(program: Program) -> Iterator[Program]:
    if program.grid > 1:
        yield replace(copied(program), grid=1)
    for word, value in (("num_warps", 1), ("num_stages", 3), ("num_stages", 2), ("num_stages", 1)):
        if program.words[word] > value:
            yield replace(copied(program), words=program.words | {word: value})


def _simpler_arguments(program: Program) -> Iterator[Program]:
    for place, arg in enumerate(program.args):
        for other in _simpler_argument(arg):
            found = copied(program)
            found.args[place] = other
            yield found


def _simpler_argument(arg: Any) -> Iterator[Any]:
    if isinstance(arg, ArrayArg) and arg.contents != "zero":
        choices = ["zero", [1], *(["small"] if arg.contents == "wild" else [])]
        yield from (replace(arg, contents=c) for c in choices if c != arg.contents)
    elif isinstance(arg, NumberArg | ConstantArg) and type(arg.value) is int:
        smaller = (0, 2, 3, arg.value // 2, arg.value - 1)
        yield from (replace(arg, value=n) for n in smaller if abs(n) < abs(arg.value))


def tidied(program: Program) -> Program:
    """Without arguments and functions that nothing uses."""
    names, called = set[str](), set[str]()
    for part in _parts(program):
        names.update(d for d in part.data if isinstance(d, str))
        called.update(part.data[:1] if part.op == "call" else ())
    names |= {arg.same_as for arg in program.arrays() if arg.name in names}
    found = copied(program)
    found.args = [arg for arg in found.args if arg.name in names]
    found.functions = [f for f in found.functions if f.name in called]
    return found


def _parts(program: Program) -> Iterator[Expr]:
    """Every expression."""
    for root in _roots(program):
        for statement in walk(root):
            for value in statement.values:
                yield from value.walk()
