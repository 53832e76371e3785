"""The mistakes that launching and tuning can meet, where Triton has them."""

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
