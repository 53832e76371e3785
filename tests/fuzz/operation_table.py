"""What expressions mean: the text and the NumPy meaning of each operation.

Values are arrays of the dtype of their expression, Python numbers for literals, and int64 offsets
for pointers. What needs variables or memory is in `model.py`; its operations have only a text here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from tests.fuzz.function_library import LIBRARY, SCALAR_FUNCTIONS
from tests.fuzz.program_dtypes import (
    BOOL,
    FLOATS,
    NUMPY,
    Array,
    Undefined,
    bits,
    convert,
    dtype_beside,
    is_literal,
    largest_exact,
    literal,
    promote,
    signed,
)
from tests.fuzz.program_tree import Expr
from tilewright.support.data_class import dataclass

Values = list[Any]
Compute = Callable[[Expr, Values], Any]
Text = Callable[[Expr, list[str]], str]


@dataclass(frozen=True)
class Operation:
    text: Text
    compute: Compute | None = None


OPERATIONS: dict[str, Operation] = {}


def text(expr: Expr) -> str:
    """The expression as Python source."""
    return OPERATIONS[expr.op].text(expr, [text(arg) for arg in expr.args])


def define(name: str, form: str | Text, compute: Compute | None = None) -> None:
    """form: of `str.format`; {0}, {1} ... are the operands, {d} the data."""
    OPERATIONS[name] = Operation(form if callable(form) else partial(_formatted, form), compute)


def _formatted(form: str, expr: Expr, args: list[str]) -> str:
    return form.format(*args, d=expr.data)


# ---- operands ------------------------------------------------------------------------------------


def counted_dtype(expr: Expr, value: Any, other: Expr) -> str:
    """The dtype that an operand counts as beside another one."""
    return dtype_beside(expr.dtype, value, other.dtype)


def common_dtype(exprs: list[Expr], values: Values) -> str:
    (a, b), (x, y) = exprs, values
    return promote(counted_dtype(a, x, b), counted_dtype(b, y, a))


def as_dtype(expr: Expr, value: Any, dtype: str) -> Array:
    return literal(value, dtype) if is_literal(expr.dtype) else convert(value, dtype)


def common(expr: Expr, values: Values, first: int = 0) -> tuple[Array, Array]:
    """Two operands in their common dtype."""
    exprs = list(expr.args[first : first + 2])
    values = values[first : first + 2]
    dtype = common_dtype(exprs, values)
    x, y = (as_dtype(e, v, dtype) for e, v in zip(exprs, values, strict=True))
    return x, y


def own(expr: Expr, values: Values) -> list[Array]:
    """All operands in the dtype of the result."""
    return [as_dtype(e, v, expr.dtype) for e, v in zip(expr.args, values, strict=True)]


# ---- arithmetic ----------------------------------------------------------------------------------


def _arithmetic(function: Any, on_bools: Any = None) -> Compute:
    def compute(expr: Expr, values: Values) -> Any:
        x, y = own(expr, values)
        return (on_bools if expr.dtype == BOOL and on_bools else function)(x, y)

    return compute


def _compared(function: Any) -> Compute:
    return lambda expr, values: function(*common(expr, values))


def _shift_left(expr: Expr, values: Values) -> Any:
    x, y = own(expr, values)
    _check_amount(y, expr.dtype)
    return np.left_shift(x, y)


def _shift_right(expr: Expr, values: Values) -> Any:
    """The left operand decides whether the sign comes in, whatever the result's type."""
    x, y = own(expr, values)
    _check_amount(y, expr.dtype)
    if signed(expr.args[0].dtype):
        kind = np.dtype(f"i{x.dtype.itemsize}")
        return np.right_shift(x.view(kind), y.view(kind)).view(x.dtype)
    return np.right_shift(x, y)


def _check_amount(amount: Array, dtype: str) -> None:
    if np.any((amount < 0) | (amount >= bits(dtype))):
        raise Undefined("a shift by the width of the type or more")


def _floordiv(expr: Expr, values: Values) -> Any:
    x, y = own(expr, values)
    y = _divisor(y)
    down = x // y
    return down + ((down * y != x) & ((x < 0) != (y < 0))).astype(x.dtype)


def _mod(expr: Expr, values: Values) -> Any:
    x, y = own(expr, values)
    return x - _floordiv(expr, values) * _divisor(y)


def _divisor(y: Array) -> Array:
    """Zero divides as one."""
    return np.where(y == 0, y.dtype.type(1), y)


