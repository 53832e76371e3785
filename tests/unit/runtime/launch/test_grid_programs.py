"""Machine code computes what grid functions return, and calls those that it cannot compute."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, FunctionType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright import Config, autotune, cdiv, jit, next_power_of_2
from tilewright.runtime.launch.grid_programs import grid_program
from tilewright.runtime.launch.native_dispatch import _MAX_GRIDS
from tilewright.runtime.launch.native_memory import Memory
from tilewright.support import errors

SIZE = 7


@jit
def programs(out, n, BLOCK: tl.constexpr = 4):  # pyright: ignore[reportArgumentType]
    tl.store(out, tl.num_programs(0))
    tl.store(out + 1, tl.num_programs(1))
    tl.store(out + 2, tl.num_programs(2))


@contextmanager
def calls(function: Any) -> Iterator[list[str]]:
    """A list that gets an item at each call of a Python function."""
    seen: list[str] = []

    def profile(frame: FrameType, event: str, _arg: object) -> None:
        if event == "call" and frame.f_code is function.__code__:
            seen.append(event)

    sys.setprofile(profile)
    try:
        yield seen
    finally:
        sys.setprofile(None)


def launched(grid: Callable[[dict[str, Any]], Any], n: int, **options: Any) -> list[int]:
    """The extents of a launch by machine code, which must not call the grid function."""
    out = np.zeros(3, np.int32)
    for _ in range(4):
        programs[grid](out, n, **options)
    out[:] = 0
    with calls(grid) as seen:
        programs[grid](out, n, **options)
    assert not seen
    return out.tolist()


def half(n: int) -> int:
    return (n + 1) // 2


def padded(n: int, multiple: int) -> int:
    blocks = cdiv(n, multiple)
    return blocks * multiple


FUNCTIONS = {
    "constant": lambda meta: (3,),
    "bare": lambda meta: meta["n"],
    "list": lambda meta: [meta["n"], 2],
    "cdiv": lambda meta: (cdiv(meta["n"], meta["BLOCK"]),),
    "of a module": lambda meta: (tilewright.cdiv(meta["n"], 3), tl.cdiv(meta["n"], 5)),
    "power of two": lambda meta: (next_power_of_2(meta["n"]),),
    "of a module's attribute": lambda meta: (tilewright.next_power_of_2(meta["n"] - 1), 2, 3),
    "min, max": lambda meta: (min(meta["n"], 5), max(meta["n"], 5)),
    "operators": lambda meta: ((meta["n"] * 3 + 2 - 1) // meta["BLOCK"], meta["n"] % 5 + 1),
    "negative": lambda meta: (-(-meta["n"] // meta["BLOCK"]), -meta["n"] % 3 + 1),
    "a global": lambda meta: (SIZE + 1, SIZE),
    "own functions": lambda meta: (half(meta["n"]), padded(half(meta["n"]), 4)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n", [2, 8, 9, 33])
def test_a_grid_function_is_computed_not_called(name: str, n: int) -> None:
    grid = FUNCTIONS[name]
    expected = grid({"n": n, "BLOCK": 4})
    expected = list(expected) if isinstance(expected, tuple | list) else [expected]
    assert launched(grid, n) == [*expected, 1, 1][:3]


def test_variables_of_the_enclosing_function_are_read_at_each_launch() -> None:
    def grid_of(n: int) -> Callable[[dict[str, Any]], tuple[int, ...]]:
        return lambda meta: (cdiv(n, meta["BLOCK"]), n)

    assert [launched(grid_of(n), 5) for n in (3, 12)] == [[1, 3, 1], [3, 12, 1]]
    assert launched(grid_of(12), 5, BLOCK=8) == [2, 12, 1]


def test_globals_are_read_at_each_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    def grid(meta: dict[str, Any]) -> tuple[int, ...]:
        return SIZE, half(meta["n"])

    assert launched(grid, 6) == [7, 3, 1]
    monkeypatch.setitem(globals(), "SIZE", 9)
    assert launched(grid, 6) == [9, 3, 1]
    monkeypatch.setitem(globals(), "half", lambda n: n // 3)
    out = np.zeros(3, np.int32)
    programs[grid](out, 6)
    assert out.tolist() == [9, 2, 1]
    monkeypatch.undo()
    assert launched(grid, 6) == [7, 3, 1]
    monkeypatch.setattr(half, "__code__", (lambda n: n + 1).__code__)
    programs[grid](out, 6)
    assert out.tolist() == [7, 7, 1]


def test_a_builtin_function_that_is_hidden_by_a_global(monkeypatch: pytest.MonkeyPatch) -> None:
    def grid(meta: dict[str, Any]) -> tuple[int, ...]:
        return (max(meta["n"], 2),)

    assert launched(grid, 3) == [3, 1, 1]
    monkeypatch.setitem(globals(), "max", lambda n, _: n + 1)
    out = np.zeros(3, np.int32)
    programs[grid](out, 3)
    assert out.tolist() == [4, 1, 1]


def test_builtin_functions_are_those_of_the_grid_function() -> None:
    names: dict[str, Any] = {"__builtins__": {"max": lambda a, b: a + b}}
    exec("grid = lambda meta: (max(meta['n'], 2),)", names)
    assert launched(names["grid"], 3) == [5, 1, 1]
    names["__builtins__"]["max"] = min
    out = np.zeros(3, np.int32)
    programs[names["grid"]](out, 3)
    assert out.tolist() == [2, 1, 1]


def called_with_effect(meta: dict[str, Any]) -> tuple[int, ...]:
    EFFECTS.append(meta["n"])
    return (1,)


EFFECTS: list[int] = []


def test_a_function_with_an_effect_is_called() -> None:
    out = np.zeros(3, np.int32)
    EFFECTS.clear()
    for _ in range(9):
        programs[called_with_effect](out, 5)
    assert EFFECTS == [5] * 9


OTHERS = {
    "a branch": lambda meta: (1 if meta["n"] > 4 else 2,),
    "all arguments": lambda meta: (len(meta),),
    "a default": lambda meta, n=3: (n,),
    "any arguments": lambda *metas: (1,),
    "true division": lambda meta: (int(meta["n"] / 2),),
    "a keyword": lambda meta: (cdiv(x=meta["n"], div=2),),
    "four": lambda meta: (1, 2, 3, 4),
    "a text": lambda meta: ("1",),
    "a great number": lambda meta: (meta["n"] + 2**70 - 2**70,),
    "a method": lambda meta: (meta.get("n"),),
    "an object's attribute": lambda meta: (SIZES.n,),
}
SIZES = SimpleNamespace(n=3)


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions_have_no_program(name: str) -> None:
    function: Any = OTHERS[name]
    assert isinstance(function, FunctionType)
    assert grid_program(function, Memory()).extents == 0


ERRORS = {
    "no such argument": (lambda meta: (meta["m"],), KeyError),
    "division by zero": (lambda meta: (cdiv(meta["n"], meta["n"] - 5),), ZeroDivisionError),
    "remainder of zero": (lambda meta: (meta["n"] % (meta["n"] - 5),), ZeroDivisionError),
    "negative": (lambda meta: (3 - meta["n"],), errors.BadGrid),
    "beyond 32 bits": (lambda meta: (meta["n"] << 40,), errors.BadGrid),
    "beyond 64 bits": (lambda meta: (meta["n"] * 2**62 * 4,), errors.BadGrid),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_the_function(name: str) -> None:
    grid, error = ERRORS[name]
    out = np.zeros(3, np.int32)
    for _ in range(4):
        programs[(1,)](out, 5)
    for _ in range(3):
        with pytest.raises(error):
            programs[grid](out, 5)


@pytest.mark.parametrize("a", [-9, -8, -1, 0, 1, 7, 2**40, 2**62, -(2**63)])
@pytest.mark.parametrize("b", [-3, -1, 1, 2, 5, 2**33])
def test_operators_round_as_python_does(a: int, b: int) -> None:
    out = np.zeros(3, np.int32)

    def grid(meta: dict[str, Any]) -> tuple[int, ...]:
        return a // b % 1000, (a % b) % 1000, cdiv(a, b) % 1000

    for _ in range(4):
        programs[grid](out, 5)
    expected = [a // b % 1000, a % b % 1000, cdiv(a, b) % 1000]
    # an empty grid runs no program
    assert out.tolist() == ([0] * 3 if 0 in expected else expected)


def test_the_configuration_of_an_autotuner_is_seen() -> None:
    configs = [Config({"BLOCK": 4}), Config({"BLOCK": 4}, num_warps=2)]

    @autotune(configs, key=["n"])
    @jit
    def tuned(out, n, BLOCK: tl.constexpr):
        tl.store(out, tl.num_programs(0))

    def grid(meta: dict[str, Any]) -> tuple[int, ...]:
        return (cdiv(meta["n"], meta["BLOCK"]),)

    out = np.zeros(1, np.int32)
    for _ in range(4):
        tuned[grid](out, 11)
    out[0] = 0
    with calls(grid) as seen:
        tuned[grid](out, 11)
    assert (seen, out[0], tuned.best_config in configs) == ([], 3, True)


def test_many_grid_functions_of_one_kernel() -> None:
    @jit
    def kernel(out):
        tl.store(out, tl.num_programs(0))

    out = np.zeros(1, np.int32)
    for i in range(_MAX_GRIDS + 4):
        names: dict[str, Any] = {}
        exec(f"grid = lambda meta: ({i + 1},)", names)
        for _ in range(4):
            kernel[names["grid"]](out)
        assert out[0] == i + 1


def test_a_thread_that_waits_for_the_last_place_adds_nothing() -> None:
    """Machine code reads the programs up to a 0, which has to remain."""

    @jit
    def kernel(out):
        tl.store(out, tl.num_programs(0))

    for _ in range(2):
        kernel[(1,)](np.zeros(1, np.int32))
    (dispatcher,) = cast("Any", kernel).variant_cache._dispatches
    table = dispatcher._table
    for _ in range(_MAX_GRIDS + 1):
        table._add_grid(FUNCTIONS["constant"])
    assert all(table._grids[:_MAX_GRIDS])
    assert table._grids[_MAX_GRIDS] == 0
