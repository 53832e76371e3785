"""Settings, diagnostics, errors and the event stream: what every layer may use.

Errors are raised by `from tilewright.support import errors` and `raise errors.ShapeMismatch(...)`.
"""

# pyright: reportUnusedImport=false

from .check_kinds import CHECK_KINDS, checks_of
from .diagnostics import Diagnostic, Severity, SourceLines, SourceLoc, render
from .error_boundary import (
    KernelBoundary,
    UserBoundary,
    caller_outside,
    kernel_boundary,
    user_boundary,
)
from .errors import OverlapWarning, TilewrightError, TilewrightWarning
from .event_stream import (
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
    VariantMissed,
    current_recorder,
    recording,
    timed,
)
from .fork_locks import (
    ForkLock,
    attribute_late,
    fork_waits,
    function_late,
    hold_across_forks,
    import_late,
    package_late,
)
from .garbage_collection import collection_paused
from .grid import Grid, grid_for, normal_grid
from .kernel_hooks import HookChain, LaunchMetadata, kernel_hooks
from .kernel_profile import DeviceEvent, KernelProfiler, LineCost
from .kernel_warnings import collected_warnings, show_warnings
from .lock_free_property import cached_property
from .settings_table import (
    BULK_LOADS,
    ON_MISS,
    Settings,
    environment_flag,
    environment_of_python,
    environment_text,
    environment_with,
    set_environment,
    settings,
)
from .settings_table import Cache as CacheSettings
from .settings_table import Compilation as CompilationSettings
from .source_text import SourceFile, SourceText, text_of
from .usable_cpus import thread_count, usable_cpus
from .user_callbacks import call_user_function
