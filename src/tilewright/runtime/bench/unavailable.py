"""The error for a helper whose requirement this machine or environment lacks."""

from __future__ import annotations

from tilewright.support import TilewrightError
from tilewright.support.data_class import dataclass


@dataclass(eq=False)
class NotAvailableError(TilewrightError, RuntimeError):
    """A requirement that is missing: what, why, and the remedy."""

    code = "TW601"
    template = "{wanted} is not available: {reason}"
    hint_template = "{instead}"

    wanted: str
    reason: str
    instead: str
