"""Inline PTX on machines without PTX: translation to functions of the language."""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
