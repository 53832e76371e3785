"""Aggregates, named tuples, helpers that run at compile time, recursion, hints: on every device."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportIncompatibleVariableOverride=false, reportPossiblyUnboundVariable=false

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tests.unit.frontend.python.harness import text
from tilewright import aggregate, aggregate_replace, constexpr_function, jit
from tilewright.frontend.python import dependencies
from tilewright.language import device_function
from tilewright.support import errors

# --- aggregates -----------------------------------------------------------------------------------


@aggregate
class Interval:
    """Tiles and a constant; its constructor computes."""

    low: tl.tensor
    high: tl.tensor
    closed: tl.constexpr

    def __init__(self, low, size, closed=True):
        self.low = low
        self.high = low + size
        self.closed = tl.constexpr(closed)

    @jit
    def contains(self, x):
        if self.closed:
            return (self.low <= x) & (x <= self.high)
        return (self.low <= x) & (x < self.high)

    @jit
    def __add__(self, shift):
        return aggregate_replace(self, low=self.low + shift, high=self.high + shift)

    def __radd__(self, shift):
        return self + shift

    @jit
    def __neg__(self):
        return Interval(-self.high, self.high - self.low, self.closed)

    @jit
    def __lt__(self, other):
        return self.high < other.low

    def __getitem__(self, index):
        return (self.low, self.high)[index]

    @property
    def middle(self):
        return (self.low + self.high) // 2

    @constexpr_function
    def closed_text(self):
        return "closed" if self.closed else "open"


@jit
def aggregate_kernel(out, n, BLOCK: tl.constexpr, CLOSED: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = Interval(i, 4, CLOSED)
    for k in range(n):
        at = at + k
        if k == 3:
            at = -at
    at = 1 + at
    result = at.contains(i + 5).to(tl.int32) + 2 * (at < Interval(i, 1)).to(tl.int32)
    if at.closed_text() == "closed":
        result += 100
    tl.store(out + i, result + at[0] * 10 + at.middle * 1000)


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("n", [0, 2, 6])
def test_aggregates_through_loops_branches_and_calls(device: Device, n: int, closed: bool):
    out = device.empty(8, np.int32)
    device.run(aggregate_kernel, (1,), out, n, BLOCK=8, CLOSED=closed)
    i = np.arange(8)
    low, high = i, i + 4
    for k in range(n):
        low, high = low + k, high + k
        if k == 3:
            low, high = -high, -low
    low, high = low + 1, high + 1
    inside = (low <= i + 5) & (i + 5 <= high if closed else i + 5 < high)
    middle = np.trunc((low + high) / 2).astype(int)
    expected = inside + 2 * (high < i) + 100 * closed + low * 10 + middle * 1000
    np.testing.assert_array_equal(out, expected)


@aggregate
class Sum:
    """Constructed by a function under @jit, without one in the class that is derived."""

    total: tl.tensor
    count: tl.constexpr

    @jit
    def __init__(self, total, count=1):
        self.total = total * 1
        self.count = tl.constexpr(count)

    @jit
    def add(self, x):
        return aggregate_replace(self, total=self.total + x, count=self.count + 1)


@aggregate
class Named(Sum):
    """Fields of its base, and more: a tuple, a dtype, an aggregate, a default."""

    pair: tl.tuple
    inner: Sum
    dtype: tl.constexpr
    scale: tl.constexpr = 3

    def __init__(self, x, dtype):
        super().__init__(x, 5)
        self.pair = (x, x + 1)
        self.inner = Sum(x)
        self.dtype = dtype
        self.scale = 3

    @jit
    def all(self):
        return (self.total + self.pair[1] + self.inner.total * self.scale).to(self.dtype)


@aggregate
class Plain:
    """One parameter for each field."""

    a: tl.tensor
    b: tl.constexpr = 2


@jit
def derived_kernel(out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = Named(i, tl.float32).add(i)
    for _ in tl.static_range(2):
        value = aggregate_replace(value, inner=value.inner.add(1))
    plain = Plain(i)
    tl.static_assert(isinstance(value, Sum) and not isinstance(plain, Sum))
    tl.static_assert(value.count == 6)
    tl.store(out + i, value.all() / plain.b + Plain(b=7, a=i).b)


@jit
def changing_count(out, BLOCK: tl.constexpr):
    value = Sum(tl.arange(0, BLOCK))
    for _ in range(2):
        value = value.add(1)
    tl.store(out + tl.arange(0, BLOCK), value.total)


def test_derived_aggregates_with_nested_fields(device: Device):
    out = device.empty(8, np.float32)
    device.run(derived_kernel, (1,), out, BLOCK=8)
    i = np.arange(8)
    np.testing.assert_array_equal(out, (2 * i + i + 1 + (i + 2) * 3) / 2 + 7)


def test_a_constexpr_field_does_not_change_in_a_loop():
    with pytest.raises(errors.InconsistentType, match="Sum"):
        text(device_function(changing_count.fn), out="*i32", BLOCK=8)


# --- tuples and helpers ---------------------------------------------------------------------------


class Bounds(NamedTuple):
    """A named tuple of Python."""

    low: Any
    high: Any = 7


def widest(bounds: tuple[int, ...]) -> int:
    """Plain Python, on compile-time values."""
    return max(abs(int(bound)) for bound in bounds)


def shifted(x: Any, by: int) -> Any:
    """Plain Python, on run-time values."""
    pairs = {"left": x - by, "right": x + by}
    return pairs["right"] * tl.where(x > by, 1, 2)


def twice(function: Any, x: Any) -> Any:
    """Plain Python that calls what is under @jit."""
    return function(function(x))


@constexpr_function
def bits(n: int) -> int:
    """Of a constant."""
    return n.bit_length()


@jit
def power(x, n: tl.constexpr):
    """Recursion that ends at compile time."""
    if n == 0:
        return x * 0 + 1
    if n % 2 == 1:
        return power(x, n - 1) * x
    return power(x * x, n // 2)


@jit
def sum_of(items):
    if len(items) == 1:
        return items[0]
    return sum_of(items[: len(items) // 2]) + sum_of(items[len(items) // 2 :])


@jit(noinline=True)
def increased(x, by=1, *more, scale: tl.constexpr = 1):
    for m in more:
        x += m
    return (x + by) * scale


@jit
def helpers_kernel(out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    bounds = Bounds(i, high=i + n)
    for _ in range(n):
        bounds = Bounds(bounds.high, bounds.low)
    DTYPE = tl.int64 if BLOCK > 4 else tl.int32
    items = [bounds.low, bounds.high, shifted(i, 2), twice(increased, i)]
    result = sum_of(items).to(DTYPE) + widest((3, -BLOCK, 5)) + bits(BLOCK)
    rest = (i, n)
    result += increased(i, *rest, scale=2) + power(i % 3, 5) + Bounds(1).high
    for last in range(0, 10, 4):
        result += last * 0
    tl.store(out + i, result + last)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_helpers_tuples_and_recursion(device: Device, n: int):
    out = device.empty(8, np.int64)
    device.run(helpers_kernel, (1,), out, n, BLOCK=8)
    i = np.arange(8)
    summed = i + i + n + (i + 2) * np.where(i > 2, 1, 2) + i + 2
    increased_ = (i + i + n) * 2
    np.testing.assert_array_equal(out, summed + 8 + 4 + increased_ + (i % 3) ** 5 + 7 + 8)


def test_a_changed_helper_compiles_again():
    """Text of plain functions and of methods is a part of what a kernel depends on."""
    used = {item.name for item in dependencies(device_function(helpers_kernel.fn)).used}
    assert {"power", "increased", "bits"} <= used


# --- hints ----------------------------------------------------------------------------------------


@device_function
def hinted(x, n):
    tl.multiple_of(n, 16)
    tl.max_contiguous(x, 4)
    if n > 3:
        tl.multiple_of(x, 8)
    tl.store(x, n)


def test_hints_as_statements_count():
    shown = text(hinted, x="*i32", n="i32")
    assert "tile.hint %n {divisibility = [16]}" in shown
    store = next(line for line in shown.splitlines() if "mem.store" in line)
    assert "%n," not in store and "%x," not in store
    assert "cf.if" in shown and "-> *i32" not in shown.split("cf.if")[1].split("{")[0]


FAILING: list[tuple[Callable[..., Any], str]] = []


def failing(message: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of kernels that fail with a message."""

    def register(kernel: Callable[..., Any]) -> Callable[..., Any]:
        FAILING.append((kernel, message))
        return kernel

    return register


