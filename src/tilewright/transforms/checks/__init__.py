"""`check=` in compiled kernels: IR that looks at each access before it is made.

check_table          where the host and the kernel meet: extents of arrays, what was wrong
lane_arithmetic      arithmetic on the lanes of an access
lane_marks           marks on elements that no access may use, carried beside the values
race_shadow          which programs have used each element
instrument_accesses  the pass
"""

from tilewright.transforms.checks import check_table
from tilewright.transforms.checks.check_table import (
    CheckSite,
    CheckTable,
    Violation,
)
from tilewright.transforms.checks.instrument_accesses import InstrumentAccesses

__all__ = ["CheckSite", "CheckTable", "InstrumentAccesses", "Violation", "check_table"]
