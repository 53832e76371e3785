"""Conditions on the arguments of a launch, tested once before a loop.

%n = arith.cast %stride : i64
%d = arith.sub %n, 64
%ok = arith.compare ge %d, 0            one of the conditions that separate iterations holds
cf.for ...
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tilewright.analysis import Form, Way
from tilewright.backends.nvidia.passes._materialize_forms import is_computable, materialize
from tilewright.ir import Builder, Op, Value


class LaunchConditions:
    """The conditions of one function, each computed once."""

    def __init__(self) -> None:
        self._made: dict[tuple[Op, tuple[Way, ...]], Value] = {}

    def value(self, loop: Op, ways: Sequence[Way]) -> Value | None:
        """Whether one of the conditions holds, computed before a loop; None if values are
        missing."""
        testable = tuple(way for way in ways if all(is_computable(form, loop) for form in way))
        if not testable:
            return None
        if (loop, testable) not in self._made:
            builder = Builder.at(loop)
            holds = [
                reduce(builder.bit_and, [_holds(builder, form, loop) for form in way])
                for way in testable
            ]
            self._made[loop, testable] = reduce(builder.bit_or, holds)
        return self._made[loop, testable]


def _holds(builder: Builder, form: Form, loop: Op) -> Value:
    """Whether a form is not negative."""
    return builder.ge(materialize(builder, form, loop), 0)
