"""Choices of autotuners on disk: <cache>/autotune/<kernel>-<hash>.json."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from tilewright.compiler import package_version
from tilewright.runtime.configs import Config
from tilewright.runtime.jit import JITFunction
from tilewright.support import settings

Timing = list[float]


def choice_file(
    kernel: JITFunction, configs: Sequence[Config], key: object, device: Sequence[str]
) -> Path:
    """Where the choice among `configs` for a key is kept.

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
    return settings().cache.dir / "autotune" / f"{kernel.__name__}-{digest[:32]}.json"


def read_timings(file: Path, configs: Sequence[Config]) -> dict[Config, Timing] | None:
    """Timings of each configuration that was measured; None where there is no usable file."""
    try:
        rows = cast("list[tuple[int, Timing]]", json.loads(file.read_text())["timings"])
        found = {configs[i]: [float(ms) for ms in timing] for i, timing in rows}
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None
    return found or None


def write_timings(file: Path, configs: Sequence[Config], timings: dict[Config, Timing]) -> None:
    """Keep timings; where the folder cannot be written they are measured again next time."""
    rows = [(configs.index(config), timing) for config, timing in timings.items()]
    text = json.dumps({"configs": [str(config) for config in configs], "timings": rows})
    temporary = file.with_name(f".{os.getpid()}-{uuid.uuid4().hex[:8]}")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text)
        temporary.replace(file)
