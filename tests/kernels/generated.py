"""Random kernels as Python source: straight-line tile code, loops, branches and memory traffic.

Every operation is defined for all of its operands and rounds the same way everywhere, so that two
devices must agree bit by bit: no division by zero, no float out of the range of an integer, no
float sums whose order is free. Launch the kernels with `enable_fp_fusion=False`.

    kernel(a0, ..., out0, ..., n): tiles are (M, N), rows (N,), columns (M,); `n` is a small number

Inputs have SPARE elements behind their tile, outputs a tile for each program of a grid of PROGRAMS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = SIGNED + UNSIGNED
DTYPES = (*INTEGERS, *FLOATS, "int1")

SPARE = 64
PROGRAMS = 2

Draw = Callable[[st.SearchStrategy[int]], int]

HEADER = """\
import tilewright.language as tl
from tilewright import jit


@jit
def larger(a, b):
    return tl.maximum(a, b)


@jit
def kernel({parameters}, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    place = i[:, None] * N + j[None, :]
    turned = j[None, :] * M + i[:, None]
    pid = tl.program_id(0)
    mine = pid * M * N
"""

SPREAD = {"tile": "{}", "row": "{}[None, :]", "column": "{}[:, None]", "scalar": "{}"}
"""How a value of each shape broadcasts to a tile."""


@dataclass(frozen=True)
class Var:
    """A variable of the kernel: its name, dtype, and shape (a key of SPREAD)."""

    name: str
    dtype: str
    shape: str


@dataclass(repr=False)
class Source:
    """A kernel under construction."""

    draw: Draw
    inputs: list[str]
    m: int
    n: int
    lines: list[str] = field(default_factory=list[str])
    known: list[Var] = field(default_factory=list[Var])
    outputs: list[str] = field(default_factory=list[str])
    indent: str = "    "
    names: int = 0
    depth: int = 0

    def __repr__(self) -> str:
        return f"<kernel over {', '.join(self.inputs)}, M = {self.m}, N = {self.n}>"

    def pick(self, choices: Sequence[str]) -> str:
        return choices[self.draw(st.integers(0, len(choices) - 1))]

    def var(self, *shapes: str) -> Var:
        found = [v for v in self.known if v.shape in shapes] if shapes else self.known
        return found[-1 - self.draw(st.integers(0, len(found) - 1))]

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def let(self, text: str, dtype: str, shape: str) -> Var:
        var = Var(f"v{self.names}", dtype, shape)
        self.names += 1
        self.line(f"{var.name} = {text}")
        self.known.append(var)
        return var

    def text(self) -> str:
        arrays = [f"a{k}" for k in range(len(self.inputs))]
        arrays += [f"out{k}" for k in range(len(self.outputs))]
        return HEADER.format(parameters=", ".join(arrays)) + "\n".join(self.lines) + "\n"


def converted(text: str, source: str, target: str) -> str:
    """A cast that is defined for every value."""
    if source == target:
        return text
    if source in FLOATS and target in INTEGERS:
        low, high = ("0.0", "100.0") if target in UNSIGNED else ("-100.0", "100.0")
        text = f"tl.minimum(tl.maximum({text}.to(tl.float32), {low}), {high})"
    return f"{text}.to(tl.{target})"


def spread(var: Var, dtype: str) -> str:
    """A variable as a tile or scalar of a dtype."""
    return converted(SPREAD[var.shape].format(var.name), var.dtype, dtype)


def widened(dtype: str, function: str = "max") -> str:
    """The dtype of a sum or an extremum; only sums keep narrow integers unsigned."""
    if dtype == "int1" or (dtype in INTEGERS and dtype[-2:] not in ("32", "64")):
        return "uint32" if dtype in UNSIGNED and function == "sum" else "int32"
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def load(s: Source) -> None:
    k = s.draw(st.integers(0, len(s.inputs) - 1))
    place = s.pick(("place", "turned", f"{s.m * s.n - 1} - place"))
    mask = s.pick(("", ", mask=place % 3 != 0, other=1", ", mask=i[:, None] < n, other=0"))
    s.let(f"tl.load(a{k} + pid + {place}{mask})", s.inputs[k], "tile")


def load_line(s: Source) -> None:
    k = s.draw(st.integers(0, len(s.inputs) - 1))
    shape = s.pick(("row", "column", "scalar"))
    place = {"row": "j", "column": "i * N", "scalar": "n"}[shape]
    s.let(f"tl.load(a{k} + {place})", s.inputs[k], shape)


ARITHMETIC = ("{x} + {y}", "{x} - {y}", "{x} * {y}", "tl.maximum({x}, {y})", "tl.minimum({x}, {y})")
INTEGER_ONLY = (
    "{x} & {y}", "{x} | {y}", "{x} ^ {y}", "{x} // (({y} & 7) + 1)", "{x} % (({y} & 7) + 1)",
    "{x} << ({y} & 7)", "{x} >> ({y} & 7)",
)  # fmt: skip
COMPARISONS = ("{x} < {y}", "{x} >= {y}", "{x} == {y}", "{x} != {y}")


def binary(s: Source) -> None:
    dtype = s.pick((*INTEGERS, *FLOATS))
    forms = ARITHMETIC if dtype in FLOATS else ARITHMETIC + INTEGER_ONLY
    x, y = s.var("tile"), s.var()
    s.let(s.pick(forms).format(x=spread(x, dtype), y=spread(y, dtype)), dtype, "tile")


def compare(s: Source) -> None:
    dtype = s.pick((*INTEGERS, *FLOATS))
    text = s.pick(COMPARISONS).format(x=spread(s.var("tile"), dtype), y=spread(s.var(), dtype))
    s.let(text, "int1", "tile")


def unary(s: Source) -> None:
    x = s.var()
    if x.dtype in FLOATS:
        form = s.pick(("-{}", "tl.abs({})", "{} * 2", "{} + 1"))
    elif x.dtype in INTEGERS:
        form = s.pick(("~{}", "{} * 3", "{} + 1", "tl.abs({})"))
    else:
        form = "{} == 0"
    s.let(form.format(x.name), x.dtype, x.shape)


def select(s: Source) -> None:
    dtype = s.pick((*INTEGERS, *FLOATS))
    condition, x, y = s.var("tile"), s.var(), s.var()
    test = SPREAD[condition.shape].format(condition.name)
    s.let(f"tl.where({test} != 0, {spread(x, dtype)}, {spread(y, dtype)})", dtype, "tile")


def reduce(s: Source) -> None:
    x, axis = s.var("tile"), s.draw(st.integers(0, 1))
    shape = ("row", "column")[axis]
    kinds = ["max", "min", "argmax", "reduce"]
    if x.dtype not in FLOATS:
        kinds += ["sum", "sum"]
    kind = s.pick(kinds)
    if kind == "argmax":
        s.let(f"tl.argmax({x.name}, {axis})", "int32", shape)
    elif kind == "reduce":
        name = x.name if x.dtype != "int1" else f"{x.name}.to(tl.int8)"
        s.let(f"tl.reduce({name}, {axis}, larger)", "int8" if x.dtype == "int1" else x.dtype, shape)
    else:
        s.let(f"tl.{kind}({x.name}, {axis})", widened(x.dtype, kind), shape)


def reduce_line(s: Source) -> None:
    if not any(v.shape in ("row", "column") for v in s.known):
        return reduce(s)
    x = s.var("row", "column")
    kind = s.pick(("max", "min") if x.dtype in FLOATS else ("sum", "max", "xor_sum"))
    dtype = x.dtype if kind == "xor_sum" else widened(x.dtype, kind)
    s.let(f"tl.{kind}({x.name}, 0)", dtype, "scalar")


def move(s: Source) -> None:
    x = s.var("tile")
    form = s.pick((
        "tl.flip({x}, 0)", "tl.flip({x})", "tl.reshape(tl.trans({x}), (M, N))",
        "tl.trans(tl.reshape({x}, (N, M)))", "tl.reshape(tl.ravel({x}), (M, N))",
        "tl.gather({x}, (place * 5 + n) % M, 0)",
        "tl.reshape(tl.interleave(tl.sum(tl.reshape({x}, (M, N // 2, 2)).to(tl.int32), 2),"
        " tl.max(tl.reshape({x}, (M, N // 2, 2)).to(tl.int32), 2)), (M, N))",
    ))  # fmt: skip
    if "to(tl.int32)" in form and x.dtype in FLOATS:
        form = "tl.flip({x})"
    dtype = "int32" if "to(tl.int32)" in form else x.dtype
    s.let(form.format(x=x.name), dtype, "tile")


def scan(s: Source) -> None:
    x, axis = s.var("tile"), s.draw(st.integers(0, 1))
    reverse = s.pick(("False", "True"))
    dtype = s.pick(("int32", "uint16", "int64"))
    text = f"tl.cumsum({spread(x, dtype)}, {axis}, reverse={reverse})"
    s.let(text, widened(dtype, "sum"), "tile")


def through_memory(s: Source) -> None:
    """Store a tile, then read it back in another order."""
    x, k = s.var("tile"), len(s.outputs)
    s.outputs.append("bool" if x.dtype == "int1" else x.dtype)
    s.line(f"tl.store(out{k} + mine + turned, {x.name})")
    if s.draw(st.integers(0, 1)):
        s.line(f"tl.store(out{k} + mine + place, {x.name}, mask=place % 4 == n)")
    s.let(f"tl.load(out{k} + mine + place)", x.dtype, "tile")


def dot(s: Source) -> None:
    """Products of int8, whose sums are exact: (M, N) x (N, M) x (M, N)."""
    x, y = (spread(s.var("tile"), "int8") for _ in range(2))
    square = s.let(f"tl.dot({x}, tl.trans({y}))", "int32", "square")
    s.known.pop()
    s.let(f"tl.dot({square.name}.to(tl.int8), {x})", "int32", "tile")


def inner(s: Source) -> None:
    """Some statements inside a loop or a branch."""
    s.depth += 1
    choices = STATEMENTS if s.depth < 3 else STATEMENTS[:-2]
    for _ in range(s.draw(st.integers(0, 3))):
        choices[s.draw(st.integers(0, len(choices) - 1))](s)
    s.depth -= 1


def loop(s: Source) -> None:
    """Tiles that trade values, a row, a scalar and a pointer, for up to six iterations."""
    x, y, array = s.var("tile"), s.var(), s.draw(st.integers(0, len(s.inputs) - 1))
    dtype = s.pick((*INTEGERS, *FLOATS))
    a = s.let(f"{spread(x, dtype)} + {spread(x, dtype)} * 0", dtype, "tile")
    b = s.let(f"tl.broadcast_to({spread(y, dtype)}, (M, N))", dtype, "tile")
    row = s.let("j * n", "int32", "row")
    p, k, end = f"p{s.names}", f"k{s.names}", s.pick(("n", "2", "n - 3", "0"))
    start = s.pick(("place", "turned", "tl.argmax(place % 7, 0)[None, :] + place"))
    s.line(f"{p} = a{array} + {start}")
    if s.draw(st.integers(0, 1)):
        s.line(f"for {k} in range({end}):")
        step = f"{row.name} += {k}"
    else:
        s.line(f"{k} = 0 * n")
        s.line(f"while {k} < {end}:")
        step = f"{k} += 1"
    outer, s.indent, before = s.indent, s.indent + "    ", len(s.known)
    s.known.append(Var(k, "int32", "scalar"))
    s.let(f"tl.load({p})", s.inputs[array], "tile")
    inner(s)
    new = s.known[-1]
    forms = [
        f"{b.name}, {a.name}",
        f"{b.name}, {a.name} + {b.name}",
        f"{a.name} - {b.name}, {a.name}",
    ]
    if new.shape == "tile":
        forms.append(f"{spread(new, dtype)}, {a.name}")
        s.line(f"{row.name} = tl.maximum({row.name}, tl.max({spread(new, 'int32')}, 0))")
    s.line(f"{a.name}, {b.name} = {s.pick(forms)}")
    s.line(f"{p} += 2")
    s.line(step)
    del s.known[before:]
    s.indent = outer


def branch(s: Source) -> None:
    x = s.var("tile")
    dtype = s.pick((*INTEGERS, *FLOATS))
    a = s.let(f"{spread(x, dtype)} + 0", dtype, "tile")
    s.line(f"if n > {s.draw(st.integers(0, 6))}:")
    outer, s.indent, before = s.indent, s.indent + "    ", len(s.known)
    for keep in ("tile", "else"):
        inner(s)
        s.line(f"{a.name} = {spread(s.var('tile'), dtype)}")
        del s.known[before:]
        if keep == "tile":
            s.lines.append(f"{outer}else:")
    s.indent = outer


STATEMENTS = (
    binary, binary, binary, compare, unary, select, load, load_line, reduce, reduce_line, move,
    scan, through_memory, dot, loop, branch,
)  # fmt: skip


@st.composite
def sources(draw: Draw) -> Source:
    """Kernels of up to ten statements whose last values are stored."""
    inputs = [DTYPES[draw(st.integers(0, len(DTYPES) - 1))] for _ in range(2)]
    m, n = 1 << draw(st.integers(0, 4)), 1 << draw(st.integers(1, 6))
    s = Source(draw, inputs, m, n)
    s.known.append(Var("pid", "int32", "scalar"))
    load(s)
    for _ in range(draw(st.integers(2, 10))):
        STATEMENTS[draw(st.integers(0, len(STATEMENTS) - 1))](s)
    for var in s.known[-3:]:
        k = len(s.outputs)
        s.outputs.append("bool" if var.dtype == "int1" else var.dtype)
        place = {"tile": "place", "row": "j", "column": "i", "scalar": "0"}[var.shape]
        s.line(f"tl.store(out{k} + mine + {place}, {var.name})")
    return s