def _truediv(expr: Expr, values: Values) -> Any:
    x, y = own(expr, values)
    quotient = x / y
    if expr.dtype == "float32":
        exact = quotient.astype(np.float64) * y.astype(np.float64) == x.astype(np.float64)
        if not np.all(exact & np.isfinite(quotient) & (y != 0)):
            raise Undefined("a quotient that is not exact")
    return quotient


def _exact_fma(expr: Expr, values: Values) -> Any:
    x, y, z = (v.astype(np.float64) for v in own(expr, values))
    found = x * y + z
    check_exact(np.abs(x * y) + np.abs(z), found, expr.dtype)
    return convert(found, expr.dtype)


def _high(expr: Expr, values: Values) -> Any:
    """The bits of both count as unsigned ones."""
    width = bits(expr.dtype)
    x, y = (v.astype(object) % (1 << width) for v in np.broadcast_arrays(*own(expr, values)))
    high = np.asarray(x * y, object) >> width
    return np.asarray(high, object).astype(f"uint{width}").astype(NUMPY[expr.dtype])


def _ceil_div(expr: Expr, values: Values) -> Any:
    x, y = own(expr, values)
    up = x + y - np.asarray(1, x.dtype)
    return _floordiv(Expr("floordiv", expr.args, expr.type), [up, y])


def quiet(x: Array) -> Array:
    """Without signaling NaNs, which `numpy.fmax` and `fmin` return in the place of a number."""
    if x.dtype.kind in "biu":
        return x
    return np.where(np.isnan(x), x.dtype.type(np.nan), x)


def _extremum(function: Any, on_bools: Any) -> Compute:
    def compute(expr: Expr, values: Values) -> Any:
        x, y = map(quiet, own(expr, values))
        return (on_bools if expr.dtype == BOOL else function)(x, y)

    return compute


def _clamp(expr: Expr, values: Values) -> Any:
    x, low, high = map(quiet, own(expr, values))
    return np.fmin(np.fmax(x, low), high)


def _truth(expr: Expr, value: Any) -> Any:
    return np.asarray(bool(value)) if is_literal(expr.dtype) else convert(value, BOOL)


def _logical(function: Any) -> Compute:
    return lambda e, v: function(_truth(e.args[0], v[0]), _truth(e.args[1], v[1]))


_COMPARE = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
            "==": np.equal, "!=": np.not_equal}  # fmt: skip


def _chain(expr: Expr, values: Values) -> Any:
    first = _COMPARE[expr.data[0]](*common(expr, values))
    return first & _COMPARE[expr.data[1]](*common(expr, values, 1))


def _where(expr: Expr, values: Values) -> Any:
    x, y = (as_dtype(e, v, expr.dtype) for e, v in zip(expr.args[1:], values[1:], strict=True))
    return np.where(_truth(expr.args[0], values[0]), x, y)


def _bitcast(expr: Expr, values: Values) -> Any:
    if expr.args[0].dtype in FLOATS and not np.all(np.isfinite(values[0].astype(np.float64))):
        raise Undefined("the bits of a NaN")
    return np.ascontiguousarray(values[0]).view(NUMPY[expr.dtype]).reshape(expr.shape)


def check_exact(size: Array, value: Array, dtype: str) -> None:
    """Integers so small that the order of a sum does not show. size: sum of the absolute values."""
    with np.errstate(invalid="ignore"):
        whole = np.all(np.isfinite(value)) and np.all(value == np.rint(value))
    if not whole or np.any(size > largest_exact(dtype)):
        raise Undefined("a sum of floats that is rounded")


for _name, _symbol, _function, _on_bools in (
    ("add", "+", np.add, np.logical_xor), ("sub", "-", np.subtract, np.logical_xor),
    ("mul", "*", np.multiply, np.logical_and), ("and", "&", np.bitwise_and, None),
    ("or", "|", np.bitwise_or, None), ("xor", "^", np.bitwise_xor, None),
):  # fmt: skip
    define(_name, f"({{0}} {_symbol} {{1}})", _arithmetic(_function, _on_bools))
for _symbol, _function in _COMPARE.items():
    define(_symbol, f"({{0}} {_symbol} {{1}})", _compared(_function))
