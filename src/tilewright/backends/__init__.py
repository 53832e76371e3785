"""Backends: each a folder with a manifest; `base` is what the rest of the compiler sees."""

from tilewright.backends.explanation import Bound, Explanation, LaunchSizes, OpRow, Resources
from tilewright.backends.manifest import (
    DEVICE_PROPERTIES,
    Backend,
    CommonOptions,
    DeviceMemory,
    DirectLaunch,
    GPUTarget,
    Launcher,
    Metadata,
    Stage,
    StageContext,
    Streamed,
    backend_in_use,
    backend_named,
    backend_names,
    default_backend,
)

__all__ = [
    "DEVICE_PROPERTIES",
    "Backend",
    "Bound",
    "CommonOptions",
    "DeviceMemory",
    "DirectLaunch",
    "Explanation",
    "GPUTarget",
    "LaunchSizes",
    "Launcher",
    "Metadata",
    "OpRow",
    "Resources",
    "Stage",
    "StageContext",
    "Streamed",
    "backend_in_use",
    "backend_named",
    "backend_names",
    "default_backend",
]
