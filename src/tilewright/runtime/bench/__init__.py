"""Measuring how long a call takes, with the clock of the device that it runs on."""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
