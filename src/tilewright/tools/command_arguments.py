"""Argument types that several commands share."""

from __future__ import annotations

import argparse
import math

_LONGEST = 1000
"""Characters of a number; Python refuses to read integers of more than 4300."""


def natural(text: str) -> int:
    """An integer of at least 0, for `add_argument(type=)`. Errors: ArgumentTypeError."""
    if not text.isdecimal() or len(text) > _LONGEST:
        raise argparse.ArgumentTypeError(f"expected an integer of at least 0, found '{text}'")
    return int(text)


def duration(text: str) -> float:
    """Seconds, more than 0, for `add_argument(type=)`. Errors: ArgumentTypeError, ValueError."""
    seconds = float(text)
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"expected seconds, more than 0, found '{text}'")
    return seconds


def positive(text: str) -> int:
    """An integer of at least 1, for `add_argument(type=)`. Errors: ArgumentTypeError."""
    number = natural(text)
    if number == 0:
        raise argparse.ArgumentTypeError("expected an integer of at least 1, found '0'")
    return number
