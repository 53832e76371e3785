"""Executes two versions of a function on the same random arguments and compares what they do."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.interp import Array, numpy_dtype, run_function
from tilewright.ir import Effect, Function, Value, effects_of
from tilewright.ir.types import DType, PointerType, dtype_of
from tilewright.support.data_class import dataclass
from tilewright.support.errors import TilewrightError
from tilewright.testing.closeness import assert_close

ELEMENTS = 4096
"""Of an array behind a pointer argument, unless the file says otherwise."""
RUNS = 4
"""Sets of random arguments."""
_OBSERVED = frozenset((Effect.WRITE, Effect.OBSERVE))
_TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-2, "bfloat16": 5e-2}
"""For passes that may sum in another order; relative to the largest element."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Why two versions count as different."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Trace:
    """What one execution left behind."""

    arrays: dict[str, Array]
    prints: str


def compare_runs(
    first: Function, second: Function, args: Mapping[str, float], grid: tuple[int, ...]
) -> Disagreement | None:
    """Run both on RUNS sets of random arguments; None if they leave the same behind."""
    # Two functions without effects would always agree.
    if not any(effects_of(op) & _OBSERVED for op in first.body):
        return Disagreement("the input has no effect that could be compared: let it store a result")
    if [arg.type for arg in first.args] != [arg.type for arg in second.args]:
        return Disagreement("the parameters differ")
    for seed in range(RUNS):
        difference = _compare(first, second, args, grid, seed)
        if difference is not None:
            return Disagreement(f"{difference} (random arguments no. {seed})")
    return None


def _compare(
    first: Function, second: Function, args: Mapping[str, float], grid: tuple[int, ...], seed: int
) -> str | None:
    try:
        left = _run(first, args, grid, seed)
    except TilewrightError as error:
        return f"the input cannot be executed, '// args:' may help: {error}"
    try:
        right = _run(second, args, grid, seed)
    except TilewrightError as error:
        return f"the output cannot be executed: {error}"
    if left.prints != right.prints:
        return f"the prints differ: input {left.prints!r}, output {right.prints!r}"
    for name, array in left.arrays.items():
        difference = _difference(array, right.arrays[name])
        if difference is not None:
            return f"the array %{name} differs: {difference}"
    return None


def _run(function: Function, args: Mapping[str, float], grid: tuple[int, ...], seed: int) -> _Trace:
    # Seeded: both versions get the same arguments, and failures can be repeated.
    random = np.random.default_rng(seed)
    values = [_argument(parameter, args, random) for parameter in function.args]
    prints: list[str] = []
    run_function(function, values, grid, write=prints.append)
    arrays = {
        parameter.name or str(parameter.index): value
        for parameter, value in zip(function.args, values, strict=True)
        if isinstance(value, np.ndarray)
    }
    return _Trace(arrays, "".join(prints))


def _argument(
    parameter: Value, args: Mapping[str, float], random: np.random.Generator
) -> Array | float:
    type_, given = parameter.type, args.get(parameter.name)
    if isinstance(type_, PointerType):
        return _array(type_.element, int(given or ELEMENTS), random)
    if given is not None:
        return given
    dtype = dtype_of(type_)
    if dtype.is_float:
        # Multiples of 1/4: exact in every float type, so that scalars add no rounding.
        return float(random.integers(-8, 8)) / 4
    multiple = (parameter.facts or {}).get("multiple_of", 1)
    # 1 to 8: never 0, since scalars are often divisors or extents.
    return int(random.integers(0 if dtype.is_bool else 1, 2 if dtype.is_bool else 9)) * multiple


def _array(element: DType, size: int, random: np.random.Generator) -> Array:
    dtype = numpy_dtype(element)
    if element.is_float:
        return random.standard_normal(size).astype(np.float32).astype(dtype)
    # Small integers, so that sums and products of a few stay in range.
    low, high = max(element.min_int, -100), min(element.max_int, 100)
    return random.integers(low, high + 1, size).astype(dtype)


def _difference(left: Array, right: Array) -> str | None:
    tolerance = _TOLERANCE.get(left.dtype.name, 0.0)
    # Relative to the largest element, as sums in another order err relative to their terms.
    scale = _largest(left) if tolerance else 0.0
    try:
        assert_close(right, left, atol=tolerance * scale, rtol=0.0)
    except AssertionError as error:
        return str(error)
    return None


def _largest(array: Array) -> float:
    finite = np.abs(array.astype(np.float64))
    finite = finite[np.isfinite(finite)]
    return float(finite.max()) if finite.size else 0.0
