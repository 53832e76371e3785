"""What is said of addresses in loops holds of every address that they count through.

Random loops write windows of one or two dims, moved by the loop, by a loop in it, by numbers of the
launch, and cut by masks. Whatever is proven, for all launches or under a condition, is checked by
writing out the addresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from random import Random

import pytest

from tilewright.analysis import (
    Advance,
    Form,
    MemoryForms,
    Relation,
    apart,
    is_injective,
)
from tilewright.ir import parse_function
from tilewright.ops import ForOp, StoreOp

Launch = dict[str, int]


@dataclass
class Loop:
    """store x[rows i, columns j] at sums of coefficients; by_s: of multiples of an argument.

    Names of coefficients: i, j, k (the loop's index), l (that of the loop in it).
    """

    shape: tuple[int, int]
    factors: dict[str, int]
    by_s: dict[str, int]
    start: int
    stop: int | None
    step: int
    inner: int
    masked: dict[str, int]

    def text(self) -> str:
        rows, columns = self.shape
        lines = [
            f"%r = tile.range {{start = 0, end = {rows}}} : tile<{rows}xi32>",
            f"%re = tile.expand_dims %r {{axis = 1}} : tile<{rows}x1xi32>",
            f"%i = tile.broadcast %re {{shape = [{rows}, {columns}]}} : tile<{rows}x{columns}xi32>",
            f"%c = tile.range {{start = 0, end = {columns}}} : tile<{columns}xi32>",
            f"%ce = tile.expand_dims %c {{axis = 0}} : tile<1x{columns}xi32>",
            f"%j = tile.broadcast %ce {{shape = [{rows}, {columns}]}} : tile<{rows}x{columns}xi32>",
            f"%start = arith.constant {{value = {self.start}}} : i32",
            f"%step = arith.constant {{value = {self.step}}} : i32",
            "%zero = arith.constant {value = 0} : i32",
            "%one = arith.constant {value = 1} : i32",
            f"%inner = arith.constant {{value = {self.inner}}} : i32",
            f"%known = arith.constant {{value = {self.stop or 0}}} : i32",
            f"%v = arith.constant {{value = 7}} : tile<{rows}x{columns}xi32>",
            f"cf.for %start, {'%n' if self.stop is None else '%known'}, %step (%ks: i32) {{",
            "cf.for %zero, %inner, %one (%ls: i32) {",
            *self._splat("k", "%ks"),
            *self._splat("l", "%ls"),
            *self._splat("s", "%s"),
            *self._sum("f", self.factors),
            *self._sum("g", self.by_s),
            f"%gs = arith.mul %g, %s_t : {self._tile}",
            f"%o = arith.add %f, %gs : {self._tile}",
            f"%xs = tile.splat %x {{shape = [{rows}, {columns}]}} : "
            f"tile<{rows}x{columns}xptr<i32>>",
            f"%p = mem.offset %xs, %o : tile<{rows}x{columns}xptr<i32>>",
            *self._splat("m", "%m"),
            *self._sum("h", self.masked),
            f'%in = arith.compare %h, %m_t {{predicate = "lt"}} : tile<{rows}x{columns}xi1>',
            "mem.store %p, %v, %in" if self.masked else "mem.store %p, %v",
            "cf.yield\n}\ncf.yield\n}\ncf.return",
        ]
        body = "\n".join(lines)
        return f"func @f(%x: ptr<i32>, %n: i32, %s: i32, %m: i32) {{\n{body}\n}}\n"

    @property
    def _tile(self) -> str:
        return f"tile<{self.shape[0]}x{self.shape[1]}xi32>"

    def _splat(self, name: str, value: str) -> list[str]:
        shape = list(self.shape)
        return [f"%{name}_t = tile.splat {value} {{shape = {shape}}} : {self._tile}"]

    def _sum(self, name: str, factors: dict[str, int]) -> list[str]:
        """Lines that compute the sum of the multiples as %name."""
        lines = [f"%{name}0 = arith.constant {{value = 0}} : {self._tile}"]
        for number, (variable, factor) in enumerate(factors.items()):
            of = {"i": "%i", "j": "%j", "k": "%k_t", "l": "%l_t"}[variable]
            lines += [
                f"%{name}c{number} = arith.constant {{value = {factor}}} : {self._tile}",
                f"%{name}m{number} = arith.mul {of}, %{name}c{number} : {self._tile}",
                f"%{name}{number + 1} = arith.add %{name}{number}, %{name}m{number} : {self._tile}",
            ]
        lines[-1] = lines[-1].replace(f"%{name}{len(factors)} =", f"%{name} =", 1)
        return lines

    def windows(self, launch: Launch) -> Iterator[set[int]]:
        """The elements that each iteration of the outer loop writes."""
        stop = launch["n"] if self.stop is None else self.stop
        rows, columns = self.shape
        for k in range(self.start, stop, self.step):
            at = [
                {"i": i, "j": j, "k": k, "l": inner}
                for inner in range(self.inner)
                for i in range(rows)
                for j in range(columns)
            ]
            yield {
                _value(self.factors, v) + launch["s"] * _value(self.by_s, v)
                for v in at
                if not self.masked or _value(self.masked, v) < launch["m"]
            }


def _value(factors: dict[str, int], at: dict[str, int]) -> int:
    return sum(factor * at[variable] for variable, factor in factors.items())


def random_loop(random: Random) -> Loop:
    sizes = [0, 1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, -1, -4]
    rows, columns = random.choice([1, 2, 4]), random.choice([1, 2, 4, 8])

    def some(names: str) -> dict[str, int]:
        return {name: random.choice(sizes) for name in names}

    by_s = random.choice([{"i": 0}, {"i": 0}, {"i": 1}, {"k": 1}, {"k": 2}, {"i": 1, "k": rows}])
    masked = random.choice([{}, {}, {"j": 1}, {"j": 1, "k": 1}, {"k": 1}])
    factors = some("ijkl")
    if by_s.get("i"):
        factors["i"] = 0
    if by_s.get("k"):
        factors["k"] = 0
    stop = random.choice([None, None, random.randrange(12)])
    inner = random.choice([1, 1, 2, 3])
    return Loop((rows, columns), factors, by_s, random.randrange(3), stop, random.choice([1, 2, 4]),
                inner, masked)  # fmt: skip


def holds(form: Form, launch: Launch) -> bool:
    """Whether a form is not negative at a launch."""
    total = 0
    for monomial, factor in form:
        for symbol in monomial:
            factor *= launch[symbol.values[0].name or ""]
        total += factor
    return total >= 0


def launches(random: Random) -> Iterator[Launch]:
    for _ in range(6):
        yield {
            "n": random.randrange(10),
            "s": random.choice([1, 2, 3, 4, 8, 16, 31, 64, 100]),
            "m": random.randrange(12),
        }


def check(random: Random) -> str:
    """Check one loop; how it was found to be."""
    case = random_loop(random)
    function = parse_function(case.text())
    forms = MemoryForms(function)
    (store,) = [op for op in function.walk() if isinstance(op, StoreOp)]
    loop = next(op for op in function.walk() if isinstance(op, ForOp))
    access = forms.access(store)
    always = apart(access, access, Relation.of(access, access, loop))
    ways = Advance(access, loop, forms.limits(store), forms.bounds).ways()
    sometimes = False
    for launch in launches(random):
        windows = list(case.windows(launch))
        way = any(all(holds(form, launch) for form in way) for way in ways)
        sometimes |= way
        if always or way:
            shared = [(a, b) for a, b in combinations(windows, 2) if a & b]
            assert not shared, (case, launch, always, ways)
    return "always" if always else "at a launch" if sometimes else "never"


@pytest.mark.parametrize("seed", range(4))
def test_windows_that_are_found_apart_are_apart(seed: int):
    random = Random(seed)
    results = [check(random) for _ in range(150)]
    assert results.count("always") > 5
    assert results.count("at a launch") > 5


def test_tiles_whose_elements_are_found_distinct_are_so():
    random, distinct = Random(7), 0
    for _ in range(300):
        case = random_loop(random)
        case.by_s = {"k": 1}
        forms = MemoryForms(function := parse_function(case.text()))
        (store,) = [op for op in function.walk() if isinstance(op, StoreOp)]
        if is_injective(forms.access(store)):
            distinct += 1
            rows, columns = case.shape
            places = {case.factors["i"] * i + case.factors["j"] * j
                      for i in range(rows) for j in range(columns)}  # fmt: skip
            assert len(places) == rows * columns, case
    assert distinct > 50
