"""The text builder: operands, literals, sections by loop level, names of types and intrinsics."""

from __future__ import annotations

import math
import struct

import pytest

from tilewright.ir.types import PointerType, bf16, f16, f32, f64, i1, i8, u32
from tilewright.llvm import (
    Code,
    ModuleText,
    Val,
    compile_ir,
    float_text,
    host_target,
    integer_literal,
    llvm_type,
    mangle,
    splat_constant,
    vector_of,
    zero_of,
)


@pytest.fixture
def code() -> Code:
    return Code(ModuleText())


def test_types():
    assert [llvm_type(t) for t in (i1, i8, u32, f16, bf16, f32, f64)] == [
        "i1", "i8", "i32", "half", "bfloat", "float", "double",
    ]  # fmt: skip
    assert llvm_type(PointerType(f32)) == "ptr"
    assert vector_of("float", 1) == "float"
    assert vector_of("ptr", 8) == "<8 x ptr>"


@pytest.mark.parametrize(
    ("type_", "name"),
    [("i32", "i32"), ("half", "f16"), ("bfloat", "bf16"), ("ptr", "p0"), ("<16 x float>", "v16f32"),
     ("<4 x ptr>", "v4p0"), ("<8 x i1>", "v8i1")],
)  # fmt: skip
def test_names_of_overloads(type_: str, name: str):
    assert mangle(type_) == name


def test_values_know_their_shape():
    vector = Val("%x", "<8 x float>", 2)
    assert (vector.width, vector.element, vector.typed) == (8, "float", "<8 x float> %x")
    scalar = Val("%y", "i32")
    assert (scalar.width, scalar.element, scalar.constant) == (1, "i32", None)


@pytest.mark.parametrize(
    ("text", "number"),
    [("3", 3), ("-17", -17), ("true", 1), ("false", 0), ("%x", None), ("0x1", None)],
)
def test_integers_that_are_literals(text: str, number: int | None):
    assert Val(text, "i32").constant == number


def test_literals():
    assert str(integer_literal(-3)) == "-3"
    assert integer_literal(2, "i1").text == "true"
    assert splat_constant(integer_literal(7), 4).typed == "<4 x i32> splat (i32 7)"
    assert splat_constant(integer_literal(7), 1).typed == "i32 7"


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -2.5, 1e-45, 3.4e38, 0.1, math.inf, -math.inf])
def test_floats_are_exact(value: float):
    """A single is written as the double of the same value."""
    single = struct.unpack("<f", struct.pack("<f", value))[0]
    for type_, expected in (("float", single), ("double", value)):
        bits = int(float_text(value, type_), 16)
        found = struct.unpack("<d", struct.pack("<Q", bits))[0]
        assert found == expected
        assert math.copysign(1, found) == math.copysign(1, value)


def test_small_floats():
    assert float_text(1.0, "half") == "0xH3C00"
    assert float_text(1.0, "bfloat") == "0xR3F80"
    assert float_text(1 + 2**-8, "bfloat") == "0xR3F80"
    assert float_text(1 + 3 * 2**-8, "bfloat") == "0xR3F82"
    assert float_text(math.nan, "bfloat") == "0xR7FC0"
    assert float_text(1e300, "float") == float_text(math.inf, "float")


def test_zeros():
    assert zero_of("float").text == "0.0"
    assert zero_of("ptr").text == "null"
    assert zero_of("i1").text == "false"
    assert zero_of("<4 x half>").text == "zeroinitializer"


def test_instructions_go_where_their_operands_are(code: Code):
    """What a loop does not change stands before it."""
    code.sections += [[], []]
    outer, inner = Val("%i", "i32", 1), Val("%j", "i32", 2)
    zero = code.binary("add", Val("%a", "i32"), integer_literal(2))
    one = code.binary("mul", outer, zero)
    two = code.binary("add", one, inner)
    assert (zero.level, one.level, two.level) == (0, 1, 2)
    assert code.sections == [
        ["%v1 = add i32 %a, 2"], ["%v2 = mul i32 %i, %v1"], ["%v3 = add i32 %v2, %j"],
    ]  # fmt: skip
    assert code.level == 2


