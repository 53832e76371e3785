"""Whole programs: `program(seed)` is the same on every machine and version of Python."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from random import Random

from tests.fuzz.make_control import branch, call, loop, ternary, while_loop
from tests.fuzz.make_expressions import expression, scalar
from tests.fuzz.make_memory import atomic, load, store, store_whole, two_names
from tests.fuzz.make_products import product_loops
from tests.fuzz.make_shapes import mapped, move, product, reduce, scan
from tests.fuzz.make_views import view
from tests.fuzz.program_dtypes import Type, is_pointer
from tests.fuzz.program_maker import Maker
from tests.fuzz.program_tree import Expr, Program
from tilewright.support.data_class import dataclass

Statement = Callable[[Maker], None]


def compute(m: Maker) -> None:
    m.let(expression(m))


def scalar_work(m: Maker) -> None:
    """Arithmetic of scalars."""
    x, y = scalar(m), scalar(m)
    names = ("add", "sub", "mul", "xor", "and")
    dtype = "int64" if "int64" in (x.dtype, y.dtype) else "int32"
    if x.dtype in ("int32", "int64") and y.dtype in ("int32", "int64"):
        m.let(Expr(m.pick(names), (x, y), Type(dtype)))


def text(m: Maker) -> None:
    """The length of a number's text, which is known at compile time."""
    m.program.features.add("text")
    number = m.pick((0, 7, -12, 100, 0.5, True, -1.5))
    known = m.constant(number) if m.chance(0.6) else m.literal(number)
    length = Expr("text length", (known,), Type("int"), (), (1, 8))
    m.let(Expr("full", (length,), Type("int32"), ("int32",), (1, 8)))


@dataclass(frozen=True)
class Profile:
    """A kind of programs: how often each statement is made, how many, and on which extents."""

    name: str
    weights: dict[Statement, int]
    count: tuple[int, int]
    rows: tuple[int, ...] = (1, 2, 4, 8, 16)
    columns: tuple[int, ...] = (2, 4, 8, 16, 32)


PROFILES: tuple[tuple[int, Profile], ...] = (
    (4, Profile("elements", {compute: 14, load: 3, scalar_work: 2, ternary: 2, reduce: 1, move: 1,
                             text: 1, call: 2, branch: 2, loop: 1, store: 1}, (2, 4))),
    (3, Profile("shapes", {move: 12, reduce: 6, scan: 3, load: 3, compute: 4, product: 2, loop: 1,
                           branch: 1, mapped: 1}, (2, 4))),
    (1, Profile("views", {view: 6, loop: 1, branch: 1}, (1, 3))),
    (4, Profile("control", {loop: 6, while_loop: 3, branch: 5, call: 3, ternary: 2, scalar_work: 3,
                            compute: 6, load: 2, store: 2, reduce: 2, mapped: 2}, (1, 3))),
    (4, Profile("memory", {store: 9, load: 6, loop: 5, atomic: 3, two_names: 1, compute: 3,
                           branch: 2, move: 1, while_loop: 1}, (2, 4))),
    (3, Profile("products", {product_loops: 1}, (1, 1), (16,), (16,))),
)  # fmt: skip
_BLOCKS = (loop, while_loop, branch, call)
"""Statements with statements inside."""
_MEMORY = (load, store, atomic, two_names, view)
"""Statements that functions lack: they have no arrays."""
DEEPEST = 3


def program(seed: int) -> Program:
    """The program of a number."""
    random = Random(seed)
    made = Program(seed, grid=random.choice((1, 1, 2, 3)))
    profile = _weighted(random)
    rows, columns = random.choice(profile.rows), random.choice(profile.columns)

    def fill(m: Maker, count: int) -> None:
        choices = [(w, s) for s, w in profile.weights.items()
                   if not (m.depth >= DEEPEST and s in _BLOCKS)
                   and not (m.in_function and s in _MEMORY)]  # fmt: skip
        for _ in range(count):
            m.weighted(choices)(m)

    m = Maker(made, random, rows, columns, fill)
    made.features.add(profile.name)
    made.words = {"num_warps": m.pick((1, 2, 4)), "num_stages": m.random.randrange(1, 6),
                  "enable_fp_fusion": False}  # fmt: skip
    if made.grid > 1 or m.chance(0.2):
        m.let(Expr("program_id", (), Type("int32"), (), (0, made.grid - 1)), "pid")
        rename(m, "pid")
    _indices(m)
    if profile.name != "products":
        load(m)
    fill(m, m.random.randrange(profile.count[0], profile.count[1] + 1))
    _finish(m)
    return made


def _weighted(random: Random) -> Profile:
    place = random.randrange(sum(weight for weight, _ in PROFILES))
    for weight, profile in PROFILES:
        place -= weight
        if place < 0:
            return profile
    raise AssertionError


def rename(m: Maker, name: str) -> None:
    """Call the newest variable by a name of its own."""
    last = m.known[-1]
    m.known[-1] = Expr("var", (), last.type, (name,), last.bounds)
    m.block[-1].names = (name,)  # type: ignore[union-attr]


def _indices(m: Maker) -> None:
    for name, extent in (("i", m.rows), ("j", m.columns)):
        m.let(Expr("arange", (), Type("int32", (extent,)), (0, extent), (0, extent - 1)))
        rename(m, name)


def _finish(m: Maker) -> None:
    """Store the newest variables, and some older ones."""
    there = [v for v in m.known if not is_pointer(v.dtype) and v.data[0] not in ("i", "j", "pid")]
    chosen = there[-2:] + [v for v in there[:-2] if m.chance(0.15)]
    for v in chosen:
        if prod(v.shape) <= 2048:
            store_whole(m, v)
