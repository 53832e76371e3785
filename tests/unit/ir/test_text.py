"""Printing and parsing: names, attributes, types, locations, and every registered op."""

import math
import pickle
import struct

import pytest

from tests.unit.ir.op_samples import sample, shared_ops
from tilewright import ops
from tilewright.ir import (
    Block,
    Builder,
    Function,
    Op,
    attr_text,
    parse_function,
    parse_module,
    parse_type,
    print_function,
    print_module,
)
from tilewright.ir.types import (
    BufferType,
    PointerType,
    TileType,
    bf16,
    element_of,
    f32,
    i32,
    shape_of,
)
from tilewright.layout import LinearLayout, shared_row_major
from tilewright.support import SourceLoc
from tilewright.support.errors import TileIRSyntaxError


@pytest.mark.parametrize("cls", shared_ops(), ids=lambda cls: cls.opcode)
def test_every_op_prints_and_parses_back(cls: type[Op]) -> None:
    text = print_function(sample(cls))
    again = parse_function(text)
    assert print_function(again) == text
    before = next(op for op in sample(cls).walk() if type(op) is cls)
    after = next(op for op in again.walk() if type(op) is cls)
    assert after.attrs == before.attrs
    assert list(after.attrs) == list(before.attrs)
    assert [v.type for v in after.results] == [v.type for v in before.results]
    assert len(after.operands) == len(before.operands)


@pytest.mark.parametrize(
    "value",
    [0, -7, 2**70, True, False, None, 0.0, -0.0, 0.1, 1e300, 5e-324, math.inf, -math.inf,
     "", 'a "quoted" \\ text\n', "é漢", (), (1, 2), ((1,), ("a", None)), i32,
     PointerType(f32, True), TileType((4, 8), PointerType(bf16)),
     BufferType((8, 16), bf16, shared_row_major((8, 16)), 3)],
    ids=repr,
)  # fmt: skip
def test_attribute_values_keep_type_and_value(value: object) -> None:
    function = parse_function(f"func @f() {{x = {attr_text(value)}}} {{\n  cf.return\n}}")
    found = function.attrs["x"]
    assert type(found) is type(value)
    assert found == value
    assert str(found) == str(value)  # tells 0.0 from -0.0


@pytest.mark.parametrize("bits", [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000ABC])
def test_nan_keeps_its_bits(bits: int) -> None:
    (nan,) = struct.unpack("<d", struct.pack("<Q", bits))
    function = parse_function(f"func @f() {{x = {attr_text(nan)}}} {{\n  cf.return\n}}")
    assert struct.unpack("<Q", struct.pack("<d", function.attrs["x"])) == (bits,)


@pytest.mark.parametrize(
    "text",
    ["i1", "f8e4m3", "ptr<bf16>", "ptr<u8, const>", "tile<8xi32>", "tile<1x2x3xptr<f32, const>>",
     "tile<4x4xf32, register=(0,1)(1,0) lane=(0,2)(2,0) -> dim0:4 dim1:4>",
     "buffer<4x4xf16, offset=(0,1..2)(1..2,0) -> dim0:4 dim1:4>",
     "buffer<3 * 8xu8, offset=(1..4) -> dim0:8>", "buffer<16x20xf32>"],
)  # fmt: skip
def test_types_are_interned_through_text(text: str) -> None:
    type_ = parse_type(text)
    assert str(type_) == text
    assert parse_type(text) is type_


@pytest.mark.parametrize(
    "text",
    ["", "i33", "ptr<ptr<f32>>", "tile<f32>", "tile<4xi32", "ptr<>", "buffer<8xf32,>",
     "buffer<8xf32, ->", "buffer<8xf32, offset=(1..4) -> dim0:8", "buffer<8xptr<a>, offset= ->>",
     "buffer<0 * 8xf32, offset=(1..4) -> dim0:8>", "buffer<-2 * 8xf32, offset=(1..4) -> dim0:8>",
     "buffer<xf32, offset=(1..4) -> dim0:8>", "tile<8xbuffer<8xf32, offset=(1..4) -> dim0:8>>"],
)  # fmt: skip
def test_wrong_types_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_type(text)


def test_a_tile_type_keeps_its_layout() -> None:
    layout = LinearLayout.parse("register=(1) lane=(2)(4) -> dim0:8")
    type_ = TileType((8,), f32, layout)
    assert parse_type(str(type_)) is type_


