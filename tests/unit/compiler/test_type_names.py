"""Triton's names of types, there and back."""

from __future__ import annotations

import pytest

from tilewright.compiler import find_type, name_of_type, type_named
from tilewright.ir.types import PointerType, all_dtypes, bf16, f8e4m3, f16, f32, i1, u64
from tilewright.support import errors


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("fp32", f32),
        ("i1", i1),
        ("u1", i1),
        ("u64", u64),
        ("fp8e4nv", f8e4m3),
        ("*fp16", PointerType(f16)),
        ("*kbf16", PointerType(bf16, const=True)),
        (" *i1 ", PointerType(i1)),
    ],
)
def test_known_names(name: str, type_: object) -> None:
    assert type_named(name) is type_


def test_there_and_back() -> None:
    for dtype in all_dtypes():
        for type_ in (dtype, PointerType(dtype), PointerType(dtype, const=True)):
            assert type_named(name_of_type(type_)) is type_


@pytest.mark.parametrize("name", ["", "*", "*k", "float", "**fp32", "fp31", "k32"])
def test_unknown_names(name: str) -> None:
    assert find_type(name) is None
    with pytest.raises(errors.InvalidOption, match="type of 'x'"):
        type_named(name, "type of 'x'")
