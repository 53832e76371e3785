"""Types by Triton's names, and the types that have no values."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support import errors
from tilewright.triton_alias.named_types import str_to_ty

POINTERS = tl.tuple_type([tl.pointer_type(tl.float32)])
Pair = namedtuple("Pair", "first second")  # noqa: PYI024 -- as users write it


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("i32", tl.int32),
        ("u8", tl.uint8),
        ("u1", tl.int1),
        ("B", tl.int1),
        ("bf16", tl.bfloat16),
        ("fp8e4nv", tl.float8e4nv),
        ("*fp16", tl.pointer_type(tl.float16)),
        ("*ki64", tl.pointer_type(tl.int64, const=True)),
        (("i32", ("*fp32",)), tl.tuple_type([tl.int32, POINTERS])),
        (Pair("i8", "u1"), tl.tuple_type([tl.int8, tl.int1], ["first", "second"])),
        ("tensordesc<fp16[8, 32]>", tl.tensor_descriptor_type(tl.block_type(tl.float16, [8, 32]))),
        ("constexpr", tl.constexpr_type(5)),
    ],
)  # fmt: skip
def test_a_type_by_its_name(name: Any, type_: object) -> None:
    assert str_to_ty(name, 5) == type_


def test_a_name_of_no_type_is_a_mistake() -> None:
    with pytest.raises(errors.InvalidOption, match="must be a type such as 'i32'"):
        str_to_ty("i33", None)


def test_the_kinds_of_types_hold_every_type_once() -> None:
    kinds = [tl.dtype.SINT_TYPES, tl.dtype.UINT_TYPES, tl.dtype.FP_TYPES]
    names = [name for kind in kinds for name in kind]
    assert len(names) == len(set(names)) == 18
    assert all(tl.dtype(name).is_int_signed() for name in tl.dtype.SINT_TYPES)
    assert all(tl.dtype(name).is_int_unsigned() for name in tl.dtype.UINT_TYPES)
    assert all(tl.dtype(name).is_floating() for name in tl.dtype.FP_TYPES)
    assert [n for n in names if tl.dtype(n).is_standard_floating()] == tl.dtype.STANDARD_FP_TYPES
    assert tl.dtype.OTHER_TYPES == [tl.void.name]


def test_void_has_no_values() -> None:
    assert tl.void.is_void() and not tl.int32.is_void()
    assert not (tl.void.is_int() or tl.void.is_floating() or tl.void.is_ptr())
    assert tl.void != tl.int1 and str(tl.void) == "void"
    with pytest.raises(errors.InvalidOperation, match="there are no values of it"):
        _ = tl.void.ir
    with pytest.raises(errors.InvalidOperation, match="promote"):
        tl.void.kind()


def test_the_type_of_a_tuple_is_a_sequence_of_types() -> None:
    type_ = tl.tuple_type([tl.int32, tl.float16], ["a", "b"])
    assert (type_[0], len(type_), list(type_)) == (tl.int32, 2, [tl.int32, tl.float16])
    assert str(type_) == "[a:int32,b:fp16]"
    assert type_ != tl.tuple_type([tl.int32, tl.float16]) and type_ != (tl.int32, tl.float16)
    assert hash(type_) == hash(tl.tuple_type([tl.int32, tl.float16], ["a", "b"]))


def test_types_as_parts_of_symbols() -> None:
    tile = tl.block_type(tl.pointer_type(tl.uint8), [4, 16])
    assert (tl.int32.mangle(), tl.int1.mangle(), tl.bfloat16.mangle()) == ("i32", "u1", "bf16")
    assert tile.mangle() == "Pu8S4_16S"
    assert tile.with_element_ty(tl.float32) == tl.block_type(tl.float32, [4, 16])
    assert tl.block_type(tl.float32, [4, 16]).nbytes == 256
    assert tl.int32.with_element_ty(tl.int8) == tl.int8
    assert (tl.float16.codegen_name(), tl.float16.cache_key_part) == ("float16", "fp16")


@pytest.mark.parametrize("interpret", [False, True])
def test_a_slice_by_its_name(interpret: bool) -> None:
    @tilewright.jit(interpret=interpret)
    def kernel(out):
        numbers = (10, 20, 30, 40)
        some = numbers[tl.slice(1, 4, 2)]
        tl.store(out, some[0] + some[1])

    out = np.zeros(1, np.int32)
    kernel[(1,)](out)
    assert out[0] == 60
