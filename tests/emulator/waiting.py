"""What a warp waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Step = Callable[[Any], None]


@dataclass
class Wait:
    """is_over: whether the warp may go on; describe: what it waits for, in words."""

    is_over: Callable[[], bool]
    describe: Callable[[], str]


class Blocked(Exception):
    """Some warps cannot go on; they try the instruction again when their wait is over.

    resume: does the rest of the line for whoever is active then; None for all of the line.
    """

    def __init__(self, waits: Mapping[int, Wait]) -> None:
        super().__init__()
        self.waits = waits
        self.resume: Step | None = None
