"""`arith.rare`: text form, verification, meaning, and that the slow form is behind a branch."""

from __future__ import annotations

import numpy as np

from tests.unit.backends.cpu.elementwise import (
    BLOCK,
    compiled,
    interpreted,
    kernel,
    parsed,
)
from tilewright.backends.cpu.lower.cpu_function import lower_function
from tilewright.backends.cpu.microkernel import vector_unit
from tilewright.ir import parse_function, print_function
from tilewright.ir.verifier import report
from tilewright.llvm import host_cpu

BODY = """%limit = arith.constant {value = 10.0} : {t}f32>
  %large = arith.compare %x0, %limit {predicate = "gt"} : {t}i1>
  %common = arith.neg %x0 : {t}f32>
  %y = arith.rare %large, %common, %x0 : {t}f32> (%x: f32) {
    %k = arith.constant {value = 3.0} : f32
    %slow = arith.mul %x, %k : f32
    cf.yield %slow
  }"""
TEXT = kernel(BODY, ("f32",), "f32")


def test_the_text_form_is_read_back() -> None:
    function = parsed(TEXT)
    text = print_function(function)
    assert print_function(parse_function(text)) == text
    assert report(function) is None


def test_the_slow_form_is_taken_where_the_condition_holds() -> None:
    x = np.random.default_rng(9).uniform(0, 11, 4 * BLOCK).astype(np.float32)
    x[:BLOCK] = 1.0
    expected = np.where(x > 10, x * np.float32(3), -x)
    np.testing.assert_array_equal(interpreted(parsed(TEXT), "f32", x), expected)
    np.testing.assert_array_equal(compiled(TEXT, "f32")(x), expected)


def test_the_slow_form_is_behind_a_branch() -> None:
    cpu = host_cpu()
    text = lower_function(parsed(TEXT), vector_unit(cpu), cpu.function_attributes).text
    _, _, slow = text.partition("\nslow")
    assert "fmul" in slow.split("\nbr ")[0]
    assert "llvm.vector.reduce.or" in text.partition("\nslow")[0]


def test_a_region_of_the_wrong_type_is_refused() -> None:
    wrong = TEXT.replace("(%x: f32)", "(%x: i32)").replace(
        "%slow = arith.mul %x, %k : f32", "%slow = arith.add %k, %k : f32"
    )
    message = report(parsed(wrong))
    assert message is not None and "`slow` must take [f32]" in message


def test_constants_of_the_block_around_may_be_used() -> None:
    """As they are after equal constants were merged."""
    body = """%from = mem.offset %X0, %pid : ptr<f32>
      %s = mem.load %from : f32
      %k = arith.constant {value = 3.0} : f32
      %none = arith.constant {value = 0.0} : f32
      %positive = arith.compare %s, %none {predicate = "gt"} : i1
      %r = arith.rare %positive, %none, %s : f32 (%x: f32) {
        %slow = arith.mul %x, %k : f32
        cf.yield %slow
      }
      %y = tile.splat %r {shape = [64]} : {t}f32>"""
    text = kernel(body, ("f32",), "f32", 64)
    for sign in (1, -1):
        x = np.full(64, sign * 7, np.float32)
        expected = np.full(64, 21 if sign > 0 else 0, np.float32)
        np.testing.assert_array_equal(interpreted(parsed(text), "f32", x, block=64), expected)
        np.testing.assert_array_equal(compiled(text, "f32", block=64)(x), expected)
