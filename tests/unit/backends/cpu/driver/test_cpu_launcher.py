"""Loaded kernels: arguments of every type, grids, threads, launches from several threads."""

from __future__ import annotations

import math
import struct
import threading

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import Array, lowered, run
from tilewright.backends.cpu.driver.cpu_launcher import CpuLauncher
from tilewright.llvm import compile_ir, host_target

SCALARS = {
    "i1": ("?", [True, False]), "i8": ("i1", [-128, 127]), "i16": ("i2", [-(2**15), 2**15 - 1]),
    "i32": ("i4", [-(2**31), 2**31 - 1]), "i64": ("i8", [-(2**63), 2**63 - 1]),
    "u8": ("u1", [0, 255]), "u16": ("u2", [0, 2**16 - 1]), "u32": ("u4", [0, 2**32 - 1]),
    "u64": ("u8", [0, 2**64 - 1]), "f16": ("f2", [0.5, -65504.0]),
    "f32": ("f4", [0.25, -math.inf]), "f64": ("f8", [0.1, -1e300]),
}  # fmt: skip


@pytest.mark.parametrize("element", SCALARS)
def test_scalars_arrive(element: str):
    """Between two others, so that each is in a slot of its own."""
    dtype, numbers = SCALARS[element]
    text = f"""func @k(%a: {element}, %Y: ptr<{element}>, %b: {element}) {{
      %one = arith.constant {{value = 1}} : i32
      %next = mem.offset %Y, %one : ptr<{element}>
      mem.store %Y, %a
      mem.store %next, %b
      cf.return
    }}"""
    for a in numbers:
        for b in numbers:
            y = np.zeros(2, dtype)
            run(text, [a, y, b])
            assert y.tolist() == [a, b]


def test_numbers_out_of_range_are_refused():
    launcher = counter_launcher()
    with pytest.raises(struct.error):
        launcher.launch((1, 1, 1), [0, 2**31])


COUNTER = """func @k(%Y: ptr<i32>, %n: i32) {
  %x = cf.program_id {axis = 0} : i32
  %y = cf.program_id {axis = 1} : i32
  %z = cf.program_id {axis = 2} : i32
  %nx = cf.num_programs {axis = 0} : i32
  %ny = cf.num_programs {axis = 1} : i32
  %zy = arith.mul %z, %ny : i32
  %row = arith.add %zy, %y : i32
  %rows = arith.mul %row, %nx : i32
  %id = arith.add %rows, %x : i32
  %p = mem.offset %Y, %id : ptr<i32>
  %old = mem.atomic %p, %n : i32
  cf.return
}"""


def counter_launcher() -> CpuLauncher:
    kernel = lowered(COUNTER)
    metadata: dict[str, object] = {"name": kernel.symbol, "scratch_bytes": kernel.scratch_bytes}
    obj = compile_ir(kernel.text, host_target())
    return CpuLauncher(obj, metadata, ["ptr<i32>", "i32"])


@pytest.mark.parametrize(
    "grid", [(1, 1, 1), (7, 1, 1), (1, 5, 1), (1, 1, 3), (3, 4, 5), (1000, 3, 1), (1, 1, 257)]
)
def test_every_program_of_a_grid_runs_once(grid: tuple[int, int, int]):
    y = np.zeros(math.prod(grid), np.int32)
    counter_launcher().launch(grid, [y.ctypes.data, 1])
    assert (y == 1).all()


@pytest.mark.parametrize("grid", [(0, 1, 1), (5, 0, 1), (1, 1, 0)])
def test_an_empty_grid_runs_nothing(grid: tuple[int, int, int]):
    y = np.zeros(8, np.int32)
    counter_launcher().launch(grid, [y.ctypes.data, 1])
    assert not y.any()


def test_launches_from_several_threads():
    launcher = counter_launcher()
    arrays: list[Array] = [np.zeros(50, np.int32) for _ in range(4)]

    def launch(array: Array) -> None:
        for _ in range(20):
            launcher.launch((50, 1, 1), [array.ctypes.data, 2])

    threads = [threading.Thread(target=launch, args=(a,)) for a in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((a == 40).all() for a in arrays)


def test_kernels_of_one_name_live_side_by_side():
    first, second = counter_launcher(), counter_launcher()
    y = np.zeros(3, np.int32)
    first.launch((3, 1, 1), [y.ctypes.data, 1])
    second.launch((3, 1, 1), [y.ctypes.data, 10])
    first.launch((3, 1, 1), [y.ctypes.data, 100])
    assert y.tolist() == [111] * 3


def test_scratch_memory_grows_between_launches():
    """A kernel with a large tile after one without: each thread's area is made larger."""
    counter = counter_launcher()
    y = np.zeros(64, np.int32)
    counter.launch((64, 1, 1), [y.ctypes.data, 1])
    tile = "tile<65536xf32>"
    text = f"""func @k(%X: ptr<f32>, %Y: ptr<f32>) {{
      %i = tile.range {{start = 0, end = 65536}} : tile<65536xi32>
      %xs = tile.splat %X {{shape = [65536]}} : tile<65536xptr<f32>>
      %xp = mem.offset %xs, %i : tile<65536xptr<f32>>
      %ys = tile.splat %Y {{shape = [65536]}} : tile<65536xptr<f32>>
      %yp = mem.offset %ys, %i : tile<65536xptr<f32>>
      %x = mem.load %xp : {tile}
      %s = tile.scan %x {{axis = 0}} : {tile} (%a: f32, %b: f32) {{
        %c = arith.max %a, %b : f32
        cf.yield %c
      }}
      mem.store %yp, %s
      cf.return
    }}"""
    x = np.random.default_rng(0).standard_normal(65536).astype(np.float32)
    z = np.zeros_like(x)
    run(text, [x, z])
    np.testing.assert_array_equal(z, np.maximum.accumulate(x))
    counter.launch((64, 1, 1), [y.ctypes.data, 1])
    assert (y == 2).all()
