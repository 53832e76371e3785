"""What of an argument decides the variant: Triton's measured rules."""

from __future__ import annotations

import enum
from collections import namedtuple

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.runtime.kernels import add
from tilewright.ir.types import PointerType, f64, i8, i64
from tilewright.runtime import MockTensor, TensorWrapper, reinterpret
from tilewright.runtime.arguments.key_rules import (
    HANDLERS,
    Spec,
    annotated_key,
    constant_key,
    integer_key,
    plain,
    spec,
)
from tilewright.support import errors


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 32


Point = namedtuple("Point", "x y")


def shown(value: object) -> str:
    key, _ = HANDLERS.key_and_value(value)
    return repr(key)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (None, "None"),
        (True, "u1"),
        (False, "u1"),
        (1, "1"),
        (0, "i32/16"),
        (2, "i32"),
        (4, "i32"),
        (8, "i32/8"),
        (12, "i32"),
        (24, "i32/8"),
        (1000, "i32/8"),
        (1004, "i32"),
        (-1, "-i32"),
        (-8, "-i32/8"),
        (-12, "-i32"),
        (-16, "-i32/16"),
        (-1000, "-i32/8"),
        (-(2**31), "-i32/16"),
        (2**31 - 1, "i32"),
        (2**31 - 8, "i32/8"),
        (2**31, "i64/16"),
        (2**31 + 8, "i64/8"),
        (-(2**31) - 1, "-i64"),
        (-(2**31) - 8, "-i64/8"),
        (2**63 - 1, "i64"),
        (2**63, "u64/16"),
        (2**64 - 1, "u64"),
        (2**64 - 8, "u64/8"),
        (1.0, "fp32"),
        (float("nan"), "fp32"),
        (np.int64(1), "1"),
        (np.uint8(32), "i32/16"),
        (np.int64(-24), "-i32/8"),
        (np.float16(2), "fp32"),
        (np.float64(2), "fp32"),
        (np.bool_(True), "u1"),
        (tl.constexpr(5), "5"),
        (tl.constexpr(None), "None"),
        ("text", "'text'"),
        (tl.float16, "triton.language.float16"),
        (add, repr(add)),
        (Color.RED, "<Color.RED: 1>"),
        ((1, 2.0, (None,)), "(1, fp32, (None))"),
        (Point(3, 4.0), "(i32, fp32)"),
    ],
)
def test_values(value: object, key: str) -> None:
    assert shown(value) == key


def test_what_a_kernel_knows_of_the_value() -> None:
    facts = [integer_key(n).facts() for n in (32, 1000, 2**40 + 8, 1004)]
    multiples = [{"multiple_of": 16}, {"multiple_of": 8}, {"multiple_of": 8}, {}]
    assert facts == [{**multiple, "non_negative": 1} for multiple in multiples]
    assert integer_key(-1000).facts() == {"multiple_of": 8}
    pointer, _ = HANDLERS.key_and_value(MockTensor("float16"))
    assert isinstance(pointer, Spec)
    assert pointer.facts() == {"aligned": 16}


@pytest.mark.parametrize("numbers", [(16, 8, 3), (2**40, 2**40 + 8, 2**40 + 1)])
def test_there_is_one_key_for_all_numbers_of_a_class(numbers: tuple[int, ...]) -> None:
    for n in numbers:
        assert integer_key(n) is integer_key(n + 16)
    keys = [integer_key(n) for n in numbers]
    assert len(set(keys)) == 3
    assert {key.plain for key in keys} == {spec(keys[0].type)}


def test_the_value_that_is_passed() -> None:
    def value_of(given: object) -> object:
        return HANDLERS.key_and_value(given)[1]

    assert value_of(7) == 7
    assert value_of(np.int32(7)) == 7
    assert type(value_of(np.int32(7))) is int
    assert type(value_of(np.float32(7))) is float
    assert value_of((1, 2)) == [1, 2]
    assert value_of(Level.HIGH) in (32, Level.HIGH)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 1j, [1], {1: 2}, {1}, object(), b"x"])
def test_what_cannot_be_passed(value: object) -> None:
    with pytest.raises(errors.UnsupportedArgument):
        HANDLERS.key_and_value(value)


def test_constants_are_told_apart_by_type() -> None:
    values = [
        1,
        1.0,
        True,
        "1",
        0,
        0.0,
        -0.0,
        False,
        None,
        (),
        (1,),
        (True,),
        (1.0,),
        [1],
        Color.RED,
    ]
    assert len({constant_key(value) for value in values}) == len(values)
    assert constant_key(float("nan")) == constant_key(float("nan"))
    assert constant_key(tl.constexpr(3)) == constant_key(3)
    assert constant_key({"a": 1}) == constant_key({"a": 1})
    assert constant_key({"a": 1}) != constant_key({"a": 2})
    assert constant_key((1, [2])) == constant_key((1, [2]))


def test_annotated_types_are_not_specialized() -> None:
    handler = annotated_key(i64)
    for value in (1, 16, 2**40):
        key, passed = handler(value)
        assert repr(key) == "i64"
        assert passed == value
    with pytest.raises(errors.UnsupportedArgument, match="too large for i8"):
        annotated_key(i8)(128)
    assert annotated_key(f64)(3)[1] == 3.0


def test_annotated_pointers_take_arrays_and_addresses() -> None:
    handler = annotated_key(PointerType(i8))
    array = np.zeros(64, np.float32)
    key, address = handler(array)
    assert isinstance(key, Spec)
    assert key.type is PointerType(i8)
    assert address == array.ctypes.data
    key, address = handler(48)
    assert repr(key) == "*i8/16"
    assert address == 48
    assert repr(handler(40)[0]) == "*i8"
    assert handler(None) == (None, None)


def test_stand_ins() -> None:
    for dtype in (tl.float16, np.float16, np.dtype("e"), "float16"):
        assert shown(MockTensor(dtype)) == "*fp16/16"
    assert MockTensor(tl.float32, (2, 3, 4)).stride() == (12, 4, 1)
    assert MockTensor.data_ptr() == 0


def test_reinterpret() -> None:
    array = np.zeros(4, np.uint8)
    wrapped = reinterpret(array, tl.float8e5)
    assert isinstance(wrapped, TensorWrapper)
    assert wrapped.element_size() == 1
    assert shown(wrapped).startswith("*fp8e5")
    assert wrapped.data_ptr() == array.ctypes.data
    assert reinterpret(wrapped, tl.uint8) is array
    with pytest.raises(errors.UnsupportedArgument, match="same width"):
        reinterpret(array, tl.float16)
    with pytest.raises(errors.UnsupportedArgument, match="takes an array"):
        reinterpret(3, tl.float16)


def test_plain() -> None:
    assert type(plain(np.int64(3))) is int
    assert plain("x") == "x"
