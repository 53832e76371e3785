"""Workarounds for ptxas miscompiles.

ptxas 13.0 treats a 16-bit negation or absolute value as one that cannot overflow: it sign-extends
the operand, negates 32 bits, and uses these where the sign matters (cvt.s32.s16, shr.s16,
setp.lt.s16, mul.wide.s16, div.s16), so -(-32768) is +32768, on all architectures. A subtraction
from a value that folds to zero becomes a negation as well. Multiplications wrap to 16 bits
correctly.

    neg.s16 d, a       ->  mul.lo.s16 d, a, -1
    sub.s16 d, a, b    ->  mad.lo.s16 d, b, -1, a        where a is a register or 0
    abs.s16 d, a       ->  mul.lo.s16 t, a, -1;  max.s16 d, a, t
"""

from __future__ import annotations

import re

_REGISTER = r"[%\w]+"
_NEGATION = re.compile(rf"\bneg\.s16(\s+{_REGISTER},\s*{_REGISTER});")
# A constant first operand other than 0 cannot make the subtraction a negation.
_SUBTRACTION = re.compile(rf"\bsub\.s16(\s+{_REGISTER}),\s*(%\w+|0),\s*({_REGISTER});")
# At the start of a line only: a block cannot have a predicate before it.
_ABSOLUTE = re.compile(rf"^([ \t]*)abs\.s16(\s+{_REGISTER}),\s*({_REGISTER});", re.MULTILINE)


def work_around_ptxas(ptx: str) -> str:
    """The module without the instructions that ptxas miscompiles."""
    if not any(name in ptx for name in ("neg.s16", "sub.s16", "abs.s16")):
        return ptx
    ptx = _NEGATION.sub(r"mul.lo.s16\1, -1;", ptx)
    ptx = _SUBTRACTION.sub(r"mad.lo.s16\1, \3, -1, \2;", ptx)
    return _ABSOLUTE.sub(
        r"\1{ .reg .b16 %negated; mul.lo.s16 %negated, \3, -1; max.s16\2, \3, %negated; }", ptx
    )
