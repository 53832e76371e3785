"""The error for a helper that needs something which this machine or environment lacks."""

from __future__ import annotations

from tilewright.support import TilewrightError
from tilewright.support.data_class import dataclass


@dataclass(eq=False)
class NotAvailableError(TilewrightError, RuntimeError):
    """What was asked for, why it cannot be had here, and what to do instead."""

    code = "TW601"
    template = "{wanted} is not available: {reason}"
    hint_template = "{instead}"

    wanted: str
    reason: str
    instead: str
