"""Choices of autotuners on disk: <cache>/autotune/<kernel>-<hash>.json."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import cast

from tilewright.compiler import package_version
from tilewright.runtime.configs import Config
from tilewright.runtime.jit import JITFunction
from tilewright.support import settings
from tilewright.support.disk_cache import Documents

Timing = list[float]

_KEPT = Documents("autotune")


def choice_name(
    kernel: JITFunction, configs: Sequence[Config], key: object, device: Sequence[str]
) -> str:
    """Under which name the choice among `configs` for a key is kept.

    device: texts that tell the device, and the version of its backend
    """
    parts = [
        kernel.cache_key,
        *map(str, configs),
        repr(key),
        *device,
        settings().cache_key(),
        package_version(),
    ]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return f"{kernel.__name__}-{digest[:32]}"


def read_timings(name: str, configs: Sequence[Config]) -> dict[Config, Timing] | None:
    """Timings of each configuration that was measured; None where there is no usable file."""
    members = _KEPT.read(name)
    if members is None:
        return None
    try:
        rows = cast("list[tuple[int, Timing]]", members["timings"])
        return {configs[i]: [float(ms) for ms in timing] for i, timing in rows} or None
    except (ValueError, KeyError, TypeError, IndexError) as problem:
        _KEPT.discard(name, problem)
        return None


def write_timings(name: str, configs: Sequence[Config], timings: dict[Config, Timing]) -> None:
    """Keep timings; where the folder cannot be written they are measured again next time."""
    rows = [(configs.index(config), timing) for config, timing in timings.items()]
    _KEPT.write(name, {"configs": [str(config) for config in configs], "timings": rows})
