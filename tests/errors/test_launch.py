"""Mistakes in a launch: the message names the argument and says what to do."""

# pyright: reportCallIssue=false

from __future__ import annotations

import math
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tilewright.runtime import jit
from tilewright.support import (
    ListRecorder,
    StageText,
    TilewrightWarning,
    errors,
    recording,
    settings,
)


@jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


interpreted = jit(interpret=True)(add)


@jit
def only_keyword(x, *, BLOCK: tl.constexpr):
    tl.store(x, BLOCK)


@jit
def no_such_shape(x):
    tl.store(x + tl.arange(0, 8), tl.arange(0, 4))


X = np.zeros(64, "f")
READ_ONLY = np.zeros(64, "f")
READ_ONLY.flags.writeable = False


def no_one():
    return (1,)


def both(meta, n):
    return (1,)


def launch(*args: object, grid: object = 1, **words: object) -> Callable[..., object]:
    """A launch; `grid_word` is a keyword "grid" of it, among the arguments."""
    if "grid_word" in words:
        words["grid"] = words.pop("grid_word")
    return lambda kernel=add: kernel[grid](*args, **words)


GIVE_IT = "pass it by position or by name, or give it a default in the function"
MISTAKES: dict[str, tuple[Callable[..., object], type[Exception], str]] = {
    "missing": (
        launch(X, X, BLOCK=64),
        TypeError,
        f"""
        add() missing required arguments 'out', 'n' [TW117]
          hint: {GIVE_IT}
        """,
    ),
    "too many": (
        launch(X, X, X, 64, 64, 7),
        TypeError,
        """
        add() takes 5 arguments, found 6 [TW116]
          hint: options such as num_warps are passed by keyword
        """,
    ),
    "misspelled option": (
        launch(X, X, X, 64, BLOCK=64, num_warp=4),
        KeyError,
        """
        add() has no parameter 'num_warp' [TW118]
          hint: did you mean 'num_warps' or 'num_ctas'?
        """,
    ),
    "misspelled parameter": (
        launch(X, X, X, 64, BLOK=64),
        TypeError,
        """
        add() has no parameter 'BLOK' [TW118]
          hint: did you mean 'BLOCK'?
        """,
    ),
    "option out of range": (
        launch(X, X, X, 64, BLOCK=64, num_warps=3),
        ValueError,
        """option 'num_warps' must be a power of two, found 3 [TW205]""",
    ),
    "device": (
        launch(X, X, X, 64, BLOCK=64, device=0),
        TypeError,
        """
        add[grid]() takes no 'device' [TW208]
          hint: kernels run on the device of their array arguments
        """,
    ),
    "stream": (
        launch(X, X, X, 64, BLOCK=64, stream=0),
        TypeError,
        """
        add[grid]() takes no 'stream' [TW208]
          hint: kernels run on the current stream of their device
        """,
    ),
    "warmup": (
        launch(X, X, X, 64, BLOCK=64, warmup=True),
        TypeError,
        """
        add[grid]() takes no 'warmup' [TW208]
          hint: to compile without running, call kernel.warmup(..., grid=grid)
        """,
    ),
    "grid": (
        launch(X, X, X, 64, BLOCK=64, grid_word=1),
        TypeError,
        """
        add[grid]() takes no 'grid' [TW208]
          hint: write kernel[grid](...), or kernel.run(..., grid=grid)
        """,
    ),
    "list": (
        launch([1.0], X, X, 64, BLOCK=64),
        TypeError,
        """
        argument 'x' is a list, which a kernel cannot take [TW201]
          hint: pass a tuple, or an array (numpy.asarray, torch.tensor)
        """,
    ),
    "complex": (
        launch(X, X, X, 1j, BLOCK=64),
        TypeError,
        """
        argument 'n' is a complex, which a kernel cannot take [TW201]
          hint: pass the real and the imaginary part
        """,
    ),
    "big endian": (
        launch(X.astype(">f4"), X, X, 64, BLOCK=64),
        TypeError,
        """
        argument 'x' is a >f4 array, which a kernel cannot take [TW201]
          hint: convert it to native order
        """,
    ),
    "read-only": (
        launch(X, X, READ_ONLY, 64, BLOCK=64),
        ValueError,
        """
        argument 'out' is a read-only array, but add stores to it [TW202]
          hint: pass a writable copy
        """,
    ),
    "empty grid": (
        launch(X, X, X, 64, BLOCK=64, grid=()),
        ValueError,
        """
        the grid () has 0 extents [TW204]
          hint: a grid is 1 to 3 integers, none of them negative, or a function that returns them
        """,
    ),
    "grid with zero and a negative extent": (
        launch(X, X, X, 64, BLOCK=64, grid=(0, -4)),
        ValueError,
        """
        the grid (0, -4) holds -4 [TW204]
          hint: a grid is 1 to 3 integers, none of them negative, or a function that returns them
        """,
    ),
    "grid function that returns nothing": (
        launch(X, X, X, 64, BLOCK=64, grid=lambda meta: None),
        ValueError,
        """
        the grid None is a NoneType [TW204]
          hint: a grid is 1 to 3 integers, none of them negative, or a function that returns them
        """,
    ),
    "grid function without a parameter": (
        launch(X, X, X, 64, BLOCK=64, grid=no_one),
        TypeError,
        "the grid function cannot be called: no_one() takes 0 positional arguments but 1 was given "
        "[TW210]\n  hint: it is called with the dictionary of all arguments",
    ),
    "grid function with two parameters": (
        launch(X, X, X, 64, BLOCK=64, grid=both),
        TypeError,
        "the grid function cannot be called: both() missing 1 required positional argument: 'n' "
        "[TW210]\n  hint: it is called with the dictionary of all arguments",
    ),
    "negative grid": (
        launch(X, X, X, 64, BLOCK=64, grid=lambda meta: -meta["n"]),
        ValueError,
        """
        the grid -64 holds -64 [TW204]
          hint: a grid is 1 to 3 integers, none of them negative, or a function that returns them
        """,
    ),
    "grid of floats": (
        launch(X, X, X, 64, BLOCK=64, grid=(64 / 32,)),
        ValueError,
        """
        the grid (2.0,) holds a float, which is not an integer [TW204]
          hint: a grid is 1 to 3 integers, none of them negative, or a function that returns them
        """,
    ),
    "large grid": (
        launch(X, X, X, 64, BLOCK=64, grid=2**31),
        ValueError,
        """
        the grid 2147483648 holds 2147483648; the limit is 2147483647 [TW204]
          hint: a grid is 1 to 3 integers, none of them negative, or a function that returns them
        """,
    ),
    "four extents": (
        launch(X, X, X, 64, BLOCK=64, grid=(1, 1, 1, 1)),
        ValueError,
        """
        the grid (1, 1, 1, 1) has 4 extents [TW204]
          hint: a grid is 1 to 3 integers, none of them negative, or a function that returns them
        """,
    ),
    "no grid": (
        launch(X, X, X, 64, BLOCK=64, grid="all"),
        ValueError,
        """
        the grid all is a str [TW204]
          hint: a grid is 1 to 3 integers, none of them negative, or a function that returns them
        """,
    ),
    "keyword-only by position": (
        lambda: only_keyword[1](X, 3),
        TypeError,
        f"""
        only_keyword() missing required argument 'BLOCK' [TW117]
          hint: {GIVE_IT}
        """,
    ),
}


