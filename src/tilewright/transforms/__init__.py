"""Target-independent rewrites and passes over tile IR."""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
