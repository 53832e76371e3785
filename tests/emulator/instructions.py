"""PTX instructions that compute, and those that access memory at once or by cp.async."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.emulator import values
from tests.emulator.memory import EmulationError
from tests.emulator.registers import Registers
from tests.emulator.text import split_commas
from tilewright.layout import FRAGMENTS, LANE, REGISTER

Made = Callable[[Registers], None]


# ---- memory -------------------------------------------------------------------------------------


def _shape(match: re.Match[str]) -> tuple[int, int]:
    """(vector length, bytes of an element)"""
    return int(match["count"] or 1), int(match["bits"]) // 8


def _load(match: re.Match[str], args: list[str]) -> Made:
    targets, address = _list(args[0]), args[1].strip("[]")
    count, size = _shape(match)
    is_shared = match["space"] == "shared"
    is_racing = ".volatile" in match[0]  # it exists to race with writes of other threads

    def run(r: Registers) -> None:
        places = r.get(address)[r.predicate]
        if is_shared:
            data = r.m.shared.load(places, count * size, r.m.warp_of[r.predicate])
        else:
            data = r.m.memory.load(
                places, count * size, None if is_racing else r.m.threads[r.predicate]
            )
        words = (
            np.ascontiguousarray(data).view(f"u{size}")
            if len(data)
            else np.zeros((0, count), f"u{size}")
        )
        for i, target in enumerate(targets):
            r.put(target, r.spread(words[:, i]))

    return run


def _store(match: re.Match[str], args: list[str]) -> Made:
    address, sources = args[0].strip("[]"), _list(args[1])
    _, size = _shape(match)
    is_shared = match["space"] == "shared"

    def run(r: Registers) -> None:
        places = r.get(address)[r.predicate]
        if not len(places):
            return
        words = [r.get(s).astype(f"u{size}")[r.predicate] for s in sources]
        data = np.ascontiguousarray(np.stack(words, axis=1)).view(np.uint8)
        if is_shared:
            r.m.shared.store(places, data, r.m.warp_of[r.predicate])
            r.m.wrote |= r.predicate
        else:
            r.m.memory.store(places, data, r.m.threads[r.predicate])

    return run


def _shared_add(match: re.Match[str], args: list[str]) -> Made:
    address = args[0].strip("[]")

    def run(r: Registers) -> None:
        places = r.get(address)[r.predicate]
        r.m.shared.add(places, r.get(args[1])[r.predicate], r.m.warp_of[r.predicate])
        r.m.wrote |= r.predicate

    return run


def _matrix(match: re.Match[str], args: list[str]) -> Made:
    """ldmatrix and stmatrix: lane l names row l % 8 of matrix l // 8."""
    is_load, count, transposed = match[1] == "ld", int(match[2]), bool(match[3])
    words, address = (args[0], args[1]) if is_load else (args[1], args[0])
    names, place = _list(words), address.strip("[]")

    def run(r: Registers) -> None:
        m = r.m
        active = m.whole_warps("a matrix access", r.predicate)
        rows = r.get(place).reshape(-1, 32)[active, : 8 * count]
        warps = np.broadcast_to(np.flatnonzero(active)[:, None], rows.shape)
        if is_load:
            data = m.shared.load(rows.ravel(), 16, warps.ravel())
            elements = np.ascontiguousarray(data).view(np.uint16).reshape(-1, count, 8, 8)
            if transposed:
                elements = elements.transpose(0, 1, 3, 2)
            packed = np.ascontiguousarray(elements).view(np.uint32)  # (warps, count, 8, 4)
            for i, name in enumerate(names):
                r.put(name, r.spread(packed[:, i].reshape(-1)))
            return
        held = np.stack([r.get(n).astype(np.uint32).reshape(-1, 8, 4) for n in names], axis=1)
        held = held[active]
        elements = np.ascontiguousarray(held).view(np.uint16)
        if transposed:
            elements = elements.transpose(0, 1, 3, 2)
        data = np.ascontiguousarray(elements).view(np.uint8).reshape(-1, 16)
        m.shared.store(rows.ravel(), data, warps.ravel())
        m.wrote |= r.predicate

    return run


