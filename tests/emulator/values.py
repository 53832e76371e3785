"""What LLVM's instructions compute: scalars of all threads (0-d), rows of threads, vectors."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.emulator.pending import Pending, merged
from tests.emulator.text import dtype_of, lanes_of, split_commas, split_type
from tilewright.interp.fused_multiply_add import fma64, fma_exact_product

Reader = Callable[[Any], Any]
_SIGNED = {np.uint8: np.int8, np.uint16: np.int16, np.uint32: np.int32, np.uint64: np.int64}
_MASK128 = (1 << 128) - 1


def rows(value: Any, count: int) -> Any:
    """A value as one row for each thread."""
    array = np.asarray(value)
    return np.broadcast_to(array, (count,)) if array.ndim == 0 else array


def merge(mask: Any, new: Any, old: Any) -> Any:
    """`new` for the threads of the mask."""
    if type(new) is np.ndarray and type(old) is np.ndarray and new.shape == old.shape == mask.shape:
        return np.where(mask, new, old)
    if type(new) is Pending or type(old) is Pending:
        return merged(mask, new, old)
    if isinstance(new, tuple):
        return tuple(merge(mask, n, o) for n, o in zip(new, old, strict=True))
    new, old = (_in_rows(value, len(mask)) for value in (new, old))
    deep = max(np.ndim(new), np.ndim(old)) > 1
    return _choose(mask[:, None] if deep else mask, new, old)


def _choose(condition: Any, new: Any, old: Any) -> Any:
    """np.where that also takes the Python ints which i128 scalars are: NumPy 2 would bring those to
    int64, and raise OverflowError."""
    new, old = (np.asarray(v, object) if isinstance(v, int) else v for v in (new, old))
    return np.where(condition, new, old)


def _in_rows(value: Any, count: int) -> Any:
    """A vector that all threads share has no rows yet."""
    shared = np.ndim(value) == 1 and len(value) != count
    return np.broadcast_to(value, (count, len(value))) if shared else value


def argument(value: Any, type_: str) -> Any:
    dtype = dtype_of(type_)
    if dtype is np.bool_ or np.dtype(dtype).kind in "fV":
        return dtype(value)
    return dtype(int(value) & ((1 << (8 * np.dtype(dtype).itemsize)) - 1))


@functools.cache
def size_of(type_: str) -> int:
    """Bytes in memory."""
    if type_.startswith("["):
        count, element = type_[1:-1].split(" x ", 1)
        return int(count) * size_of(element)
    if type_.startswith("{"):
        return 8 * len(split_commas(type_[1:-1]))
    return max(1, lanes_of(type_)) * np.dtype(dtype_of(type_)).itemsize


def from_bytes(data: Any, type_: str) -> Any:
    """(n, size) bytes as values of a type."""
    found = np.ascontiguousarray(data).view(dtype_of(type_))
    return found if lanes_of(type_) else found[:, 0]


def to_bytes(value: Any, type_: str) -> Any:
    """Rows as (n, size) bytes."""
    array = np.ascontiguousarray(value)
    return array.reshape(len(array), -1).view(np.uint8)


def bits_of(value: Any) -> Any:
    """A scalar value as unsigned integers of its width."""
    array = np.asarray(value)
    if array.dtype == np.bool_:
        return array.astype(np.uint8)
    return array.view(f"u{array.dtype.itemsize}")


def signed(value: Any, type_: str) -> Any:
    """Integers with their sign."""
    dtype = dtype_of(type_)
    if dtype is object:
        array = np.asarray(value, object)
        return np.where(array >> 127 != 0, array - (1 << 128), array)
    if dtype is np.bool_:
        return -np.asarray(value).astype(np.int8)
    return np.asarray(value).view(_SIGNED[dtype])


# ---- arithmetic ---------------------------------------------------------------------------------


def _divide(x: Any, y: Any) -> Any:
    y = np.where(y == 0, 1, y).astype(y.dtype)
    quotient = x // y
    return (quotient + ((quotient < 0) & (quotient * y != x)).astype(x.dtype)).astype(x.dtype)


def _remainder(x: Any, y: Any) -> Any:
    return (x - _divide(x, y) * y).astype(x.dtype)


def _signed_binary(function: Callable[[Any, Any], Any], type_: str) -> Callable[[Any, Any], Any]:
    dtype = dtype_of(type_)

    def run(x: Any, y: Any) -> Any:
        return np.asarray(function(signed(x, type_), signed(y, type_))).astype(dtype)

    return run


def _binary(word: str, type_: str) -> Callable[[Any, Any], Any]:
    dtype = dtype_of(type_)
    if dtype is object:
        return lambda x, y: _WIDE[word](np.asarray(x, object), np.asarray(y, object)) & _MASK128
    if dtype is np.bool_ and word in ("add", "sub"):
        return np.logical_xor
    if dtype is np.bool_ and word == "mul":
        return np.logical_and
    if word in ("sdiv", "srem", "ashr"):
        inner = {"sdiv": _divide, "srem": _remainder, "ashr": np.right_shift}[word]
        return _signed_binary(inner, type_)
    function = _PLAIN[word]
    return lambda x, y: np.asarray(function(x, y)).astype(dtype)[()]


_WIDE: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": np.left_shift, "lshr": np.right_shift,
}  # fmt: skip
_PLAIN: dict[str, Any] = {
    **_WIDE, "udiv": _divide, "urem": _remainder, "fadd": np.add, "fsub": np.subtract,
    "fmul": np.multiply, "fdiv": np.divide, "frem": np.fmod,
}  # fmt: skip

_COMPARE: dict[str, Any] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def _comparison(word: str, predicate: str, type_: str) -> Callable[[Any, Any], Any]:
    function = _COMPARE[predicate[-2:]]
    if word == "fcmp":
        if predicate == "uno":
            return lambda x, y: np.isnan(x) | np.isnan(y)
        if predicate == "ord":
            return lambda x, y: ~(np.isnan(x) | np.isnan(y))
        if predicate == "one":
            return lambda x, y: (x < y) | (x > y)
        assert predicate[0] == "o" or predicate == "une", predicate
        return function
    if predicate[0] == "s" and len(predicate) == 3:
        return lambda x, y: function(signed(x, type_), signed(y, type_))
    return function


def _converted(word: str, x: Any, source: str, target: str) -> Any:
    dtype = dtype_of(target)
    if word == "zext":
        return np.asarray(x).astype(dtype)[()]
    if word == "sext":
        wide = signed(x, source)
        return wide.astype(object) & _MASK128 if dtype is object else wide.astype(dtype)[()]
    if word == "trunc":
        return _truncated(x, source, dtype)
    if word in ("fpext", "fptrunc", "uitofp"):
        return np.asarray(x).astype(dtype)[()]
    if word == "sitofp":
        return signed(x, source).astype(dtype)[()]
    if word in ("fptosi", "fptoui"):
        return _to_integer(x, dtype, word == "fptosi")
    assert word in ("ptrtoint", "inttoptr"), word
    return np.asarray(x).astype(dtype)[()]


def _truncated(x: Any, source: str, dtype: Any) -> Any:
    if dtype_of(source) is object:
        x = np.asarray(x, object) & ((1 << 64) - 1)
    if dtype is np.bool_:
        return (np.asarray(x) & 1).astype(bool)
    return np.asarray(x).astype(np.uint64).astype(dtype)[()]


def _to_integer(x: Any, dtype: Any, is_signed: bool) -> Any:
    """Toward zero and within range, NaN to 0: what cvt.rzi does."""
    wide = np.asarray(x).astype(np.float64)
    kind = np.dtype(_SIGNED[dtype] if is_signed else dtype)
    info = np.iinfo(kind)
    whole = np.trunc(np.nan_to_num(wide, nan=0.0))
    low, high = float(info.min), float(info.max)
    inside = np.where((whole > low) & (whole < high), whole, 0.0).astype(kind)
    most, least = kind.type(info.max), kind.type(info.min)
    found = np.where(whole >= high, most, np.where(whole <= low, least, inside))
    return found.view(dtype)[()]


def _bitcast(x: Any, source: str, target: str) -> Any:
    array = np.ascontiguousarray(np.asarray(x))
    if np.ndim(x) == 0 and not lanes_of(source):
        array = array.reshape(1)
        found = array.view(dtype_of(target))
        return found if lanes_of(target) else found[0]
    if not lanes_of(source):
        array = array[:, None]
    found = array.view(dtype_of(target))
    return found if lanes_of(target) else found[..., 0]


def evaluator(word: str, rest: str, operand: Callable[[str, str], Reader]) -> Reader:
    """What an instruction without side effects computes."""
    if word in ("icmp", "fcmp"):
        predicate, more = rest.removeprefix("samesign ").split(" ", 1)
        x, y, type_ = _pair(more, operand)
        compare = _comparison(word, predicate, type_)
        return lambda m: compare(x(m), y(m))
    if word == "select":
        return _select(rest, operand)
    if word == "fneg":
        type_, more = split_type(rest)
        x = operand(more, type_)
        return lambda m: -x(m)
    if " to " in rest and word.endswith(("ext", "trunc", "fp", "si", "ui", "int", "ptr", "cast")):
        return _conversion(word, rest, operand)
    if word in ("insertelement", "extractelement", "extractvalue", "insertvalue", "shufflevector"):
        return _aggregate(word, rest, operand)
    x, y, type_ = _pair(rest, operand)
    compute = _binary(word, type_)
    return lambda m: compute(x(m), y(m))


def wrapping(word: str, rest: str, flag: str, operand: Callable[[str, str], Reader]) -> Reader:
    """Whether a sum, difference or product leaves the range of its type; flag: nsw or nuw."""
    x, y, type_ = _pair(rest, operand)
    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[word]
    dtype = dtype_of(type_)
    bits = 128 if dtype is object else 8 * np.dtype(dtype).itemsize
    low, high = (-(1 << bits - 1), 1 << bits - 1) if flag == "nsw" else (0, 1 << bits)
    if bits == 64 and word != "mul":
        return _wraps_64(x, y, word == "add", flag == "nsw")

    def run(m: Any) -> Any:
        pair = (signed(v(m), type_) if flag == "nsw" else v(m) for v in (x, y))
        exact = function(*(np.asarray(v).astype(object if bits > 32 else np.int64) for v in pair))
        return (exact < low) | (exact >= high)

    return run


def _wraps_64(x: Reader, y: Reader, is_sum: bool, is_signed: bool) -> Reader:
    """By the bits: a signed sum wraps where its sign is that of no operand, an unsigned one where
    it is less than an operand; x - y = z is x = y + z."""

    def run(m: Any) -> Any:
        first, second = (np.asarray(v(m)) for v in (x, y))
        whole, part = (first + second, first) if is_sum else (first, second)
        if is_signed:
            other = second if is_sum else first - second
            return ((whole ^ part) & (whole ^ other)) >> np.uint64(63) != 0
        return whole < part

    return run


def _pair(text: str, operand: Callable[[str, str], Reader]) -> tuple[Reader, Reader, str]:
    type_, more = split_type(text)
    left, right = split_commas(more)
    return operand(left, type_), operand(right, type_), type_


def _typed(text: str, operand: Callable[[str, str], Reader]) -> Reader:
    type_, more = split_type(text)
    return operand(more, type_)


def _select(rest: str, operand: Callable[[str, str], Reader]) -> Reader:
    condition, x, y = (_typed(part, operand) for part in split_commas(rest))
    is_vector = rest.split(", ")[1].startswith("<") and not rest.startswith("<")

    def run(m: Any) -> Any:
        c, a, b = condition(m), x(m), y(m)
        if np.ndim(c) == 0:
            return a if c else b
        return _choose(c[:, None] if is_vector else c, a, b)

    return run


def _conversion(word: str, rest: str, operand: Callable[[str, str], Reader]) -> Reader:
    value, _, target = rest.rpartition(" to ")
    source, more = split_type(value)
    x = operand(more, source)
    if word == "bitcast":
        return lambda m: _bitcast(x(m), source, target)
    return lambda m: _converted(word, x(m), source, target)


def _aggregate(word: str, rest: str, operand: Callable[[str, str], Reader]) -> Reader:
    parts = split_commas(rest)
    whole = _typed(parts[0], operand)
    if word == "shufflevector":
        return _shuffle(whole, _typed(parts[1], operand), parts[2])
    if word == "extractvalue":
        return lambda m: whole(m)[int(parts[1])]
    index = int(parts[-1].split()[-1])
    if word == "extractelement":
        return lambda m: whole(m)[..., index]
    assert word == "insertelement", word
    value = _typed(parts[1], operand)

    def insert(m: Any) -> Any:
        old, new = whole(m), np.asarray(value(m))
        shape = np.broadcast_shapes(old.shape, (*new.shape, old.shape[-1]))
        found = np.broadcast_to(old, shape).copy()
        found[..., index] = new
        return found

    return insert


def _shuffle(first: Reader, second: Reader, mask: str) -> Reader:
    """mask: such as "<2 x i32> <i32 0, i32 poison>"."""
    count = int(mask[1:].split()[0])
    named = re.findall(r"i32 (\w+)", mask)
    lanes = [0 if lane == "poison" else int(lane) for lane in named] or [0] * count

    def run(m: Any) -> Any:
        both = [np.asarray(v(m)) for v in (first, second)]
        shape = np.broadcast_shapes(*(v.shape[:-1] for v in both))
        wide = [np.broadcast_to(v, (*shape, v.shape[-1])) for v in both]
        return np.concatenate(wide, axis=-1)[..., lanes]

    return run


# ---- intrinsics ---------------------------------------------------------------------------------


def _fma(x: Any, y: Any, z: Any) -> Any:
    dtype = np.asarray(x).dtype
    x, y, z = (np.atleast_1d(v) for v in np.broadcast_arrays(x, y, z))
    if dtype == np.float64:
        found = fma64(x, y, z)
    else:
        found = fma_exact_product(x, y, z).astype(dtype)
    return found if len(found) > 1 else found[0]


def _extremum(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda m, x, y: np.asarray(function(x, y)).astype(np.asarray(x).dtype)[()]


def _with_zeros(function: Callable[[Any, Any], Any], is_max: bool) -> Callable[[Any, Any], Any]:
    """min or max in which -0 is below +0."""

    def run(x: Any, y: Any) -> Any:
        x, y = np.broadcast_arrays(x, y)
        zeros = (x == 0) & (y == 0)
        chosen = np.signbit(x) if not is_max else ~np.signbit(x)
        return np.where(zeros, np.where(chosen, x, y), function(x, y))

    return run


_UNARY: dict[str, Any] = {
    "fabs": np.abs, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "roundeven": np.rint, "rint": np.rint,
}  # fmt: skip
_BINARY: dict[str, Any] = {
    "minnum": _with_zeros(np.fmin, False), "maxnum": _with_zeros(np.fmax, True),
    "minimum": _with_zeros(np.minimum, False), "maximum": _with_zeros(np.maximum, True),
    "umin": np.minimum, "umax": np.maximum,
}  # fmt: skip
_REGISTER = re.compile(r"llvm\.nvvm\.read\.ptx\.sreg\.(\w+(?:\.n?ctarank)?)(?:\.([xyz]))?$")


def intrinsic(name: str, type_: str, types: list[str]) -> Callable[..., Any]:
    """A function (machine, operands...)."""
    match = _REGISTER.match(name)
    if match is not None:
        return _special(match[1], "xyz".index(match[2] or "x"))
    if name == "llvm.nvvm.shfl.sync.idx.i32":
        return _from_lane
    word = name.removeprefix("llvm.").split(".")[0]
    dtype = dtype_of(type_)
    if word in _UNARY:
        function = _UNARY[word]
        return lambda m, x: np.asarray(function(np.asarray(x))).astype(dtype)[()]
    if word in _BINARY:
        return _extremum(_BINARY[word])
    if word in ("smin", "smax"):
        inner = np.minimum if word == "smin" else np.maximum
        compute = _signed_binary(inner, type_)
        return lambda m, x, y: compute(x, y)
    if word == "abs":
        return lambda m, x, poison: np.abs(signed(x, type_)).astype(dtype)
    if word == "fma":
        return lambda m, x, y, z: _fma(x, y, z)
    if word == "ctlz":
        return lambda m, x, poison: _leading_zeros(np.asarray(x)).astype(dtype)
    if word == "copysign":
        return lambda m, x, y: np.copysign(x, y)
    raise AssertionError(f"the emulator does not know {name}")


def _from_lane(m: Any, members: Any, x: Any, lane: Any, clamp: Any) -> Any:
    """What a lane of the warp has; all threads take part."""
    m.whole_warps("a shuffle")
    each = rows(x, m.count).reshape(-1, 32)
    source = rows(lane, m.count).reshape(-1, 32).astype(np.int64) & 31
    return np.take_along_axis(each, source, axis=1).reshape(-1)


def _leading_zeros(x: Any) -> Any:
    width = 8 * x.dtype.itemsize
    found = np.full(x.shape, width)
    for bit in range(width):
        found = np.where((x >> x.dtype.type(bit)) & x.dtype.type(1) != 0, width - 1 - bit, found)
    return found


def _special(name: str, axis: int) -> Callable[..., Any]:
    if name == "tid":
        return lambda m: m.threads % np.uint32(m.count // m.blocks) if axis == 0 else np.uint32(0)
    if name == "ntid":
        return lambda m: np.uint32(m.count // m.blocks if axis == 0 else 1)
    if name == "ctaid":
        return lambda m: np.uint32(m.program[axis]) + (_rank(m) if axis == 0 else np.uint32(0))
    if name == "nctaid":
        return lambda m: np.uint32(m.grid[axis])
    assert axis == 0, "clusters lie along x"
    if name == "nclusterid":
        return lambda m: np.uint32(m.grid[0] // m.blocks)
    if name == "clusterid":
        return lambda m: np.uint32(m.program[0] // m.blocks)
    if name == "cluster.nctarank":
        return lambda m: np.uint32(m.blocks)
    assert name == "cluster.ctarank", name
    return _rank


def _rank(m: Any) -> Any:
    return m.rank if m.blocks > 1 else np.uint32(0)


# ---- atomics, thread after thread ---------------------------------------------------------------


def combined(kind: str, old: Any, new: Any) -> Any:
    """What an atomic leaves in memory."""
    functions: dict[str, Any] = {
        "add": np.add, "fadd": np.add, "max": np.maximum, "min": np.minimum, "umax": np.maximum,
        "umin": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
        "fmax": np.fmax, "fmin": np.fmin,
        "xchg": lambda old, new: new, "exch": lambda old, new: new,
    }  # fmt: skip
    if kind in ("max", "min"):
        as_signed = _SIGNED[old.dtype.type]
        return functions[kind](old.view(as_signed), new.view(as_signed)).view(old.dtype)
    return functions[kind](old, new).astype(old.dtype)


def one_by_one(m: Any, kind: str, pointers: Any, operands: Any, type_: str) -> Any:
    """Old values, for the active threads in order."""
    old_values = np.zeros(m.count, dtype_of(type_))
    pointers, operands = rows(pointers, m.count), rows(operands, m.count)
    for t in np.flatnonzero(m.mask):
        place = pointers[t : t + 1].astype(np.uint64)
        old = from_bytes(m.memory.load(place, size_of(type_)), type_)
        new = combined(kind, old, operands[t : t + 1])
        m.memory.store(place, to_bytes(new, type_), m.threads[t : t + 1], "an atomic")
        old_values[t] = old[0]
    return old_values


def swap_one_by_one(m: Any, pointers: Any, expected: Any, new: Any, type_: str) -> Any:
    """Compare and swap, for the active threads in order."""
    found = np.zeros(m.count, dtype_of(type_))
    pointers, expected, new = (rows(v, m.count) for v in (pointers, expected, new))
    for t in np.flatnonzero(m.mask):
        place = pointers[t : t + 1].astype(np.uint64)
        old = from_bytes(m.memory.load(place, size_of(type_)), type_)
        if old[0] == expected[t]:
            data = to_bytes(new[t : t + 1], type_)
            m.memory.store(place, data, m.threads[t : t + 1], "an atomic")
        found[t] = old[0]
    return found


__all__ = [
    "argument", "bits_of", "combined", "evaluator", "from_bytes", "intrinsic", "merge", "ml_dtypes",
    "one_by_one", "rows", "signed", "size_of", "swap_one_by_one", "to_bytes",
]  # fmt: skip
