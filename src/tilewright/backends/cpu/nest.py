"""Loops of a nest, written as sections of `Code`.

    with loop(code, extent=128, step=16) as i:      for (i = 0; i < 128; i += 16)
        ...                                             instructions at level of i go here

A loop that runs once is no loop. Values carried around a loop are phis: `carry` gives the current
one, `Loop.update` sets what the next iteration sees, `Loop.final` is valid after it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tilewright.llvm import Code, Val, integer_literal


@dataclass(slots=True)
class Loop:
    """One counted loop under construction."""

    code: Code
    index: Val
    phis: list[Val] = field(default_factory=list[Val])
    inits: list[Val] = field(default_factory=list[Val])
    nexts: list[Val] = field(default_factory=list[Val])
    runs_once: bool = False

    def carry(self, init: Val) -> Val:
        """A value that the loop carries, starting at `init`."""
        if self.runs_once:
            phi = replace(init)  # a Val of its own: two values may start alike
        else:
            phi = Val(self.code.name("c"), init.type, self.code.level)
        self.phis.append(phi)
        self.inits.append(init)
        self.nexts.append(phi)
        return phi

    def update(self, phi: Val, value: Val) -> None:
        """The next iteration sees `value`."""
        self.nexts[self._position(phi)] = value

    def final(self, phi: Val) -> Val:
        """The carried value after the last iteration; ask after the loop."""
        value = self.nexts[self._position(phi)]
        return value if self.runs_once else Val(value.text, value.type, self.code.level)

    def _position(self, phi: Val) -> int:
        return next(i for i, known in enumerate(self.phis) if known is phi)


@contextmanager
def loop(code: Code, extent: int, step: int = 1, start: int = 0) -> Generator[Loop]:
    """Open a counted loop; `extent - start` is positive and a multiple of `step`."""
    if start + step >= extent:
        yield Loop(code, integer_literal(start), runs_once=True)
        return
    head, latch, done, before = (code.label(h) for h in ("head", "latch", "done", "before"))
    code.sections.append([])
    opened = Loop(code, Val(code.name("i"), "i32", code.level))
    yield opened
    body = code.sections.pop()
    following = code.name("n")
    code.line(f"br label %{before}")
    code.line(f"{before}:")
    code.line(f"br label %{head}")
    code.line(f"{head}:")
    code.line(f"{opened.index} = phi i32 [ {start}, %{before} ], [ {following}, %{latch} ]")
    for phi, init, value in zip(opened.phis, opened.inits, opened.nexts, strict=True):
        code.line(f"{phi} = phi {phi.type} [ {init}, %{before} ], [ {value}, %{latch} ]")
    code.sections[-1].extend(body)
    code.line(f"br label %{latch}")
    code.line(f"{latch}:")
    code.line(f"{following} = add nuw nsw i32 {opened.index}, {step}")
    more = code.name("m")
    code.line(f"{more} = icmp ult i32 {following}, {extent}")
    code.line(f"br i1 {more}, label %{head}, label %{done}")
    code.line(f"{done}:")
