"""`tl.extra`: functions beyond the core, under Triton's import paths."""

from tilewright.language.extra import cuda, libdevice

__all__ = ["cuda", "libdevice"]
