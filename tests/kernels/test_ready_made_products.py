"""Ready-made products beyond a @ b: epilogues, parts of K, groups, weights of few bits."""

import sys
from typing import Any

import numpy as np
import pytest

from tests.kernels.data import BFLOAT16, Array
from tests.kernels.devices import Device
from tests.kernels.test_ready_made import NUMPY_AND_TORCH, steps
from tilewright import cdiv, kernels
from tilewright.kernels import matmul_arrays, matmul_plan
from tilewright.kernels.grouped_matmul import grouped_matmul, grouped_matmul_kernel
from tilewright.kernels.matmul import matmul_kernel, sum_parts_kernel
from tilewright.kernels.matmul_arrays import ACTIVATIONS, PLAIN, grid_of, pack_kernel
from tilewright.kernels.matmul_plan import Gpu, gpu_launch_options, plan_of
from tilewright.kernels.quantized_matmul import (
    pack_int4,
    quantized_matmul,
    quantized_matmul_kernel,
)

H200 = Gpu(90, 132)
BLOCKS = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16, "GROUP_M": 2}


def activated(x: Array, kind: str, slope: float = 0.01) -> Array:
    """In float64."""
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return {
        "": x, "relu": np.maximum(x, 0), "leaky_relu": np.where(x >= 0, x, slope * x),
        "gelu_tanh": 0.5 * x * (1 + np.tanh(inner)), "silu": x / (1 + np.exp(-x)),
    }[kind]  # fmt: skip


def exact(a: Array, b: Array) -> Array:
    return a.astype(np.float64) @ b.astype(np.float64)


def error(found: Any, expected: Array) -> float:
    """Of the norm of the difference, over the norm."""
    difference = np.linalg.norm(np.asarray(found).astype(np.float64) - expected)
    return float(difference / max(np.linalg.norm(expected), 1e-30))


