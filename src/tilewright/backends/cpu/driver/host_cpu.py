"""The sizes of this machine's caches."""

import functools
import os

from tilewright.support.asynchronous_exceptions import synchronous

_CACHES = "/sys/devices/system/cpu/cpu0/cache"
_USUAL_CACHE_BYTES = 32 << 20
_USUAL_OWN_CACHE_BYTES = 1 << 20


@functools.cache
def last_level_cache_bytes() -> int:
    """Size of the largest cache, from Linux's sysfs; 32 MiB where that lacks it.

    Kernels that write more should use non-temporal stores.
    """
    # `or`: an unreadable size is 0.
    return max(_levels().values(), default=_USUAL_CACHE_BYTES) or _USUAL_CACHE_BYTES


@functools.cache
def own_cache_bytes() -> int:
    """Size of each core's L2; 1 MiB where Linux's sysfs lacks it."""
    return _levels().get("2") or _USUAL_OWN_CACHE_BYTES


def _levels() -> dict[str, int]:
    """Bytes of the caches by level, of the larger one where a level has two."""
    try:
        found = [f"{_CACHES}/{name}" for name in os.listdir(_CACHES) if name.startswith("index")]
    except synchronous(OSError):
        found = []
    levels: dict[str, int] = {}
    for path in found:
        level = _text(f"{path}/level")
        levels[level] = max(_size(_text(f"{path}/size")), levels.get(level, 0))
    return levels


def _size(text: str) -> int:
    """Bytes of a sysfs size such as `32768K` or `2M`; 0 for other texts."""
    try:
        unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
        return int(text.rstrip("KMG")) * unit
    except synchronous(ValueError):
        return 0


def _text(path: str) -> str:
    """The text of a file; empty where it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().decode().strip()
    except synchronous(OSError):
        return ""
