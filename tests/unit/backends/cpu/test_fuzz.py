"""Random tile programs: what the CPU backend compiles does what the interpreter does.

A longer run: `TILEWRIGHT_FUZZ=START:COUNT pytest tests/unit/backends/cpu/test_fuzz.py`.
"""

from __future__ import annotations

import ctypes
import os
import struct
from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt
import pytest

from tests.unit.backends.cpu.tile_programs import ARRAY_BOUND, REGION, TileProgram, TilePrograms
from tilewright.backends.cpu.driver.cpu_messages import console
from tilewright.backends.cpu.lower.cpu_function import lower_function
from tilewright.backends.cpu.microkernel import AVX2, GENERIC, VectorUnit, vector_unit
from tilewright.backends.cpu.passes.legalize import Legalize
from tilewright.backends.cpu.passes.select_transposes import SelectTransposes
from tilewright.backends.cpu.pipeline import cpu_pipeline
from tilewright.interp import numpy_dtype, run_function
from tilewright.ir import Function, Module, print_function, verify
from tilewright.llvm import compile_ir, host_cpu, host_target, load_object

Data = npt.NDArray[np.generic]
_BATCH = 25
_GUARD = 256
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64,
                          ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)  # fmt: skip


def seeds() -> range:
    start, _, count = os.environ.get("TILEWRIGHT_FUZZ", "0:250").partition(":")
    return range(int(start), int(start) + int(count))


def data_of(program: TileProgram, seed: int) -> list[Data]:
    """Aligned arrays of small integers; integers of all sizes in integer arrays."""
    rng = np.random.default_rng(seed)
    found: list[Data] = []
    for array in program.arrays:
        dtype = numpy_dtype(array.element)
        size = REGION * int(np.prod(program.grid)) + REGION
        if array.element.is_float:
            numbers = rng.integers(-ARRAY_BOUND, ARRAY_BOUND + 1, size).astype(dtype)
        elif array.element.is_bool:
            numbers = rng.integers(0, 2, size).astype(dtype)
        else:
            bits = rng.integers(0, 1 << min(array.element.bits, 63), size)
            numbers = bits.astype(dtype) if seed % 2 else (bits % 7).astype(dtype)
        found.append(_aligned(numbers))
    return found


def _aligned(numbers: Data) -> Data:
    raw = np.zeros(numbers.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    result = raw[start : start + numbers.nbytes].view(numbers.dtype)
    result[:] = numbers
    return result


@dataclass(frozen=True, slots=True)
class Way:
    """How a program is compiled: with the shared passes, streaming from so many bytes, for what."""

    shared: bool
    stream_above: int
    unit: VectorUnit

    @property
    def attributes(self) -> str:
        """LLVM attributes for registers as wide as those of the unit."""
        bits = self.unit.bits
        return f'nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'


def random_way(random: Random) -> Way:
    """This machine's vector unit, or a narrower one that it can stand in for."""
    own = vector_unit(host_cpu())
    units = [own, *(u for u in (AVX2, GENERIC) if u.bits < own.bits)]
    return Way(random.random() < 0.6, random.choice((0, 1, 1 << 30)), random.choice(units))


def prepared(function: Function, way: Way) -> Function:
    """A copy that went through the whole pipeline, or only through what the lowering needs."""
    copy = function.clone()
    if way.shared:
        cpu_pipeline(way.unit.fma).run(Module((copy,)))
    else:
        Legalize(way.unit.fma).run(copy)
        SelectTransposes().run(copy)
    return copy


def run_compiled(program: TileProgram, way: Way, arrays: list[Data]) -> None:
    """Every program instance on this thread, in scratch memory full of garbage between guards."""
    sizes, grid = program.sizes, program.grid
    function = prepared(program.function, way)
    lowered = lower_function(
        function, way.unit, way.attributes, way.unit.fma, stream_above=way.stream_above
    )
    code = load_object(compile_ir(lowered.text, host_target()), [lowered.symbol])
    slots = struct.pack(f"<{len(arrays)}Q" + "i4x" * len(sizes) + "Q",
                        *(a.ctypes.data for a in arrays), *sizes, console().address)  # fmt: skip
    extents = np.array((*grid, 1, 1)[:3], np.int32)
    scratch = np.full(lowered.scratch_bytes + 2 * _GUARD, 0xA5, np.uint8)
    start = _GUARD - scratch.ctypes.data % 64
    entry = _ENTRY(code[lowered.symbol])
    poll, programs = ctypes.c_int32(0), int(np.prod(grid))
    area = scratch.ctypes.data + start
    reached = entry(slots, 0, programs, extents.ctypes.data, area, ctypes.addressof(poll))
    assert reached == programs
    guards = np.concatenate([scratch[:start], scratch[start + lowered.scratch_bytes :]])
    assert np.all(guards == 0xA5), "writes outside of its scratch memory"


def assert_as_interpreted(seed: int) -> None:
    """Compile and interpret the program of a seed; AssertionError where they differ."""
    random = Random(seed)
    program = TilePrograms(random).program(random.randrange(2, 22))
    assert not verify(program.function), f"seed {seed}: {verify(program.function)[0]}"
    expected, found = data_of(program, seed), data_of(program, seed)
    run_function(program.function, [*expected, *program.sizes], program.grid)
    way = random_way(random)
    run_compiled(program, way, found)
    for array, wanted, got in zip(program.arrays, expected, found, strict=True):
        tolerance = array.error
        if array.element.is_float:
            wanted, got = wanted.astype(np.float64), got.astype(np.float64)
            same = np.abs(wanted - got) <= tolerance
        else:
            same = wanted == got
        if not same.all():
            at = int(np.argmin(same))
            text = print_function(program.function)
            raise AssertionError(
                f"seed {seed}, {way}: %{array.value.name}[{at}] is {got[at]} instead of "
                f"{wanted[at]}; {np.sum(~same)} wrong\n{text}"
            )


@pytest.mark.parametrize("first", seeds()[::_BATCH])
def test_compiled_like_interpreted(first: int):
    for seed in range(first, min(first + _BATCH, seeds().stop)):
        assert_as_interpreted(seed)
