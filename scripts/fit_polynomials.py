"""Fits the minimax polynomials of the CPU back end's elementary functions.

    python scripts/fit_polynomials.py [--check [NAME ...]]

writes src/tilewright/transforms/expand/polynomials.py; `--check` says whether it is current: all of
it, which takes half a minute, or the tables that are named.
Needs mpmath. Method: the Remez exchange in 50 digits on the weighted error, then each coefficient
rounded to the target format. The functions' first terms are outside the fits and exact, so that the
rounding of the fitted ones costs little; the error printed is that of the rounded polynomial.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import mpmath  # pyright: ignore[reportMissingTypeStubs]

mp: Any = cast("Any", mpmath)
mp.mp.dps = 50
Real = Any
Curve = Callable[[Real], Real]

TARGET = Path(__file__).parents[1] / "src/tilewright/transforms/expand/polynomials.py"


@dataclass(frozen=True)
class Fit:
    """One polynomial: `curve` on [low, high]; `weight` turns its error into the one to minimize."""

    name: str
    meaning: str
    bits: int
    degree: int
    low: Real
    high: Real
    curve: Curve
    weight: Curve


def rounded(value: Real, bits: int) -> Real:
    """The nearest number of 32 or 64 bits."""
    if bits == 64:
        return mp.mpf(float(value))
    exponent = mp.floor(mp.log(abs(value), 2)) - 23
    return mp.nint(value / mp.mpf(2) ** exponent) * mp.mpf(2) ** exponent


def horner(coefficients: list[Real], x: Real) -> Real:
    total = mp.mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def remez(fit: Fit) -> list[Real]:
    """Coefficients that minimize the largest weighted error.

    The interval may contain a zero of the weight; no node falls on it.
    """
    count = fit.degree + 1
    middle, half = (fit.low + fit.high) / 2, (fit.high - fit.low) / 2
    nodes = [
        middle - half * mp.cos(mp.pi * (2 * i + 1.1) / (2 * count + 2)) for i in range(count + 1)
    ]
    found: list[Real] = []
    for _ in range(20):
        rows = [
            [*(x**k for k in range(count)), (-1) ** i / abs(fit.weight(x))]
            for i, x in enumerate(nodes)
        ]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([fit.curve(x) for x in nodes]))
        found = [solution[k] for k in range(count)]
        points = extrema(error_of(found, fit), fit)
        assert len(points) > count, f"{fit.name}: the error must change sign {count} times"
        if len(points) == count + 1 and spread(points) < 1.001:
            return found
        nodes = best_run(points, count + 1)
    return found


def error_of(coefficients: list[Real], fit: Fit) -> Curve:
    return lambda x: (horner(coefficients, x) - fit.curve(x)) * abs(fit.weight(x))


def spread(points: list[tuple[Real, Real]]) -> float:
    """Largest over smallest of some errors."""
    sizes = [abs(value) for _, value in points]
    return float(max(sizes) / min(sizes))


def extrema(error: Curve, fit: Fit) -> list[tuple[Real, Real]]:
    """The largest error between each two sign changes, on a grid dense at the ends."""
    size = 40 * (fit.degree + 2)
    middle, half = (fit.low + fit.high) / 2, (fit.high - fit.low) / 2
    grid = [middle - half * mp.cos(mp.pi * (i + 0.5) / size) for i in range(size)]
    found: list[tuple[Real, Real]] = []
    for x in [fit.low, *grid, fit.high]:
        value = error(x)
        if value == 0:
            continue
        if found and (found[-1][1] > 0) == (value > 0):
            if abs(value) > abs(found[-1][1]):
                found[-1] = (x, value)
        else:
            found.append((x, value))
    return found


def best_run(points: list[tuple[Real, Real]], count: int) -> list[Real]:
    """The `count` neighbouring extrema with the largest errors."""
    while len(points) > count:
        points = points[1:] if abs(points[0][1]) < abs(points[-1][1]) else points[:-1]
    return [x for x, _ in points]


def solve(fit: Fit) -> tuple[list[float], float]:
    """Coefficients in the target format, lowest first, and the largest weighted error."""
    found = [rounded(c, fit.bits) for c in remez(fit)]
    worst = max(abs(value) for _, value in extrema(error_of(found, fit), fit))
    return [float(c) for c in found], float(worst)


def series(function: Curve, order: int, terms: int) -> list[Real]:
    """Taylor coefficients order .. order + terms - 1 at 0, for where `function` cancels."""
    return mp.taylor(function, 0, order + terms - 1)[order:]


def divided(function: Curve, order: int, limit: float = 1e-3) -> Curve:
    """(function - its Taylor polynomial below `order`) / x^order, also near 0."""
    below = mp.taylor(function, 0, order - 1)
    near = series(function, order, 14)

    def quotient(x: Real) -> Real:
        if abs(x) < limit:
            return horner(near, x)
        return (function(x) - horner(below, x)) / x**order

    return quotient


def of_square(curve: Curve) -> Curve:
    """An even curve as a function of the square of its argument."""
    return lambda s: curve(mp.sqrt(s))


def exponential_fits() -> list[Fit]:
    half_ln2 = mp.log(2) / 2 * (1 + mp.mpf(2) ** -12)
    half = mp.mpf(1) / 2 * (1 + mp.mpf(2) ** -12)
    fits: list[Fit] = []
    for bits, degree in ((32, 4), (64, 9)):
        fits.append(
            Fit(f"EXP_{bits}", "(e^r - 1 - r) / r^2, |r| <= ln(2)/2", bits, degree,
                -half_ln2, half_ln2, divided(mp.exp, 2), lambda x: x * x / mp.exp(x))
        )  # fmt: skip
        fits.append(
            Fit(f"EXP2_{bits}", "(2^r - 1) / r, |r| <= 1/2", bits, degree + 1,
                -half, half, divided(lambda x: mp.mpf(2) ** x, 1), lambda x: x / mp.mpf(2) ** x)
        )  # fmt: skip
    for bits, degree in ((32, 4), (64, 10)):
        fits.append(
            Fit(f"TANH_{bits}", "(tanh(x) - x) / x^3 in x^2, |x| <= 0.625", bits, degree,
                mp.mpf(0), mp.mpf(25) / 64, of_square(divided(mp.tanh, 3)), lambda s: s)
        )  # fmt: skip
    return fits


def logarithm_fits() -> list[Fit]:
    low, high = mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(mp.mpf(2)) - 1

    def log1p(x: Real) -> Real:
        return mp.log1p(x)

    def log2(x: Real) -> Real:
        return mp.log1p(x) / mp.log(2)

    def log_of_s(s: Real) -> Real:
        return mp.log((1 + s) / (1 - s))

    largest = (high / (2 + high)) ** 2
    return [
        Fit("LOG_32", "(log(1 + f) - f) / f^2, sqrt(1/2) <= 1 + f <= sqrt(2)", 32, 7, low, high,
            divided(log1p, 2), lambda x: x * x / mp.log1p(x)),
        Fit("LOG2_32", "(log2(1 + f) - f / ln(2)) / f^2, sqrt(1/2) <= 1 + f <= sqrt(2)", 32, 7,
            low, high, divided(log2, 2), lambda x: x * x / mp.log1p(x)),
        Fit("ATANH_64", "(2 atanh(s) - 2 s) / s^3 in s^2, |s| <= sqrt(2) - 1 over sqrt(2) + 1", 64,
            7, mp.mpf(0), largest, of_square(divided(log_of_s, 3)), lambda t: t),
    ]  # fmt: skip


def trigonometric_fits() -> list[Fit]:
    top = (mp.pi / 4 * (1 + mp.mpf(2) ** -8)) ** 2
    fits: list[Fit] = []
    for bits, degree in ((32, 2), (64, 5)):
        fits.append(
            Fit(f"SIN_{bits}", "(sin(r) - r) / r^3 in r^2, |r| <= pi/4", bits, degree, mp.mpf(0),
                top, of_square(divided(mp.sin, 3)), lambda s: s)
        )  # fmt: skip
        fits.append(
            Fit(f"COS_{bits}", "(cos(r) - 1 + r^2/2) / r^4 in r^2, |r| <= pi/4", bits, degree,
                mp.mpf(0), top, of_square(divided(mp.cos, 4)), lambda s: s * s)
        )  # fmt: skip
    fits.append(
        Fit("TAN_32", "(tan(r) - r) / r^3 in r^2, |r| <= pi/4", 32, 5, mp.mpf(0), top,
            of_square(divided(mp.tan, 3)), lambda s: s)
    )  # fmt: skip
    return fits


def error_function_fits() -> list[Fit]:
    fits: list[Fit] = []
    for bits, small, large, end in ((32, 6, 8, 4.0), (64, 13, 22, 6.0)):
        fits.append(
            Fit(f"ERF_SMALL_{bits}", "erf(x)/x - 1 in x^2, |x| <= 1", bits, small,
                mp.mpf(0), mp.mpf(1), of_square(lambda x: divided(mp.erf, 1)(x) - 1),
                lambda s: mp.mpf(1))
        )  # fmt: skip
        fits.append(
            Fit(f"ERF_LARGE_{bits}", f"log(erfc(x)), 1 <= x <= {end:g}", bits, large,
                mp.mpf(1), mp.mpf(end), lambda x: mp.log(mp.erfc(x)),
                lambda x: mp.erfc(x) / mp.erf(x) + mp.mpf(10) ** -12)
        )  # fmt: skip
    return fits


@dataclass(frozen=True)
class Pieces:
    """A function by a polynomial for each piece of its arguments: curve(x) = a + u p(u), u = x - c.

    Rows of the table: c, a, then the coefficients of p, a number for each piece; in the first piece
    c is 0 and curve(x) = x + x p(x). c is the number near the middle where the rounding of a and
    p(0) loses least (S. Gal, "An accurate elementary mathematical library", 1991).
    """

    name: str
    meaning: str
    degree: int
    ends: list[tuple[Real, Real] | None]
    curve: Curve

    def fits(self) -> Iterator[tuple[Real, Real, Fit | None]]:
        """c and a of each piece, and its polynomial; none for those without arguments."""
        for ends in self.ends:
            if ends is None:
                yield mp.mpf(0), mp.mpf(0), None
                continue
            low, high = ends
            c, curve = self.center(low, high), self.curve

            def moved(u: Real, c: Real = c, curve: Curve = curve) -> Real:
                return curve(c + u)

            ratio = divided(moved, 1)

            def less_slope(u: Real, ratio: Curve = ratio) -> Real:
                return ratio(u) - 1

            def weight(u: Real, moved: Curve = moved) -> Real:
                value = moved(u)
                return u / value if value else mp.mpf(1)

            ends = low - c, high - c
            fit = Fit(
                self.name, self.meaning, 32, self.degree, *ends, ratio if c else less_slope, weight
            )
            yield c, rounded(curve(c), 32) if c else mp.mpf(0), fit

    def center(self, low: Real, high: Real) -> Real:
        if low == 0:
            return mp.mpf(0)
        middle, step = (low + high) / 2, (high - low) / 2**13
        candidates = [rounded(middle + k * step, 32) for k in range(-400, 401)]

        def lost(c: Real) -> Real:
            """By rounding the value and the slope."""
            value, slope = self.curve(c), mp.diff(self.curve, c)
            return abs(rounded(value, 32) - value) + (high - c) * abs(rounded(slope, 32) - slope)

        return min(candidates, key=lost)


def piecewise_fits() -> list[Pieces]:
    """The ends are where `error_function.py` and `exponential.py` choose another piece."""
    step, quarters = mp.mpf(8) / 31, range(-16, 16)
    erf_ends = [(max(mp.mpf(0), (i - mp.mpf(1) / 2) * step), (i + mp.mpf(1) / 2) * step)
                for i in range(16)]  # fmt: skip
    lows = [mp.mpf(2) ** (q // 4) * (1 + mp.mpf(q % 4) / 4) for q in (*quarters, 16)]
    found = [(low if i else mp.mpf(0), high) if low < 10 else None
             for i, (low, high) in enumerate(zip(lows, lows[1:], strict=False))]  # fmt: skip
    # by the bits from the lowest of an exponent's on, modulo 32: 1/16 is number 12
    tanh_ends = [*found[20:], *found[:20]]
    return [
        Pieces("ERF_PIECES", "erf, 0 <= x <= 4", 5, [*erf_ends], mp.erf),
        Pieces("TANH_PIECES", "tanh, 0 <= x <= 10", 4, tanh_ends, mp.tanh),
    ]


def table_of_pieces(pieces: Pieces) -> str:
    """The rows of all pieces, and the largest error of them."""
    columns: list[list[float]] = []
    worst = 0.0
    for c, a, fit in pieces.fits():
        if fit is None:
            columns.append([0.0] * (pieces.degree + 3))
            continue
        coefficients, error = solve(fit)
        exact = pieces.curve(c)
        worst = max(worst, error + (float(abs(a - exact) / exact) if c else 0.0))
        columns.append([float(c), float(a), *coefficients])
    print(f"{pieces.name:16} degree {pieces.degree:2} error 2^{mp.nstr(mp.log(worst, 2), 5)}")
    lines = [f"{pieces.name} = ("]
    for row in zip(*columns, strict=True):
        texts = [text(number, 32) for number in row]
        rows = [", ".join(texts[i : i + 6]) for i in range(0, len(texts), 6)]
        lines += ["    (", *(f"        {row}," for row in rows), "    ),"]
    lines += [")  # fmt: skip", f'"""{pieces.meaning}; error 2^{float(mp.log(worst, 2)):.1f}."""']
    return "\n".join(lines) + "\n"


HEAD = """\
\"\"\"Coefficients of the elementary functions, lowest power first.

