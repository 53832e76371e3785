"""What decides a variant: the type is the first that holds the value, the fact is true of it, and
machine code separates all arguments that Python separates."""

# pyright: reportArgumentType=false, reportInvalidTypeForm=false

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tilewright.language as tl
from tilewright.ir.types import DType, f32, i1, i32, i64, u64
from tilewright.runtime import JITFunction, jit
from tilewright.runtime.arguments.kernel_parameters import parameters_of
from tilewright.runtime.arguments.key_rules import (
    HANDLERS,
    Constant,
    Spec,
    constant_key,
    integer_key,
    rules_of,
)
from tilewright.runtime.launch import DispatchTable
from tilewright.runtime.launch.bound_call import Binder

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
    @jit(do_not_specialize=["fixed"], do_not_specialize_on_alignment=["loose"])
    def kernel(plain, fixed, loose, constant: tl.constexpr):
        pass

    return kernel


KERNEL = new_kernel()


def words_of(*args: object) -> bytes | None:
    """The words by which machine code finds a launch; None if it leaves such to Python."""
    return TABLE.launch((1,), *args)


RULES = rules_of(KERNEL.params)
TABLE = DispatchTable(
    "words",
    {param.name: rule.flags for param, rule in zip(KERNEL.params, RULES, strict=True)},
    lambda *_: None,
    lambda words, *_: words,
    KERNEL.launch_state,
)
EDGES = [
    0,
    *(s * 2**b + d for b in (3, 4, 31, 32, 62, 63) for s in (1, -1) for d in (-8, -1, 0, 1, 8)),
]
SAMPLES: list[Any] = [
    None, True, False, 1.0, 0.0, -0.0, float("nan"), "text", *EDGES,
    *(np.zeros(8, kind)[start:] for kind in "fdi" for start in (0, 1, 2)),
]  # fmt: skip


@pytest.mark.parametrize("place", range(4), ids=KERNEL.arg_names)
def test_words_unite_no_two_keys(place: int) -> None:
    """Arguments with the same words have the same key, and machine code describes most."""
    keys: dict[bytes, object] = {}
    left = []
    # an array is no constexpr
    arrays_too = KERNEL.arg_names[place] != "constant"
    for sample in (one for one in SAMPLES if arrays_too or not isinstance(one, np.ndarray)):
        args: list[object] = [2, 2, 2, 2]
        args[place] = sample
        words = words_of(*args)
        if words is None:
            left.append(sample)
            continue
        key = KERNEL.bind(*args).key
        assert keys.setdefault(words, key) == key, sample
    assert all(
        isinstance(sample, str) or abs(sample) >= 2**63
        for sample in left
        if not isinstance(sample, np.ndarray)
    )
    assert len(keys) > 8


@given(INTEGERS, st.integers(-4, 4), st.sampled_from([1, 8, 16, 2**31]))
def test_words_unite_no_two_integers(value: int, times: int, step: int) -> None:
    other = value + times * step
    for place in range(4):
        args: list[object] = [2, 2, 2, 2]
        args[place] = value
        words, key = words_of(*args), KERNEL.bind(*args).key
        args[place] = other
        if words is not None and words == words_of(*args):
            assert KERNEL.bind(*args).key == key


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.tuples(ARGUMENTS, ARGUMENTS, CONSTANTS),
    st.integers(-(2**63), 2**63 - 1) | st.none(),
    st.lists(ARGUMENTS, max_size=2),
    st.dictionaries(
        st.sampled_from(["e", "num_warps", "X", "Y"]), st.sampled_from([1, 2, True, 4])
    ),
)
def test_arguments_are_bound_as_python_does(
    first: tuple[Any, ...], d: int | None, rest: list[Any], words: dict[str, Any]
) -> None:
    def kernel(a, b, c: tl.constexpr, d: tl.int64 = 3, *rest, e: tl.constexpr = None, **META):
        pass

    args = (*first, *([] if d is None else [d, *rest]))
    call = Binder("kernel", parameters_of(kernel), {}).bind(args, words)
    bound = inspect.signature(kernel).bind(*args, **words)
    bound.apply_defaults()
    others = bound.arguments.pop("META")
    assert [param.name for param in call.params] == list(bound.arguments)
    assert all(a is b or a == b for a, b in zip(call.args, bound.arguments.values(), strict=True))
    assert call.keywords == others
    assert hash(call.key) == hash(call.key)
