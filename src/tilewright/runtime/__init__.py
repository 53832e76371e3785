"""Launching: arguments, variants, grids, tuning."""

from tilewright.runtime.jit import jit
from tilewright.support.lazy_facade import load_at_first_use

__all__ = ["jit"]
load_at_first_use(globals())
