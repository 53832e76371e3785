"""The size of this machine's largest cache."""

from pathlib import Path

__all__ = ["last_level_cache_bytes"]

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_USUAL_CACHE_BYTES = 32 << 20


def last_level_cache_bytes() -> int:
    """Size of the largest cache, from Linux's sysfs; 32 MiB where it does not say.

    Kernels that write more than this should store past the caches (non-temporally).
    """
    sizes = [_size(path) for path in _CACHES.glob("index*/size")]
    # `or`: sizes that cannot be read are 0.
    return max(sizes, default=_USUAL_CACHE_BYTES) or _USUAL_CACHE_BYTES


def _size(path: Path) -> int:
    """Bytes of a sysfs size such as `32768K` or `2M`; 0 where it cannot be read."""
    try:
        text = path.read_text().strip()
        unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
        return int(text.rstrip("KMG")) * unit
    except (OSError, ValueError):
        return 0
