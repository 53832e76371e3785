"""The size of this machine's largest cache."""

import functools
import os

__all__ = ["last_level_cache_bytes"]

_CACHES = "/sys/devices/system/cpu/cpu0/cache"
_USUAL_CACHE_BYTES = 32 << 20


@functools.cache
def last_level_cache_bytes() -> int:
    """Size of the largest cache, from Linux's sysfs; 32 MiB where it does not say.

    Kernels that write more than this should store past the caches (non-temporally).
    """
    try:
        levels = [name for name in os.listdir(_CACHES) if name.startswith("index")]
    except OSError:
        levels = []
    sizes = [_size(f"{_CACHES}/{name}/size") for name in levels]
    # `or`: sizes that cannot be read are 0.
    return max(sizes, default=_USUAL_CACHE_BYTES) or _USUAL_CACHE_BYTES


def _size(path: str) -> int:
    """Bytes of a sysfs size such as `32768K` or `2M`; 0 where it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:
            text = file.read().decode().strip()
        unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
        return int(text.rstrip("KMG")) * unit
    except (OSError, ValueError):
        return 0