def _copy(match: re.Match[str], args: list[str]) -> Made:
    target, source, size = args[0].strip("[]"), args[1].strip("[]"), int(args[2])
    taken = args[3] if len(args) > 3 else None

    def run(r: Registers) -> None:
        m, who = r.m, r.predicate
        sizes = np.full(m.count, size) if taken is None else r.get(taken)
        if not np.isin(sizes[who], (0, size)).all():
            raise EmulationError("an asynchronous copy of a part")
        m.wrote |= who
        m.copies.begin(r.get(target)[who], r.get(source)[who], sizes[who] == size, size, who)

    return run


def _commit(match: re.Match[str], args: list[str]) -> Made:
    return lambda r: r.m.copies.commit(r.predicate)


def _wait(match: re.Match[str], args: list[str]) -> Made:
    return lambda r: r.m.copies.wait(r.predicate, int(args[0]))


def _wait_all(match: re.Match[str], args: list[str]) -> Made:
    def run(r: Registers) -> None:
        r.m.copies.commit(r.predicate)
        r.m.copies.wait(r.predicate, 0)

    return run


def _list(text: str) -> list[str]:
    return split_commas(text.strip("{} ")) if text.startswith("{") else [text]


_ATOMIC_TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32,
                 "f64": np.float64}  # fmt: skip


def _atomic(match: re.Match[str], args: list[str]) -> Made:
    kind, suffix = match["kind"], match["type"]
    size = int(suffix[-2:]) // 8
    signed = {"s": "i", "u": "u", "b": "u"}
    dtype = np.dtype(_ATOMIC_TYPES.get(suffix) or f"{signed.get(suffix[0], 'u')}{size}")
    address, sources = args[1].strip("[]"), args[2:]
    # A swap of 16 bits is one try of an update: other warps' tries of it are no earlier accesses.
    is_try = kind == "cas" and suffix == "b16"
    releases = bool(re.search(r"\.(release|acq_rel)\.", match[0]))
    sets_flag = kind in ("cas", "exch") and releases and not is_try

    def run(r: Registers) -> None:
        m = r.m
        if sets_flag:
            m.memory.check_released(m.threads[r.predicate])
        old_values = np.zeros(m.count, f"u{size}")
        places = r.get(address)
        operands = [r.get(s).astype(f"u{size}").view(dtype) for s in sources]
        for t in np.flatnonzero(r.predicate):
            with _UPDATES:
                old = m.memory.load(places[t : t + 1], size).view(dtype)[0]
                new = _updated(kind, old, [operand[t : t + 1] for operand in operands])
                data = values.to_bytes(np.asarray(new, dtype), "")
                m.memory.store(places[t : t + 1], data, m.threads[t : t + 1], "an atomic")
            old_values[t] = old.view(f"u{size}")[0]
        if args[0].strip() != "_":
            r.put(args[0], old_values)

    return run


_UPDATES = threading.Lock()
"""Held for an update: other threads may emulate GPUs with access to the same memory."""


def _updated(kind: str, old: Any, operands: list[Any]) -> Any:
    """The number that an atomic operation stores."""
    if kind == "cas":
        bits = f"u{old.dtype.itemsize}"
        return operands[1] if old.view(bits) == operands[0].view(bits) else old
    extrema = {"max": np.fmax, "min": np.fmin} if old.dtype.kind == "f" else {}
    function = extrema.get(kind)
    if function is not None:
        return function(old, operands[0])
    return values.combined(_plain(kind), old, operands[0])


def _add_vector(match: re.Match[str], args: list[str]) -> Made:
    """Additions to consecutive elements, each atomic by itself."""
    *targets, address, operand = args
    place, sources = address.strip("[]"), _list(operand)
    found_in = _list(targets[0]) if targets else []
    assert len(sources) == int(match["count"] or match["many"] or 1)
    dtype = np.dtype(_ATOMIC_TYPES[match["type"] or match["wide"]])
    size = 4 * len(sources)

    def run(r: Registers) -> None:
        m, places = r.m, r.get(place)
        words = np.stack([r.get(source).view(np.uint32) for source in sources], axis=1)
        found = np.zeros_like(words)
        for t in np.flatnonzero(r.predicate):
            if places[t] % size:
                raise EmulationError(f"a vector of {size} bytes that is not aligned")
            old = m.memory.load(places[t : t + 1], size).view(dtype).ravel()
            new = old + words[t].view(dtype)
            m.memory.store(
                places[t : t + 1], values.to_bytes(new, "").reshape(1, -1), m.threads[t : t + 1],
                "an atomic",
            )  # fmt: skip
            found[t] = old.view(np.uint32)
        for i, register in enumerate(found_in):
            r.put(register, found[:, i])

    return run


