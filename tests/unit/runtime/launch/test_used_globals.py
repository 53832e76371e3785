"""Globals that kernels are compiled with, and that change before a later launch or kernel."""

# pyright: reportUnboundVariable=false, reportArgumentType=false

import gc
import linecache
import weakref
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tilewright import jit
from tilewright.support import errors

SHARED = tl.constexpr(4)
PER_KERNEL = tl.constexpr(1)
DEFAULT = tl.constexpr(3)
SHADOWED = tl.constexpr(7)
PLAIN = 42


@jit
def shared():
    return SHARED


@jit
def first(out):
    tl.store(out, shared())


@jit
def second(out):
    tl.store(out, shared() + 100)


def stored_by(kernel: Any) -> int:
    out = np.zeros(1, np.int32)
    kernel[(1,)](out)
    return int(out[0])


def test_a_helper_is_not_compiled_with_two_values_of_a_global(monkeypatch: pytest.MonkeyPatch):
    assert stored_by(first) == 4
    monkeypatch.setitem(globals(), "SHARED", tl.constexpr(2))
    with pytest.raises(errors.ConflictingGlobal) as caught:
        stored_by(second)
    message = "global 'SHARED' was 4 when shared was first compiled and is 2 now"
    assert caught.value.message == message and isinstance(caught.value, RuntimeError)
    assert str(caught.value.triton_words).startswith("Global variable SHARED has value")
    monkeypatch.undo()
    assert stored_by(second) == 104


@jit
def own(out):
    tl.store(out, PER_KERNEL)


@pytest.mark.parametrize("launches", [1, 3])
def test_the_value_of_a_constexpr_may_be_assigned(launches: int):
    def made(constant: tl.constexpr) -> Any:
        @jit
        def kernel(out):
            tl.store(out, constant)

        return kernel

    constant = tl.constexpr(42)
    kernel = made(constant)
    assert [stored_by(kernel) for _ in range(launches)] == [42] * launches
    constant.value = 43
    for _ in range(2):
        with pytest.raises(errors.ChangedGlobal) as caught:
            stored_by(kernel)
    words = "from constexpr[42] to constexpr[43]"
    assert words in str(caught.value.triton_words)
    constant.value = 42
    assert stored_by(kernel) == 42


@jit
def with_default(out, value: tl.constexpr = DEFAULT):
    tl.store(out, value)


def test_a_global_that_is_only_a_default_may_change(monkeypatch: pytest.MonkeyPatch):
    assert stored_by(with_default) == 3
    monkeypatch.setitem(globals(), "DEFAULT", tl.constexpr(9))
    assert stored_by(with_default) == 3
    assert not with_default.used_global_vals


@jit
def helper_of_default():
    return PER_KERNEL


@jit
def with_function(out, function: tl.constexpr = helper_of_default):
    tl.store(out, function())


def test_a_function_that_is_a_default_counts(monkeypatch: pytest.MonkeyPatch):
    assert stored_by(with_function) == 1
    monkeypatch.setitem(globals(), "PER_KERNEL", tl.constexpr(5))
    with pytest.raises(errors.ChangedGlobal, match="PER_KERNEL"):
        stored_by(with_function)


def shadows(out: Any):
    before = SHADOWED  # noqa: F823
    _, SHADOWED = 0, 2
    tl.store(out, before * 10 + SHADOWED)


@pytest.mark.parametrize("interpret", [False, True])
def test_a_global_constexpr_is_read_until_a_local_hides_it(interpret: bool):
    assert stored_by(jit(shadows, interpret=interpret)) == 72


def test_such_a_global_must_not_change(monkeypatch: pytest.MonkeyPatch):
    kernel = jit(shadows)
    assert stored_by(kernel) == 72
    monkeypatch.setitem(globals(), "SHADOWED", tl.constexpr(8))
    with pytest.raises(errors.ChangedGlobal, match="SHADOWED"):
        stored_by(kernel)


@jit
def hides(out):
    _, PLAIN = 0, 5
    tl.store(out, PLAIN)


def test_a_hidden_global_may_change(monkeypatch: pytest.MonkeyPatch):
    assert stored_by(hides) == 5
    monkeypatch.setitem(globals(), "PLAIN", 43)
    assert stored_by(hides) == 5


def reads_too_early(out: Any):
    tl.store(out, PLAIN)  # noqa: F823
    PLAIN = 1  # noqa: F841


@pytest.mark.parametrize("interpret", [False, True])
def test_only_constexprs_are_read_early(interpret: bool):
    with pytest.raises(errors.UndefinedName, match="PLAIN"):
        stored_by(jit(reads_too_early, interpret=interpret))


def test_a_kernel_made_again_sees_the_value_of_now(monkeypatch: pytest.MonkeyPatch):
    assert stored_by(own) == 1
    monkeypatch.setitem(globals(), "PER_KERNEL", tl.constexpr(6))
    assert stored_by(jit(own.fn)) == 6


def test_modules_of_kernels_that_are_gone_are_freed():
    text = "C = tl.constexpr(4)\n@jit\ndef of_c():\n    return C\n"
    text += "@jit\ndef kernel(out):\n    tl.store(out, of_c())\n"
    file = "<module of a kernel>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"tl": tl, "jit": jit}
    exec(compile(text, file, "exec"), namespace)
    assert stored_by(namespace["kernel"]) == 4
    function = weakref.ref(namespace["of_c"].fn)
    namespace.clear()
    gc.collect()
    assert function() is None