@pytest.mark.parametrize(
    ("instruction", "lhs", "rhs", "expected"),
    [("add", "1", "2", "3"), ("sub", "-2147483648", "1", "2147483647"), ("mul", "65536", "65537",
     "65536"), ("add", "%x", "0", "%x"), ("add", "0", "%x", "%x"), ("sub", "%x", "0", "%x"),
     ("mul", "%x", "1", "%x"), ("mul", "0", "%x", "0"), ("add nuw", "%x", "0", "%x")],
)  # fmt: skip
def test_known_results_take_no_instruction(
    code: Code, instruction: str, lhs: str, rhs: str, expected: str
):
    assert code.binary(instruction, Val(lhs, "i32"), Val(rhs, "i32")).text == expected
    assert not code.sections[0]


def test_literals_are_extended_and_cut_as_numbers_are(code: Code):
    cases = [("sext", "-1", "i32", "i64", "-1"), ("zext", "-1", "i8", "i32", "255"),
             ("trunc", "300", "i32", "i8", "44"), ("sext", "true", "i1", "i32", "-1"),
             ("zext", "true", "i1", "i32", "1"), ("trunc", "3", "i32", "i1", "true")]  # fmt: skip
    for instruction, text, type_, wanted, expected in cases:
        made = code.convert(instruction, Val(text, type_), wanted)
        assert (made.text, made.type) == (expected, wanted)
    assert not code.sections[0]
    zero_minus = code.binary("sub", integer_literal(0), Val("%x", "i32"))
    assert zero_minus.text == "%v1"


def test_a_block_does_nothing_twice(code: Code):
    x = Val("%x", "i32")
    assert code.binary("add", x, x) is code.binary("add", x, x)
    code.line("next:")
    assert code.binary("add", x, x).text == "%v2", "the other one may be in a block that is not run"
    code.sections.append([])
    inner = Val("%i", "i32", 1)
    assert code.binary("mul", x, inner) is code.binary("mul", x, inner)
    code.sections[1] += ["done:"]
    assert code.binary("mul", x, inner).text == "%v4"
    assert code.binary("add", x, x).text == "%v2"


def test_instructions_that_must_stay(code: Code):
    code.sections.append([])
    assert code.let_here("load i32, ptr %p", "i32").level == 1
    code.line("store i32 1, ptr %p")
    assert code.sections[0] == []
    assert len(code.sections[1]) == 2


def test_splats(code: Code):
    assert code.splat(integer_literal(3), 4).text == "splat (i32 3)"
    assert code.splat(Val("%x", "i32"), 1).text == "%x"
    assert not code.sections[0]
    assert code.splat(Val("%x", "i32"), 4).type == "<4 x i32>"
    assert len(code.sections[0]) == 2


def test_conversions_to_the_same_type_are_none(code: Code):
    x = Val("%x", "<4 x i32>")
    assert code.convert("zext", x, "i32") is x
    assert code.convert("zext", x, "i64").type == "<4 x i64>"


def test_lanes(code: Code):
    x = Val("%x", "<4 x i32>")
    assert code.extract(x, 2).type == "i32"
    assert code.extract(Val("%y", "i32"), 0).text == "%y"
    assert code.shuffle(x, [0, -1]).type == "<2 x i32>"
    assert "i32 poison" in code.sections[0][-1]
    assert code.step_vector("i32", 3, 2).text == "<i32 0, i32 2, i32 4>"


def test_addresses(code: Code):
    p = Val("%p", "ptr")
    assert code.element_address(p, integer_literal(0), "float") is p
    assert code.element_address(p, Val("%n", "i64"), "float").type == "ptr"
    assert code.element_address(p, Val("%v", "<4 x i64>"), "float").type == "<4 x ptr>"


def test_intrinsics_are_declared_once(code: Code):
    x = Val("%x", "<4 x float>")
    code.intrinsic("sqrt", x.type, x)
    code.intrinsic("sqrt", x.type, x)
    assert list(code.module.declarations.values()) == [
        "declare <4 x float> @llvm.sqrt.v4f32(<4 x float>)"
    ]


def test_modules_are_valid_llvm(code: Code):
    """Constants, comparison, selection, shuffles and calls in one function."""
    x, y = Val("%x", "<4 x float>"), Val("%y", "<4 x float>")
    less = code.compare("fcmp olt", x, y)
    chosen = code.select(less, x, code.splat(Val(float_text(0.5, "float"), "float"), 4))
    root = code.intrinsic("fabs", chosen.type, chosen)
    last = code.extract(code.shuffle(root, [3, 2, 1, 0], y), 0)
    lines = [*code.sections[0], f"ret {last.typed}"]
    code.module.functions.append(
        "\n".join(["define float @f(<4 x float> %x, <4 x float> %y) {", *lines, "}"])
    )
    assert compile_ir(code.module.text("", ""), host_target())
