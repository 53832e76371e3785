"""Ops on buffers: their text, types and NumPy rules."""

from typing import Any

import numpy as np
import pytest

from tilewright.backends import backend_named
from tilewright.backends.nvidia.buffer_ops import (
    TransposeViewOp,
    ViewOp,
    WgmmaOp,
    alloc_of,
    buffer_type,
    transposed_buffer,
)
from tilewright.interp import run_function
from tilewright.ir import Function, parse_function, print_function, verify
from tilewright.ir.types import BufferType, f16
from tilewright.layout import shared_row_major, shared_swizzled
from tilewright.support import errors

backend_named("cuda")

Array = np.ndarray[Any, Any]

ROWS = "offset=(0,1..8)(1..2,0) -> dim0:4 dim1:16"
SLOT = f"buffer<4x16xf16, {ROWS}>"
TURNED = "buffer<16x4xf16, offset=(1..8,0)(0,1..2) -> dim0:16 dim1:4>"


def function(body: str, pointers: str = "%x: ptr<f16>, %out: ptr<f16>, %n: i32") -> Function:
    """Copies of 4 x 16 elements from %x on are %a, those behind them %b; %to: where they go."""
    lines = f"""func @f({pointers}) {{
  %i = tile.range {{start = 0, end = 64}} : tile<64xi32>
  %j = tile.reshape %i {{shape = [4, 16]}} : tile<4x16xi32>
  %k = tile.reshape %i {{shape = [16, 4]}} : tile<16x4xi32>
  %far = arith.constant {{value = 64}} : i32
  %p = tile.splat %x {{shape = [4, 16]}} : tile<4x16xptr<f16>>
  %pa = mem.offset %p, %j : tile<4x16xptr<f16>>
  %a = mem.load %pa : tile<4x16xf16>
  %y = mem.offset %x, %far : ptr<f16>
  %q = tile.splat %y {{shape = [4, 16]}} : tile<4x16xptr<f16>>
  %qb = mem.offset %q, %j : tile<4x16xptr<f16>>
  %b = mem.load %qb : tile<4x16xf16>
  %to_0 = tile.splat %out {{shape = [4, 16]}} : tile<4x16xptr<f16>>
  %to = mem.offset %to_0, %j : tile<4x16xptr<f16>>
  %to_1 = tile.splat %out {{shape = [16, 4]}} : tile<16x4xptr<f16>>
  %turned = mem.offset %to_1, %k : tile<16x4xptr<f16>>
  %zero = arith.constant {{value = 0}} : i32
  %one = arith.constant {{value = 1}} : i32
{body}  cf.return
}}
"""
    made = parse_function(lines)
    assert verify(made) == []
    return made


def executed(made: Function, n: int = 0) -> tuple[Array, Array]:
    """The 128 elements that are given, and the 64 that are left."""
    x = np.random.default_rng(0).integers(-4, 5, 128).astype(np.float16)
    out = np.zeros(64, np.float16)
    run_function(made, [x, out, n])
    return x, out


FILLED = f"""  %m = nvidia.alloc : buffer<2 * 4x16xf16, {ROWS}>
  %s = nvidia.view %m, %zero : {SLOT}
  %t = nvidia.view %m, %one : {SLOT}
  nvidia.async_copy %a, %s {{vector = 8}}
  nvidia.commit
  nvidia.async_copy %b, %t {{vector = 8}}
  nvidia.commit
  nvidia.wait {{pending = 1, proxy = true}}
  nvidia.wait
"""


def test_the_text_of_buffer_ops_is_read_again() -> None:
    made = function(f"""{FILLED}  %u = nvidia.transpose_view %t {{order = [1, 0]}} : {TURNED}
  %h = nvidia.share %a : {SLOT}
  %c = nvidia.read %h : tile<4x16xf16>
  %acc = arith.constant {{value = 0.0}} : tile<4x4xf32>
  %d = nvidia.wgmma %h, %u, %acc {{columns = 4, rows = 1, pending = none}} : tile<4x4xf32>
  %e = nvidia.wgmma %c, %u, %d {{columns = 4, rows = 1, pending = 1}} : tile<4x4xf32>
  %f = nvidia.wgmma_wait %e : tile<4x4xf32>
""")
    text = print_function(made)
    again = parse_function(text)
    assert print_function(again) == text
    assert verify(again) == []
    products = [op for op in again.walk() if isinstance(op, WgmmaOp)]
    assert [op.pending for op in products] == [None, 1]


@pytest.mark.parametrize(("slot", "first"), [(0, 0), (1, 64)])
def test_each_slot_holds_its_tile(slot: int, first: int) -> None:
    made = function(f"""{FILLED}  %v = nvidia.view %m, %n : {SLOT}
  %c = nvidia.read %v : tile<4x16xf16>
  mem.store %to, %c
""")
    x, out = executed(made, slot)
    np.testing.assert_array_equal(out, x[first : first + 64])


