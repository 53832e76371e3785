"""The micro-kernel: against NumPy for any size, how it is cut, the machine code it becomes."""

import ctypes
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.backends.cpu.microkernel import (
    AVX2,
    AVX512,
    GENERIC,
    NEON,
    DotSpec,
    VectorUnit,
    packs_columns,
    preferred_strides,
    vector_unit,
)
from tilewright.backends.cpu.microkernel.blocked_loops import dot_declarations, dot_function
from tilewright.backends.cpu.microkernel.register_blocking import column_runs, panel_rows, row_runs
from tilewright.llvm import (
    TargetCpu,
    TargetSpec,
    compile_ir,
    emit_assembly,
    host_cpu,
    host_target,
    load_object,
)

UNITS = {"avx512": AVX512, "avx2": AVX2, "neon": NEON, "generic": GENERIC}
DTYPES = {"float": np.float32, "double": np.float64, "i32": np.int32}
SHAPES = [(128, 128, 64), (16, 16, 16), (32, 32, 32), (1, 1, 1), (17, 33, 19), (5, 100, 7)]
HOST = host_target()
HASWELL = TargetSpec(HOST.triple, "haswell")
SENTINEL = 77

each_unit = pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
each_element = pytest.mark.parametrize("element", DTYPES)


def module(spec: DotSpec) -> str:
    """The kernel and a visible function that calls it."""
    arguments = "ptr %c, ptr %a, ptr %b"
    call = f"define void @run({arguments}) {{\n  call void @dot({arguments})\n  ret void\n}}\n"
    return "\n".join([*dot_declarations(spec), dot_function("dot", spec), call])


def buffer(rows: int, stride: int, dtype: type, shift: int) -> np.ndarray:
    """rows x stride elements that start `shift` elements after a 64-byte boundary."""
    size = np.dtype(dtype).itemsize
    memory = np.zeros((rows * stride + shift) * size + 64, np.uint8)
    start = -memory.ctypes.data % 64 + shift * size
    return memory[start : start + rows * stride * size].view(dtype).reshape(rows, stride)


def operands(spec: DotSpec, random: np.random.Generator) -> list[np.ndarray]:
    """C, A, B in scratch; their padding holds NaN (integers: SENTINEL)."""
    dtype, floating = DTYPES[spec.element], spec.type.is_float
    lda, ldb, ldc = spec.strides
    size_a, size_b = (spec.m, spec.k), (spec.k, spec.n)
    left = (*(size_a[::-1] if spec.a_columns else size_a), lda)
    right = (*(size_b[::-1] if spec.b_columns else size_b), ldb)
    sizes = ((spec.m, spec.n, ldc), left, right)
    arrays: list[np.ndarray] = []
    for rows, columns, stride in sizes:
        array = buffer(rows, stride, dtype, shift=0 if spec.aligned else 1)
        array[:] = np.nan if floating else SENTINEL
        shape = (rows, columns)
        array[:, :columns] = (
            random.standard_normal(shape)
            if floating
            else random.integers(-(2**31), 2**31, shape, dtype=np.int32)
        )
        arrays.append(array)
    return arrays


def run(
    spec: DotSpec, arrays: list[np.ndarray], target: TargetSpec, optimise: bool = False
) -> None:
    loaded = load_object(compile_ir(module(spec), target, optimise=optimise), ["run"])
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(loaded["run"])
    function(*(array.ctypes.data for array in arrays))


def assert_product(spec: DotSpec, target: TargetSpec = HOST, optimise: bool = False) -> None:
    """C is right, the padding of C is untouched, and that of A and B has not leaked into C."""
    arrays = operands(spec, np.random.default_rng(spec.m + 1000 * spec.n + spec.k))
    c, a, b = (array.copy() for array in arrays)
    a = a[:, : spec.m].T if spec.a_columns else a[:, : spec.k]
    b = b[:, : spec.k].T if spec.b_columns else b[:, : spec.n]
    run(spec, arrays, target, optimise)
    result, start = arrays[0][:, : spec.n], c[:, : spec.n] * int(spec.accumulate)
    np.testing.assert_array_equal(arrays[0][:, spec.n :], c[:, spec.n :])
    if not spec.type.is_float:
        wide = start.astype(np.int64) + a.astype(np.int64) @ b.astype(np.int64)
        np.testing.assert_array_equal(result, wide.astype(np.int32))
        return
    wide = start.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64)
    magnitude = np.abs(start).astype(np.float64) + np.abs(a).astype(np.float64) @ np.abs(b)
    bound = (spec.k + 2) * np.finfo(c.dtype).eps * magnitude
    assert (np.abs(result - wide) <= bound).all()


