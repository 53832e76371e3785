"""Functions in cache keys: equal in every process, different for different functions."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright.language as tl
from tilewright import ASTSource, jit
from tilewright.language.extra import libdevice


@jit
def apply(x, F: tl.constexpr):
    tl.store(x, F(tl.load(x)))


@jit
def double(x):
    return x + x


@tl.constexpr_function
def identity(x):
    return x


def key(function: Any) -> str:
    return ASTSource(apply, {"x": "*fp32", "F": "constexpr"}, {"F": function}).key()


FUNCTIONS = (tl.exp, tl.log, libdevice.sinh, libdevice.cosh, libdevice.add_rz, libdevice.add_ru,
             libdevice.float2int_rz, double, identity)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_no_address_is_in_a_key(function: Any) -> None:
    assert "0x" not in key(function)


def test_keys_of_functions_differ() -> None:
    assert len({key(function) for function in FUNCTIONS}) == len(FUNCTIONS)


f: Any = libdevice.sinh


@jit
def apply_global(x):
    tl.store(x, f(tl.load(x)))


def test_a_global_name_of_another_function_is_another_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of(function: Any) -> str:
        monkeypatch.setitem(globals(), "f", function)
        return ASTSource(apply_global, {"x": "*fp32"}).key()

    assert len({of(function) for function in FUNCTIONS[:7]}) == 7
