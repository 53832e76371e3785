"""Mistakes in what decorators are given: designed errors, where they are made if possible."""

# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tilewright.runtime import Config, autotune, heuristics, jit, launch_hooks
from tilewright.support import errors


def function(out, C: tl.constexpr):
    tl.store(out, C)


kernel = jit(function)
CONFIG = Config({"C": 1})
BOTH = [CONFIG, Config({"C": 2})]


class Callables:
    def __call__(self, out):
        pass

    def method(self, out):
        pass


def run(made: Any, **words: object) -> None:
    made[(1,)](np.zeros(1), **words)


def tuned(**words: Any) -> Callable[[], object]:
    return lambda: run(autotune(BOTH, key=[], **words)(jit(function)))


def pruned(**by: Any) -> Callable[[], object]:
    return tuned(prune_configs_by=by)


def hooked(**words: Any) -> Callable[[], object]:
    """A launch with a hook of a profiler, who asks for the name."""

    def launch() -> None:
        def enter(metadata: launch_hooks.LaunchMetadata) -> None:
            metadata.get()

        launch_hooks.launch_enter.add(enter)
        try:
            run(jit(**words)(function), C=1)
        finally:
            launch_hooks.launch_enter.remove(enter)

    return launch


def no_one():
    return 1


MISTAKES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "jit of a partial": (
        lambda: jit(functools.partial(function, C=1)),
        TypeError,
        "jit takes a function written with 'def', found a partial [TW212]\n"
        "  hint: decorate the function itself, and give its other arguments at the launch",
    ),
    "jit of a partial of a kernel": (
        lambda: jit(functools.partial(kernel, C=1)), TypeError, "found a partial"
    ),
    "jit of an instance": (
        lambda: jit(Callables()), TypeError, "hint: decorate a function that is no method"
    ),
    "jit of a method": (lambda: jit(Callables().method), TypeError, "found a method"),
    "jit of a class": (lambda: jit(Callables), TypeError, "found the class Callables"),
    "jit of a builtin": (lambda: jit(len), TypeError, "found a builtin_function_or_method"),
    "jit of a number": (lambda: jit(3), TypeError, "found an int"),
    "jit outside of autotune": (
        lambda: jit(autotune([CONFIG], key=[])(kernel)),
        TypeError,
        "hint: put @jit below the other decorators, right above the function",
    ),
    "unknown option of jit": (
        lambda: jit(interpreted=True)(function),
        ValueError,
        "there is no option 'interpreted' of jit [TW209]\n  hint: did you mean 'interpret'?",
    ),
    "a check that is no kind": (
        lambda: jit(check=True)(function),
        ValueError,
        "option 'check' must be some of bounds, race, overflow, uninit, found True [TW205]",
    ),
    "autotune of a function": (
        lambda: autotune([CONFIG], key=[])(function),
        TypeError,
        "autotune takes a kernel, found a function [TW212]\n"
        "  hint: put @jit below it, right above the function",
    ),
    "heuristics of a function": (
        lambda: heuristics({"C": lambda args: 1})(function),
        TypeError,
        "heuristics takes a kernel, found a function",
    ),
    "a configuration for a list": (
        lambda: autotune(CONFIG, key=[]),
        ValueError,
        "option 'configs' must be a list of Config, found C: 1, num_warps: 4",
    ),
    "dictionaries for configurations": (
        lambda: autotune([{"C": 1}], key=[]), ValueError, "must be a list of Config, found [{'C'"
    ),
    "no configurations": (lambda: autotune(None, key=[]), ValueError, "a list of Config"),
    "a name for a list": (
        lambda: autotune(BOTH, key="out"),
        ValueError,
        "option 'key' must be a list of names of parameters, found out [TW205]",
    ),
    "no key": (lambda: autotune(BOTH, key=None), ValueError, "option 'key' must be a list"),
    "numbers for names": (
        lambda: autotune(BOTH, key=[], restore_value=[0]), ValueError, "option 'restore_value'"
    ),
    "a configuration of a list": (
        lambda: Config([1]), ValueError, "'kwargs' must be a dictionary of meta-parameters"
    ),
    "pruning by a list": (
        lambda: autotune(BOTH, key=[], prune_configs_by=[1]), ValueError, "must be a dictionary"
    ),
    "rules in a list": (
        lambda: heuristics([1]), ValueError, "option 'values' must be a dictionary"
    ),
    "a value for a rule": (
        lambda: heuristics({"C": 3}),
        ValueError,
        "option 'values['C']' must be a function of the arguments, found 3 [TW205]",
    ),
    "a rule without a parameter": (
        lambda: run(heuristics({"C": no_one})(kernel)),
        TypeError,
        "the heuristic for 'C' cannot be called: no_one() takes 0 positional arguments but 1 was "
        "given [TW210]\n  hint: it is called with the dictionary of all arguments",
    ),
    "pruning without parameters": (
        pruned(early_config_prune=no_one), TypeError, "early_config_prune cannot be called: no_one"
    ),
    "pruning that returns nothing": (
        pruned(early_config_prune=lambda configs, named, **words: None),
        RuntimeError,
        "early_config_prune returned None",
    ),
    "pruning that returns numbers": (
        pruned(early_config_prune=lambda configs, named, **words: [3]),
        RuntimeError,
        "early_config_prune returned [3]",
    ),
    "a model without parameters": (
        pruned(perf_model=no_one), TypeError, "perf_model cannot be called: no_one() got"
    ),
    "a model that returns nothing": (
        pruned(perf_model=lambda **words: None), RuntimeError, "perf_model returned None"
    ),
    "a hook without a parameter": (
        tuned(pre_hook=no_one), TypeError, "pre_hook cannot be called: no_one() takes 0"
    ),
    "a hook that is not told of exceptions": (
        tuned(post_hook=lambda arguments: None), TypeError, "post_hook cannot be called"
    ),
    "a configuration's hook": (
        lambda: run(autotune([Config({"C": 1}, pre_hook=no_one)], key=[])(kernel)),
        TypeError,
        "pre_hook of a Config cannot be called: no_one() takes 0",
    ),
    "a clock without parameters": (
        tuned(do_bench=no_one), TypeError, "do_bench cannot be called: no_one() got"
    ),
    "a clock that returns nothing": (
        tuned(do_bench=lambda fn, quantiles: None), RuntimeError, "do_bench returned None"
    ),
    "a name function without a parameter": (
        hooked(repr=no_one), TypeError, "repr cannot be called: no_one() takes 0"
    ),
    "metadata without parameters": (
        hooked(launch_metadata=no_one), TypeError, "launch_metadata cannot be called: no_one()"
    ),
    "metadata that are a number": (
        hooked(launch_metadata=lambda grid, metadata, arguments: 3),
        ValueError,
        "option 'launch_metadata' must be a function that returns a dictionary, found 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name: str) -> None:
    call, builtin, expected = MISTAKES[name]
    with pytest.raises(errors.TilewrightError) as caught:
        call()
    assert expected in str(caught.value)
    assert isinstance(caught.value, builtin)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert {frame.filename for frame in frames} == {__file__}


def test_what_a_function_of_the_user_raises_is_the_users_own() -> None:
    def rule(args: dict[str, Any]) -> int:
        return len(args["C"] + 1)

    with pytest.raises(TypeError, match="has no len") as caught:
        run(heuristics({"D": rule})(kernel), C=1)
    assert not isinstance(caught.value, errors.TilewrightError)


def test_a_name_alone_selects_one_parameter_not_to_specialize() -> None:
    @jit(do_not_specialize="number", do_not_specialize_on_alignment="n")
    def copied(out, n, number):
        tl.store(out, n + number)

    assert [p.name for p in copied.params if p.do_not_specialize] == ["number"]
    assert [p.name for p in copied.params if p.do_not_specialize_on_alignment] == ["n"]
