"""The rules of the pass `canonicalize`."""

from tilewright.transforms.rules.address_rules import ADDRESSES
from tilewright.transforms.rules.arith_rules import ARITH
from tilewright.transforms.rules.control_rules import CONTROL
from tilewright.transforms.rules.memory_rules import MEMORY
from tilewright.transforms.rules.tile_rules import TILE
from tilewright.transforms.rules.width_rules import WIDTHS

CANONICAL = ARITH + WIDTHS + TILE + MEMORY + ADDRESSES + CONTROL
"""Every identity that never makes code worse, whatever the target."""
