"""What decides a variant: the type is the first that holds the value, the fact is true of it, and
the generated launch function finds exactly the variant that the slow way has made."""

# pyright: reportArgumentType=false, reportInvalidTypeForm=false

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tilewright.language as tl
from tilewright.ir.types import DType, f32, i1, i32, i64, u64
from tilewright.runtime import JITFunction, jit
from tilewright.runtime.arguments.specialization import (
    HANDLERS,
    Constant,
    Spec,
    constant_key,
    integer_key,
)

INTEGERS = st.integers(-(2**63), 2**64 - 1) | st.sampled_from(
    [s * (2**b) + d for b in (0, 4, 31, 32, 63) for s in (-1, 1) for d in (-8, -1, 0, 1, 8)]
).filter(lambda n: -(2**63) <= n < 2**64)
CONSTANTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(tl.float32),
    lambda inner: st.tuples(inner, inner) | st.lists(inner, max_size=2),
    max_leaves=4,
)
SCALARS = st.none() | st.booleans() | INTEGERS | st.floats()
ARGUMENTS = SCALARS | st.tuples(SCALARS, SCALARS) | st.just("text") | st.just(np.zeros(4, "f"))


@given(INTEGERS)
def test_integers(value: int) -> None:
    key = integer_key(value)
    assert isinstance(key.type, DType)
    assert key.type.min_int <= value <= key.type.max_int
    smaller = [t for t in (i32, i64, u64) if t.min_int <= value <= t.max_int]
    assert key.type is smaller[0]
    assert key.divisor == next(d for d in (16, 8, 1) if value % d == 0)
    assert key.sign == (0 if key.type is u64 else 1 if value >= 0 else -1)
    assert key.facts().get("non_negative", 0) == (key.sign == 1)
    assert key.plain.type is key.type
    assert key.plain.facts() == {}
    assert key.plain.plain is key.plain


@given(SCALARS)
def test_scalars(value: object) -> None:
    key, passed = HANDLERS.key_and_value(value)
    if value is None or (type(value) is int and value == 1):
        assert key is value or key == 1
        return
    assert isinstance(key, Spec)
    assert passed is value
    expected = {bool: (i1,), float: (f32,), int: (i32, i64, u64)}[type(value)]
    assert key.type in expected


@given(CONSTANTS, CONSTANTS)
def test_constants_with_one_key_mean_the_same(a: object, b: object) -> None:
    assert hash(constant_key(a)) == hash(constant_key(a))
    assert constant_key(a) == constant_key(a)
    if constant_key(a) == constant_key(b):
        assert repr(a) == repr(b)
    elif not isinstance(constant_key(a), Constant):
        assert type(a) is not type(b) or a != b


def new_kernel() -> JITFunction:
    @jit(do_not_specialize=["b"])
    def kernel(a, b, c: tl.constexpr, d: tl.int64 = 3, *rest, e: tl.constexpr = None, **META):
        pass

    return kernel


KERNEL = new_kernel()


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.tuples(ARGUMENTS, ARGUMENTS, CONSTANTS),
    st.integers(-(2**63), 2**63 - 1) | st.none(),
    st.lists(ARGUMENTS, max_size=2),
    st.dictionaries(
        st.sampled_from(["e", "num_warps", "X", "Y"]), st.sampled_from([1, 2, True, 4])
    ),
)
def test_both_ways_find_the_same_key(
    first: tuple[Any, ...], d: int | None, rest: list[Any], words: dict[str, Any]
) -> None:
    args = [*first, *([] if d is None else [d, *rest])]
    asked: list[object] = []

    class Asked(dict[object, object]):
        def get(self, key: object, default: object = None) -> object:
            asked.append(key)
            raise LookupError

    kernel = new_kernel()
    launch = kernel.launch_function.launch
    names: dict[str, object] = launch.__globals__  # pyright: ignore[reportFunctionMemberAccess]
    names["_tw_variants"] = Asked()
    names["_tw_bind_and_launch"] = lambda *_: None
    launch(1, *args, **words)
    call = kernel.launch_function.bind(*args, **words)
    assert asked == [call.key]
    assert hash(call.key) == hash(asked[0])
