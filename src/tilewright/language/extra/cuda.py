"""`tl.extra.cuda`: the same library under the name of its first target."""

from tilewright.language.extra import libdevice

__all__ = ["libdevice"]
