"""Rewrite rules by subject, and their union; README.md states the rules for rules."""

# pyright: reportUnusedImport=false

from tilewright.transforms.rules.address_rules import ADDRESSES
from tilewright.transforms.rules.arith_rules import ARITH
from tilewright.transforms.rules.canonical_rules import CANONICAL
from tilewright.transforms.rules.constant_reductions import reduced_constants
from tilewright.transforms.rules.control_rules import CONTROL
from tilewright.transforms.rules.exact_arithmetic import (
    constant_of,
    fold_binary,
    fold_compare,
    is_constant,
)
from tilewright.transforms.rules.memory_rules import MEMORY
from tilewright.transforms.rules.rebuilt_ops import scalar_of, with_operands
from tilewright.transforms.rules.tile_rules import TILE
from tilewright.transforms.rules.width_rules import WIDTHS