def unindented(text: str) -> str:
    lines = text.strip("\n").rstrip().splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[indent:] for line in lines)


def assert_message(name: str) -> None:
    call, builtin, expected = MISTAKES[name]
    with pytest.raises(errors.TilewrightError) as caught:
        call()
    assert str(caught.value) == unindented(expected)
    assert isinstance(caught.value, builtin)


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name: str) -> None:
    assert_message(name)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_known_variant_gives_the_same_message(name: str) -> None:
    add[1](X, X, X, 64, BLOCK=64)
    assert_message(name)


@pytest.mark.parametrize("name", ["device", "stream", "warmup", "grid", "misspelled option"])
def test_keywords_are_refused_alike_in_the_interpreter(name: str) -> None:
    call, builtin, expected = MISTAKES[name]
    with pytest.raises(errors.TilewrightError) as caught:
        call(interpreted)
    assert str(caught.value) == unindented(expected)
    assert isinstance(caught.value, builtin)


def test_a_parameter_given_twice_is_pythons_own_error() -> None:
    with pytest.raises(TypeError, match=r"add\(\) got multiple values for argument 'x'"):
        launch(X, x=X)()


def frames(call: Callable[[], Any]) -> list[str]:
    """Files of the frames that a user sees."""
    with pytest.raises(errors.TilewrightError) as caught:
        call()
    return [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize("name", MISTAKES)
def test_no_frame_of_the_compiler_is_shown(name: str) -> None:
    call, _, _ = MISTAKES[name]
    seen = frames(call)
    assert set(seen) == {__file__}


def test_mistakes_in_kernels_are_shown_without_frames_too() -> None:
    def call() -> object:
        return no_such_shape[1](X)

    assert set(frames(call)) == {__file__}
    with pytest.raises(errors.CompilationError) as caught:
        call()
    assert caught.value.loc is not None
    assert Path(caught.value.loc.file) == Path(__file__)
    assert caught.value.__cause__ is None


def test_a_type_error_inside_a_grid_function_is_the_users_own() -> None:
    with pytest.raises(TypeError, match="has no len") as caught:
        launch(X, X, X, 64, BLOCK=64, grid=lambda meta: len(meta["n"]))()
    assert not isinstance(caught.value, errors.TilewrightError)


def test_what_a_grid_function_raises_is_the_users_own() -> None:
    def grid(meta: dict[str, Any]) -> int:
        return meta["BLOK"]

    with pytest.raises(KeyError, match="BLOK") as caught:
        launch(X, X, X, 64, BLOCK=64, grid=grid)()
    assert not isinstance(caught.value, errors.TilewrightError)
    assert "return meta" in str(traceback.extract_tb(caught.value.__traceback__)[-1].line)


WRONG_VALUES: dict[str, tuple[Callable[..., object], str]] = {
    "text": (launch(X, X, X, "1000", BLOCK=64), "argument 'n' is '1000': pass a number"),
    "no array": (
        launch(X, X, None, 64, BLOCK=64),
        "argument 'out' is None: pass a number or an array",
    ),
    "array of no dimensions": (
        launch(X, X, X, np.array(3), BLOCK=64),
        "argument 'n' is a pointer: pass a number, or load it by tl.load(n)",
    ),
}


@pytest.mark.parametrize("kernel", [add, interpreted], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("name", WRONG_VALUES)
def test_a_wrong_value_is_named_with_its_argument(name: str, kernel: object) -> None:
    call, hint = WRONG_VALUES[name]
    with pytest.raises(errors.InvalidOperation) as caught:
        call(kernel)
    assert caught.value.diagnostic().hint == hint


@pytest.mark.parametrize("kernel", [add, interpreted], ids=["compiled", "interpreted"])
def test_an_array_is_no_constexpr(kernel: object) -> None:
    with pytest.raises(errors.UnsupportedArgument) as caught:
        launch(X, X, X, 64, BLOCK=np.array([8]))(kernel)
    assert caught.value.message == "argument 'BLOCK' is an ndarray, which a kernel cannot take"
    hint = "a constexpr is a number, text, a type or a tuple: pass .item() or .tolist()"
    assert caught.value.diagnostic().hint == hint


def asserted(x):
    tl.device_assert(tl.load(x) > 0, "not positive")
    tl.store(x, 1)


def asserted_by_the_interpreter(x):
    tl.device_assert(tl.load(x) > 0, "not positive")
    tl.store(x, 1)


@pytest.mark.parametrize(
    ("function", "interpret"), [(asserted, False), (asserted_by_the_interpreter, True)]
)
def test_an_assertion_without_effect_is_reported_once(
    function: Callable[..., object], interpret: bool
) -> None:
    kernel = jit(interpret=interpret)(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default", TilewrightWarning)
        kernel[2](np.zeros(1, "f"))
        kernel[2](np.zeros(1, "i4"))
    assert len(caught) == 1
    assert "a device assertion has no effect without debug" in str(caught[0].message)
    assert "hint: set TILEWRIGHT_DEBUG=1, or pass debug=True" in str(caught[0].message)


def test_a_kernel_from_the_disk_cache_repeats_its_warnings(tmp_path: Path) -> None:
    ran: list[bool] = []
    for _ in range(2):
        events = ListRecorder()
        with settings().cache.scope(dir=tmp_path), recording(events):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("default", TilewrightWarning)
                jit(asserted)[2](np.zeros(1, "f"))
        ran.append(bool(events.of(StageText)))
        assert len(caught) == 1
        assert "a device assertion has no effect without debug" in str(caught[0].message)
        assert caught[0].lineno == asserted.__code__.co_firstlineno + 1
    assert ran == [True, False]


def test_an_assertion_with_effect_is_not_reported() -> None:
    x = np.full(1, 2, "f")
    with warnings.catch_warnings():
        warnings.simplefilter("error", TilewrightWarning)
        jit(debug=True)(asserted)[1](x)
    assert x[0] == 1


def test_an_assertion_of_a_program_for_triton_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors.triton_words, "shown", True)
    x = np.zeros(1, "f")
    with warnings.catch_warnings():
        warnings.simplefilter("error", TilewrightWarning)
        jit(function_for_triton)[1](x)
    assert x[0] == 1


def function_for_triton(x):
    tl.device_assert(tl.load(x) > 0, "not positive")
    tl.store(x, 1)


@jit(interpret=True)
def python_exponential(x):
    tl.store(x, math.exp(tl.load(x + tl.arange(0, 8))))


def test_the_interpreter_names_the_functions_that_take_tensors() -> None:
    with pytest.raises(errors.InvalidOperation) as caught:
        python_exponential[1](X)
    assert caught.value.diagnostic().hint == "call functions of tl: tl.exp(x), not math.exp(x)"