def _ordered_access(match: re.Match[str], args: list[str]) -> Made:
    """A load or store that, as an atomic, meets those of other threads without a barrier."""
    is_load, size = match["word"] == "ld", int(match["bits"]) // 8
    address, register = (args[1], args[0]) if is_load else (args[0], args[1])
    place, releases = address.strip("[]"), ".release." in match[0]

    def run(r: Registers) -> None:
        if releases:
            r.m.memory.check_released(r.m.threads[r.predicate])
        memory, active = r.m.memory, np.flatnonzero(r.predicate)
        places = r.get(place)[active]
        found = np.zeros(r.m.count, f"u{size}")
        if is_load:
            data = memory.load(places, size)
            found[active] = data.copy().view(f"u{size}").ravel()
            r.put(register, found)
            memory.note_atomic(places, size, r.m.threads[active])
        else:
            data = r.get(register).astype(f"u{size}")[active].view(np.uint8).reshape(-1, size)
            memory.store(places, data, r.m.threads[active], "an atomic")

    return run


def _plain(kind: str) -> str:
    return {"max": "umax", "min": "umin"}.get(kind, kind)


# ---- lanes --------------------------------------------------------------------------------------


# ---- products -----------------------------------------------------------------------------------

_PRODUCT = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
            "tf32": np.float32, "s8": np.int8, "u8": np.uint8, "s32": np.int32,
            "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}  # fmt: skip
_KIND = {"f16": "b16", "bf16": "b16", "tf32": "tf32", "s8": "b8", "u8": "b8", "f64": "f64",
         "e4m3": "b8", "e5m2": "b8"}  # fmt: skip


def _product(match: re.Match[str], args: list[str]) -> Made:
    shape, d, a, b, _ = match.groups()
    fragment = FRAGMENTS[f"{shape}.{_KIND[a]}"]
    assert fragment.a is not None and fragment.b is not None

    def run(r: Registers) -> None:
        m = r.m
        m.whole_warps("a product")
        left = _gathered(r, _list(args[1]), fragment.a, _PRODUCT[a], (fragment.m, fragment.k))
        right = _gathered(r, _list(args[2]), fragment.b, _PRODUCT[b], (fragment.k, fragment.n))
        wide = np.int64 if d == "s32" else np.float64
        if a == "tf32":
            left, right = (_truncated(v) for v in (left, right))
        sums = _gathered(r, _list(args[3]), fragment.c, _PRODUCT[d], (fragment.m, fragment.n))
        found = np.matmul(left.astype(wide), right.astype(wide)) + sums.astype(wide)
        _scattered(r, _list(args[0]), fragment.c, found.astype(_PRODUCT[d]))

    return run


def _truncated(x: Any) -> Any:
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


@functools.cache
def _places(layout: Any) -> Any:
    """(lanes, registers, 2) coordinates."""
    lanes, registers = layout.in_size(LANE), layout.in_size(REGISTER)
    return np.array(
        [[layout.apply(register=i, lane=lane) for i in range(registers)] for lane in range(lanes)]
    )


def _gathered(r: Registers, names: list[str], layout: Any, dtype: Any, shape: Any) -> Any:
    words = np.stack([r.get(n) for n in names], axis=1)
    elements = np.ascontiguousarray(words).view(dtype).reshape(-1, 32, layout.in_size(REGISTER))
    places = _places(layout)
    matrix = np.zeros((len(elements), *shape), dtype)
    matrix[:, places[..., 0], places[..., 1]] = elements
    return matrix


def _scattered(r: Registers, names: list[str], layout: Any, matrix: Any) -> None:
    places = _places(layout)
    elements = np.ascontiguousarray(matrix[:, places[..., 0], places[..., 1]])
    size = elements.dtype.itemsize
    words = elements.reshape(r.m.count, -1).view(np.uint64 if size == 8 else np.uint32)
    for i, name in enumerate(names):
        r.put(name, words[:, i])


