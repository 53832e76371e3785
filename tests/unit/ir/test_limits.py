"""Text of tile IR that is long, deep or absurd: read in time, or refused with a place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilewright.backends import GPUTarget, load_ops
from tilewright.compiler import IRSource, compile
from tilewright.ir import MAX_REGIONS, parse_module, print_module, report
from tilewright.support import errors


def function(*lines: str, args: str = "%p: ptr<f32>, %n: i32") -> str:
    body = "\n".join(f"  {line}" for line in (*lines, "cf.return"))
    return f"func @f({args}) {{\n{body}\n}}\n"


def nested(levels: int) -> str:
    start = "%c = arith.constant {value = true} : i1"
    opening, closing = "cf.if %c () {", "cf.yield } () { cf.yield }"
    return function(start, *[opening] * levels, *[closing] * levels)


def test_regions_inside_each_other() -> None:
    module = parse_module(nested(MAX_REGIONS - 1))
    assert report(module) is None
    assert print_module(parse_module(print_module(module))) == print_module(module)
    for levels in (MAX_REGIONS, 5_000):
        with pytest.raises(errors.TileIRSyntaxError, match="at most 1024 nested regions") as caught:
            parse_module(nested(levels))
        assert caught.value.loc is not None and caught.value.loc.line == MAX_REGIONS + 2


def test_ten_thousand_ops_in_a_row() -> None:
    lines = ["%x0 = mem.load %p : f32"]
    lines += [f"%x{i} = arith.add %x{i - 1}, %x0 : f32" for i in range(1, 10_000)]
    module = parse_module(function(*lines, "mem.store %p, %x9999"))
    assert report(module) is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%x = arith.constant {value = " + "9" * 5000 + "} : i32", "at most 1000 digits"),
        ("%x = arith.constant {value = -" + "9" * 5000 + "} : f32", "at most 1000 digits"),
        ("%x = arith.constant {value = nan<0x0>} : f32", "the 64 bits of a NaN"),
        ("%x = arith.constant {value = nan<0x7ff0000000000000>} : f32", "the 64 bits of a NaN"),
        ("%x = arith.constant {value = nan<0x" + "f" * 17 + ">} : f32", "the 64 bits of a NaN"),
        ("%x = arith.constant {value = nan<0x" + "f" * 9000 + ">} : f32", "the 64 bits of a NaN"),
        ("%x = tile.splat %n {shape = [" + "[" * 5000 + "} : i32", "at most 16 nested tuples"),
        ("%x = mem.load %p : tile<" + "9" * 5000 + "xf32>", "expected a type"),
        ('mem.barrier @ "a":1' + ' from "a":1' * 5000, "at most 1000 calls"),
        ('mem.barrier @ "a":' + "1" * 5000, "at most 1000 digits"),
        ("%" + "x" * 100_000 + " = arith.neg %" + "y" * 100_000 + " : i32", "defined above"),
    ],
)
def test_what_is_absurd_has_a_place(line: str, message: str) -> None:
    with pytest.raises(errors.TileIRSyntaxError, match=message) as caught:
        parse_module(function(line))
    assert caught.value.loc is not None and caught.value.loc.line == 2


def test_payloads_of_nans_are_kept() -> None:
    line = "%x = arith.constant {value = nan<0xfff8000000000123>} : f64"
    assert line in print_module(parse_module(function(line)))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", errors.NotOneFunction, "found none"),
        (function() + function().replace("@f", "@g"), errors.NotOneFunction, "found 'f', 'g'"),
        (
            function("%x = arith.constant {value = 300} : i8"),
            errors.InvalidTileIR,
            "not a value of i8",
        ),
        (function(args="%p: ptr<f32> {aligned = nan}"), errors.InvalidTileIR, "positive integer"),
        (function(args="%t: tile<8xf32>"), errors.TileParameter, "tile<8xf32>, a tile"),
        (function("%x = arith.add %n, %n {wrong = 1} : i32"), errors.TileIRSyntaxError, "wrong"),
    ],
)
def test_texts_are_judged_before_they_are_compiled(
    text: str, error: type[errors.TilewrightError], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "kernel.tile"
    file.write_text(text)
    with pytest.raises(error, match=message):
        compile(IRSource(file))


@pytest.mark.parametrize(
    ("line", "target", "message"),
    [
        ("nvidia.wait", "cuda", "nvidia.wait is not legal"),
        ("nvidia.wait", "cpu", "nvidia.wait is not legal"),
    ],
)
def test_back_ends_refuse_what_only_others_or_later_stages_take(
    line: str, target: str, message: str, tmp_path: Path
) -> None:
    load_ops()
    file = tmp_path / "kernel.tile"
    file.write_text(function(line))
    with pytest.raises(errors.InvalidTileIR, match=message):
        compile(IRSource(file), None if target == "cpu" else GPUTarget("cuda", 90, 32))


@pytest.mark.parametrize(
    ("dtype", "value", "bytes_"),
    [
        ("i1", "true", 4),
        ("u8", "200", 800),
        ("i8", "-1", -4),
        ("i64", "-5", -20),
        ("u32", "4294967295", 17179869180),
    ],
)
def test_constant_offsets_of_every_integer_type(
    dtype: str, value: str, bytes_: int, tmp_path: Path
) -> None:
    file = tmp_path / "kernel.tile"
    lines = (
        f"%d = arith.constant {{value = {value}}} : {dtype}",
        "%q = mem.offset %p, %d : ptr<f32>",
    )
    file.write_text(function(*lines, "%x = mem.load %p : f32", "mem.store %q, %x"))
    ptx = compile(IRSource(file), GPUTarget("cuda", 90, 32)).asm["ptx"]
    assert re.search(rf"add\.s64\s+%rd\d+, %rd\d+, {bytes_};", str(ptx))
