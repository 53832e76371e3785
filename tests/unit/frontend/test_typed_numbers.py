"""Compile-time numbers with dtypes compute as scalar tensors of these dtypes."""

import copy
import itertools
import operator
import pickle

import numpy as np
import pytest

from tilewright.frontend.typed_numbers import converted, joined, plain_number, typed_number
from tilewright.ir.types import f32, f64, i32, i64, u32, u64

DTYPES = {i32: np.int32, i64: np.int64, u32: np.uint32, u64: np.uint64, f32: np.float32,
          f64: np.float64}  # fmt: skip
INTEGERS = [-(2**31), -7, -1, 0, 1, 3, 2**31 - 1, 2**31, 2**40 + 5]


@pytest.mark.parametrize(
    ("number", "dtype"),
    [(3, i32), (-(2**31), i32), (2**31, u32), (2**40, i64), (2**63, u64), (0.1, f32), (1e300, f64),
     (1e-50, f64), (float("inf"), f32), (0.0, f32)],
)  # fmt: skip
def test_own_dtypes(number: float, dtype: object):
    assert typed_number(number).dtype is dtype


@pytest.mark.parametrize("value", [True, None, "a", 2**64, np.float64(1.0), (1,)])
def test_what_has_no_dtype_of_its_own(value: object):
    assert typed_number(value) is value


@pytest.mark.parametrize("name", ["add", "sub", "mul", "and_", "or_", "xor"])
def test_integers_wrap_as_their_common_dtype(name: str):
    apply = getattr(operator, name)
    for x, y in itertools.product(INTEGERS, INTEGERS):
        a, b = typed_number(x), typed_number(y)
        found = apply(a, b)
        kind = DTYPES[found.dtype]
        with np.errstate(over="ignore"):
            left, right = (np.array(v).astype(kind) for v in (x, y))
            assert int(found) == int(apply(left, right))


def test_quotients_of_integers_truncate():
    for x, y in itertools.product([-7, 7, 8], [-2, 2, 3]):
        a = typed_number(x)
        assert a // y == int(x / y) and a % y == x - int(x / y) * y
        assert (a / y).dtype is f32 and float(a / y) == float(np.float32(x) / np.float32(y))


def test_fp32_rounds_after_each_operation():
    product = typed_number(0.1) * 9
    assert float(product) == float(np.float32(0.1) * np.float32(9)) != float(np.float32(0.1 * 9))
    assert float(typed_number(3e38) * 10) == float("inf")
    assert typed_number(0.1) == 0.1 and typed_number(0.1) != typed_number(0.2)


def test_literals_beside_them_are_weak_unless_they_do_not_fit():
    n = typed_number(3)
    assert (n + 1).dtype is i32 and (1 - n).dtype is i32 and (n * 2.5).dtype is f32
    assert (n + 2**40).dtype is i64 and n + True == 4
    assert -typed_number(-(2**31)) == -(2**31) and ~n == -4 and abs(-n) == 3


def test_what_tensors_lack_is_pythons():
    n = typed_number(3)
    assert n**2 == 9 and 2**n == 8 and (n**2).dtype is i32
    assert (3, 4) * n == (3, 4) * 3 and "ab"[n - 2] == "b" and range(n) == range(3)
    with pytest.raises(TypeError):
        _ = n + "a"
    with pytest.raises(ZeroDivisionError):
        _ = n // 0


def test_they_are_the_numbers_for_everything_else():
    n, x = typed_number(3), typed_number(0.1)
    assert {n: 1}[3] == 1 and hash(x) == hash(float(x))
    assert repr(n) == "3" and repr(x) == "0.1" and f"{x} {x:.2f} {n:03d}" == "0.1 0.10 003"
    assert repr(converted(0.1, f64)) == "0.1" and repr(typed_number(16777217.0)) == "16777216.0"
    for value in (copy.deepcopy(n), pickle.loads(pickle.dumps(x)), plain_number(n)):
        assert type(value) in (int, float)
    assert plain_number("a") == "a"


def test_an_operand_in_the_dtype_of_all():
    n = typed_number(3)
    assert joined(5, (n, 5)).dtype is i32 and joined(n, (n, 2.5)).dtype is f32
    assert type(joined(5, (4, 5))) is int
