"""Rewrite rules by subject, and their union; README.md states the rules for rules."""

from tilewright.transforms.rules.addresses import ADDRESSES
from tilewright.transforms.rules.arith import ARITH
from tilewright.transforms.rules.build import constant, scalar_of, with_operands
from tilewright.transforms.rules.canonical import CANONICAL
from tilewright.transforms.rules.control import CONTROL
from tilewright.transforms.rules.exact import constant_of, is_constant
from tilewright.transforms.rules.memory import MEMORY
from tilewright.transforms.rules.tile import TILE
from tilewright.transforms.rules.widths import WIDTHS

__all__ = [
    "ADDRESSES",
    "ARITH",
    "CANONICAL",
    "CONTROL",
    "MEMORY",
    "TILE",
    "WIDTHS",
    "constant",
    "constant_of",
    "is_constant",
    "scalar_of",
    "with_operands",
]
