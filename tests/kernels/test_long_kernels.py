"""Kernels of thousands of dependent steps compile, and their code grows as their length.

Each kernel runs at two lengths; what is compared is not time, which depends on the machine, but
the Python calls that the compiler makes.
"""

from __future__ import annotations

import cProfile
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.backends import GPUTarget
from tilewright.compiler import ASTSource, compile


@tilewright.jit
def scalars(o, x, v, N: tl.constexpr):
    acc = 0.0
    for _ in tl.static_range(N):
        acc = acc * v + 1.0
    tl.store(o, acc)


@tilewright.jit
def tiles(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = tl.load(x + i)
    for _ in tl.static_range(N):
        acc = acc * v + 1.0
    tl.store(o + i, acc)


@tilewright.jit
def masks(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 1024)
    holds = i < 1000
    for j in tl.static_range(N):
        holds = holds & (i < 1000 + j)
    tl.store(o + i, tl.where(holds, 2.0, 0.0), holds)


@tilewright.jit
def choices(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = tl.load(x + i)
    for _ in tl.static_range(N):
        acc = tl.where(acc > 1.5, acc * v, acc + 1.0)
    tl.store(o + i, acc)


@tilewright.jit
def shapes(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = tl.load(x + i)
    for _ in tl.static_range(N):
        acc = tl.reshape(tl.trans(tl.reshape(acc, (4, 4))), (16,)) + 1.0
    tl.store(o + i, acc)


@tilewright.jit
def powers_of_two(o, x, v, N: tl.constexpr):
    """Each step uses the one before twice: 2^N paths through N operations."""
    i = tl.arange(0, 16)
    acc = i
    for _ in tl.static_range(N):
        acc = (acc + acc) & 0xFFFF
    tl.store(o + i, tl.load(x + i, (i < acc + 16) & (acc < i + 16), 0.0))


@tilewright.jit
def stores(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = tl.load(x + i)
    for j in tl.static_range(N):
        acc = acc * v + 1.0
        tl.store(o + 16 * j + i, acc)


@tilewright.jit
def integers(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = i
    for j in tl.static_range(N):
        acc = (acc * 3) ^ i
        tl.store(o + 16 * j + i, acc)


@tilewright.jit
def pointers(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    at = o + i
    step = (v * 32).to(tl.int32)
    for j in tl.static_range(N):
        tl.store(at, 1.0 * j)
        at += step


@tilewright.jit
def loads_and_stores(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = tl.load(o + i)
    for j in tl.static_range(N):
        acc = acc * v + tl.load(o + 16 * j + i)
    for j in tl.static_range(N):
        tl.store(o + 16 * j + i, acc)


@tilewright.jit
def reductions(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    acc = tl.load(x + i)
    total = 0.0
    for _ in tl.static_range(N):
        acc = acc * v
        total += tl.sum(acc, 0)
    tl.store(o, total)


KERNELS = (scalars, tiles, masks, choices, shapes, powers_of_two, stores, integers, pointers,
           loads_and_stores, reductions)  # fmt: skip


def launch(kernel: Any, steps: int) -> np.ndarray:
    out = np.zeros(16 * steps + 1024, np.float32)
    kernel[(1,)](out, np.zeros(16, np.float32), 0.5, N=steps)
    return out


def calls(work: Callable[[], object]) -> int:
    """Python calls that `work` makes."""
    profile = cProfile.Profile(builtins=False)
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_work_grows_as_the_kernel(kernel):
    launch(kernel, 1)
    short = calls(lambda: launch(kernel, 100))
    long = calls(lambda: launch(kernel, 300))
    assert long < 3.6 * short  # a square would be 9


@pytest.mark.parametrize("kernel", [scalars, tiles, choices], ids=lambda kernel: kernel.__name__)
def test_a_thousand_steps_give_what_the_interpreter_gives(kernel):
    found = launch(kernel, 1000)
    reference = launch(tilewright.jit(kernel.fn, interpret=True), 1000)
    np.testing.assert_array_equal(found, reference)


def test_a_long_row_of_stores_writes_every_one():
    out = launch(pointers, 700)
    assert out[: 16 * 700 : 16].tolist() == [float(j) for j in range(700)]


def test_ten_thousand_steps():
    assert launch(tiles, 10_000)[:16].tolist() == [2.0] * 16


def written(folder: Path, text: str) -> ModuleType:
    """A module of generated text."""
    path = folder / f"generated_{folder.name}.py"
    path.write_text("import tilewright\nimport tilewright.language as tl\n\n" + text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_functions_call_each_other_400_deep(tmp_path):
    parts = ["@tilewright.jit\ndef f0(x):\n    return x + 1.0\n"]
    parts += [
        f"@tilewright.jit\ndef f{i}(x):\n    return f{i - 1}(x) + 1.0\n" for i in range(1, 400)
    ]
    parts.append("@tilewright.jit\ndef k(o):\n    tl.store(o, f399(0.5))\n")
    out = np.zeros(1, np.float32)
    written(tmp_path, "\n".join(parts)).k[(1,)](out)
    assert out[0] == 400.5


def test_a_sum_of_2000_terms(tmp_path):
    terms = " + ".join(["x"] * 2000)
    text = f"@tilewright.jit\ndef k(o):\n    x = tl.load(o)\n    tl.store(o, {terms})\n"
    out = np.ones(1, np.float32)
    written(tmp_path, text).k[(1,)](out)
    assert out[0] == 2000


def test_mistakes_deep_inside_say_where(tmp_path):
    terms = " + ".join([*["x"] * 300, "missing"][::-1])
    text = f"@tilewright.jit\ndef k(o):\n    x = tl.load(o)\n    tl.store(o, {terms})\n"
    with pytest.raises(tilewright.CompilationError, match="missing") as caught:
        written(tmp_path, text).k[(1,)](np.ones(1, np.float32))
    assert caught.value.loc is not None
    assert caught.value.loc.line == 7


BRANCHES = {
    "in a sequence": "    if n > {}:\n        a = a + {}.0\n",
    "as elif": "    elif n == {}:\n        a = {}.0\n",
    "each returning": "    if n == 1000 + {}:\n        return {}.0\n",
    "returning as elif": "    elif n == {}:\n        return {}.0\n",
    "over loops": "    for _ in range(n):\n        a += 1.0 + 0 * {} * {}\n",
}


@pytest.mark.parametrize("kind", BRANCHES)
@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
def test_300_statements_that_branch(tmp_path, kind, interpret):
    line = BRANCHES[kind]
    start = "    if n == 7000:\n        a = 1.0\n" if "elif" in kind else ""
    lines = "".join(line.format(i, i) for i in range(1, 301))
    text = (
        f"@tilewright.jit(interpret={interpret})\ndef f(n):\n    a = 0.0\n{start}{lines}"
        "    return a\n\n"
        f"@tilewright.jit(interpret={interpret})\ndef k(o, n):\n    tl.store(o, f(n))\n"
    )
    expected = {"in a sequence": 3.0, "each returning": 0.0, "over loops": 900.0}.get(kind, 3.0)
    out = np.ones(1, np.float32)
    written(tmp_path, text).k[(1,)](out, 3)
    assert out[0] == expected


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
def test_300_functions_call_each_other_under_conditions(tmp_path, interpret):
    head = f"@tilewright.jit(interpret={interpret})\n"
    parts = [f"{head}def f0(n, x):\n    return x + 1.0\n"]
    parts += [
        f"{head}def f{i}(n, x):\n    if n > {i - 300}:\n        x = f{i - 1}(n, x)\n    return x\n"
        for i in range(1, 300)
    ]
    parts.append(f"{head}def k(o, n):\n    tl.store(o, f299(n, 0.5))\n")
    out = np.zeros(1, np.float32)
    written(tmp_path, "\n".join(parts)).k[(1,)](out, 3)
    assert out[0] == 1.5


def test_a_condition_with_a_return_inside_20_others(tmp_path):
    """Each is lowered once or twice, not twice for each one around it."""
    ifs = "".join("    " * (i + 1) + f"if n > {i}:\n" for i in range(20))
    text = (
        f"@tilewright.jit\ndef f(n):\n{ifs}{'    ' * 21}return 5.0\n    return 7.0\n\n"
        "@tilewright.jit\ndef k(o, n):\n    tl.store(o, f(n))\n"
    )
    out = np.zeros(1, np.float32)
    written(tmp_path, text).k[(1,)](out, 3)
    assert out[0] == 7


def test_more_early_returns_than_blocks_may_nest(tmp_path):
    lines = "".join(f"    if n == {i}:\n        return\n" for i in range(1100))
    with pytest.raises(
        tilewright.errors.NestedTooDeeply, match="the limit is 1024 levels"
    ) as caught:
        written(tmp_path, f"@tilewright.jit\ndef k(o, n):\n{lines}").k[(1,)](np.ones(1), 3)
    assert caught.value.loc is not None
    assert caught.value.loc.line == 5 + 1 + 2 * 1024


@tilewright.jit
def loops(o, x, v, N: tl.constexpr):
    """Each starts from what the one before has left; LLVM's value numbering counts the visits."""
    i = tl.arange(0, 16)
    acc = tl.load(x + i)
    n = (v * 6).to(tl.int32)
    for _ in tl.static_range(N):
        for _ in range(n):
            acc += 1.0
        while n > 100:
            n -= 1
    tl.store(o + i, acc)


@tilewright.jit
def changes(o, x, v, N: tl.constexpr):
    i = tl.arange(0, 16)
    for _ in tl.static_range(N):
        tl.store(o + i, tl.load(o + i) + 1.0)


def test_500_loops_behind_each_other():
    assert launch(loops, 250)[:16].tolist() == [750.0] * 16


def lines_of(kernel: Any, steps: int) -> str:
    """What LLVM is given for a kernel, at a length."""
    out = np.zeros(16, np.float32)
    compiled = kernel.warmup(out, out, 0.5, N=steps, grid=(1,))
    return compiled.asm["llir"]


def test_long_rows_of_loops_are_parted_and_short_ones_are_not():
    assert "asm sideeffect" not in lines_of(loops, 7)
    assert lines_of(loops, 40).count("asm sideeffect") == 5


def test_not_all_of_many_stores_choose_whether_to_stream():
    assert 1 <= lines_of(changes, 20).count("!nontemporal") < 40
    assert lines_of(changes, 400).count(", !nontemporal") <= 128


def test_nests_of_250_compile_for_gpus(tmp_path):
    parts = ["@tilewright.jit\ndef f0(n, x):\n    return x + 1.0\n"]
    parts += [
        f"@tilewright.jit\ndef f{i}(n, x):\n    if n > {i}:\n        x = f{i - 1}(n, x)\n"
        "    return x\n"
        for i in range(1, 250)
    ]
    parts.append("@tilewright.jit\ndef k(o, n):\n    tl.store(o, f249(n, 0.5))\n")
    kernel = written(tmp_path, "\n".join(parts)).k
    source = ASTSource(kernel, {"o": "*fp32", "n": "i32"})
    assert ".entry k" in compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
