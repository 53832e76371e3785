"""Figures with their limits, and the error of a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Check:
    """A figure with its limit: at least it, or at most it."""

    name: str
    value: float
    limit: float
    unit: str = ""
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.value <= self.limit if self.at_most else self.value >= self.limit


def relative_error(found: Any, reference: Any) -> float:
    """The norm of the difference over the norm; infinite if anything is not finite."""
    if not bool(found.isfinite().all()):
        return float("inf")
    return float((found.double() - reference).norm() / reference.norm())
