"""PTX that ptxas assembles wrongly, and what stands for it instead.

ptxas 13.0 takes a 16-bit negation or absolute value for one that cannot overflow: it sign-extends
the operand, negates 32 bits, and lets what needs the sign (cvt.s32.s16, shr.s16, setp.lt.s16,
mul.wide.s16, div.s16) read that, so -(-32768) is +32768, on all architectures. A subtraction from
what turns out to be zero becomes a negation too. It wraps products to 16 bits as it should.

    neg.s16 d, a       ->  mul.lo.s16 d, a, -1
    sub.s16 d, a, b    ->  mad.lo.s16 d, b, -1, a        where a is a register or 0
    abs.s16 d, a       ->  mul.lo.s16 t, a, -1;  max.s16 d, a, t
"""

from __future__ import annotations

import re

__all__ = ["work_around_ptxas"]

_REGISTER = r"[%\w]+"
_NEGATION = re.compile(rf"\bneg\.s16(\s+{_REGISTER},\s*{_REGISTER});")
# A constant first operand other than 0 cannot make the subtraction a negation.
_SUBTRACTION = re.compile(rf"\bsub\.s16(\s+{_REGISTER}),\s*(%\w+|0),\s*({_REGISTER});")
# At the start of a line only: a block cannot have a predicate before it.
_ABSOLUTE = re.compile(rf"^([ \t]*)abs\.s16(\s+{_REGISTER}),\s*({_REGISTER});", re.MULTILINE)


def work_around_ptxas(ptx: str) -> str:
    """The module with other instructions for the ones that ptxas assembles wrongly."""
    if not any(name in ptx for name in ("neg.s16", "sub.s16", "abs.s16")):
        return ptx
    ptx = _NEGATION.sub(r"mul.lo.s16\1, -1;", ptx)
    ptx = _SUBTRACTION.sub(r"mad.lo.s16\1, \3, -1, \2;", ptx)
    return _ABSOLUTE.sub(
        r"\1{ .reg .b16 %negated; mul.lo.s16 %negated, \3, -1; max.s16\2, \3, %negated; }", ptx
    )
