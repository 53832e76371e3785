"""Loops of a nest, written as sections of `Code`.

    with loop(code, extent=128, step=16) as i:      for (i = 0; i < 128; i += 16)
        ...                                             instructions at level of i go here

A loop that runs once is no loop. Loop-carried values are phis: `carry` gives the current value,
`Loop.update` sets that of the next iteration, `Loop.final` is valid after the loop.

A loop may exit early, where its iterations have the same effect (see loop_clipping.py):

    latch:  if (i + 16 < end) goto head; goto check
    check:  if (i + 16 < 128 and a carried value changed) goto head
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import field, replace

from tilewright.llvm import LLVM_FLOATS, Code, Val, integer_literal
from tilewright.support.data_class import dataclass


@dataclass(slots=True)
class Loop:
    """One counted loop under construction.

    outlets: values of its last iteration that are used after it; poison if it may have run none
    """

    code: Code
    index: Val
    phis: list[Val] = field(default_factory=list[Val])
    inits: list[Val] = field(default_factory=list[Val])
    nexts: list[Val] = field(default_factory=list[Val])
    outlets: list[Val] = field(default_factory=list[Val])
    runs_once: bool = False
    following: Val | None = None

    def carry(self, init: Val) -> Val:
        """A value that the loop carries, starting at `init`."""
        if self.runs_once:
            phi = replace(init)  # a Val of its own: two values may have the same initial one
        else:
            phi = Val(self.code.name("c"), init.type, self.code.level)
        self.phis.append(phi)
        self.inits.append(init)
        self.nexts.append(phi)
        return phi

    def update(self, phi: Val, value: Val) -> None:
        """Set the value of `phi` in the next iteration."""
        self.nexts[self._position(phi)] = value

    def final(self, phi: Val) -> Val:
        """The carried value after the last iteration; valid after the loop."""
        value = self.nexts[self._position(phi)]
        return value if self.runs_once else Val(value.text, value.type, self.code.level)

    def _position(self, phi: Val) -> int:
        return next(i for i, own in enumerate(self.phis) if own is phi)


@contextmanager
def loop(
    code: Code,
    extent: int | Val,
    step: int = 1,
    start: int | Val = 0,
    active: Val | None = None,
) -> Generator[Loop]:
    """Open a counted loop. `extent - start` is positive and a multiple of `step`; if one of them is
    a value, it may not be positive, and the loop then runs no iteration.

    active: an i32 from which on iterations have the same effect: one of them runs, and then as many
    as it takes until the loop-carried values stay the same
    """
    known = isinstance(start, int) and isinstance(extent, int)
    if isinstance(start, int) and isinstance(extent, int) and start + step >= extent:
        yield Loop(code, integer_literal(start), runs_once=True)
        return
    head, latch, check, done, before = (
        code.label(h) for h in ("head", "latch", "check", "done", "before")
    )
    first, end = (integer_literal(n) if isinstance(n, int) else n for n in (start, extent))
    # Code that does not depend on the loop goes to the sections below, and so before its head.
    code.sections.append([])
    opened = Loop(code, Val(code.name("i"), "i32", code.level))
    yield opened
    code.line(f"br label %{latch}")
    code.line(f"{latch}:")
    following = code.let_here(f"add nuw nsw i32 {opened.index}, {step}", "i32")
    more = code.let_here(f"icmp ult i32 {following}, {end}", "i1")
    if active is None:
        code.line(f"br i1 {more}, label %{head}, label %{done}")
    else:
        go = code.compare("icmp ult", following, _end(code, active, end, step))
        code.line(f"br i1 {go}, label %{head}, label %{check}")
        code.line(f"{check}:")
        again = code.binary("and", more, _changed(opened))
        code.line(f"br i1 {again}, label %{head}, label %{done}")
    # The phis of the head name values of the body, so the body is inserted after them at the end.
    body = code.sections.pop()
    ends = (latch,) if active is None else (latch, check)
    # A block of its own: the phis need the label of the one block that enters the loop.
    code.line(f"br label %{before}")
    code.line(f"{before}:")
    if known:
        code.line(f"br label %{head}")
    else:
        some = code.let_here(f"icmp ult i32 {first}, {end}", "i1")
        code.line(f"br i1 {some}, label %{head}, label %{done}")
    code.line(f"{head}:")
    carried = [(opened.index, first, following)]
    carried += zip(opened.phis, opened.inits, opened.nexts, strict=True)
    for phi, init, value in carried:
        sources = "".join(f", [ {value}, %{end} ]" for end in ends)
        code.line(f"{phi} = phi {phi.type} [ {init}, %{before} ]{sources}")
    code.sections[-1].extend(body)
    code.line(f"{done}:")
    opened.following = Val(following.text, following.type, code.level)
    if not known:
        _merge(opened, first, before, ends[-1])


def _merge(opened: Loop, start: Val, before: str, last: str) -> None:
    """Phis, after a loop that may have run no iteration, of all values that are used after it."""

    def after(value: Val, otherwise: str) -> Val:
        sources = f"[ {otherwise}, %{before} ], [ {value}, %{last} ]"
        return opened.code.let_here(f"phi {value.type} {sources}", value.type)

    opened.nexts = [after(v, str(i)) for i, v in zip(opened.inits, opened.nexts, strict=True)]
    opened.outlets = [after(v, "poison") for v in opened.outlets]
    assert opened.following is not None
    opened.following = after(opened.following, str(start))


def _end(code: Code, active: Val, extent: Val, step: int) -> Val:
    """The end, a multiple of the step, of the iterations that run without a check."""
    end = active
    if step > 1:
        end = code.binary("add", end, integer_literal(step - 1))
        end = code.binary("and", end, integer_literal(-step))
    # One step more: the first of those with the same effect, which the check compares.
    end = code.binary("add", end, integer_literal(step))
    return code.intrinsic("smin", "i32", end, extent)


def _changed(opened: Loop) -> Val:
    """Whether an iteration changed any bit of the loop-carried values."""
    code, any_changed = opened.code, integer_literal(0, "i1")
    for phi, value in zip(opened.phis, opened.nexts, strict=True):
        # As bits: a NaN equals itself, and -0.0 is not 0.0.
        floating = LLVM_FLOATS.get(phi.element)
        bits = phi.element if floating is None else f"i{floating.bits}"
        before, after = code.convert("bitcast", phi, bits), code.convert("bitcast", value, bits)
        lanes = code.compare("icmp ne", before, after)
        if lanes.width > 1:
            mask = code.let(f"bitcast {lanes.typed} to i{lanes.width}", f"i{lanes.width}", lanes)
            lanes = code.compare("icmp ne", mask, integer_literal(0, mask.type))
        any_changed = code.binary("or", any_changed, lanes)
    return any_changed


@contextmanager
def steps_between(code: Code, first: Val, end: Val, step: int) -> Generator[Val]:
    """Open a loop over the steps from `first` on that begin before `end`, perhaps none; gives the
    index. Hoisted code runs in any case."""
    head, latch, done, before = (code.label(h) for h in ("head", "latch", "done", "before"))
    left = code.let_here(f"icmp ult {first.typed}, {end}", "i1")
    code.sections.append([])
    index = Val(code.name("i"), "i32", code.level)
    yield index
    code.line(f"br label %{latch}")
    code.line(f"{latch}:")
    following = code.let_here(f"add nuw nsw {index.typed}, {step}", "i32")
    more = code.let_here(f"icmp ult {following.typed}, {end}", "i1")
    code.line(f"br i1 {more}, label %{head}, label %{done}")
    body = code.sections.pop()
    code.line(f"br label %{before}")
    code.line(f"{before}:")
    code.line(f"br i1 {left}, label %{head}, label %{done}")
    code.line(f"{head}:")
    code.line(f"{index} = phi i32 [ {first}, %{before} ], [ {following}, %{latch} ]")
    code.sections[-1].extend(body)
    code.line(f"{done}:")
