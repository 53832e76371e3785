"""Stores past the caches: when the program may choose them, and that they store the same."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import lowered, run
from tilewright.llvm import host_cpu

BLOCK = 64


def store_kernel(element: str = "f32", facts: str = "{aligned = 64}", mask: str = "bound") -> str:
    tile = f"tile<{BLOCK}x"
    masked = {"bound": ", %below", "odd": ", %odd", "none": ""}[mask]
    return f"""func @k(%Y: ptr<{element}> {facts}, %n: i32) {{
      %pid = cf.program_id {{axis = 0}} : i32
      %size = arith.constant {{value = {BLOCK}}} : i32
      %start = arith.mul %pid, %size : i32
      %i = tile.range {{start = 0, end = {BLOCK}}} : {tile}i32>
      %s = tile.splat %start {{shape = [{BLOCK}]}} : {tile}i32>
      %o = arith.add %s, %i : {tile}i32>
      %ns = tile.splat %n {{shape = [{BLOCK}]}} : {tile}i32>
      %below = arith.compare %o, %ns {{predicate = "lt"}} : {tile}i1>
      %one = arith.constant {{value = 1}} : {tile}i32>
      %bit = arith.and %o, %one : {tile}i32>
      %odd = arith.cast %bit : {tile}i1>
      %y = arith.cast %o : {tile}{element}>
      %ys = tile.splat %Y {{shape = [{BLOCK}]}} : {tile}ptr<{element}>>
      %yp = mem.offset %ys, %o : {tile}ptr<{element}>>
      mem.store %yp, %y{masked}
      cf.return
    }}"""


def aligned(count: int) -> np.ndarray:
    raw = np.zeros(4 * count + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + 4 * count].view(np.float32)


@pytest.mark.skipif(not host_cpu().is_x86, reason="streams with x86 instructions")
@pytest.mark.parametrize("above", [0, 1, 1 << 40])
@pytest.mark.parametrize("count", [256, 250, 1, 0])
def test_streamed_tiles_are_stored(above: int, count: int):
    """Full tiles, a tile that is cut off, tiles of which nothing is stored."""
    y = aligned(256)
    run(store_kernel(), [y, count], (4,), stream_above=above)
    expected = np.where(np.arange(256) < count, np.arange(256), 0)
    np.testing.assert_array_equal(y, expected)


def streams(text: str, above: int = 1) -> bool:
    return "!nontemporal" in lowered(text, above).text


def test_contiguous_aligned_stores_may_stream():
    assert streams(store_kernel())
    assert streams(store_kernel(mask="none"))
    assert not streams(store_kernel(), above=0)


def test_unaligned_stores_do_not_stream():
    assert not streams(store_kernel(facts="{aligned = 8}"))
    assert not streams(store_kernel(facts=""))


def test_stores_under_a_mask_that_comes_and_goes_do_not_stream():
    assert not streams(store_kernel(mask="odd"))


@pytest.mark.parametrize("order", ["release", "acq_rel", "relaxed", "acquire"])
def test_stores_before_a_release_do_not_stream(order: str):
    kernel = store_kernel()
    atomic = f'''%old = mem.atomic %F, %one {{kind = "xchg", order = "{order}"}} : i32'''
    text = kernel.replace("%one = ", "%flag = arith.constant {value = 1} : i32\n %one = ")
    text = text.replace("%n: i32", "%n: i32, %F: ptr<i32>").replace(
        "cf.return", f"{atomic}\n cf.return"
    )
    text = text.replace("%F, %one", "%F, %flag")
    assert streams(text) == (order in ("relaxed", "acquire"))


def test_bytes_are_compared_with_the_threshold():
    text = lowered(store_kernel("f16"), 12345).text
    assert f"mul i64 %programs, {2 * BLOCK}" in text
    assert "icmp ugt i64 %touched, 12345" in text
    assert "sfence" in text


def test_what_all_programs_share_is_not_counted():
    """A table that every program loads is in the caches, however many programs there are."""
    shared = f"""%w = mem.offset %ys, %i : tile<{BLOCK}xptr<f32>>
      %t = mem.load %w : tile<{BLOCK}xf32>
      %u = mem.load %yp : tile<{BLOCK}xf32>
      %v = arith.add %t, %u : tile<{BLOCK}xf32>
      mem.store %yp, %v, %below"""
    text = store_kernel().replace("mem.store %yp, %y, %below", shared)
    assert f"mul i64 %programs, {4 * BLOCK}\n" in lowered(text, 1).text


def test_nests_that_also_reduce_do_not_stream():
    tile = f"tile<{BLOCK}xf32>"
    text = store_kernel().replace(
        "mem.store %yp, %y, %below",
        f"""%r = tile.reduce %y {{axis = 0}} : f32 (%a: f32, %b: f32) {{
              %c = arith.add %a, %b : f32
              cf.yield %c
            }}
            mem.store %yp, %y, %below
            %rs = tile.splat %r {{shape = [{BLOCK}]}} : {tile}
            mem.store %yp, %rs, %odd""",
    )
    assert not streams(text)


def copy_kernel(load_mask: str) -> str:
    """Stores, under the mask %below, what it loads under another one."""
    loads = (
        f"%v = mem.load %yp, {load_mask}, %y : tile<{BLOCK}xf32>\n      mem.store %yp, %v, %below"
    )
    return store_kernel().replace("mem.store %yp, %y, %below", loads)


@pytest.mark.parametrize(("mask", "masked"), [("%below", 1), ("%odd", 3)])
def test_whole_steps_load_without_the_mask_that_ends_them(mask: str, masked: int):
    """Of the steps (past the caches, whole, cut) only the last masks its store; another mask of a
    load stays in all of them."""
    text = lowered(copy_kernel(mask), 1).text
    assert len(re.findall(r"call .*@llvm\.masked\.store", text)) == 1
    assert len(re.findall(r"call .*@llvm\.masked\.load", text)) == masked


def test_nothing_is_loaded_where_a_mask_lets_nothing_through():
    """A whole step has no mask, but what it loads at one address must not be loaded before it."""
    body = f"""%xs = tile.splat %X {{shape = [{BLOCK}]}} : tile<{BLOCK}xptr<f32>>
      %z = mem.load %xs, %below, %y : tile<{BLOCK}xf32>
      mem.store %yp, %z, %below"""
    text = store_kernel().replace("mem.store %yp, %y, %below", body)
    text = text.replace("(%Y", "(%X: ptr<f32>, %Y")
    kernel = lowered(text).text
    # behind the head of a loop, which runs only if the mask lets a step through
    assert kernel.index("phi i32") < kernel.index("load float")
    y = aligned(BLOCK)
    run(text, [np.array([3], np.float32), y, 33], (1,))
    np.testing.assert_array_equal(y, np.where(np.arange(BLOCK) < 33, 3, 0))


@pytest.mark.skipif(not host_cpu().is_x86, reason="streams with x86 instructions")
@pytest.mark.parametrize("mask", ["%below", "%odd"])
def test_streamed_tiles_of_loads(mask: str):
    y = aligned(256)
    y[:] = -1
    run(copy_kernel(mask), [y, 250], (4,), stream_above=1)
    index = np.arange(256)
    kept = index < 250 if mask == "%below" else index % 2 == 1
    expected = np.where(kept | (index >= 250), -1, index)
    np.testing.assert_array_equal(y, expected)
