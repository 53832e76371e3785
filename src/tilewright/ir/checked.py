"""Tile IR from a text that anybody may have written: parsed, and verified before it is used."""

from __future__ import annotations

from tilewright.ir.core import Module
from tilewright.ir.parser import parse_module
from tilewright.ir.verifier import report
from tilewright.support.errors import InvalidTileIR


def parse_valid_module(text: str, file: str = "<tile IR>") -> Module:
    """The module that a text describes. Errors: TileIRSyntaxError, InvalidTileIR."""
    module = parse_module(text, file)
    found = report(module)
    if found is not None:
        raise InvalidTileIR(found)
    return module
