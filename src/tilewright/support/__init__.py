"""Settings, diagnostics, errors and the event stream: what every layer may use.

The modules `boundary`, `config`, `diagnostics`, `errors`, `trace` are facades in their own right:
`from tilewright.support import errors`, then `errors.ShapeMismatch(...)`, is the way to raise.
"""

from .boundary import KernelBoundary, UserBoundary, kernel_boundary, user_boundary
from .callbacks import ask
from .collection import collection_paused
from .config import Settings, settings
from .diagnostics import Diagnostic, Severity, SourceLines, SourceLoc, render
from .errors import TilewrightError, TilewrightWarning
from .grid import Grid, grid_for, normal_grid
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
    "Grid",
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
    "ask",
    "collection_paused",
    "current_recorder",
    "grid_for",
    "kernel_boundary",
    "normal_grid",
    "recording",
    "render",
    "settings",
    "timed",
    "user_boundary",
]
