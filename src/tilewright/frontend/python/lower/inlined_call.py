"""A call of a language function, inlined into IR that someone else is building."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.frontend.python.lower.function_frame import Session
from tilewright.frontend.python.lower.inlining import inline
from tilewright.frontend.python.lower.language_values import wrap
from tilewright.frontend.semantics import Context
from tilewright.language import DeviceFunction


def inline_call(
    ctx: Context, fn: DeviceFunction, args: Sequence[object], kwargs: Mapping[str, object]
) -> object:
    """The value that the call returns, its ops emitted through `ctx`.

    For the interpreter, whose combine functions of reductions are IR. Raises SourceNotAvailable.
    """
    named = {key: wrap(value) for key, value in kwargs.items()}
    return inline(Session(ctx), fn, [wrap(arg) for arg in args], named, ctx.loc)
