"""From a source to a compiled kernel: the stages of a backend, run in order; the disk cache."""

from tilewright.compiler.compile import compile
from tilewright.support.lazy_facade import load_at_first_use

__all__ = ["compile"]
load_at_first_use(globals())
