"""Errors of launches and tuning, under Triton's names."""

from tilewright.support.errors import (
    AutotunerError,
    InterpreterError,
    OutOfResources,
    PTXASError,
    TilewrightError,
)

TritonError = TilewrightError

__all__ = [
    "AutotunerError",
    "InterpreterError",
    "OutOfResources",
    "PTXASError",
    "TilewrightError",
    "TritonError",
]