def test_a_slot_is_filled_again() -> None:
    made = function(f"""{FILLED}  nvidia.async_copy %b, %s {{vector = 8}}
  %c = nvidia.read %s : tile<4x16xf16>
  mem.store %to, %c
""")
    x, out = executed(made)
    np.testing.assert_array_equal(out, x[64:])


def test_a_transposed_view_is_the_same_memory() -> None:
    made = function(f"""  %m = nvidia.alloc : {SLOT}
  %s = nvidia.view %m, %zero : {SLOT}
  %u = nvidia.transpose_view %s {{order = [1, 0]}} : {TURNED}
  nvidia.async_copy %a, %s {{vector = 8}}
  %c = nvidia.read %u : tile<16x4xf16>
  mem.store %turned, %c
""")
    x, out = executed(made)
    np.testing.assert_array_equal(out.reshape(16, 4), x[:64].reshape(4, 16).T)


def test_a_slot_that_is_read_before_it_is_written_fails() -> None:
    made = function(f"""  %m = nvidia.alloc : buffer<2 * 4x16xf16, {ROWS}>
  %s = nvidia.view %m, %zero : {SLOT}
  %t = nvidia.view %m, %n : {SLOT}
  nvidia.async_copy %a, %s {{vector = 8}}
  %c = nvidia.read %t : tile<4x16xf16>
  mem.store %to, %c
""")
    x, out = executed(made, 0)
    np.testing.assert_array_equal(out, x[:64])
    with pytest.raises(errors.InterpreterError, match="read before it was written"):
        executed(made, 1)


@pytest.mark.parametrize("from_registers", [False, True])
def test_products_read_buffers(from_registers: bool) -> None:
    """4 x 4 sums of products of %a and the transposed %b, which start at one."""
    left = "%a" if from_registers else "%h"
    body = f"""  %h = nvidia.share %a : {SLOT}
  %g = nvidia.share %b : {SLOT}
  %u = nvidia.transpose_view %g {{order = [1, 0]}} : {TURNED}
  %acc = arith.constant {{value = 1.0}} : tile<4x4xf32>
  %d = nvidia.wgmma {left}, %u, %acc {{columns = 4, rows = 1}} : tile<4x4xf32>
  %e = nvidia.wgmma_wait %d : tile<4x4xf32>
  %w = tile.range {{start = 0, end = 16}} : tile<16xi32>
  %z = tile.reshape %w {{shape = [4, 4]}} : tile<4x4xi32>
  %r = tile.splat %sums {{shape = [4, 4]}} : tile<4x4xptr<f32>>
  %s = mem.offset %r, %z : tile<4x4xptr<f32>>
  mem.store %s, %e
"""
    made = function(body, "%x: ptr<f16>, %out: ptr<f16>, %n: i32, %sums: ptr<f32>")
    x = np.random.default_rng(1).integers(-4, 5, 128).astype(np.float16)
    sums = np.zeros(16, np.float32)
    run_function(made, [x, np.zeros(64, np.float16), 0, sums])
    a, b = x.astype(np.float64).reshape(2, 4, 16)
    np.testing.assert_array_equal(sums.reshape(4, 4), a @ b.T + 1)


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (f"nvidia.view %a, %zero : {SLOT}", "a buffer"),
        (f"nvidia.view %m, %a : {SLOT}", "scalar"),
        ("nvidia.read %a : tile<4x16xf16>", "a buffer"),
        (f"nvidia.share %m : {SLOT}", "a tile"),
        ("nvidia.wgmma %a, %a, %a {columns = 8, rows = 1} : tile<4x16xf16>", "a buffer"),
    ],
)
def test_operands_are_buffers_where_memory_is_meant(op: str, message: str) -> None:
    text = print_function(function(f"  %m = nvidia.alloc : {SLOT}\n"))
    wrong = parse_function(text.replace("  cf.return", f"  %v = {op}\n  cf.return"))
    (problem,) = verify(wrong)
    assert message in str(problem)


def test_views_lead_to_what_made_the_memory() -> None:
    made = function(f"{FILLED}  %u = nvidia.transpose_view %t {{order = [1, 0]}} : {TURNED}\n")
    found = [op for op in made.walk() if isinstance(op, ViewOp | TransposeViewOp)]
    assert len(found) == 3
    first = alloc_of(found[0].result)
    assert all(alloc_of(op.result) is first for op in found)
    assert buffer_type(first.result).slots == 2


def test_a_transposed_buffer_names_the_same_places() -> None:
    layout = shared_swizzled((64, 32), 16, 64)
    turned = transposed_buffer(BufferType((64, 32), f16, layout, 3), (1, 0))
    assert (turned.shape, turned.slots) == ((32, 64), 3)
    assert isinstance(turned.layout, type(layout))
    for offset in (1, 37, 1000, 2047):
        row, column = layout.apply(offset=offset)
        assert turned.layout.apply(offset=offset) == (column, row)
    again = transposed_buffer(turned, (1, 0))
    assert again is BufferType((64, 32), f16, layout, 3)
    assert turned is not BufferType((32, 64), f16, shared_row_major((32, 64)), 3)