Generated by scripts/fit_polynomials.py; do not edit. Below each stands what it fits, and
the largest error of the fit relative to the whole function's value.
\"\"\"
"""


def table(fit: Fit) -> str:
    """The coefficients of one polynomial, as the module states them."""
    coefficients, worst = solve(fit)
    print(f"{fit.name:16} degree {fit.degree:2} error 2^{mp.nstr(mp.log(worst, 2), 5)}")
    lines = [f"{fit.name} = ("]
    lines += [f"    {text(c, fit.bits)}," for c in coefficients]
    lines += [")", f'"""{fit.meaning}; error 2^{float(mp.log(worst, 2)):.1f}."""']
    return "\n".join(lines) + "\n"


def text(value: float, bits: int) -> str:
    """Shortest decimal that reads back as the same number."""
    if bits == 64:
        return repr(value)
    for digits in range(1, 18):
        short = f"{value:.{digits}g}"
        if struct.pack("<f", float(short)) == struct.pack("<f", value):
            return repr(float(short))
    raise AssertionError(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", nargs="*", metavar="NAME", help="compare only")
    names = cast("list[str] | None", parser.parse_args().check)
    fits = [
        *exponential_fits(), *logarithm_fits(), *trigonometric_fits(), *error_function_fits()
    ]  # fmt: skip
    pieces = piecewise_fits()
    if names:
        committed = TARGET.read_text()
        tables = [table(f) for f in fits if f.name in names]
        tables += [table_of_pieces(p) for p in pieces if p.name in names]
        return int(not all(t in committed for t in tables))
    module = "\n".join([HEAD, *map(table, fits), *map(table_of_pieces, pieces)])
    if names is not None:
        return int(TARGET.read_text() != module)
    TARGET.write_text(module)
    return 0


if __name__ == "__main__":
    sys.exit(main())
