"""Products of matrices where they lie in memory, with any distance between their rows."""

import ctypes
import mmap
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from tests.unit.backends.cpu.amx_functions import without_amx
from tests.unit.backends.cpu.microkernel.grouped_products import KINDS
from tests.unit.backends.cpu.microkernel.test_grouped_products import emulated
from tilewright.backends.cpu.microkernel import (
    AVX2,
    AVX512,
    CACHE_LINE,
    GENERIC,
    NEON,
    TILE_CONFIGURATION,
    DotSpec,
    VectorUnit,
    are_whole_panels,
    blocked_loops,
    memory_depth,
    memory_step,
    tile_matmuls,
    vector_unit,
)
from tilewright.llvm import LoadedObject, compile_ir, host_cpu, host_target, load_object

AMX = AVX512._replace(tiles=frozenset(KINDS))
HALVES = AVX512._replace(tiles=frozenset(["half"]))
BURSTS = AVX512._replace(bursts=True)
HOST = vector_unit(host_cpu())
TYPES: dict[str, Any] = {
    "float": np.float32, "double": np.float64, "half": np.float16,
    **{name: kind[0] for name, kind in KINDS.items()},
}  # fmt: skip

SUMS: dict[str, Any] = {
    "float": np.float32, "double": np.float64, "half": np.float32, "bfloat": np.float32
}  # fmt: skip

KEEPS_NOTHING = "ptr null, ptr null, i1 false"
ARGUMENTS = "ptr %c, ptr %a, ptr %b, i64 %x, i64 %y, i64 %k, i64 %m, i64 %n"


def module(spec: DotSpec) -> str:
    emitter = tile_matmuls if spec.by_tiles else blocked_loops
    text = "\n".join([*emitter.dot_declarations(spec), emitter.dot_function("dot", spec)])
    if not spec.by_tiles and spec.operand.group > 1:
        declared = next(x for x in emitter.dot_declarations(spec) if "avx512" in x)
        name = declared.split("@")[1].split("(")[0]
        text = text.replace(declared, emulated(spec.element)).replace(f"@{name}", "@emulated")
    arguments = ARGUMENTS if spec.accumulate else f"{ARGUMENTS}, i1 %adds"
    arguments += f", {KEEPS_NOTHING}" if spec.keeps else ""
    data = ", ".join(f"i8 {byte}" for byte in TILE_CONFIGURATION)
    configure = ["call void @llvm.x86.ldtilecfg(ptr @tiles)"] if spec.by_tiles else []
    text = "\n".join([
        f"@tiles = private constant [64 x i8] [{data}]", "declare void @llvm.x86.ldtilecfg(ptr)",
        text, f"define {'i1' if spec.may_fail else 'void'} @run({ARGUMENTS}, i1 %adds) {{",
        *configure,
        f"%ok = call i1 @dot({arguments})" if spec.may_fail else f"call void @dot({arguments})",
        "ret i1 %ok" if spec.may_fail else "ret void", "}", "",
    ])  # fmt: skip
    return without_amx(text) if spec.by_tiles else text


@lru_cache(maxsize=2)
def compiled(spec: DotSpec) -> LoadedObject:
    """Tests ask for products of one kind at several extents, and LLVM takes most of their time."""
    return load_object(compile_ir(module(spec), host_target()), ["run"])


def assert_product(
    spec: DotSpec, depth: int, rows: int = 0, columns: int = 0, adds: bool = False
) -> None:
    """Of so many rows and columns, all if 0; behind each matrix is a page that nobody may read."""
    rng = np.random.default_rng(depth)
    rows, columns = rows or spec.m, columns or spec.n
    dtype, summed = TYPES[spec.element], SUMS.get(spec.element, np.int32)
    random = [rng.integers(-9, 10, shape) for shape in ((rows, depth), (depth, columns))]
    if spec.element == "u8":
        random[0] = np.abs(random[0])
    right = np.int8 if spec.element == "u8" else dtype
    a = guarded(random[0], dtype, spec.a_columns)
    b = guarded(random[1], right, spec.b_columns)
    memory = np.zeros(spec.m * spec.n * summed().itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
    c = memory[start : start + spec.m * spec.n * summed().itemsize].view(summed)
    c[:] = 3
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 5, ctypes.c_bool)(
        compiled(spec)["run"]
    )
    pitches = (x.strides[1] if f else x.strides[0]
               for x, f in ((a, spec.a_columns), (b, spec.b_columns)))  # fmt: skip
    run(c.ctypes.data, a.ctypes.data, b.ctypes.data, *pitches, depth, rows, columns, adds)
    result = c.reshape(spec.m, spec.n)[:rows, :columns]
    before = 3 if spec.accumulate or adds else 0
    np.testing.assert_array_equal(result, before + random[0] @ random[1])


def guarded(values: Any, dtype: Any, in_columns: bool) -> Any:
    """A matrix whose rows (or columns) have something between them, at the end of its pages."""
    lines = values.T if in_columns else values
    pitch = lines.shape[1] + 5
    size = ((lines.shape[0] - 1) * pitch + lines.shape[1]) * np.dtype(dtype).itemsize
    pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, pages + mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + pages), mmap.PAGESIZE, 0) == 0
    flat = np.frombuffer(memory, np.uint8, size, pages - size).view(dtype)
    flat[:] = 99
    item = flat.itemsize
    matrix = np.lib.stride_tricks.as_strided(flat, lines.shape, (pitch * item, item))
    matrix[:] = lines
    return matrix.T if in_columns else matrix


