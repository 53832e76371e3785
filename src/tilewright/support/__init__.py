"""Settings, diagnostics, errors and the event stream: what every layer may use.

The modules `boundary`, `config`, `diagnostics`, `errors`, `trace` are facades in their own right:
`from tilewright.support import errors`, then `errors.ShapeMismatch(...)`, is the way to raise.
"""

from .boundary import KernelBoundary, UserBoundary, kernel_boundary, user_boundary
from .collection import collection_paused
from .config import Settings, settings
from .diagnostics import Diagnostic, Severity, SourceLines, SourceLoc, render
from .errors import TilewrightError, TilewrightWarning
from .trace import (
    Event,
    ListRecorder,
    PassEnded,
    PassStarted,
    Recorder,
    RuleFired,
    StageText,
    TeeRecorder,
    Timing,
    VariantAdded,
    current_recorder,
    recording,
    timed,
)

__all__ = [
    "Diagnostic",
    "Event",
    "KernelBoundary",
    "ListRecorder",
    "PassEnded",
    "PassStarted",
    "Recorder",
    "RuleFired",
    "Settings",
    "Severity",
    "SourceLines",
    "SourceLoc",
    "StageText",
    "TeeRecorder",
    "TilewrightError",
    "TilewrightWarning",
    "Timing",
    "UserBoundary",
    "VariantAdded",
    "collection_paused",
    "current_recorder",
    "kernel_boundary",
    "recording",
    "render",
    "settings",
    "timed",
    "user_boundary",
]