@each_unit
@each_element
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_product_is_right_at_every_shape(
    unit: VectorUnit, element: str, shape: tuple[int, int, int]
) -> None:
    assert_product(DotSpec(*shape, element, unit))


@each_unit
@each_element
@pytest.mark.parametrize("major", ["a", "b", "both"])
@pytest.mark.parametrize("shape", [(16, 16, 16), (33, 48, 32), (1, 112, 64)], ids=str)
def test_column_major_operands(
    unit: VectorUnit, element: str, major: str, shape: tuple[int, int, int]
) -> None:
    of_a = major != "b" and not unit.lane_broadcast
    spec = DotSpec(*shape, element, unit, a_columns=of_a, b_columns=major != "a")
    assert packs_columns(spec)
    assert_product(spec)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.tuples(*[st.integers(1, 70)] * 3),
    padding=st.tuples(*[st.integers(0, 9)] * 3),
    element=st.sampled_from(list(DTYPES)),
    unit=st.sampled_from(list(UNITS.values())),
    aligned=st.booleans(),
    accumulate=st.booleans(),
)
def test_product_is_right_for_any_sizes_and_strides(
    sizes: tuple[int, int, int],
    padding: tuple[int, int, int],
    element: str,
    unit: VectorUnit,
    aligned: bool,
    accumulate: bool,
) -> None:
    (m, n, k), (pad_a, pad_b, pad_c) = sizes, padding
    strides = k + pad_a, n + pad_b, n + pad_c
    assert_product(DotSpec(m, n, k, element, unit, *strides, aligned, accumulate))


@each_element
def test_optimisation_keeps_the_product(element: str) -> None:
    assert_product(DotSpec(37, 41, 29, element, vector_unit(host_cpu())), optimise=True)


@pytest.mark.skipif("avx2" not in host_cpu().enabled, reason="needs AVX2")
@each_element
def test_code_for_a_cpu_with_avx2_only(element: str) -> None:
    for shape in SHAPES:
        assert_product(DotSpec(*shape, element, AVX2), HASWELL)


def test_without_accumulate_old_contents_do_not_matter() -> None:
    spec = DotSpec(20, 24, 8, "float", AVX2, accumulate=False)
    arrays = operands(spec, np.random.default_rng(0))
    arrays[0][:] = np.nan
    run(spec, arrays, HOST)
    assert np.isfinite(arrays[0][:, : spec.n]).all()


def test_declarations_are_only_what_the_text_calls() -> None:
    for spec in (DotSpec(8, 20, 8, "float", AVX2), DotSpec(8, 16, 8, "i32", AVX2)):
        text = dot_function("dot", spec)
        called = set(re.findall(r"call .*?(@llvm[\w.]+)", text))
        declared = {re.findall(r"@[\w.]+", line)[0] for line in dot_declarations(spec)}
        assert called == declared


# -- machine code --------------------------------------------------------------------------------

SKYLAKE = TargetSpec("x86_64-unknown-linux-gnu", "skylake-avx512")
NEOVERSE = TargetSpec("aarch64-unknown-linux-gnu", "neoverse-n1")
PLAIN_X86 = TargetSpec("x86_64-unknown-linux-gnu", "x86-64")
TARGETS = [
    (AVX512, SKYLAKE, r"vmov(?:[au]p[sd]|dq[au]\d*)\s+%[xyz]mm\d+, -?\d*\(%r[sb]p"),
    (
        AVX2,
        TargetSpec(PLAIN_X86.triple, "haswell"),
        r"vmov(?:[au]p[sd]|dq[au])\s+%[xy]mm\d+, -?\d*\(%r[sb]p",
    ),
    (GENERIC, PLAIN_X86, r"mov(?:[au]p[sd]|dq[au])\s+%xmm\d+, -?\d*\(%r[sb]p"),
    (NEON, NEOVERSE, r"st[pr]\s+q\d+.*\[sp"),
]


@pytest.mark.parametrize(("unit", "target", "spill"), TARGETS, ids=list(UNITS))
@each_element
def test_accumulators_stay_in_registers(
    unit: VectorUnit, target: TargetSpec, spill: str, element: str
) -> None:
    """On SSE2 two: an instruction overwrites an operand, which costs copies of doubles and ints."""
    asm = emit_assembly(module(DotSpec(128, 128, 64, element, unit)), target, optimise=False)
    assert len(re.findall(spill, asm)) <= (2 if unit is GENERIC and element != "float" else 0)


