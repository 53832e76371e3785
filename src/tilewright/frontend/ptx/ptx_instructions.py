"""PTX instructions as functions of the language: those that people write in inline assembly.

Registers hold bits: each operand is read in the type that the instruction names, and its result may
be read in another. Rounding is to nearest; approximate functions are those of the language, and
.ftz is not kept (a result that differs is below 2^-126).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from tilewright import language as tl
from tilewright.language import dtype, tensor

lib = tl.extra.libdevice

TYPES: dict[str, dtype] = {
    "s8": tl.int8, "s16": tl.int16, "s32": tl.int32, "s64": tl.int64, "u8": tl.uint8,
    "u16": tl.uint16, "u32": tl.uint32, "u64": tl.uint64, "b8": tl.uint8, "b16": tl.uint16,
    "b32": tl.uint32, "b64": tl.uint64, "f16": tl.float16, "bf16": tl.bfloat16, "f32": tl.float32,
    "f64": tl.float64, "pred": tl.int1,
}  # fmt: skip


def _zero() -> tensor:
    return tl.full((), 0, tl.uint32)


Compute = Callable[[re.Match[str], Sequence[tensor]], tensor]
"""A function of the match of an instruction's name, and of the operands."""


SPECIAL: dict[str, Callable[[], tensor]] = {
    **dict.fromkeys(
        ("%globaltimer", "%globaltimer_lo", "%clock", "%clock64"), tl.extra.cuda.globaltimer
    ),
    "%smid": tl.extra.cuda.smid,
    **{f"%ctaid.{axis}": partial(tl.program_id, i) for i, axis in enumerate("xyz")},
    **{f"%nctaid.{axis}": partial(tl.num_programs, i) for i, axis in enumerate("xyz")},
    **dict.fromkeys(("%laneid", "%warpid", "%tid.x", "%tid.y", "%tid.z"), _zero),
}
"""Predefined registers, where one thread runs a program; clocks in ns."""


def bits_of(x: tensor) -> int:
    """Bits of a register with this value; a predicate counts as a byte."""
    return max(8, x.dtype.primitive_bitwidth)


def typed(x: tensor, wanted: dtype) -> tensor:
    """The bits of a register in another type: cut, or extended by zeros."""
    own = x.dtype
    if own == wanted:
        return x
    if own.is_bool() or wanted.is_bool():
        return x.to(wanted)
    bits = tl.cast(x, tl.get_int_dtype(own.primitive_bitwidth, False), bitcast=True)
    if own.primitive_bitwidth != wanted.primitive_bitwidth:
        bits = bits.to(tl.get_int_dtype(wanted.primitive_bitwidth, False))
    return tl.cast(bits, wanted, bitcast=True)


def joined(parts: Sequence[tensor]) -> tensor:
    """Equally wide registers as one, the first in the low bits."""
    size = bits_of(parts[0])
    wide = tl.get_int_dtype(size * len(parts), False)
    narrow = tl.get_int_dtype(size, False)
    total = typed(parts[0], narrow).to(wide)
    for number, part in enumerate(parts[1:], 1):
        total = total | (typed(part, narrow).to(wide) << number * size)
    return total


def parts_of(x: tensor, count: int) -> list[tensor]:
    """A register cut into equally wide ones, the low bits first."""
    size = bits_of(x) // count
    bits = typed(x, tl.get_int_dtype(size * count, False))
    return [(bits >> n * size).to(tl.get_int_dtype(size, False)) for n in range(count)]


TABLE: list[tuple[str, str, Compute]] = []
"""Patterns of the names of instructions, the group that names the type of the operands ("": they
stay as they are), and the function of each."""


def _instruction(pattern: str, operands: str = "type") -> Callable[[Compute], Compute]:
    def register(compute: Compute) -> Compute:
        TABLE.append((pattern, operands, compute))
        return compute

    return register


_INTEGER = r"(?P<type>[sub](?:8|16|32|64))"
_FLOAT = r"(?P<type>bf16|f16|f32|f64)"
_ANY = r"(?P<type>[sub](?:8|16|32|64)|bf16|f16|f32|f64|pred)"
_MODE = r"(?:\.rn)?(?:\.approx|\.full)?(?:\.ftz)?(?:\.noftz)?"


