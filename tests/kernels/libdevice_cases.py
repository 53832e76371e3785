"""What the functions of libdevice are exactly, and arguments that matter for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import mpmath  # pyright: ignore[reportMissingTypeStubs]
import numpy as np

mp: Any = cast("Any", mpmath)
Array = np.ndarray[Any, Any]

DIGITS = 60


class Case(NamedTuple):
    """exact: of mpmath's numbers; ranges: of each argument, uniform, and by size if `sized`."""

    exact: Callable[..., Any]
    ranges: tuple[tuple[float, float], ...]
    sized: bool = False


def _erfcx(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


def _erfcinv(x: Any) -> Any:
    # By Newton's method on the logarithm from erfinv, which needs digits for small x.
    with mp.workdps(340 if x < 1e-15 else DIGITS):
        return mp.erfinv(1 - x)


def _nearest_multiple(x: Any, y: Any) -> Any:
    return x - y * mp.nint(x / y)


CASES: dict[str, Case] = {
    "exp10": Case(lambda x: mp.power(10, x), ((-30, 30),)),
    "expm1": Case(mp.expm1, ((-30, 30),), True),
    "log1p": Case(mp.log1p, ((-0.99, 100),), True),
    "log10": Case(mp.log10, ((0.01, 1000),)),
    "tan": Case(mp.tan, ((-100, 100),)),
    "atan": Case(mp.atan, ((-20, 20),), True),
    "asin": Case(mp.asin, ((-1, 1),), True),
    "acos": Case(mp.acos, ((-1, 1),)),
    "atan2": Case(mp.atan2, ((-5, 5), (-5, 5))),
    "sinh": Case(mp.sinh, ((-20, 20),), True),
    "cosh": Case(mp.cosh, ((-20, 20),)),
    "asinh": Case(mp.asinh, ((-100, 100),), True),
    "acosh": Case(mp.acosh, ((1, 100),)),
    "atanh": Case(mp.atanh, ((-0.999, 0.999),), True),
    "sinpi": Case(mp.sinpi, ((-20, 20),), True),
    "cospi": Case(mp.cospi, ((-20, 20),)),
    "cbrt": Case(lambda x: mp.sign(x) * mp.cbrt(abs(x)), ((-100, 100),), True),
    "rcbrt": Case(lambda x: mp.sign(x) / mp.cbrt(abs(x)), ((-100, 100),)),
    "pow": Case(mp.power, ((0.1, 10), (-9, 9))),
    "hypot": Case(mp.hypot, ((-9, 9), (-9, 9))),
    "rhypot": Case(lambda x, y: 1 / mp.hypot(x, y), ((-9, 9), (-9, 9))),
    "norm3d": Case(lambda *x: mp.sqrt(sum(v * v for v in x)), ((-9, 9),) * 3),
    "norm4d": Case(lambda *x: mp.sqrt(sum(v * v for v in x)), ((-9, 9),) * 4),
    "rnorm3d": Case(lambda *x: 1 / mp.sqrt(sum(v * v for v in x)), ((-9, 9),) * 3),
    "rnorm4d": Case(lambda *x: 1 / mp.sqrt(sum(v * v for v in x)), ((-9, 9),) * 4),
    "remainder": Case(_nearest_multiple, ((-99, 99), (0.5, 7))),
    "erfc": Case(mp.erfc, ((-5, 9),)),
    "erfcx": Case(_erfcx, ((-5, 50),)),
    "erfinv": Case(mp.erfinv, ((-0.9999, 0.9999),), True),
    "erfcinv": Case(_erfcinv, ((1e-4, 1.99),)),
    "normcdf": Case(mp.ncdf, ((-12, 6),)),
    "normcdfinv": Case(lambda x: -mp.sqrt(2) * _erfcinv(2 * x), ((1e-4, 0.999),)),
    "lgamma": Case(lambda x: mp.log(abs(mp.gamma(x))), ((0.01, 100),)),
    "tgamma": Case(mp.gamma, ((-20, 30),)),
    "j0": Case(lambda x: mp.besselj(0, x), ((-50, 50),)),
    "j1": Case(lambda x: mp.besselj(1, x), ((-50, 50),)),
    "y0": Case(lambda x: mp.bessely(0, x), ((0.01, 50),)),
    "y1": Case(lambda x: mp.bessely(1, x), ((0.01, 50),)),
    "cyl_bessel_i0": Case(lambda x: mp.besseli(0, x), ((-40, 40),)),
    "cyl_bessel_i1": Case(lambda x: mp.besseli(1, x), ((-40, 40),)),
}

ABSOLUTE = ("j0", "j1", "y0", "y1")
"""Functions whose error is counted in ulp of the larger of the result and 1, as their zeros are
nowhere near floats."""


def arguments(case: Case, rng: np.random.Generator, count: int, dtype: Any) -> list[Array]:
    """Uniform in the ranges; of some cases half of them by size, down to 1e-8 of it."""
    columns: list[Array] = []
    for low, high in case.ranges:
        column = rng.uniform(low, high, count)
        if case.sized:
            column[::2] *= 10.0 ** rng.uniform(-8, 0, len(column[::2]))
        columns.append(column.astype(dtype))
    return columns


def exact(name: str, columns: list[Array]) -> list[Any]:
    """The values with DIGITS digits."""
    with mp.workdps(DIGITS):
        rows = zip(*(column.astype(np.float64) for column in columns), strict=True)
        return [CASES[name].exact(*(mp.mpf(float(x)) for x in row)) for row in rows]


def worst_error(name: str, found: Array, expected: list[Any]) -> float:
    """In ulp of the type of `found`; subnormal results count by the smallest normal number."""
    digits = np.finfo(found.dtype).nmant
    least = -mp.inf if name in ABSOLUTE else float(np.finfo(found.dtype).tiny)
    worst = 0.0
    for value, right in zip(found.astype(np.float64).ravel(), expected, strict=True):
        size = max(abs(right), 1 if name in ABSOLUTE else least)
        unit = mp.ldexp(1, int(mp.floor(mp.log(size, 2))) - digits)
        worst = max(worst, float(abs(mp.mpf(float(value)) - right) / unit))
    return worst
