"""The text of kernels: without the indentation of the `def`, and replaced by another."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.runtime import ConstexprFunction, JITFunction
from tilewright.support import errors

MARK: Any = None
"""A name that texts replace."""


def closure(number: Any, interpret: bool = False) -> JITFunction:
    language: Any = tl

    @tilewright.jit(interpret=interpret)
    def kernel(
        x,
        n: language.constexpr = 3,  # pyright: ignore[reportInvalidTypeForm]
        m: language.constexpr = number,  # pyright: ignore[reportInvalidTypeForm]
    ):
        # a comment
        tl.store(x, MARK)

    return kernel


def replace(kernel: Any, old: str, new: str) -> None:
    kernel._unsafe_update_src(kernel.src.replace(old, new))


def stored(kernel: Any, *args: object, **keywords: object) -> int:
    out = np.zeros(1, np.int32)
    kernel[(1,)](out, *args, **keywords)
    return int(out[0])


def test_the_text_of_a_kernel_in_a_function_is_not_indented() -> None:
    kernel = closure(1)
    assert kernel.src.startswith("def kernel(\n    x,\n")
    assert "\n    # a comment\n    tl.store(x, MARK)\n" in kernel.src
    assert isinstance(kernel.parse().body[0], ast.FunctionDef)


def test_the_raw_text_is_that_of_the_file_with_decorators() -> None:
    raw = closure(1).raw_src
    assert raw[0] == "    @tilewright.jit(interpret=interpret)\n"
    assert raw[-1] == "        tl.store(x, MARK)\n"
    assert len(raw) == 8


@pytest.mark.parametrize("interpret", [False, True])
def test_a_replaced_text_keeps_closure_defaults_and_annotations(interpret: bool) -> None:
    kernel = closure(tl.constexpr(40), interpret)
    # neither `language` nor `number` is in the closure of the kernel
    replace(kernel, "MARK", "n + m")
    assert [param.is_constexpr for param in kernel.params] == [False, True, True]
    assert (stored(kernel), stored(kernel, 5), stored(kernel, m=1)) == (43, 45, 4)
    assert kernel.__qualname__ == "closure.<locals>.kernel"


@pytest.mark.parametrize("interpret", [False, True])
def test_free_variables_of_a_replaced_text_are_those_of_the_function(interpret: bool) -> None:
    def make(scale: Any) -> Any:
        @tilewright.jit(interpret=interpret)
        def kernel(x):
            tl.store(x, scale + MARK)

        return kernel

    kernel = make(tl.constexpr(7))
    replace(kernel, "MARK", "scale * 10")
    assert stored(kernel) == 77
    replace(kernel, "scale * 10", "1")
    assert stored(kernel) == 8


def test_an_indented_text_is_one_too() -> None:
    kernel = closure(1)
    kernel._unsafe_update_src("    def kernel(x, n):\n        tl.store(x, n)\n")
    assert stored(kernel, 9) == 9
    assert kernel.src == "def kernel(x, n):\n    tl.store(x, n)\n"


def test_a_text_that_defines_another_function_is_a_mistake() -> None:
    with pytest.raises(errors.InvalidValue, match="must be a text that defines 'kernel'"):
        closure(1)._unsafe_update_src("def other(x):\n    pass\n")


def test_an_error_in_a_replaced_text_shows_its_line() -> None:
    kernel = closure(1)
    replace(kernel, "MARK", "n.nothing")
    with pytest.raises(errors.CompilationError, match=r"tl.store\(x, n.nothing\)"):
        stored(kernel, tl.float32)


@tilewright.jit
def helper(x):
    return x + 1


@tilewright.constexpr_function
def flag() -> bool:
    return False


@tilewright.jit
def caller(out, x):
    on: tl.constexpr = flag()  # pyright: ignore[reportAssignmentType]
    tl.store(out, helper(x) * 10 + on)


@pytest.mark.parametrize(
    ("changed", "old", "new", "expected"),
    [(helper, "x + 1", "x + 2", 70), (flag, "False", "True", 61)],
)
def test_a_kernel_whose_hash_is_none_uses_the_new_text_of_what_it_calls(
    changed: Any, old: str, new: str, expected: int
) -> None:
    before, text = caller.cache_key, changed.src
    assert caller.hash == before
    for _ in range(3):  # from Python, and through machine code
        assert stored(caller, 5) == 60
    changed._unsafe_update_src(text.replace(old, new))
    caller.hash = None
    assert caller.cache_key != before
    for _ in range(3):
        assert stored(caller, 5) == expected
    changed._unsafe_update_src(text)
    caller.hash = None
    assert caller.cache_key == before
    assert stored(caller, 5) == 60


@tilewright.constexpr_function
def size() -> int:
    return 4


def test_a_compile_time_function_has_text_and_hash() -> None:
    function: Any = size
    assert isinstance(function, ConstexprFunction)
    assert function.src == "def size() -> int:\n    return 4\n"
    assert function.raw_src[0] == "@tilewright.constexpr_function\n"
    assert len(function.cache_key) == len(caller.cache_key)
    assert function() == 4
