"""What a launch has run, as machine code has to know it to make others like it."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.runtime.launch.bound_call import Call
from tilewright.runtime.launch.variant import GlobalCheck, Variant


@dataclass(frozen=True, slots=True)
class Found:
    """A launch's arguments, bound, and the variant that it has run.

    checks: what must hold, beside the variant's globals, for launches like it to run that too.
    """

    call: Call
    variant: Variant
    checks: tuple[GlobalCheck, ...] = ()