@failing("Plain has no attribute 'c'")
def reads_no_field(out):
    tl.store(out, Plain(1).c)


@aggregate
class Incomplete:
    """Its constructor forgets a field."""

    a: tl.tensor
    b: tl.tensor

    def __init__(self, a):
        self.a = a


@failing("its constructor does not set 'b'")
def forgets_a_field(out):
    tl.store(out, Incomplete(1).a)


@failing("field 'b' must be known at compile time")
def gives_a_run_time_value(out):
    tl.store(out, Plain(1, tl.program_id(0)).b)


@pytest.mark.parametrize(("kernel", "message"), FAILING, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.parametrize("interpret", [False, True])
def test_mistakes_with_aggregates(kernel: Callable[..., Any], message: str, interpret: bool):
    with pytest.raises(errors.TilewrightError, match=message) as caught:
        made: Any = jit(kernel, interpret=interpret)
        made[(1,)](np.zeros(1, np.int32))
    assert caught.value.loc is not None and "tl.store(out" in str(caught.value)


SIZES = [4, [2, 3]]
TABLE = {"scale": 3.0, "kinds": {"a": 1, "b": 2}, 7: tl.float32}


@jit
def containers_kernel(out, KIND: tl.constexpr):
    i = tl.arange(0, 16)
    n = len(SIZES)
    for size in SIZES[1]:
        n += size
    if "scale" in TABLE:
        n += TABLE["kinds"][KIND]
    tl.store(out + i, (i * TABLE["scale"] + n + SIZES[0]).to(TABLE[7]))


def test_lists_and_dictionaries_from_outside(device: Device):
    out = device.empty(16, np.float32)
    device.run(containers_kernel, (1,), out, KIND="b")
    np.testing.assert_array_equal(out, np.arange(16) * 3 + 13)


def test_a_change_inside_a_list_or_dictionary_is_noticed():
    numbers, table = [1, [2]], {"a": {"b": 3}}

    @jit
    def reads(out):
        tl.store(out, numbers[1][0] + table["a"]["b"])

    out = np.zeros(1, np.int32)
    for _ in range(3):
        reads[(1,)](out)
    assert out[0] == 5
    numbers[1] = [7]
    with pytest.raises(errors.ChangedGlobal, match=r"'numbers' was \[1, \[2\]\] when"):
        reads[(1,)](out)
    numbers[1] = [2]
    reads[(1,)](out)
    table["a"]["b"] = 4
    with pytest.raises(errors.ChangedGlobal, match="'table' was"):
        reads[(1,)](out)


@jit
def bits_of(kind):
    inside = kind.value
    return inside.primitive_bitwidth if kind is not tl.int8 else 0


@jit
def values_of_dtypes_kernel(x, out, KIND: tl.constexpr):
    element = x.dtype.element_ty
    named: tl.constexpr = x.dtype.element_ty
    seven: tl.constexpr = 7
    tl.store(out + 2, seven.value)
    tl.store(out, bits_of(element) + bits_of(tl.int8) + bits_of(kind=KIND))
    tl.store(out + 1, tl.full([], 3.5, named.value).to(KIND.value).to(tl.int32))


def test_a_dtype_that_is_a_parameter_or_a_constexpr_has_a_value(device: Device):
    out = device.empty(3, np.int32)
    device.run(values_of_dtypes_kernel, (1,), device.empty(1, np.float32), out, KIND=tl.int64)
    assert out.tolist() == [96, 3, 7]


@jit
def annotated_run_time_value_kernel(out, n):
    twice: tl.constexpr = n * 2
    once = tl.constexpr(n)
    for i in range(twice - once, twice, warp_specialize=True, num_stages=2):
        tl.store(out + i - once, i + twice)


def test_a_run_time_value_may_stand_under_constexpr(device: Device):
    out = device.empty(3, np.int32)
    device.run(annotated_run_time_value_kernel, (1,), out, 3)
    assert out.tolist() == [9, 10, 11]


@aggregate
class OnlyMethods:
    """No fields: a name space."""

    @jit
    def seven():
        return 7


@aggregate
class MadeByTheLanguage:
    """As written for Triton, whose functions take `_semantic`."""

    value: tl.tensor

    def __init__(self, size, _semantic=None):
        self.value = tl.arange(0, size, _semantic=_semantic)


@jit
def methods_kernel(out):
    made = MadeByTheLanguage(4)
    tl.store(out + tl.arange(0, 4), made.value + OnlyMethods.seven())


def test_classes_of_methods_and_initializers_for_triton(device: Device):
    out = device.empty(4, np.int32)
    device.run(methods_kernel, (1,), out)
    assert out.tolist() == [7, 8, 9, 10]


def test_a_class_with_neither_fields_nor_methods():
    class Empty:
        pass

    with pytest.raises(errors.InvalidValue, match="annotated fields or methods"):
        aggregate(Empty)