def spec_of(element: str, unit: VectorUnit, b_columns: bool, m: int, n: int) -> DotSpec:
    first = DotSpec(m, n, 64, element, unit, ldc=n, b_columns=b_columns, from_memory=True)
    return DotSpec(m, n, memory_depth(first), element, unit, ldc=n, b_columns=b_columns,
                   from_memory=True)  # fmt: skip


@pytest.mark.parametrize("b_columns", [False, True])
@pytest.mark.parametrize(("m", "n"), [(16, 16), (48, 80), (37, 32)])
@pytest.mark.parametrize(
    ("element", "unit"),
    [("float", HOST), ("double", HOST._replace(bursts=True)), ("float", GENERIC),
     ("bfloat", AVX512), ("u8", BURSTS), ("i8", AVX512), ("bfloat", AMX), ("i8", AMX),
     ("bfloat", AMX._replace(bursts=True)), ("float", BURSTS)],
)  # fmt: skip
def test_products_of_one_block_and_of_several(
    element: str, unit: VectorUnit, m: int, n: int, b_columns: bool
):
    spec = spec_of(element, unit._replace(tiles=unit.tiles if m % 16 == 0 else frozenset()),
                   b_columns, m, n)  # fmt: skip
    step = memory_step(spec)
    assert spec.k % step == 0
    for depth in (step, spec.k, 2 * spec.k + 3 * step):
        assert_product(spec, depth)
    for rows, columns in ((1, 1), (m - 1, n - 1), (m, 5), (13, n)):
        assert_product(spec, spec.k + 5 * step, rows, columns)
    for depth, adds in ((step, True), (spec.k + step, False)):
        assert_product(replace(spec, accumulate=False), depth, adds=adds)


@pytest.mark.parametrize("element", ["bfloat", "i8"])
def test_tiles_copy_several_panels_of_columns_at_once(element: str):
    spec = spec_of(element, AMX, False, 32, 176)
    assert spec.packed_vectors * spec.lanes * spec.operand.bytes == 2 * CACHE_LINE
    step = memory_step(spec)
    for columns in (176, 127, 64, 65, 33, 2):
        assert_product(spec, spec.k + 5 * step, 19, columns)
    assert spec_of(element, AMX, True, 32, 176).packed_vectors == spec.panel_vectors
    assert spec_of(element, AVX512, False, 32, 176).packed_vectors == spec.panel_vectors


@pytest.mark.parametrize("b_columns", [False, True])
def test_halves_are_sums_of_two_parts(b_columns: bool):
    spec = replace(spec_of("half", HALVES, b_columns, 48, 80), accumulate=False)
    for depth, adds in ((2, False), (spec.k, True), (2 * spec.k + 70, False)):
        assert_product(spec, depth, adds=adds)
    for rows, columns in ((1, 1), (47, 79), (33, 64)):
        assert_product(spec, spec.k + 30, rows, columns)


@pytest.mark.parametrize(("value", "right"), [(65504.0, True), (2.0**-24, True), (np.inf, False),
                                              (np.nan, False)])  # fmt: skip
def test_every_half_is_multiplied_exactly_or_the_product_fails(value: float, right: bool):
    """All 11 bits count; numbers that are none, where they meet zeros, are seen as well."""
    spec = replace(spec_of("half", HALVES, False, 32, 32), accumulate=False)
    a, b, c = (np.zeros((32, 32), t) for t in (np.float16, np.float16, np.float32))
    a[:] = np.arange(1025, 2049).reshape(32, 32)
    np.fill_diagonal(b, 2047)
    a[5, 7], b[9, 9] = value, value if right else 1
    run = ctypes.CFUNCTYPE(ctypes.c_bool, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 5,
                           ctypes.c_bool)  # fmt: skip
    memory = np.zeros(32 * 32 * 4 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    c = memory[start : start + 32 * 32 * 4].view(np.float32).reshape(32, 32)
    c[20:] = np.nan  # beyond the rows
    places = (x.ctypes.data for x in (c, a, b))
    assert run(compiled(spec)["run"])(*places, 64, 64, 32, 20, 32, False) == right
    if right:
        np.testing.assert_array_equal(c[:20], a[:20].astype(np.float64) @ b)


@pytest.mark.parametrize("element", ["float", "double"])
def test_left_operands_in_columns(element: str):
    for b_columns in (False, True):
        spec = replace(spec_of(element, HOST, b_columns, 24, 48), a_columns=True, lda=0)
        for rows, columns in ((24, 48), (13, 29)):
            assert_product(spec, spec.k + memory_step(spec), rows, columns)


def test_products_that_are_not_done_from_memory():
    assert memory_step(DotSpec(16, 24, 64, "float", AVX512, from_memory=True)) == 0
    assert memory_step(DotSpec(16, 16, 64, "float", NEON, from_memory=True)) == 0
    assert memory_step(DotSpec(16, 16, 64, "i8", AVX512, a_columns=True, from_memory=True)) == 0
    halves = DotSpec(16, 16, 64, "half", HALVES, from_memory=True, accumulate=False)
    assert memory_step(halves) == 2
    for other in ({"accumulate": True}, {"m": 24}, {"m": 512}, {"unit": AVX512}):
        assert memory_step(replace(halves, **other)) == 0


def test_rows_of_a_program_that_end_with_a_panel_of_its_group():
    group = DotSpec(256, 64, 64, "float", AVX512, from_memory=True)
    assert are_whole_panels(group, 32)
    assert not are_whole_panels(group, 12)
    # of 256 rows some panels have six, others five
    assert not are_whole_panels(replace(group, unit=AVX2), 32)