# --- the kernels, on every device -----------------------------------------------------------------


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_bias_and_activation(device: Device, rng: np.random.Generator, activation: str):
    m, n, k = 37, 45, 20
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
    bias, c = rng.normal(size=n).astype(np.float32), device.empty((m, n), np.float32)
    words = {name: value for name, value in PLAIN.items() if name != "bias_ptr"}
    device.run(
        matmul_kernel, grid_of(m, n), device.array(a), device.array(b), c, m, n, k, *steps(a),
        *steps(b), *steps(c), 0.25, device.array(bias), **BLOCKS,
        **words | {"ACTIVATION": activation},
    )  # fmt: skip
    np.testing.assert_allclose(
        c, activated(exact(a, b) + bias, activation, 0.25), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("parts", [2, 5])
def test_parts_of_k_are_summed(device: Device, rng: np.random.Generator, parts: int):
    """The last ones of five have nothing to add."""
    m, n, k = 33, 40, 50
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
    bias = device.array(rng.normal(size=n).astype(np.float32))
    sums, c = device.empty((parts * m, n), np.float32), device.empty((m, n), np.float32)
    device.run(
        matmul_kernel, grid_of(m, n), device.array(a), device.array(b), sums, m, n, k, *steps(a),
        *steps(b), n, 1, 0.0, **BLOCKS, **PLAIN | {"PARTS": parts},
    )  # fmt: skip
    device.run(
        sum_parts_kernel, (cdiv(m, 8), cdiv(n, 32)), sums, c, m, n, *steps(c), 0.0, bias,
        BLOCK_M=8, BLOCK_N=32, PARTS=parts, ACTIVATION="relu",
    )  # fmt: skip
    expected = np.maximum(exact(a, b) + bias, 0)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("tile", [matmul_plan.TILES[0], *matmul_plan.TILES[-2:]], ids=str)
def test_planned_tiles(device: Device, rng: np.random.Generator, tile: matmul_plan.Tile):
    """Loops that copy ahead, and multiply by warpgroups where there are 64 rows."""
    m, n, k = device.pick((9, 40, 200), (70, 136, 392))
    a, b = rng.normal(size=(m, k)).astype(np.float16), rng.normal(size=(k, n)).astype(np.float16)
    c = device.empty((m, n), np.float16)
    words = matmul_plan.options_of(tile, 2) | PLAIN | {"UNITS": (1, 8, 8, 8, 1, 8, 1, 8, 1)}
    words["WRAP"] = tile.m > 16
    device.run(
        matmul_kernel, grid_of(m, n), device.array(a), device.array(b), c, m, n, k, *steps(a),
        *steps(b), *steps(c), 0.0, **words,
    )  # fmt: skip
    assert error(c, exact(a, b)) < 1e-3


@pytest.mark.parametrize("turned", [False, True])
def test_packed_rows_end_in_zeros(device: Device, rng: np.random.Generator, turned: bool):
    x = rng.normal(size=(19, 21)).astype(np.float16)
    rows = device.empty((19, 32), np.float16)
    there = device.array(x.T).T if turned else device.array(x)
    device.run(pack_kernel, (2, 2), there, rows, 19, 21, 32, *steps(there), BLOCK_M=16, BLOCK_N=16)
    np.testing.assert_array_equal(rows[:, :21], x)
    np.testing.assert_array_equal(rows[:, 21:], 0)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("groups", [0, 2])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_quantized_weights(
    device: Device, rng: np.random.Generator, bits: int, groups: int, dtype: str
):
    m, k, n = 17, 128, 35
    a = rng.normal(size=(m, k)).astype(dtype)
    weights = rng.integers(-(1 << bits - 1), 1 << bits - 1, (k, n)).astype(np.int8)
    scales = rng.random((max(groups, 1), n)).astype(dtype)
    stored, c = weights if bits == 8 else pack_int4(weights), device.empty((m, n), dtype)
    device.run(
        quantized_matmul_kernel, grid_of(m, n), device.array(a), device.array(stored),
        device.array(scales), c, m, n, k, *steps(a), *steps(stored), *steps(c), 0.0, None,
        BLOCK_M=32, BLOCK_N=32, BLOCK_K=64, GROUP_M=1, ACTIVATION="", BITS=bits,
        GROUP_K=k // groups if groups else 0, WRAP=groups > 0,
    )  # fmt: skip
    expected = exact(a, weights * np.repeat(scales.astype(np.float64), k // len(scales), 0))
    assert error(c, expected) < (1e-5 if dtype == "float32" else 2e-3)


def test_grouped_products(device: Device, rng: np.random.Generator):
    """By addresses in a table, which only mean something where arrays stay."""
    if device.name not in ("cpu", "emulated"):
        pytest.skip("arrays move, or addresses are no pointers there")
    shapes = [(40, 24, 32), (9, 48, 40), (33, 8, 16)]
    a = [device.array(rng.normal(size=(m, k)).astype(np.float16)) for m, _, k in shapes]
    b = [device.array(rng.normal(size=(k, n)).astype(np.float16)) for _, n, k in shapes]
    c = [device.empty((m, n), np.float16) for m, n, _ in shapes]
    rows, first = list[tuple[int, ...]](), 0
    for x, y, z, shape in zip(a, b, c, shapes, strict=True):
        places = (array.ctypes.data for array in (x, y, z))
        rows.append((first, *places, *shape, *steps(x), *steps(y), *steps(z)))
        first += cdiv(shape[0], 32) * cdiv(shape[1], 32)
    table = device.array(np.array(rows).T.copy())
    device.run(
        grouped_matmul_kernel, (first,), table, 3, a[0], b[0], c[0], 0.0, **BLOCKS, COUNT=4,
        UNITS=(False, True) * 3, UNIT=8, ACTIVATION="",
    )  # fmt: skip
    for x, y, z in zip(a, b, c, strict=True):
        assert error(z, exact(x, y)) < 1e-3


# --- over arrays ----------------------------------------------------------------------------------


@pytest.fixture(params=["cpu", "as on Hopper"])
def planned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Launches as for CPUs; or as planned for a GPU, copies of operands and parts included."""
    if request.param != "cpu":
        for name in ("matmul", "grouped_matmul", "quantized_matmul"):
            module = sys.modules[f"tilewright.kernels.{name}"]
            monkeypatch.setattr(module, "is_on_cpu", lambda array: False)
            monkeypatch.setattr(module, "current_gpu", lambda: H200)
        monkeypatch.setattr(matmul_arrays, "WORTH_PACKING", 0)
    return request.param


DTYPES = {
    "float64": 1e-14,
    "float32": 1e-5,
    "float16": 1e-3,
    BFLOAT16: 8e-3,
    "int8": 0.0,
    "float8_e4m3fn": 1e-5,
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "size", [(1, 1, 1), (16, 200, 300), (65, 33, 1000), (100, 104, 88), (3, 5, 0), (0, 4, 4)],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False)], ids=str)
@pytest.mark.usefixtures("planned")
def test_every_type_size_and_layout(
    rng: np.random.Generator, dtype: Any, size: tuple[int, int, int], turned: tuple[bool, bool]
):
    m, n, k = size
    if dtype == "float8_e4m3fn":
        dtype = pytest.importorskip("ml_dtypes").float8_e4m3fn
    spread = 40 if dtype == "int8" else 1
    a, b = ((rng.normal(size=s) * spread).astype(dtype) for s in ((m, k), (k, n)))
    expected = exact(a, b)
    a, b = (
        np.ascontiguousarray(x.T).T if turn else x for x, turn in zip((a, b), turned, strict=True)
    )
    found = kernels.matmul(a, b)
    names = {"int8": "int32", "float8_e4m3fn": "float32"}
    assert found.dtype == names.get(str(a.dtype), a.dtype)
    assert error(found, expected) <= DTYPES.get(str(a.dtype), 8e-3)


@pytest.mark.usefixtures("planned")
def test_operands_at_odd_addresses(rng: np.random.Generator):
    """Views that start in the middle, with gaps between rows and between elements."""
    whole_a, whole_b = (rng.normal(size=s).astype(np.float16) for s in ((70, 201), (203, 91)))
    for a, b in (
        (whole_a[1:, 1:], whole_b[1:201, 1:]),
        (whole_a[::2, 1::2], whole_b[2:102, ::3]),
        (whole_a[::-1, :200], whole_b[:200, ::-1]),
    ):
        out = np.full((a.shape[0], 2 * b.shape[1]), np.nan, np.float32)[:, ::2]
        assert kernels.matmul(a, b, out=out) is out
        assert error(out, exact(a, b)) < 1e-5


@pytest.mark.parametrize("kind", NUMPY_AND_TORCH)
@pytest.mark.usefixtures("planned")
def test_epilogues_over_arrays(rng: np.random.Generator, kind: Any):
    a, b = rng.normal(size=(40, 700)).astype(np.float32), rng.normal(size=(700, 30))
    bias = rng.normal(size=30).astype(np.float32)
    b = b.astype(np.float32)
    for activation in ACTIVATIONS:
        found = kernels.matmul(kind(a), kind(b), bias=kind(bias), activation=activation)
        expected = activated(exact(a, b) + bias, activation)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-4)


def test_integers_keep_relu_and_may_become_floats(rng: np.random.Generator):
    a, b = rng.integers(-9, 9, (2, 20, 20)).astype(np.int8)
    wide = a.astype(np.int32) @ b
    np.testing.assert_array_equal(kernels.matmul(a, b, activation="relu"), np.maximum(wide, 0))
    out = np.empty((20, 20), np.float32)
    kernels.matmul(a, b, slope=0.5, out=out)
    np.testing.assert_allclose(out, np.where(wide >= 0, wide, wide / 2))


@pytest.mark.parametrize("kind", NUMPY_AND_TORCH)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.usefixtures("planned")
def test_grouped_products_over_arrays(rng: np.random.Generator, kind: Any, turned: bool):
    shapes = [(100, 48, 64), (16, 128, 80), (7, 0, 8), (3, 5, 0), (200, 96, 33), (1, 1, 1)]
    for count in (0, 2, len(shapes)):
        a = [rng.normal(size=(m, k)).astype(np.float16) for m, _, k in shapes[:count]]
        b = [rng.normal(size=(k, n)).astype(np.float16) for _, n, k in shapes[:count]]
        if turned:
            b = [np.ascontiguousarray(y.T).T for y in b]
        found = grouped_matmul([kind(x) for x in a], [kind(y) for y in b], activation="relu")
        for x, y, c in zip(a, b, found, strict=True):
            assert error(c, np.maximum(exact(x, y), 0)) < 1e-3


@pytest.mark.parametrize("kind", NUMPY_AND_TORCH)
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("size", [(5, 64, 33), (17, 100, 40), (40, 384, 304), (3, 1, 5)], ids=str)
@pytest.mark.parametrize("converted", [False, True], ids=["in the loop", "before"])
@pytest.mark.usefixtures("planned")
def test_quantized_products_over_arrays(
    rng: np.random.Generator, kind: Any, bits: int, size: tuple[int, int, int], converted: bool,
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    inside = {**BLOCKS, "BLOCK_K": 64}
    module = sys.modules["tilewright.kernels.quantized_matmul"]
    monkeypatch.setattr(module, "options_of_weights", lambda *_: None if converted else inside)
    m, k, n = size
    a = rng.normal(size=(m, k)).astype(np.float16)
    weights = rng.integers(-(1 << bits - 1), 1 << bits - 1, (k, n)).astype(np.int8)
    stored = kind(weights) if bits == 8 else pack_int4(kind(weights))
    bias = rng.normal(size=n).astype(np.float16)
    for groups in {0} if k % 64 else {0, 1, k // 64}:
        scales = rng.random((max(groups, 1), n)).astype(np.float16)
        expected = exact(a, weights * np.repeat(scales.astype(np.float64), k // len(scales), 0))
        given = kind(scales if groups else scales[0])
        found = quantized_matmul(kind(a), stored, given, bits=bits, bias=kind(bias))
        assert error(found, expected + bias) < 2e-3


def test_wrong_arguments_are_named():
    a, b = np.ones((4, 8), np.float32), np.ones((8, 6), np.float32)
    wrong: list[tuple[tuple[Array, Array], dict[str, Any], str]] = [
        ((a, a), {}, "mismatched shapes"),
        ((a, b), {"out": np.empty((6, 4))}, "out has the shape"),
        ((a, b), {"bias": np.ones(4, np.float32)}, "bias has the shape"),
        ((a, b), {"bias": np.ones(12, np.float32)[::2]}, "not contiguous"),
        ((a, b), {"activation": "gelu"}, "expected one of relu"),
        ((a.astype(np.int8), b.astype(np.int8)), {"activation": "silu"}, "of integers"),
    ]
    for arguments, words, message in wrong:
        with pytest.raises(ValueError, match=message):
            kernels.matmul(*arguments, **words)
    with pytest.raises(ValueError, match="lists of 2 and 1"):
        grouped_matmul([a, a], [b])
    with pytest.raises(ValueError, match="different element types"):
        grouped_matmul([a, a.astype(np.float16)], [b, b])


def test_wrong_weights_are_named():
    a, scales = np.ones((4, 128), np.float32), np.ones(6, np.float32)
    eight, four = np.ones((128, 6), np.int8), np.ones((64, 6), np.uint8)
    for weights, chosen, bits, message in (
        (eight, scales, 3, "8 or 4 bits"),
        (four, scales, 8, "weights are int8 with 128 rows, not uint8 with 64"),
        (four[:32], scales, 4, "with 64 rows"),
        (eight, scales[:5], 8, "scales have the shape"),
        (eight, np.ones((4, 6), np.float32), 8, "multiples of 64"),
        (eight, np.ones(12, np.float32)[::2], 8, "not contiguous"),
    ):
        with pytest.raises(ValueError, match=message):
            quantized_matmul(a, weights, chosen, bits=bits)


# --- plans ----------------------------------------------------------------------------------------


def test_large_products_take_large_tiles():
    for item in (1, 2):
        for size in (2048, 4096, 8192, 16384):
            plan = plan_of(size, size, size, item, H200)
            options = plan.options
            assert (options["BLOCK_M"], options["BLOCK_N"]) == (128, 128)
            assert (options["BLOCK_K"], options["num_warps"]) == (128 // item, 4)
            assert plan.parts == 1


def test_weights_are_converted_before_products_of_many_rows():
    assert matmul_plan.options_of_weights(8192, 8192, 8192, 2, H200, True) is None
    options = matmul_plan.options_of_weights(16, 8192, 8192, 2, H200, True)
    assert options is not None and options["BLOCK_K"] == 64


def test_few_tiles_are_split_along_k():
    assert plan_of(128, 128, 16384, 2, H200).parts > 4
    assert plan_of(128, 128, 64, 2, H200).parts == 1


def test_small_products_take_many_programs():
    options = plan_of(512, 512, 512, 2, H200).options
    assert cdiv(512, options["BLOCK_M"]) * cdiv(512, options["BLOCK_N"]) >= 64


@pytest.mark.parametrize("item", [1, 2, 4])
def test_other_gpus_keep_their_options(item: int):
    plan = plan_of(4096, 4096, 4096, item, Gpu(80, 108))
    assert plan == matmul_plan.Plan(gpu_launch_options(item))


def test_offsets_are_wide_where_31_bits_do_not_suffice():
    assert not matmul_arrays.is_wide((100, 100, 100, 100, 1, 100, 1, 100, 1))
    assert matmul_arrays.is_wide((70_000, 100, 40_000, 40_000, 1, 100, 1, 100, 1))


@pytest.mark.parametrize(
    ("sizes", "item_bytes", "threads", "blocks"),
    [((1024, 1000, 512), 4, 1, (128, 256, 64)), ((64, 64, 64), 4, 1, (64, 64, 64)),
     ((1, 17, 5), 4, 1, (16, 32, 16)), ((1024, 1000, 512), 1, 1, (256, 256, 64)),
     ((512, 512, 512), 4, 14, (64, 64, 64)), ((512, 256, 64), 1, 14, (256, 64, 64)),
     ((1024, 1000, 512), 8, 1, (128, 128, 64))],
)  # fmt: skip
def test_blocks_on_cpus_fit_the_matrices_and_the_threads(
    sizes: tuple[int, int, int], item_bytes: int, threads: int, blocks: tuple[int, int, int]
):
    chosen = matmul_plan.blocks_for_threads(*sizes, item_bytes=item_bytes, threads=threads)
    assert (chosen["BLOCK_M"], chosen["BLOCK_N"], chosen["BLOCK_K"]) == blocks
    random = np.random.default_rng(0)
    m, n, k = sizes
    a, b = random.integers(-3, 4, (m, k)), random.integers(-3, 4, (k, n))
    a, b = a.astype(np.float32), b.astype(np.float32)
    np.testing.assert_array_equal(kernels.matmul(a, b), a @ b)
