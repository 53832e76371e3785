"""`tl.extra`: functions beyond the core, under the paths that Triton users import them from."""

from tilewright.language.extra import cuda, libdevice

__all__ = ["cuda", "libdevice"]
