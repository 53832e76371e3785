"""Chebyshev series, summed by Clenshaw's recurrence, which stays as exact as its largest term."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.language.tensors import tensor


def chebyshev(coefficients: Sequence[float], t: tensor) -> tensor:
    """c[0] + c[1] T1(t) + ..., for t in [-1, 1]."""
    twice = t + t
    ahead: Any = 0.0
    here: Any = t * 0.0 + coefficients[-1]
    for c in reversed(coefficients[1:-1]):
        here, ahead = twice * here + (c - ahead), here
    return t * here + (coefficients[0] - ahead)
