"""Large tiles of narrow numbers that are stored in another shape than they are loaded in."""

from __future__ import annotations

from math import prod

from tests.fuzz.make_memory import moved, own_part, plus, times
from tests.fuzz.program_dtypes import FLOATS, Shape, Type
from tests.fuzz.program_maker import Maker
from tests.fuzz.program_tree import Expr, Store

_DTYPES = ("int8", "uint8", "int16", "float16", "bfloat16", "float32")
_VIEWS = ("ravel", "ravel", "reshape", "trans", "flip")


def view(m: Maker) -> None:
    """Load a tile at the program's offset, view it once or twice, and store it contiguously."""
    m.program.features.add("view")
    dtype = m.pick(_DTYPES)
    shape = (m.pick((8, 16, 32)), m.pick((16, 32, 64)))
    size = prod(shape)
    source, target = (
        m.array(dtype, size * m.program.grid, kind, size) for kind in ("wild", "zero")
    )
    m.reserved |= {source.data[0], target.data[0]}
    found = m.let(Expr("load", (moved(own_part(m, source), _rows(shape)),), Type(dtype, shape)))
    for _ in range(m.pick((1, 1, 2))):
        found = _viewed(m, found)
    if m.chance(0.4):
        found = Expr("xor" if dtype not in FLOATS else "neg", _changed(m, found), found.type)
    offsets = _contiguous(found.shape)
    m.emit(Store((moved(own_part(m, target), offsets), m.unsigned_zero(m.let(found)))))


def _changed(m: Maker, x: Expr) -> tuple[Expr, ...]:
    return (x,) if x.dtype in FLOATS else (x, m.literal(5))


def _viewed(m: Maker, x: Expr) -> Expr:
    way, size = m.pick(_VIEWS), prod(x.shape)
    if way == "trans" and len(x.shape) == 2:
        return m.let(Expr("trans", (x,), Type(x.dtype, x.shape[::-1])))
    if way == "flip":
        return m.let(Expr("flip", (x,), x.type, (m.random.randrange(len(x.shape)),)))
    if way == "reshape":
        rows = 1 << m.random.randrange(size.bit_length())
        return m.let(Expr("reshape", (x,), Type(x.dtype, (rows, size // rows))))
    return m.let(Expr("ravel", (x,), Type(x.dtype, (size,))))


def _rows(shape: Shape) -> Expr:
    """Row-major offsets as users write them: `i[:, None] * n + j[None, :]`."""
    down, across = (Expr("arange", (), Type("int32", (n,)), (0, n), (0, n - 1)) for n in shape)
    column = Expr("expand", (down,), Type("int32", (shape[0], 1)), ("[:, None]",), down.bounds)
    row = Expr("expand", (across,), Type("int32", (1, shape[1])), ("[None, :]",), across.bounds)
    return plus(times(column, shape[1]), row)


def _contiguous(shape: Shape) -> Expr:
    if len(shape) == 2:
        return _rows(shape)
    return Expr("arange", (), Type("int32", shape), (0, shape[0]), (0, shape[0] - 1))