def test_a_buffer_type_counts_its_bytes() -> None:
    type_ = parse_type("buffer<3 * 8x16xbf16, offset=(0,1..8)(1..4,0) -> dim0:8 dim1:16>")
    assert isinstance(type_, BufferType)
    assert type_ is BufferType((8, 16), bf16, shared_row_major((8, 16)), 3)
    assert (type_.slot_bytes, type_.bytes) == (256, 768)
    one = BufferType((8, 16), bf16, shared_row_major((8, 16)))
    assert one is not type_
    assert (one.slots, one.bytes) == (1, 256)
    assert (shape_of(one), element_of(one)) == ((8, 16), bf16)


def test_a_buffer_type_survives_pickling() -> None:
    type_ = BufferType((8, 16), bf16, shared_row_major((8, 16)), 3)
    assert pickle.loads(pickle.dumps(type_)) == type_


def _named(*names: str) -> Function:
    block = Block((i32,) * len(names), names)
    Builder(block).emit(ops.ReturnOp())
    return Function("f", block)


def test_names_are_unique_and_stay_so() -> None:
    text = print_function(_named("x", "x", "", "x_1", "x", "", "a b", "1st", "é"))
    arguments = text[text.index("(") + 1 : text.index(")")].split(", ")
    assert [a.partition(":")[0] for a in arguments] == [
        "%x", "%x_1", "%0", "%x_1_1", "%x_2", "%1", "%a_b", "%_1st", "%_",
    ]  # fmt: skip
    assert print_function(parse_function(text)) == text


def test_locations_are_printed_on_request_and_parsed() -> None:
    outer = SourceLoc("k.py", 30)
    locs = (
        SourceLoc("a b.py", 12, 4, 19, 'in"ner', outer),
        SourceLoc("k.py", 3, 0),
        SourceLoc("k.py", 3, 0, 5, "f", SourceLoc("k.py", 4, 1, 2, "g", outer)),
    )
    block = Block()
    for loc in locs:
        Builder(block, None, loc).emit(ops.BarrierOp())
    Builder(block).emit(ops.ReturnOp())
    function = Function("f", block, loc=outer)
    assert "@ " not in print_function(function)
    text = print_function(function, locations=True)
    assert '@ "a b.py":12:5:19 in "in\\"ner" from "k.py":30' in text
    again = parse_function(text)
    assert tuple(op.loc for op in again.body) == (*locs, None)
    assert again.loc == outer
    assert print_function(again, locations=True) == text


def test_parsing_can_locate_ops_in_the_text() -> None:
    function = parse_function("func @f() {\n  mem.barrier\n  cf.return\n}", "x.tile", locate=True)
    assert [op.loc for op in function.body] == [
        SourceLoc("x.tile", 2, 2, 13),
        SourceLoc("x.tile", 3, 2, 11),
    ]


def test_use_lists_are_right_after_parsing() -> None:
    function = parse_function("func @f(%x: i32) {\n  %y = arith.add %x, %x : i32\n  cf.return\n}")
    (add, _) = function.body
    assert function.args[0].uses == {add: 2}


def test_a_module_keeps_the_order_of_its_functions() -> None:
    text = "func @b() {\n  cf.return\n}\n\nfunc @a() {\n  cf.return\n}\n"
    assert print_module(parse_module(text)) == text
    assert print_module(parse_module("")) == ""


def test_a_syntax_error_shows_the_place() -> None:
    with pytest.raises(TileIRSyntaxError) as caught:
        parse_module("func @f(%é: i32, %x: i32) {\n}", "k.tile")
    assert str(caught.value) == (
        "expected a value name such as %x, found '%' [TW130]\n"
        "  --> k.tile:1:9\n"
        "  |\n"
        "1 | func @f(%é: i32, %x: i32) {\n"
        "  |         ^"
    )


def test_a_misspelt_opcode_gets_a_suggestion() -> None:
    with pytest.raises(TileIRSyntaxError, match=r"did you mean 'arith.mul'"):
        parse_module("func @f(%x: i32) {\n  %y = arith.mull %x, %x : i32\n  cf.return\n}")


@pytest.mark.parametrize(
    "text",
    ["func", "func @f", "func @f(", "func @f()", "func @f() {", "func @f() {x", "func @f() {x = ",
     "func @f() {\n  %x", "func @f() {\n  %x = ", "func @f() {\n  cf.return @",
     'func @f() {} @ "a"', "func @f() {} func @f() {}",
     "func @f() {x = [1,", "func @f() {x = 1, x = 2} {}",
     "func @f(%a: i32 {x = }) {}", "func @f(%a: i32) {\n  %x = arith.neg %a, : i32"],
)  # fmt: skip
def test_broken_text_never_raises_anything_else(text: str) -> None:
    with pytest.raises(TileIRSyntaxError):
        parse_module(text)
