"""Expansions of ops that a machine lacks into ops that every machine has.

Each backend chooses the rules that it applies: elementary functions, casts, arithmetic on
small floats, storage of types as their bits. `FloatArithmetic` builds them.
"""

# pyright: reportUnusedImport=false

from tilewright.transforms.expand.apply_expansions import Expansion, expand
from tilewright.transforms.expand.cast_expansions import expand_cast, is_native_cast
from tilewright.transforms.expand.elementary_functions import (
    EXPANSIONS,
    expand_math,
    load_expansion_ops,
)
from tilewright.transforms.expand.float_arithmetic import FloatArithmetic
from tilewright.transforms.expand.missing_instructions import missing_instruction
from tilewright.transforms.expand.sort_network import expand_sort
from tilewright.transforms.expand.storage_types import float_bits, store_as_bits
from tilewright.transforms.expand.widen_floats import (
    converted,
    is_small_float,
    widen_dot,
    widen_elementwise,
    widen_extremum,
    widen_print,
    widen_sign,
)
