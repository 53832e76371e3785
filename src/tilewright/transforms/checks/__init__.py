"""`check=` in compiled kernels: IR that tests each access before it is made.

check_table          memory shared by host and kernel: bounds of arrays, the violation found
lane_arithmetic      arithmetic on the lanes of an access
lane_marks           flags of elements that no access may use, carried with the values
race_shadow          the last programs that used each element
instrument_accesses  the pass
"""

# pyright: reportUnusedImport=false

from tilewright.transforms.checks import check_table
from tilewright.transforms.checks.check_table import (
    CheckSite,
    CheckTable,
    Violation,
)
from tilewright.transforms.checks.instrument_accesses import InstrumentAccesses
