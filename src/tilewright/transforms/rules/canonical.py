"""The rules of the pass `canonicalize`."""

from tilewright.transforms.rules.addresses import ADDRESSES
from tilewright.transforms.rules.arith import ARITH
from tilewright.transforms.rules.control import CONTROL
from tilewright.transforms.rules.memory import MEMORY
from tilewright.transforms.rules.tile import TILE
from tilewright.transforms.rules.widths import WIDTHS

CANONICAL = ARITH + WIDTHS + TILE + MEMORY + ADDRESSES + CONTROL
"""Every identity that never makes code worse, whatever the target."""