@pytest.mark.parametrize(
    ("unit", "target", "pattern"),
    [
        (AVX512, SKYLAKE, r"vfmadd231ps\s+.*%zmm"),
        (AVX2, TARGETS[1][1], r"vfmadd231ps\s+.*%ymm"),
        (NEON, NEOVERSE, r"fmla\s+v\d+\.4s, v\d+\.4s, v\d+\.s\[\d\]"),
    ],
    ids=["avx512", "avx2", "neon"],
)
def test_one_instruction_for_each_multiply_add(
    unit: VectorUnit, target: TargetSpec, pattern: str
) -> None:
    spec = DotSpec(128, 128, 64, "float", unit)
    asm = emit_assembly(module(spec), target, optimise=False)
    written = dot_function("dot", spec).count("@llvm.fma.")
    assert len(re.findall(pattern, asm)) == written > 0


@each_unit
@each_element
def test_text_is_small_for_the_usual_tiles(unit: VectorUnit, element: str) -> None:
    for shape in ((128, 128, 64), (64, 64, 32), (128, 256, 64), (256, 128, 128)):
        assert len(dot_function("dot", DotSpec(*shape, element, unit))) < 24_000


# -- how a product is cut ------------------------------------------------------------------------


@each_unit
@each_element
@given(size=st.integers(1, 400))
def test_panels_cover_the_product_and_fit_the_registers(
    unit: VectorUnit, element: str, size: int
) -> None:
    spec = DotSpec(size, size, 8, element, unit)
    columns = sum(run.times * run.size for run in column_runs(spec))
    assert columns == spec.n // spec.lanes
    for vectors in (1, 2):
        runs = row_runs(spec, vectors)
        assert sum(run.times * run.size for run in runs) == spec.m
        assert max(run.size for run in runs) <= panel_rows(spec, vectors)
        assert panel_rows(spec, vectors) * vectors + vectors < unit.registers


@pytest.mark.parametrize(("unit", "rows"), [(AVX512, 8), (AVX2, 6), (NEON, 8), (GENERIC, 4)])
def test_rows_of_a_full_panel(unit: VectorUnit, rows: int) -> None:
    assert panel_rows(DotSpec(128, 128, 64, "float", unit), 2) == rows


@pytest.mark.parametrize(
    ("shape", "element", "strides"),
    [
        ((128, 128, 64), "float", (64, 144, 128)),  # B: 9 cache lines a row instead of 8
        ((128, 32, 64), "float", (64, 32, 32)),  # one panel holds the whole row of B
        ((100, 100, 100), "float", (112, 112, 112)),  # 7 lines already
        ((64, 64, 32), "double", (32, 72, 64)),
    ],
)
def test_preferred_strides(
    shape: tuple[int, int, int], element: str, strides: tuple[int, int, int]
) -> None:
    spec = DotSpec(*shape, element, AVX512)
    assert tuple(preferred_strides(spec)) == strides == tuple(spec.strides)
    assert replace(spec, ldb=1000).strides.ldb == 1000


def test_a_spec_whose_rows_overlap_is_a_compiler_bug() -> None:
    with pytest.raises(AssertionError, match="rows overlap"):
        DotSpec(8, 8, 8, lda=4)
    with pytest.raises(AssertionError, match="empty dot"):
        DotSpec(8, 0, 8)
    with pytest.raises(AssertionError, match="no micro-kernel multiplies i16"):
        DotSpec(8, 8, 8, "i16")


@pytest.mark.parametrize(
    ("cpu", "unit"),
    [
        (TargetCpu("znver5", "x86_64", "+avx2,+avx512f,+fma", 512), AVX512),
        (TargetCpu("haswell", "x86_64", "+avx2,+fma", 256), AVX2),
        (TargetCpu("odd", "x86_64", "+avx2,-fma", 256), GENERIC),
        (TargetCpu("x86-64", "x86_64", "", 128), GENERIC),
        (TargetCpu("apple-m1", "arm64", "", 128), NEON),
        (TargetCpu("generic", "riscv64", "", 128), GENERIC),
    ],
)
def test_vector_unit_of_a_cpu(cpu: TargetCpu, unit: VectorUnit) -> None:
    assert vector_unit(cpu) == unit._replace(
        bursts=cpu.name == "znver5", assembly=unit == AVX512 and cpu.arch == host_cpu().arch
    )
