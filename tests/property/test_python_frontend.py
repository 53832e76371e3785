"""Random programs of branches, loops and returns: the IR computes what Python computes, and so does
the interpreter, which runs them with the constructs of Python replaced."""

# pyright: reportArgumentType=false, reportCallIssue=false

import linecache
from itertools import count

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright.language as tl
from tests.unit.frontend.python.harness import RunTime, lower
from tilewright.eager import run_kernel
from tilewright.interp import run_function
from tilewright.language import device_function

NAMES = ("a", "b", "c", "d")
names = st.sampled_from(NAMES)
numbers = st.integers(0, 9).map(str)
atoms = names | numbers
values = st.one_of(
    atoms,
    st.builds("({} {} {}) & 255".format, atoms, st.sampled_from("+*"), atoms),
    st.builds("{} if {} < {} else {}".format, atoms, names, atoms, atoms),
    st.builds("mix({}, {})".format, atoms, atoms),
)
conditions = st.one_of(
    st.builds("{} {} {}".format, names, st.sampled_from(["<", "==", ">="]), atoms),
    st.builds("{} < {} <= {}".format, numbers, names, atoms),
    st.builds("{} > {} and not {} == {}".format, names, numbers, names, atoms),
    st.sampled_from(["FLAG", "not FLAG", "FLAG or a < 3"]),
)
bounds = st.sampled_from(
    ["a & 3", "3", "b & 7, 0, -2", "1, c & 7, 2", "5, 1, -3", "a & 15, b & 15, (c - 9) | 1"]
)
static_bounds = st.sampled_from(["tl.static_range(3)", "(1, 4)", "tl.static_range(4, 0, -2)"])


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def block(inner):
    return st.lists(inner, min_size=1, max_size=3).map(lambda parts: sum(parts, []))


# Not to one name twice: CPython 3.11 before 3.11.4 swaps such stores (its issue 104615).
pairs_of_names = st.permutations(NAMES)
assignments = st.one_of(
    st.builds(lambda n, v: [f"{n} = {v}"], names, values),
    st.builds(lambda n, v: [f"{n[0]}, {n[1]} = {v}, {n[0]}"], pairs_of_names, values),
    st.builds(lambda n, v: [f"{n} += {v}", f"{n} &= 255"], names, atoms),
)


def statements(depth: int, may_return: bool):
    simple = assignments
    if may_return:
        simple = st.one_of(assignments, assignments, st.just(["return a, b, c, d"]))
    if depth == 0:
        return simple
    inner = block(statements(depth - 1, may_return))
    in_loop = block(statements(depth - 1, False))
    return st.one_of(
        simple,
        st.builds(lambda c, t: [f"if {c}:", *indented(t)], conditions, inner),
        st.builds(
            lambda c, t, e: [f"if {c}:", *indented(t), "else:", *indented(e)],
            conditions, inner, inner,
        ),
        st.builds(
            lambda b, t, n: [
                "i = 7", f"for i in range({b}):", *indented(t), f"{n} = {n} + i & 255"
            ],
            bounds, in_loop, names,
        ),
        st.builds(
            lambda b, n, t: [f"for j in {b}:", f"    {n} = {n} + j & 255", *indented(t)],
            static_bounds, names, in_loop,
        ),
        st.builds(
            lambda n, t: [f"w = {n} & 3", "while w > 0:", *indented(t), "    w = w - 1"],
            names, in_loop,
        ),
    )  # fmt: skip


programs = block(statements(3, True))
_numbers = count()


class PythonRange:
    """What `tl` is while the program runs in plain Python."""

    static_range = range


def mix(x, y):
    if x < y:
        return x + 1
    return y


MIX = "def mix(x, y):\n    if x < y:\n        return x + 1\n    return y\n"


def functions(body: list[str], flag: bool):
    """The program as a Python function and as a kernel that stores its results."""
    text = "\n".join(
        [
            "def program(a, b, c, d):",
            *indented(body),
            "    return a, b, c, d",
            "",
            "def kernel(out, a, b, c, d):",
            "    results = program(a, b, c, d)",
            "    for k, value in enumerate(results):",
            "        tl.store(out + k, value)",
            "",
            *MIX.splitlines(),
        ]
    )
    file = f"<program {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    plain: dict[str, object] = {"tl": PythonRange, "FLAG": flag}
    compiled: dict[str, object] = {"tl": tl, "FLAG": flag}
    code = compile(text, file, "exec")
    exec(code, plain)
    exec(code, compiled)
    for name in ("program", "mix", "kernel"):
        compiled[name] = device_function(compiled[name])
    return plain["program"], compiled["kernel"], file


@settings(max_examples=150, deadline=None)
@given(programs, st.booleans(), st.lists(st.integers(0, 20), min_size=4, max_size=4))
def test_random_programs_agree_with_python(body, flag, inputs):
    program, kernel, file = functions(body, flag)
    try:
        args = {name: RunTime(value) for name, value in zip(NAMES, inputs, strict=True)}
        function = lower(kernel, out="*i32", **args)
        out = np.full(4, -1, np.int32)
        run_function(function, [out, *inputs])
        assert out.tolist() == list(program(*inputs)), "\n".join(body)
        out[:] = -1
        run_kernel(kernel, (1,), {"out": out, **dict(zip(NAMES, inputs, strict=True))})
        assert out.tolist() == list(program(*inputs)), "\n".join(body)
    finally:
        del linecache.cache[file]


@settings(max_examples=50, deadline=None)
@given(programs, st.booleans(), st.lists(st.integers(0, 20), min_size=4, max_size=4))
def test_constant_arguments_give_the_same_results(body, flag, inputs):
    program, kernel, file = functions(body, flag)
    try:
        pairs = zip(NAMES, inputs, strict=True)
        args = {name: RunTime(v) if i % 2 else v for i, (name, v) in enumerate(pairs)}
        function = lower(kernel, out="*i32", **args)
        out = np.full(4, -1, np.int32)
        run_function(function, [out, *inputs[1::2]])
        assert out.tolist() == list(program(*inputs)), "\n".join(body)
    finally:
        del linecache.cache[file]