# ---- arithmetic ---------------------------------------------------------------------------------


def _flushed(x: Any) -> Any:
    tiny = np.float32(2.0**-126)
    return np.where(np.abs(x) < tiny, np.copysign(np.float32(0), x), x).astype(np.float32)


_FUNCTIONS: dict[str, Any] = {
    "ex2": np.exp2, "lg2": np.log2, "sqrt": np.sqrt, "rcp": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
}  # fmt: skip


def _approximate(match: re.Match[str], args: list[str]) -> Made:
    function, flush = _FUNCTIONS[match[1]], bool(match[2])

    def run(r: Registers) -> None:
        x = r.get(args[1]).astype(np.uint32).view(np.float32)
        if flush:
            x = _flushed(x)
        found = function(x.astype(np.float64)).astype(np.float32)
        r.put(args[0], (_flushed(found) if flush else found).view(np.uint32))

    return run


def _quotient(match: re.Match[str], args: list[str]) -> Made:
    """By a rounded reciprocal, as the machine: a quotient that is a float need not come out."""
    is_full = match[1] == "full"

    def run(r: Registers) -> None:
        x, y = (r.get(a).astype(np.uint32).view(np.float32) for a in args[1:])
        size = np.abs(y)
        scale = np.where(size > 2.0**126, 0.25, np.where(size < 2.0**-126, 2.0**24, 1.0))
        scale = scale.astype(np.float32) if is_full else np.float32(1)
        reciprocal = _flushed(1 / _flushed(y * scale))
        r.put(args[0], (x * scale * reciprocal).astype(np.float32).view(np.uint32))

    return run


_EIGHT = {"e4m3": (ml_dtypes.float8_e4m3fn, 448.0), "e5m2": (ml_dtypes.float8_e5m2, 57344.0)}


def _pack(match: re.Match[str], args: list[str]) -> Made:
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}[match[1]]

    def run(r: Registers) -> None:
        halves = [r.get(a).astype(np.uint32).view(np.float32).astype(dtype) for a in args[2:0:-1]]
        r.put(args[0], np.stack(halves, axis=1).view(np.uint32)[:, 0])

    return run


def _to_eight(match: re.Match[str], args: list[str]) -> Made:
    dtype, largest = _EIGHT[match[1]]

    def one(bits: Any) -> Any:
        x = bits.astype(np.uint32).view(np.float32)
        x = np.where(np.isnan(x), x, np.clip(x, -largest, largest)).astype(np.float32)
        found = x.astype(dtype).view(np.uint8)
        nan = np.uint8(0x7F)
        return np.where(np.isnan(x), nan, found).astype(np.uint16)

    def run(r: Registers) -> None:
        high, low = one(r.get(args[1])), one(r.get(args[2]))
        r.put(args[0], (high << np.uint16(8)) | low)

    return run


def _from_eight(match: re.Match[str], args: list[str]) -> Made:
    dtype, _ = _EIGHT[match[1]]

    def run(r: Registers) -> None:
        pairs = np.ascontiguousarray(r.get(args[1]).astype(np.uint16))[:, None].view(dtype)
        halves = np.ascontiguousarray(pairs.astype(np.float16))
        r.put(args[0], halves.view(np.uint32)[:, 0])

    return run


def _move(match: re.Match[str], args: list[str]) -> Made:
    """Also of several parts to one register, and of one to several."""
    size = int(match[1]) // 8
    joined = next((_list(a) for a in args if a.startswith("{")), ["", ""])
    half, whole = f"u{size // len(joined)}", f"u{size}"

    def pack(r: Registers) -> None:
        parts = [r.get(part).astype(half) for part in _list(args[1])]
        r.put(args[0], np.stack(parts, axis=1).view(whole)[:, 0])

    def unpack(r: Registers) -> None:
        parts = np.ascontiguousarray(r.get(args[1]).astype(whole))[:, None].view(half)
        for i, part in enumerate(_list(args[0])):
            r.put(part, parts[:, i])

    if args[1].startswith("{"):
        return pack
    if args[0].startswith("{"):
        return unpack
    return lambda r: r.put(args[0], r.get(args[1]).astype(whole))


