"""Variables that begin as literals and are assigned in a loop: tensors from the loop's start on.

The compiler gives them a type where the loop begins (`total = 0` becomes an int32 before
`total += x`), so that what the loop adds to is no weak literal. Here the local variables of the
running function are changed in the same way, just before its first iteration. A `while` begins
unseen where its condition has no tensor; its variables stay Python numbers until one joins in.
"""

from __future__ import annotations

import ast
import ctypes
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from types import CodeType, FrameType, FunctionType
from typing import Any

from tilewright.frontend.python import source_of
from tilewright.language import constexpr
from tilewright.support import errors

Place = tuple[int, int]
"""Line in the file and column of an expression."""

_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class LoopVariables:
    """For each function, the names that its loops assign, by where the loop's head is."""

    def __init__(self) -> None:
        self._loops: dict[CodeType, dict[Place, tuple[str, ...]]] = {}

    def know(self, fn: FunctionType) -> str:
        """Look for the loops of a function; one without source text has none that are known.

        Returns the function's file, with its lines if they are known."""
        try:
            source = source_of(fn)
        except errors.SourceNotAvailable:
            self._loops[fn.__code__] = {}
            return fn.__code__.co_filename
        self._loops[fn.__code__] = {
            (part.lineno + source.line_shift, part.col_offset): tuple(
                dict.fromkeys(_assigned(loop))
            )
            for loop in ast.walk(source.tree)
            if isinstance(loop, ast.For | ast.While)
            for part in _heads(loop)
        }
        return source.file

    def enter(self, materialize: Callable[[Any], Any]) -> None:
        """Called from a loop's head: its variables that are literals become tensors."""
        frame = self._user_frame()
        if frame is None:
            return
        names = self._loops[frame.f_code].get(_place(frame), ())
        for name in names:
            value = frame.f_locals.get(name)
            plain = value.value if isinstance(value, constexpr) else value
            if isinstance(plain, int | float):
                _set_local(frame, name, materialize(plain))

    def _user_frame(self) -> FrameType | None:
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None and frame.f_code not in self._loops:
            frame = frame.f_back
        return frame


def _heads(loop: ast.For | ast.While) -> Iterator[ast.expr | ast.stmt]:
    """What a frame may be evaluating when a loop begins.

    For a `for` that is, by version of Python, the statement or what it iterates over; for a `while`
    a part of its condition.
    """
    if isinstance(loop, ast.For):
        yield loop
        yield loop.iter
    else:
        yield from (part for part in ast.walk(loop.test) if isinstance(part, ast.expr))


def _assigned(loop: ast.For | ast.While) -> Iterator[str]:
    """Names that the body of a loop assigns, without the loop's own variable."""
    own: set[str] = set()
    if isinstance(loop, ast.For):
        own = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    pending: list[ast.AST] = [*loop.body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store) and node.id not in own:
                yield node.id
        elif not isinstance(node, _OWN_SCOPE):
            pending += ast.iter_child_nodes(node)


def _place(frame: FrameType) -> Place:
    """Where the expression that a frame is evaluating begins."""
    positions = islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
    line, _, column, _ = next(positions, (None,) * 4)
    return (line or 0, -1 if column is None else column)


def _set_local(frame: FrameType, name: str, value: object) -> None:
    """Assign a local variable of a running function, as debuggers do."""
    frame.f_locals[name] = value
    if sys.version_info < (3, 13):  # from 3.13 on, f_locals writes through
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
