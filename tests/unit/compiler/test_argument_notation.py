"""Arguments as text: types and facts, there and back, and each contradiction."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tilewright.compiler import argument_text, is_argument_text, parse_argument
from tilewright.support import errors


class Pair(NamedTuple):
    """A tuple with names."""

    first: object
    second: object


TEXTS = [
    "*fp16:16",
    "*kbf16",
    "i32",
    "i64:8,>=0",
    "i32=1",
    "u64:16",
    "u1",
    "fp32",
    "tensordesc<fp16[64, 64]>:16",
    "tensordesc<fp32[8],nan>",
    "(*fp32:16; i32=1; None; 'relu'; (i32:>=0))",
    "tests.unit.compiler.test_argument_notation:Pair(*fp32; i32)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_there_and_back(text: str) -> None:
    assert is_argument_text(text)
    assert argument_text(parse_argument(text, "x").spec("x")) == text


def test_bounds_are_kept_and_give_the_sign() -> None:
    stated = parse_argument("i32:16, >=0, <1048576", "n")
    assert (stated.divisor, stated.low, stated.high) == (16, 0, 1 << 20)
    assert stated.spec("n").facts == {"multiple_of": 16, "non_negative": 1}
    assert parse_argument("i32:>-1,<=7", "n").high == 8
    assert parse_argument("i32:<0", "n").spec("n").facts == {}
    # the sign of an unsigned integer is no fact: a launch has none either
    assert parse_argument("u64:>=0", "n").spec("n").facts == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("*fp16:>=0", "'*fp16:>=0' has a bound, which only integers may have"),
        ("*fp16:12", "is aligned to 12 bytes, no power of two"),
        ("fp32:16", "has a divisor, which fp32 cannot have"),
        ("u1:2", "has a divisor, which u1 cannot have"),
        ("fp32=1", "has a value, which only integers may have"),
        ("i32=one", "has the value 'one', no integer"),
        ("i32:16,8", "has two divisors"),
        ("i32:even", "has the fact 'even', which is no divisor and no bound"),
        ("i32:0", "has the fact '0'"),
        ("i32:>=8,<8", "has no value: its range is empty"),
        ("i32:16,>=1,<16", "has no value: its range is empty"),
        ("u32:<0", "has a bound or value outside of u32"),
        ("i32:<=2147483648", "has a bound or value outside of i32"),
        ("i32=2147483648", "has a bound or value outside of i32"),
        ("tensordesc<fp16[64, 64]>:8", "has the divisor 8; rows are multiples of 16 bytes, or not"),
        ("tensordesc<fp16[64, 64]>:>=0", "has a bound"),
        ("(*fp32; =x)", "'=x' is neither an argument nor a literal"),
        ("nowhere:Pair(*fp32)", "has no class 'nowhere:Pair'"),
        ("builtins:dict(*fp32)", "is of 'builtins:dict', which is no named tuple"),
    ],
)
def test_contradictions_are_named(text: str, problem: str) -> None:
    with pytest.raises(errors.InvalidArgumentText) as caught:
        parse_argument(text, "n")
    assert caught.value.message.startswith("argument 'n': '")
    assert problem in caught.value.message
    assert "write a type and its facts" in str(caught.value)


def test_unknown_types_are_named() -> None:
    with pytest.raises(errors.InvalidOption, match="type of 'n'' must be a type such as"):
        parse_argument("float:16", "n")


@pytest.mark.parametrize("text", ["relu", "1024", "(1, 2)", "", "x=1"])
def test_values_are_no_arguments(text: str) -> None:
    assert not is_argument_text(text)
