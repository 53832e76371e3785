"""Chebyshev coefficients of the special functions of libdevice.

    python scripts/fit_special_functions.py [--check]

writes src/tilewright/language/extra/libdevice/chebyshev_coefficients.py; `--check` reports whether
it is current. Needs mpmath. Method: interpolation at Chebyshev nodes with 40 digits, cut where
terms are below 2^-58 of the largest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import mpmath  # pyright: ignore[reportMissingTypeStubs]

mp: Any = cast("Any", mpmath)
mp.mp.dps = 40
Real = Any

TARGET = (
    Path(__file__).parents[1] / "src/tilewright/language/extra/libdevice/chebyshev_coefficients.py"
)
NODES = 64
HEAD = '''"""Chebyshev coefficients of special functions, made by scripts/fit_special_functions.py.

Each table is of a function of t in [-1, 1]: c[0] + c[1] T1(t) + c[2] T2(t) + ...
"""
'''


class Table(NamedTuple):
    name: str
    meaning: str
    of_t: Callable[[Real], Real]


def erfcx(t: Real) -> Real:
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def lgamma(t: Real) -> Real:
    x = t + 2
    if abs(t) < mp.mpf(10) ** -15:
        return mp.psi(0, 2)
    if abs(t + 1) < mp.mpf(10) ** -15:
        return mp.euler
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def near(function: Callable[[Real], Real]) -> Callable[[Real], Real]:
    """Of x in [0, 8] with t = x^2 / 32 - 1."""
    return lambda t: function(mp.sqrt(32 * (t + 1)) or mp.mpf(10) ** -12)


def far(function: Callable[[Real], Real]) -> Callable[[Real], Real]:
    """Of x from 8 on with t = 128 / x^2 - 1."""
    return lambda t: function(
        8 * mp.sqrt(2 / (t + 1)) if t > -1 + mp.mpf(10) ** -12 else mp.mpf(10) ** 6
    )


def modulus(order: int, part: int) -> Callable[[Real], Real]:
    """P (part 0) or x Q (part 1) of J = sqrt(2 / (pi x)) (P cos a - Q sin a), a = x - phase."""

    def of_x(x: Real) -> Real:
        angle = x - (2 * order + 1) * mp.pi / 4
        size = mp.sqrt(mp.pi * x / 2)
        j, y = size * mp.besselj(order, x), size * mp.bessely(order, x)
        c, s = mp.cos(angle), mp.sin(angle)
        return j * c + y * s if part == 0 else x * (y * c - j * s)

    return far(of_x)


def smooth_y(order: int) -> Callable[[Real], Real]:
    """What is left of Y without its logarithm, over x for order 1."""

    def of_x(x: Real) -> Real:
        rest = mp.bessely(order, x) - 2 / mp.pi * mp.log(x) * mp.besselj(order, x)
        return rest if order == 0 else (rest + 2 / (mp.pi * x)) / x

    return near(of_x)


def bessel_i(order: int, is_near: bool) -> Callable[[Real], Real]:
    """exp(-x) i(x), over x for order 1 on [0, 8]; times sqrt(x) beyond, with t = 16 / x - 1."""

    def of_t(t: Real) -> Real:
        x = 4 * (t + 1) if is_near else 16 / (t + 1)
        scaled = mp.exp(-x) * mp.besseli(order, x)
        return scaled / x**order if is_near else scaled * mp.sqrt(x)

    return of_t


def gamma(t: Real) -> Real:
    return mp.gamma((t + 5) / 2)


def bessel_j(order: int) -> Callable[[Real], Real]:
    def of_x(x: Real) -> Real:
        return mp.besselj(order, x) / x**order

    return near(of_x)


TABLES = [
    Table("ERFCX", "(1 + 2 x) erfcx(x), t = (x - 4) / (x + 4)", erfcx),
    Table("LGAMMA", "lgamma(x) / ((x - 1) (x - 2)), t = x - 2", lgamma),
    Table("GAMMA", "gamma(x) on [2, 3], t = 2 x - 5", gamma),
    Table("J0", "j0(x) on [0, 8], t = x^2 / 32 - 1", bessel_j(0)),
    Table("J1", "j1(x) / x, same t", bessel_j(1)),
    Table("Y0", "y0(x) - 2 / pi log(x) j0(x), same t", smooth_y(0)),
    Table("Y1", "(y1(x) - 2 / pi (log(x) j1(x) - 1 / x)) / x, same t", smooth_y(1)),
    Table("P0", "modulus of order 0 from 8 on, t = 128 / x^2 - 1", modulus(0, 0)),
    Table("Q0", "x times the other part, same t", modulus(0, 1)),
    Table("P1", "modulus of order 1, same t", modulus(1, 0)),
    Table("Q1", "x times the other part, same t", modulus(1, 1)),
    Table("I0_NEAR", "exp(-x) i0(x) on [0, 8], t = x / 4 - 1", bessel_i(0, True)),
    Table("I1_NEAR", "exp(-x) i1(x) / x, same t", bessel_i(1, True)),
    Table("I0_FAR", "sqrt(x) exp(-x) i0(x) from 8 on, t = 16 / x - 1", bessel_i(0, False)),
    Table("I1_FAR", "sqrt(x) exp(-x) i1(x), same t", bessel_i(1, False)),
]


def coefficients(of_t: Callable[[Real], Real]) -> list[float]:
    angles = [mp.pi * (2 * k + 1) / (2 * NODES) for k in range(NODES)]
    values = [of_t(mp.cos(angle)) for angle in angles]
    found = [
        2 * sum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=True)) / NODES
        for j in range(NODES)
    ]
    found[0] /= 2
    least = max(abs(c) for c in found) * mp.mpf(2) ** -58
    while abs(found[-1]) < least:
        found.pop()
    return [float(c) for c in found]


def text() -> str:
    parts = [HEAD]
    for table in TABLES:
        numbers = [repr(c) for c in coefficients(table.of_t)]
        lines: list[str] = []
        line = "   "
        for number in numbers:
            if len(line) + len(number) + 2 > 99:
                lines.append(line)
                line = "   "
            line += f" {number},"
        body = "\n".join([*lines, line])
        parts.append(f'{table.name} = (\n{body}\n)  # fmt: skip\n"""{table.meaning}"""\n')
    return "\n".join(parts)


def main() -> int:
    new = text()
    if "--check" in sys.argv:
        return int(TARGET.read_text("utf-8") != new)
    TARGET.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