def _permute(match: re.Match[str], args: list[str]) -> Made:
    """Bytes of two words by number; no signs, which a number above 7 asks for."""

    def run(r: Registers) -> None:
        words = [np.ascontiguousarray(r.get(a).astype("<u4")) for a in args[1:3]]
        bytes_ = np.concatenate([word[:, None].view(np.uint8) for word in words], axis=1)
        numbers = r.get(args[3]).astype("<u4")[:, None] >> np.arange(0, 16, 4, dtype="<u4") & 15
        if (numbers > 7).any():
            raise EmulationError("prmt of signs")
        chosen = np.take_along_axis(bytes_, numbers.astype(np.intp), axis=1)
        r.put(args[0], np.ascontiguousarray(chosen).view("<u4")[:, 0])

    return run


_INTEGER: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "shl": np.left_shift, "shr": np.right_shift,
    "mul.lo": np.multiply, "min": np.minimum, "max": np.maximum,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def _calculate(match: re.Match[str], args: list[str]) -> Made:
    """Of two integers: a number, or (setp) whether they compare so."""
    function = _INTEGER[match["name"]]
    size = int(match["bits"]) // 8
    dtype = f"{'i' if match['kind'] == 's' else 'u'}{size}"

    def run(r: Registers) -> None:
        x, y = (r.get(a).astype(f"u{size}").view(dtype) for a in args[1:3])
        found = np.asarray(function(x, y))
        r.put(args[0], found if found.dtype == np.bool_ else found.view(f"u{size}"))

    return run


_KINDS = {"f": "f", "s": "i", "u": "u", "b": "u"}


def _kind(name: str) -> tuple[np.dtype[Any], str]:
    """A type of PTX, and that of its bits."""
    size = int(name[1:]) // 8
    return np.dtype(f"{_KINDS[name[0]]}{size}"), f"u{size}"


def _float_arithmetic(match: re.Match[str], args: list[str]) -> Made:
    dtype, bits = _kind(match["type"])
    functions = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.fmin,
                 "max": np.fmax}  # fmt: skip
    function = functions[match["name"]]

    def run(r: Registers) -> None:
        x, y = (r.get(a).astype(bits).view(dtype) for a in args[1:3])
        r.put(args[0], np.asarray(function(x, y), dtype).view(bits))

    return run


def _convert(match: re.Match[str], args: list[str]) -> Made:
    """Between integers, and from them to floats."""
    (to, to_bits), (source, source_bits) = _kind(match["to"]), _kind(match["source"])

    def run(r: Registers) -> None:
        x = r.get(args[1]).astype(source_bits).view(source)
        r.put(args[0], x.astype(to).view(to_bits))

    return run


def _truncate(match: re.Match[str], args: list[str]) -> Made:
    """From floats to integers, which saturate. NaN: PTX ISA, `cvt`."""
    to, _ = _kind(match["to"])
    source = (
        np.dtype(ml_dtypes.bfloat16) if match["source"] == "bf16" else _kind(match["source"])[0]
    )
    info, wide = np.iinfo(to), source.itemsize == 8 or to.itemsize == 8
    nan = (1 << (info.bits - 1)) * (-1 if info.min else 1) if wide else 0
    # A byte fills a register of 32 bits.
    register = np.dtype(f"{to.kind}{4 if to.itemsize == 1 else to.itemsize}")

    def run(r: Registers) -> None:
        x = np.trunc(r.get(args[1]).astype(f"u{source.itemsize}").view(source).astype(np.float64))
        low, high = x <= float(info.min), x >= float(info.max)
        found = np.where(low | high | np.isnan(x), 0.0, x).astype(to)
        found = np.where(low, to.type(info.min), np.where(high, to.type(info.max), found))
        found = np.where(np.isnan(x), to.type(nan), found).astype(register)
        r.put(args[0], found.view(f"u{register.itemsize}"))

    return run


def _pick(match: re.Match[str], args: list[str]) -> Made:
    def run(r: Registers) -> None:
        r.put(args[0], np.where(r.get(args[3]).astype(bool), r.get(args[1]), r.get(args[2])))

    return run


def _wide_product(match: re.Match[str], args: list[str]) -> Made:
    def run(r: Registers) -> None:
        left, right = (r.get(arg).astype(np.uint32).astype(np.uint64) for arg in args[1:])
        r.put(args[0], left * right)

    return run


