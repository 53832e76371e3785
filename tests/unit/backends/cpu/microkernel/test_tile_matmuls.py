"""Products by AMX tiles; on CPUs without AMX by functions that do what its instructions do."""

import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.unit.backends.cpu.amx_functions import without_amx
from tests.unit.backends.cpu.microkernel.grouped_products import KINDS, assert_product
from tests.unit.backends.cpu.microkernel.test_grouped_products import product_kernel
from tests.unit.backends.cpu.textual import function_of
from tilewright.backends.cpu.driver.cpu_launcher import CpuLauncher
from tilewright.backends.cpu.lower.cpu_function import lower_function
from tilewright.backends.cpu.microkernel import AVX512, TILE_CONFIGURATION, DotSpec, vector_unit
from tilewright.backends.cpu.microkernel.tile_matmuls import dot_declarations, dot_function
from tilewright.backends.cpu.passes.legalize import Legalize
from tilewright.interp import run_function
from tilewright.llvm import TargetCpu, TargetSpec, compile_ir, emit_assembly, host_cpu, host_target
from tilewright.ops import DotOp

AMX = AVX512._replace(tiles=frozenset(KINDS))
SHAPES = [(16, 16, 64), (48, 80, 192), (64, 32, 128)]
SAPPHIRE_RAPIDS = TargetSpec("x86_64-unknown-linux-gnu", "sapphirerapids")

each_way = pytest.mark.parametrize("emulate", [True, False], ids=["emulated", "native"])


def module(spec: DotSpec, emulate: bool) -> str:
    arguments = "ptr %c, ptr %a, ptr %b"
    data = ", ".join(f"i8 {byte}" for byte in TILE_CONFIGURATION)
    text = "\n".join([
        f"@tiles = private constant [64 x i8] [{data}]", "declare void @llvm.x86.ldtilecfg(ptr)",
        "declare void @llvm.x86.tilerelease()", *dot_declarations(spec), dot_function("dot", spec),
        f"define void @run({arguments}) {{", "call void @llvm.x86.ldtilecfg(ptr @tiles)",
        f"call void @dot({arguments})", "call void @llvm.x86.tilerelease()", "ret void", "}", "",
    ])  # fmt: skip
    return without_amx(text) if emulate else text


def skip_without_amx(emulate: bool) -> None:
    if not emulate and not host_cpu().tile_dots:
        pytest.skip("the CPU has no AMX, or the system keeps it")


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("element", KINDS)
@each_way
def test_products_of_whole_tiles(
    element: str, shape: tuple[int, int, int], emulate: bool, accumulate: bool
):
    skip_without_amx(emulate)
    spec = DotSpec(*shape, element, AMX, accumulate=accumulate)
    assert spec.by_tiles
    assert_product(spec, module(spec, emulate))


@pytest.mark.parametrize("element", KINDS)
@each_way
def test_column_major_right_operands(element: str, emulate: bool):
    skip_without_amx(emulate)
    spec = DotSpec(48, 48, 128, element, AMX, b_columns=True)
    assert_product(spec, module(spec, emulate))


@pytest.mark.parametrize(
    ("shape", "element"),
    [((8, 16, 64), "i8"), ((16, 16, 32), "i8"), ((24, 16, 64), "bfloat"), ((16, 16, 16), "bfloat"),
     ((16, 16, 64), "float")], ids=str,
)  # fmt: skip
def test_products_that_fill_no_tiles_are_left_to_vectors(shape: tuple[int, int, int], element: str):
    assert not DotSpec(*shape, element, AMX).by_tiles


def test_cpus_without_amx_multiply_by_vectors():
    assert not DotSpec(128, 128, 64, "bfloat", AVX512).by_tiles


def test_a_cpu_multiplies_by_tiles_what_its_features_say():
    features = "+avx512bf16,+avx512vnni,+amx-tile,+amx-bf16"
    unit = vector_unit(TargetCpu("sapphirerapids", "x86_64", features, 512))
    assert unit.tiles == {"bfloat", "half"}
    assert vector_unit(TargetCpu("znver5", "x86_64", "+avx512bf16,+avx512vnni", 512)).tiles == set()


def test_bf16_is_widened_where_its_dots_are_slow():
    features = "+avx512bf16,+avx512vnni,+amx-tile,+amx-bf16"
    cpu = TargetCpu("emeraldrapids", "x86_64", features, 512)
    assert (cpu.dots, cpu.tile_dots) == (("int8",), ("bf16",))
    assert TargetCpu("znver5", "x86_64", features, 512).dots == ("bf16", "int8")
    for rows, opcode in ((16, "cpu.dot_bf16"), (8, "tile.dot")):
        function = function_of(product_kernel("bf16", "bf16", "f32", (rows, 16, 32)))
        Legalize(True, cpu.dots, cpu.tile_dots).run(function)
        assert [op.opcode for op in function.walk() if isinstance(op, DotOp)] == [opcode]


def test_four_products_for_four_loads():
    """The inner loop on Sapphire Rapids: no configuration, no spills, no registers moved."""
    spec = DotSpec(64, 64, 256, "bfloat", AMX)
    text = "\n".join([*dot_declarations(spec), dot_function("dot", spec)])
    assembly = emit_assembly(text.replace("define internal", "define"), SAPPHIRE_RAPIDS)
    loops = [part for part in re.split(r"\n\.LBB\S+:", assembly) if "tdpbf16ps" in part]
    assert [part.count("tdpbf16ps") for part in loops] == [4]
    # those of the sums stand before the loop
    assert loops[0].count("tileloadd") == 4
    assert "ldtilecfg" not in assembly


@pytest.mark.parametrize(("left", "right", "summed"), [
    ("bf16", "bf16", "f32"), ("i8", "i8", "i32"), ("u8", "i8", "i32"),
])  # fmt: skip
@each_way
def test_whole_kernels_load_one_configuration(left: str, right: str, summed: str, emulate: bool):
    """By the launcher, as interpreted; programs of two chunks, each of which loads and releases."""
    skip_without_amx(emulate)
    m, n, k = 32, 48, 128
    text = product_kernel(left, right, summed, (m, n, k))
    function = function_of(text)
    cpu = replace(host_cpu(), vector_bits=512)
    Legalize(cpu.has_fma, (), ("bf16", "int8")).run(function)
    kernel = lower_function(function, AMX, cpu.function_attributes)
    assert kernel.text.count("call void @llvm.x86.ldtilecfg") == 1
    assert kernel.text.count("call void @llvm.x86.tilerelease") == 1
    types = {"bf16": ml_dtypes.bfloat16, "i8": np.int8, "u8": np.uint8, "f32": np.float32,
             "i32": np.int32}  # fmt: skip
    random = np.random.default_rng(m)
    args = [random.integers(0, 100, size).astype(types[kind])
            for size, kind in ((m * k, left), (k * n, right), (m * n, summed))]  # fmt: skip
    expected = [x.copy() for x in args]
    run_function(function_of(text), expected, (1, 1, 1))
    llvm = without_amx(kernel.text) if emulate else kernel.text
    metadata = {"name": kernel.symbol, "scratch_bytes": kernel.scratch_bytes}
    launcher = CpuLauncher(
        compile_ir(llvm, host_target()), metadata, [str(a.type) for a in function.args], 1
    )
    launcher.launch((1, 1, 1), [x.ctypes.data for x in args])
    np.testing.assert_array_equal(args[2], expected[2])
