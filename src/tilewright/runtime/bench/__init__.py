"""Measurement of the time of a call, with the clock of its device."""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