def _any_of_warp(match: re.Match[str], args: list[str]) -> Made:
    def run(r: Registers) -> None:
        r.m.whole_warps("a vote")
        found = (r.get(args[1]).astype(bool) & r.predicate).reshape(-1, 32).any(1)
        r.put(args[0], np.repeat(found, 32))

    return run


_HINTS = (
    r"(?:\.(?:volatile|relaxed|weak|ca|cg|cs|cv|wb|wt|nc|gpu|cta|sys|acquire|L1::\w+|L2::\w+))*"
)
_ORDER = r"(?:\.(?:relaxed|acquire|release|acq_rel|cta|gpu|sys))*"
_VECTOR = r"(?:\.v(?P<count>\d))?\.[bufs](?P<bits>\d+)"

INSTRUCTIONS: list[tuple[str, Callable[[re.Match[str], list[str]], Made]]] = [
    (
        # volatile is relaxed (PTX ISA, "Memory Consistency Model")
        r"(?P<word>ld|st)\.(?:volatile|(?:relaxed|acquire|release)\.(?:cta|gpu|sys))"
        r"\.global\.b(?P<bits>\d+)",
        _ordered_access,
    ),
    (rf"ld{_HINTS}\.(?P<space>global|shared){_HINTS}{_VECTOR}", _load),
    (rf"st{_HINTS}\.(?P<space>global|shared){_HINTS}{_VECTOR}", _store),
    (r"red\.shared\.add\.u32", _shared_add),
    (
        r"(?:red|atom)\.relaxed\.(?:cta|gpu|sys)\.global\.add(?:\.noftz)?"
        r"(?:(?:\.v(?P<count>[24]))?\.(?P<type>b?f16)x2|\.v(?P<many>[24])\.(?P<wide>f32))",
        _add_vector,
    ),
    (r"(ld|st)matrix\.sync\.aligned\.m8n8\.x(\d)(\.trans)?\.shared\.b16", _matrix),
    (r"cp\.async\.(?:ca|cg)\.shared\.global(?:\.L2::\w+)?", _copy),
    (r"cp\.async\.commit_group", _commit),
    (r"cp\.async\.wait_group", _wait),
    (r"cp\.async\.wait_all", _wait_all),
    (rf"atom{_ORDER}\.global{_ORDER}\.(?P<kind>\w+)(?:\.noftz)?\.(?P<type>\w+)", _atomic),
    (r"vote\.sync\.any\.pred", _any_of_warp),
    (r"mma\.sync\.aligned\.(m\d+n\d+k\d+)\.row\.col\.(\w+)\.(\w+)\.(\w+)\.(\w+)", _product),
    (r"(ex2|lg2|sqrt|rcp|rsqrt|sin|cos|tanh)\.approx(\.ftz)?\.f32", _approximate),
    (r"div\.(full|approx)(?:\.ftz)?\.f32", _quotient),
    (r"cvt\.rn\.(f16|bf16)x2\.f32", _pack),
    (r"cvt\.rn\.satfinite\.(e4m3|e5m2)x2\.f32", _to_eight),
    (r"cvt\.rn\.f16x2\.(e4m3|e5m2)x2", _from_eight),
    (r"mov\.[bsuf](\d+)", _move),
    (r"prmt\.b32", _permute),
    (r"(?P<name>add|sub|mul|min|max)(?:\.rn)?\.(?P<type>f32|f64)", _float_arithmetic),
    (r"cvt\.rzi\.(?P<to>[su]\d+)\.(?P<source>b?f\d+)", _truncate),
    (r"cvt(?:\.rn)?\.(?P<to>[fsu]\d+)\.(?P<source>[su]\d+)", _convert),
    (
        r"(?P<name>add|sub|and|or|xor|shl|shr|mul\.lo|min|max)\.(?P<kind>[bsu])(?P<bits>\d+)",
        _calculate,
    ),
    (r"setp\.(?P<name>eq|ne|lt|le|gt|ge)\.(?P<kind>[bsu])(?P<bits>\d+)", _calculate),
    (r"selp\.[bsu]\d+", _pick),
    (r"mul\.wide\.u32", _wide_product),
]