@_instruction(rf"mov\.{_ANY}")
def _mov(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    return x[0]


@_instruction(rf"(?P<name>add|sub){_MODE}\.{_ANY}")
def _sum(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    return x[0] + x[1] if match["name"] == "add" else x[0] - x[1]


@_instruction(rf"mul(?:\.lo)?{_MODE}\.{_ANY}")
def _mul(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    return x[0] * x[1]


@_instruction(rf"mul\.hi\.{_INTEGER}")
def _mul_high(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    return lib.mulhi(x[0], x[1])


@_instruction(rf"(?:mul|(?P<mad>mad))\.wide\.{_INTEGER}", "")
def _mul_wide(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    narrow = TYPES[match["type"]]
    wide = tl.get_int_dtype(2 * narrow.primitive_bitwidth, narrow.is_int_signed())
    product = typed(x[0], narrow).to(wide) * typed(x[1], narrow).to(wide)
    return product + typed(x[2], wide) if match["mad"] else product


@_instruction(rf"(?:fma|mad)\.rn(?:\.ftz)?\.{_FLOAT}")
def _fma(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    return tl.fma(x[0], x[1], x[2])


@_instruction(rf"mad\.lo\.{_INTEGER}")
def _mad(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    return x[0] * x[1] + x[2]


@_instruction(rf"(?P<name>min|max)(?:\.ftz)?(?P<nan>\.NaN)?\.{_ANY}")
def _extremum(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    function = tl.minimum if match["name"] == "min" else tl.maximum
    nan = tl.PropagateNan.ALL if match["nan"] else tl.PropagateNan.NONE
    return function(x[0], x[1], nan)


@_instruction(rf"(?P<name>neg|abs)(?:\.ftz)?\.{_ANY}")
def _sign(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    return -x[0] if match["name"] == "neg" else tl.abs(x[0])


@_instruction(rf"(?P<name>and|or|xor)\.{_ANY}")
def _bitwise(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    if match["name"] == "xor":
        return x[0] ^ x[1]
    return x[0] & x[1] if match["name"] == "and" else x[0] | x[1]


@_instruction(rf"not\.{_ANY}")
def _not(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    return ~x[0]


@_instruction(rf"(?P<name>shl|shr)\.{_INTEGER}", "")
def _shift(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    """By the width or more: all bits are shifted out."""
    kind = TYPES[match["type"]]
    value, amount, last = typed(x[0], kind), typed(x[1], tl.uint32), kind.primitive_bitwidth - 1
    by = typed(tl.minimum(amount, last), kind)
    if match["name"] == "shl":
        return tl.where(amount > last, 0, value << by)
    return value >> by if kind.is_int_signed() else tl.where(amount > last, 0, value >> by)


@_instruction(r"bfe\.(?P<type>[us]32)", "")
def _field(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    kind = TYPES[match["type"]]
    wide = tl.get_int_dtype(64, kind.is_int_signed())
    start, length = (typed(v, tl.uint32).to(wide) for v in x[1:3])
    # To the top and back, so that the sign is that of the field.
    field = (typed(x[0], kind).to(wide) << (64 - start - length)) >> tl.minimum(64 - length, 63)
    return tl.where(length == 0, 0, field).to(kind)


_COUNTS = {"popc": lib.popc, "clz": lib.clz, "brev": lib.brev}


@_instruction(rf"(?P<name>{'|'.join(_COUNTS)})\.{_INTEGER}")
def _count(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    return _COUNTS[match["name"]](x[0])


@_instruction(r"lop3\.b32", "")
def _lop3(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    """The truth table by the bits of the three operands: bit 4 a + 2 b + c of the fourth."""
    a, b, c, table = (typed(value, tl.uint32) for value in x)
    total = a ^ a
    for row in range(8):
        term = 0 - ((table >> row) & 1)
        for value, bit in ((a, 4), (b, 2), (c, 1)):
            term = term & (value if row & bit else ~value)
        total = total | term
    return total


@_instruction(r"prmt\.b32", "")
def _permute(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    return lib.byte_perm(*(typed(value, tl.int32) for value in x))


@_instruction(r"shf\.(?P<way>l|r)\.(?P<mode>wrap|clamp)\.b32", "")
def _funnel(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    pair, amount = joined(x[:2]), typed(x[2], tl.uint32)
    by = (amount & 31 if match["mode"] == "wrap" else tl.minimum(amount, 32)).to(tl.uint64)
    moved = pair >> by if match["way"] == "r" else (pair << by) >> 32
    return moved.to(tl.uint32)


_ORDER: dict[str, Callable[[tensor, tensor], tensor]] = {
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
}  # fmt: skip
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_COMPARISONS = _ORDER | {name: _ORDER[plain] for name, plain in _UNSIGNED.items()}


@_instruction(rf"setp\.(?P<name>{'|'.join(_COMPARISONS)})(?:\.ftz)?\.{_ANY}")
def _compare(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    return _COMPARISONS[match["name"]](x[0], x[1])


@_instruction(rf"selp\.{_ANY}", "")
def _select(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    kind = TYPES[match["type"]]
    return tl.where(x[2], typed(x[0], kind), typed(x[1], kind))


_FUNCTIONS: dict[str, Callable[[tensor], tensor]] = {
    "ex2": tl.exp2, "lg2": tl.log2, "sin": tl.sin, "cos": tl.cos, "tanh": tl.tanh,
    "rsqrt": tl.rsqrt, "sqrt": tl.sqrt_rn,
}  # fmt: skip


@_instruction(rf"(?P<name>{'|'.join(_FUNCTIONS)}){_MODE}\.{_FLOAT}")
def _function(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    return _FUNCTIONS[match["name"]](x[0])


@_instruction(rf"(?P<name>div|rcp){_MODE}\.{_FLOAT}")
def _quotient(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    return tl.div_rn(*x) if match["name"] == "div" else tl.div_rn(1.0, x[0])


_EIGHT = {"e4m3": tl.float8e4nv, "e5m2": tl.float8e5}
_PAIRS = {"f16": tl.float16, "bf16": tl.bfloat16, **_EIGHT}


@_instruction(r"cvt(?:\.rn|\.rna)?(?:\.sat|\.satfinite)?\.(?P<to>bf16|f16|e4m3|e5m2)x2\.f32", "")
def _narrow_pair(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    """The first operand goes to the upper half."""
    high, low = (typed(value, tl.float32).to(_PAIRS[match["to"]]) for value in x)
    return joined([low, high])


@_instruction(r"cvt\.rn\.f16x2\.(?P<from>e4m3|e5m2)x2", "")
def _widen_pair(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    halves = parts_of(typed(x[0], tl.uint16), 2)
    return joined([typed(half, _EIGHT[match["from"]]).to(tl.float16) for half in halves])


_ROUNDED: dict[str, Callable[[tensor], tensor]] = {
    "rni": lib.rint, "rzi": lib.trunc, "rmi": tl.floor,
    "rpi": tl.ceil,
}  # fmt: skip
_NUMBER = r"[su](?:8|16|32|64)|bf16|f16|f32|f64"


@_instruction(
    rf"cvt(?:\.(?P<round>rn|rz|rna|{'|'.join(_ROUNDED)}))?(?:\.ftz)?(?:\.sat)?"
    rf"\.(?P<to>{_NUMBER})\.(?P<from>{_NUMBER})",
    "from",
)
def _convert(match: re.Match[str], x: Sequence[tensor]) -> tensor:
    source, target, rounding = TYPES[match["from"]], TYPES[match["to"]], match["round"] or ""
    value = _ROUNDED[rounding](x[0]) if rounding in _ROUNDED and source.is_floating() else x[0]
    if source.is_floating() and target.is_int():
        return _saturated(value, target)
    narrows = source.is_floating() and target.primitive_bitwidth < source.primitive_bitwidth
    return tl.cast(value, target, "rtz" if rounding == "rz" and narrows else None)


def _saturated(x: tensor, target: dtype) -> tensor:
    """A float as an integer, the nearest end of its range beyond that; a NaN is 0."""
    low, high = target.get_int_min_value(), target.get_int_max_value()
    # 2^bits is a float of every type, the largest integer is not.
    inside = tl.where((x >= low) & (x < float(high + 1)), x, 0.0).to(target)
    return tl.where(x >= float(high + 1), high, tl.where(x < low, low, inside))