define("shl", "({0} << {1})", _shift_left)
define("shr", "({0} >> {1})", _shift_right)
define("floordiv", "({0} // {1})", _floordiv)
define("mod", "({0} % {1})", _mod)
define("truediv", "({0} / {1})", _truediv)
define("div_rn", "tl.div_rn({0}, {1})", lambda e, v: np.divide(*own(e, v)))
define("fma", "tl.fma({0}, {1}, {2})", _exact_fma)
define("umulhi", "tl.umulhi({0}, {1})", _high)
define("cdiv", "tl.cdiv({0}, {1})", _ceil_div)
define("neg", "(-{0})", lambda e, v: v[0] if e.dtype == BOOL else np.negative(v[0]))
define("pos", "(+{0})", lambda e, v: v[0])
define("invert", "(~{0})", lambda e, v: np.invert(v[0]))
define("abs", "tl.abs({0})", lambda e, v: np.abs(v[0]))
define("floor", "tl.floor({0})", lambda e, v: np.floor(v[0]))
define("ceil", "tl.ceil({0})", lambda e, v: np.ceil(v[0]))
define("not", "(not {0})", lambda e, v: np.logical_not(_truth(e.args[0], v[0])))
define("land", "({0} and {1})", _logical(np.logical_and))
define("lor", "({0} or {1})", _logical(np.logical_or))
define("chain", "({0} {d[0]} {1} {d[1]} {2})", _chain)
define("where", "tl.where({0}, {1}, {2})", _where)
define("maximum", "tl.maximum({0}, {1})", _extremum(np.fmax, np.logical_or))
define("minimum", "tl.minimum({0}, {1})", _extremum(np.fmin, np.logical_and))
define("python_max", "max({0}, {1})", _extremum(np.fmax, np.logical_or))
define("python_min", "min({0}, {1})", _extremum(np.fmin, np.logical_and))
define("clamp", "tl.clamp({0}, {1}, {2})", _clamp)
define("cast", "{0}.to(tl.{d[0]})", lambda e, v: convert(v[0], e.dtype))
define("bitcast", "{0}.to(tl.{d[0]}, bitcast=True)", _bitcast)


# ---- creation and shapes -------------------------------------------------------------------------


def _literal_text(expr: Expr, args: list[str]) -> str:
    value = expr.data[0]
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    return f"({value!r})" if repr(value).startswith("-") else repr(value)


def _pair_of(expr: Expr, values: Values) -> tuple[Array, Array]:
    x, y = np.broadcast_arrays(*own(expr, values))
    return x, y


def _interleaved(expr: Expr, values: Values) -> Any:
    joined = np.stack(_pair_of(expr, values), axis=-1)
    return joined.reshape(expr.shape)


def _gathered(expr: Expr, values: Values) -> Any:
    source, index = values[0], values[1].astype(np.int64)
    axis = expr.data[0]
    if np.any((index < 0) | (index >= source.shape[axis])):
        raise Undefined("a gather beyond the tile")
    return np.take_along_axis(source, index, axis)


