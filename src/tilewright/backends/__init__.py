"""Backends: each a folder with a manifest; the names below are for the rest of the compiler.

`compiler`, a module that Triton has here, is in `triton_alias/backends`.
"""

import os

from tilewright.backends.explanation import (
    Bound,
    CpuResources,
    Explanation,
    LaunchSizes,
    LayoutRow,
    LoopRow,
    OpRow,
    Resources,
    ScheduledOp,
    ScheduleRow,
    SharedAccessRow,
)
from tilewright.backends.manifest import (
    DEVICE_PROPERTIES,
    Backend,
    CommonOptions,
    DeviceMemory,
    DirectLaunch,
    GPUTarget,
    Launcher,
    Metadata,
    PackedLaunch,
    Stage,
    StageContext,
    Streamed,
    backend_in_use,
    backend_named,
    backend_names,
    default_backend,
    load_ops,
    packages_apart,
)

__path__.append(os.path.join(os.path.dirname(__path__[0]), "triton_alias", "backends"))

__all__ = [
    "DEVICE_PROPERTIES",
    "Backend",
    "Bound",
    "CommonOptions",
    "CpuResources",
    "DeviceMemory",
    "DirectLaunch",
    "Explanation",
    "GPUTarget",
    "LaunchSizes",
    "Launcher",
    "Metadata",
    "LayoutRow",
    "LoopRow",
    "OpRow",
    "Resources",
    "ScheduleRow",
    "ScheduledOp",
    "SharedAccessRow",
    "Stage",
    "StageContext",
    "Streamed",
    "PackedLaunch",
    "backend_in_use",
    "backend_named",
    "backend_names",
    "default_backend",
    "load_ops",
    "packages_apart",
]
