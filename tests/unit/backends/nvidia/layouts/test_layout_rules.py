"""Layouts that an op's lowering could not work with are told from those that it relies on."""

from pathlib import Path

import pytest

from tilewright.backends import GPUTarget
from tilewright.backends.nvidia.layouts.layout_rules import broken_rule
from tilewright.compiler import IRSource, compile
from tilewright.ir import Op, parse_function
from tilewright.support import errors

LANES = "lane=(1)(2)(4)(8)(16)"
ROW = f"register=(32) {LANES} warp=(0)(0)"
TURNED = ROW.replace("register=(32) lane=(1)", "register=(1) lane=(32)")
HALF = f"register= {LANES} warp=(0)(0)"
COPIES = "register= lane=(1)(0)(0)(0)(0) warp=(0)(0)"
PAIR = "register=(0,1) lane=(1,0)(2,0)(4,0)(8,0)(16,0) warp=(0,0)(0,0)"
TURNED_PAIR = "register=(1,0) lane=(0,1)(0,2)(0,4)(0,8)(0,16) warp=(0,0)(0,0)"
TABLE = "register=(0,2) lane=(0,1)(1,0)(2,0)(4,0)(8,0) warp=(0,0)(0,0)"
TWO_WARPS = TABLE.replace("warp=(0,0)(0,0)", "warp=(0,0)")
SWIZZLED = "register=(0,2) lane=(0,1)(1,2)(2,0)(4,0)(8,0) warp=(0,0)(0,0)"


def tile(shape: str, layout: str) -> str:
    dims = " ".join(f"dim{i}:{n}" for i, n in enumerate(shape.split("x")))
    return f"tile<{shape}xi32, {layout} -> {dims}>"


def wrong(op: str, result: str, *operands: str) -> str | None:
    """What is wrong with an op, given the types of its operands and of its result."""
    names = ", ".join(f"%v{i}" for i in range(len(operands)))
    args = ", ".join(f"%v{i}: {type_}" for i, type_ in enumerate(operands))
    head, _, attrs = op.partition(" ")
    text = f"func @f({args}) {{\n  %r = {head} {names} {attrs} : {result}\n  cf.return\n}}\n"
    function = parse_function(text)
    made = next(iter(function.body))
    assert isinstance(made, Op)
    return broken_rule(made, 4)


FINE = [
    ("arith.add", tile("64", ROW), tile("64", ROW), tile("64", ROW)),
    ("tile.join", tile("32x2", PAIR), tile("32", HALF), tile("32", HALF)),
    ("tile.cat {axis = 0}", tile("64", ROW), tile("32", HALF), tile("32", HALF)),
    ("tile.gather {axis = 0}", tile("32", HALF), tile("64", ROW), tile("32", HALF)),
    ("tile.item", "i32", tile("1", "register= lane=(0)(0)(0)(0)(0) warp=(0)(0)")),
    ("tile.transpose {order = [1, 0]}", tile("2x32", TURNED_PAIR), tile("32x2", PAIR)),
]  # fmt: skip

BROKEN = [
    ("arith.add", tile("32", HALF), tile("32", HALF), tile("32", HALF.replace("(1)(2)", "(2)(1)"))),
    ("tile.join", tile("32x2", PAIR), tile("32", HALF), tile("32", HALF.replace("16", "0"))),
    ("tile.cat {axis = 0}", tile("2", COPIES), tile("1", COPIES.replace("1", "0")),
     tile("1", COPIES.replace("1", "0"))),
    ("tile.gather {axis = 0}", tile("64", ROW), tile("64", ROW), tile("64", TURNED)),
    ("arith.neg", tile("16x4", SWIZZLED), tile("16x4", SWIZZLED)),
    ("arith.neg", tile("16x4", TWO_WARPS), tile("16x4", TWO_WARPS)),
]  # fmt: skip


@pytest.mark.parametrize("case", FINE, ids=lambda case: case[0].partition(" ")[0])
def test_layouts_that_fit(case: tuple[str, ...]) -> None:
    assert wrong(*case) is None


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case[0].partition(" ")[0])
def test_layouts_that_do_not_fit(case: tuple[str, ...]) -> None:
    assert wrong(*case) is not None


IN_LANES = tile("16x2", TABLE.replace("(0,2)", ""))
PART = tile("16", "register= lane=(0)(1)(2)(4)(8) warp=(0)(0)")
SPLIT = f"""
func @f(%x: ptr<i32>) {{
  %c = arith.constant {{value = 1}} : {IN_LANES}
  %a, %b = tile.split %c : {PART}, {PART}
  cf.return
}}
"""
NEGATED = f"""
func @f(%x: ptr<i32>) {{
  %c = arith.constant {{value = 1}} : {IN_LANES}
  %a = arith.neg %c : {IN_LANES}
  cf.return
}}
"""


def test_code_is_never_made_of_layouts_that_do_not_fit(tmp_path: Path) -> None:
    """The pair lies in two lanes: each would take the first of it for both."""
    file = tmp_path / "f.ttgir"
    file.write_text(SPLIT)
    with pytest.raises(errors.InvalidTileIR, match=r"operand 0 of tile\.split"):
        compile(IRSource(file), GPUTarget("cuda", 90, 32))


def test_code_is_never_made_of_layouts_for_other_warps(tmp_path: Path) -> None:
    file = tmp_path / "f.ttgir"
    file.write_text(NEGATED)
    target = GPUTarget("cuda", 90, 32)
    assert compile(IRSource(file), target, {"num_warps": 4}).asm["ptx"]
    with pytest.raises(errors.InvalidTileIR, match="the threads of 8 warps"):
        compile(IRSource(file), target, {"num_warps": 8})
