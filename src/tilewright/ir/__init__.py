"""Tile IR: data structures, op declaration, text, verification, rules and passes."""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