def _tuple_text(shape: tuple[Any, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _shaped(form: str) -> Text:
    """A form whose {s} is the result's shape."""
    return lambda e, args: form.format(*args, d=e.data, s=_tuple_text(e.shape))


def _filled(expr: Expr, values: Values) -> Any:
    return np.full(expr.shape, as_dtype(expr.args[0], values[0], expr.dtype))


define("literal", _literal_text, lambda e, v: e.data[0])
define("text length", 'len(f"{{{0}!r}}")', lambda e, v: len(repr(v[0])))
define("constant", "{d[0]}", lambda e, v: e.data[1])
define("arange", "tl.arange({d[0]}, {d[1]})", lambda e, v: np.arange(*e.data, dtype=np.int32))
define("zeros", _shaped("tl.zeros({s}, tl.{d[0]})"), lambda e, v: np.zeros(e.shape, NUMPY[e.dtype]))
define("zeros_like", "tl.zeros_like({0})", lambda e, v: np.zeros_like(v[0]))
define("full", _shaped("tl.full({s}, {0}, tl.{d[0]})"), _filled)
define("expand", "{0}{d[0]}", lambda e, v: v[0].reshape(e.shape))
define("broadcast_to", _shaped("tl.broadcast_to({0}, {s})"),
       lambda e, v: np.broadcast_to(v[0], e.shape))  # fmt: skip
define("reshape", _shaped("tl.reshape({0}, {s})"), lambda e, v: v[0].reshape(e.shape))
define("ravel", "tl.ravel({0})", lambda e, v: v[0].reshape(-1))
define("trans", "tl.trans({0})", lambda e, v: np.swapaxes(v[0], -1, -2))
define("permute", "tl.permute({0}, {d[0]})", lambda e, v: np.transpose(v[0], e.data[0]))
define("join", "tl.join({0}, {1})", lambda e, v: np.stack(_pair_of(e, v), axis=-1))
define("split", "tl.split({0})", lambda e, v: (v[0][..., 0], v[0][..., 1]))
define("interleave", "tl.interleave({0}, {1})", _interleaved)
define("cat", "tl.cat({0}, {1}, dim={d[0]})", lambda e, v: np.concatenate(v, axis=e.data[0]))
define("flip", "tl.flip({0}, {d[0]})", lambda e, v: np.flip(v[0], e.data[0]))
define("gather", "tl.gather({0}, {1}, {d[0]})", _gathered)
define("item", "{0}.item()", lambda e, v: v[0].reshape(()))


# ---- reductions, scans, products -----------------------------------------------------------------


def _axis_text(name: str) -> Text:
    def shown(e: Expr, args: list[str]) -> str:
        axis, keep = e.data
        words = ", keep_dims=True" if keep else ""
        return f"tl.{name}({args[0]}, axis={axis}{words})"

    return shown


def _fold_text(e: Expr, args: list[str]) -> str:
    function, axis, keep = e.data
    words = ", keep_dims=True" if keep else ""
    operand = args[0] if len(args) == 1 else f"({', '.join(args)})"
    return f"tl.reduce({operand}, {axis}, {function}{words})"


def _scan_text(e: Expr, args: list[str]) -> str:
    function, axis, reverse = e.data
    operand = args[0] if len(args) == 1 else f"({', '.join(args)})"
    return f"tl.associative_scan({operand}, {axis}, {function}, reverse={reverse})"


def _reduced(function: Callable[[Array, Any], Array], axis_at: int = 0) -> Compute:
    """A reduction of the operand in the dtype of the result."""

    def compute(expr: Expr, values: Values) -> Any:
        axis, keep = expr.data[axis_at : axis_at + 2]
        x = quiet(convert(values[0], expr.dtype))
        if axis is None:
            x, axis = x.reshape(-1), 0
        found = function(x, axis)
        return found.reshape(expr.shape) if keep else found

    return compute


def _sum(x: Array, axis: int) -> Array:
    if x.dtype.kind in "biu":
        return np.add.reduce(x, axis=axis, dtype=x.dtype)
    wide = x.astype(np.float64)
    dtype = "float64" if x.dtype == np.float64 else "float32"
    found = np.add.reduce(wide, axis=axis)
    check_exact(np.add.reduce(np.abs(wide), axis=axis), found, dtype)
    return found


def _sum_compute(expr: Expr, values: Values) -> Any:
    """Integers below 32 bits are widened first; floats are summed in fp32 or more."""
    x = values[0] if expr.dtype in FLOATS else convert(values[0], expr.dtype)
    axis, keep = expr.data
    if axis is None:
        x, axis = x.reshape(-1), 0
    found = convert(_sum(x, axis), expr.dtype)
    return found.reshape(expr.shape) if keep else found


def _index_of(function: Any) -> Compute:
    def compute(expr: Expr, values: Values) -> Any:
        axis, keep = expr.data
        x = _no_nan(values[0])
        if axis is None:
            x, axis = x.reshape(-1), 0
        found = function(x, axis=axis).astype(np.int32)
        return np.asarray(found).reshape(expr.shape) if keep else found

    return compute


def _no_nan(x: Array) -> Array:
    if x.dtype.kind not in "biu":
        x = x.astype(np.float64)
        if np.isnan(x).any():
            raise Undefined("the index of the largest of several NaNs")
    return x


def _max_pair(expr: Expr, values: Values) -> Any:
    axis = expr.data[0]
    index = np.argmax(_no_nan(values[0]), axis=axis)
    taken = np.take_along_axis(values[0], np.expand_dims(index, axis), axis)
    return np.squeeze(taken, axis), index.astype(np.int32)


def _folded(expr: Expr, values: Values) -> Any:
    function, axis, _ = expr.data
    found = _accumulated(LIBRARY[function].combine, values, axis)
    last = [np.take(x, -1, axis=axis).reshape(expr.shape) for x in found]
    return tuple(last) if len(last) > 1 else last[0]


def _scanned(expr: Expr, values: Values) -> Any:
    function, axis, reverse = expr.data
    order = [np.flip(v, axis) if reverse else v for v in values]
    found = _accumulated(LIBRARY[function].combine, order, axis)
    found = [np.flip(v, axis) if reverse else v for v in found]
    return tuple(found) if len(found) > 1 else found[0]


def _accumulated(combine: Callable[..., Any], values: Values, axis: int) -> list[Array]:
    """Inclusive folds along an axis."""
    moved = [np.moveaxis(v, axis, 0) for v in values]
    rows = [[v[0] for v in moved]]
    for place in range(1, len(moved[0])):
        combined: Any = combine(*rows[-1], *(v[place] for v in moved))
        new = cast("tuple[Any, ...]", combined if isinstance(combined, tuple) else (combined,))
        rows.append([x.astype(v.dtype) for x, v in zip(new, moved, strict=True)])
    return [np.moveaxis(np.stack(column), 0, axis) for column in zip(*rows, strict=True)]


def _cumulated(function: Any) -> Compute:
    def compute(expr: Expr, values: Values) -> Any:
        axis, reverse = expr.data
        x = values[0] if expr.dtype in FLOATS else convert(values[0], expr.dtype)
        x = np.flip(x, axis) if reverse else x
        if expr.dtype in FLOATS:
            wide = x.astype(np.float64)
            found = np.cumsum(wide, axis)
            dtype = "float64" if expr.dtype == "float64" else "float32"
            check_exact(np.cumsum(np.abs(wide), axis), found, dtype)
            found = convert(found, expr.dtype)
        else:
            found = function(x, axis=axis, dtype=x.dtype)
        return np.flip(found, axis) if reverse else found

    return compute


def _dot_text(e: Expr, args: list[str]) -> str:
    words = [f'input_precision="{e.data[0]}"'] if e.data[0] else []
    words += [f"out_dtype=tl.{e.data[1]}"] if e.data[1] else []
    return f"tl.dot({', '.join([*args, *words])})"


def _product(expr: Expr, values: Values) -> Any:
    x, y = values[:2]
    if x.dtype.kind in "iu":
        found = np.matmul(x.astype(np.int64), y.astype(np.int64))
        found = found + (values[2] if len(values) > 2 else 0)
        return found.astype(np.int32)
    x, y = x.astype(np.float64), y.astype(np.float64)
    acc = values[2].astype(np.float64) if len(values) > 2 else np.zeros(())
    if expr.args[0].dtype == "float32" and np.any(np.abs([np.abs(x).max(), np.abs(y).max()]) > 256):
        raise Undefined("operands that TF32 rounds")
    found = np.matmul(x, y) + acc
    check_exact(np.matmul(np.abs(x), np.abs(y)) + np.abs(acc), found, expr.dtype)
    return convert(found, expr.dtype)


define("sum", _axis_text("sum"), _sum_compute)
define("max", _axis_text("max"), _reduced(np.fmax.reduce))
define("min", _axis_text("min"), _reduced(np.fmin.reduce))
define("argmax", _axis_text("argmax"), _index_of(np.argmax))
define("argmin", _axis_text("argmin"), _index_of(np.argmin))
define("xor_sum", _axis_text("xor_sum"), _reduced(np.bitwise_xor.reduce))
define("reduce_or", _axis_text("reduce_or"), _reduced(np.bitwise_or.reduce))
define("max_pair", "tl.max({0}, {d[0]}, return_indices=True)", _max_pair)
define(
    "map",
    "tl.map_elementwise({d[0]}, {0})",
    lambda e, v: SCALAR_FUNCTIONS[e.data[0]].combine(v[0]).astype(v[0].dtype),
)
define("reduce", _fold_text, _folded)
define("reduce_pair", _fold_text, _folded)
define("scan", _scan_text, _scanned)
define("scan_pair", _scan_text, _scanned)
define("cumsum", "tl.cumsum({0}, {d[0]}, reverse={d[1]})", _cumulated(np.cumsum))
define("cumprod", "tl.cumprod({0}, {d[0]}, reverse={d[1]})", _cumulated(np.cumprod))
define("dot", _dot_text, _product)


# ---- what the model computes ---------------------------------------------------------------------


def _load_text(e: Expr, args: list[str]) -> str:
    words = [f"{word}={arg}" for word, arg in zip(("mask", "other"), args[1:], strict=False)]
    return f"tl.load({', '.join([args[0], *words])})"


def _atomic_text(e: Expr, args: list[str]) -> str:
    mask = [f"mask={arg}" for arg in args[2:]]
    return f"tl.atomic_{e.data[0]}({', '.join([*args[:2], *mask])})"


define("var", "{d[0]}")
define("program_id", "tl.program_id(0)")
define("num_programs", "tl.num_programs(0)")
define("pointer", "{d[0]}")
define("offset", "({0} {d[0]} {1})")
define("load", _load_text)
define("atomic", _atomic_text)
define("cas", "tl.atomic_cas({0}, {1}, {2})")
define("ternary", "({1} if {0} else {2})")
define("call", lambda e, args: f"{e.data[0]}({', '.join(args)})")
