"""The wider mathematical library against NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.frontend.contexts import BuildBench, EagerBench, data
from tilewright import language as tl
from tilewright.ir import types as ir
from tilewright.support import errors

lib = tl.extra.libdevice
INF, NAN = float("inf"), float("nan")
WIDE = np.concatenate([np.geomspace(1e-12, 1e3, 200), [0.0, 1.0, INF]])
UNIT = np.concatenate([np.linspace(-1, 1, 255), [1e-9, -1e-300]])

FUNCTIONS: list[tuple[Any, Callable[..., Any], np.ndarray]] = [
    (lib.log1p, np.log1p, np.concatenate([WIDE, -np.geomspace(1e-12, 0.999, 50), [-1.0, -2.0]])),
    (lib.expm1, np.expm1, np.concatenate([WIDE, -WIDE])),
    (lib.log10, np.log10, WIDE),
    (lib.tan, np.tan, np.linspace(-1.5, 1.5, 101)),
    (lib.sinh, np.sinh, np.concatenate([WIDE, -WIDE])),
    (lib.cosh, np.cosh, np.concatenate([WIDE, -WIDE])),
    (lib.atan, np.arctan, np.concatenate([WIDE, -WIDE, [0.4143, 2.4143]])),
    (lib.asin, np.arcsin, UNIT),
    (lib.acos, np.arccos, UNIT),
    (lib.rint, np.rint, np.array([0.5, 1.5, -0.5, -2.5, 2.4, 1e20])),
    (lib.trunc, np.trunc, np.array([0.5, 1.9, -0.5, -2.5, 1e20])),
]


def ulps(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest distance in units of the last place; NaNs and infinities must agree."""
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = expected.astype(found.dtype)
        same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
        error = np.abs(found.astype(np.float64) - expected) / np.spacing(np.abs(rounded))
    return float(np.where(same, 0.0, error).max())


def name_of(item: Any) -> str:
    return getattr(item, "__name__", "values")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("stub", "oracle", "values"), FUNCTIONS, ids=name_of)
@pytest.mark.parametrize(("element", "limit"), [(ir.f32, 2.0), (ir.f64, 4.0)])
def test_functions_are_accurate(
    stub: Any, oracle: Callable[..., Any], values: np.ndarray, element: ir.DType, limit: float
) -> None:
    bench = EagerBench()
    x = bench.tile(values, element)
    found = bench.call(stub, x)
    assert found.type == x.type
    assert ulps(data(found), oracle(data(x).astype(np.float64))) <= limit


EDGES = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -2.5, 1e3, INF, -INF, NAN])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("stub", "oracle"), [(lib.pow, np.power), (lib.atan2, np.arctan2)])
def test_edges_of_two_arguments(stub: Any, oracle: Callable[..., Any]) -> None:
    bench = EagerBench()
    x, y = (side.ravel() for side in np.meshgrid(EDGES, EDGES))
    found = data(bench.call(stub, bench.tile(x, ir.f32), bench.tile(y, ir.f32)))
    expected = oracle(x, y)
    assert ulps(found, expected) <= 2.0
    zeros = expected == 0
    assert np.array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))


def test_pow_of_many_values() -> None:
    bench = EagerBench()
    generator = np.random.default_rng(0)
    x, y = generator.uniform(0.01, 30, 1024), generator.uniform(-8, 8, 1024)
    narrow = data(bench.call(lib.pow, bench.tile(x, ir.f32), bench.tile(y, ir.f32)))
    inputs = x.astype(np.float32).astype(np.float64), y.astype(np.float32).astype(np.float64)
    assert ulps(narrow, inputs[0] ** inputs[1]) <= 1.0
    assert ulps(data(bench.call(lib.pow, bench.tile(x, ir.f64), 3)), x**3) <= 30


def test_round_takes_halves_away_from_zero() -> None:
    bench = EagerBench()
    x = bench.tile([0.5, -0.5, 1.5, 2.5, 0.49999997, -0.2], ir.f32)
    assert data(bench.call(lib.round, x)).tolist() == [1.0, -1.0, 2.0, 3.0, 0.0, 0.0]


def test_kinds_of_floats() -> None:
    bench = EagerBench()
    x = bench.tile(EDGES, ir.f16)
    for stub, oracle in (
        (lib.isnan, np.isnan),
        (lib.isinf, np.isinf),
        (lib.isfinite, np.isfinite),
        (lib.signbit, np.signbit),
    ):
        found = bench.call(stub, x)
        assert found.dtype == tl.int1 and np.array_equal(data(found), oracle(EDGES))


def test_copysign_and_fmod() -> None:
    bench = EagerBench()
    x, y = bench.tile([5.5, -5.5], ir.f32), bench.tile([-0.0, 3.0], ir.f32)
    assert data(bench.call(lib.copysign, x, y)).tolist() == [-5.5, 5.5]
    assert data(bench.call(lib.fmod, x, 3)).tolist() == [2.5, -2.5]
    assert bench.call(lib.fmod, bench.tile([1.0], ir.bf16), 2).dtype == tl.bfloat16
    assert bench.call(lib.copysign, 1.0, -2.0).dtype == tl.float32


def test_names_that_mean_the_same() -> None:
    assert lib.fast_expf is tl.exp and lib.nearbyint is lib.rint and lib.finitef is lib.isfinite
    assert tl.extra.cuda.libdevice is lib
    bench = EagerBench()
    assert data(bench.call(lib.int2float_rn, bench.tile([3], ir.i32))).tolist() == [3.0]


def test_integers_are_refused() -> None:
    bench = BuildBench()
    x = bench.tile(ir.i32)
    for stub, args in ((lib.log1p, (x,)), (lib.pow, (x, x)), (lib.isnan, (x,))):
        with pytest.raises(errors.InvalidOperation, match="defined for floats"):
            bench.call(stub, *args)
    with pytest.raises(errors.InvalidValue, match="an integer"):
        bench.call(lib.int2float_rn, bench.tile(ir.f32))


def test_narrow_floats_keep_their_dtype() -> None:
    bench = BuildBench()
    assert bench.call(lib.atan, bench.tile(ir.f16)).dtype == tl.float16
    assert bench.call(lib.pow, bench.tile(ir.f16), 2.0).dtype == tl.float16
