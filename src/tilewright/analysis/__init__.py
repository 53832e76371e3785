"""Analyses of IR, which do not change it."""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
