"""Mistakes found while a kernel runs as Python: message and place in the user's source."""

# pyright: reportArgumentType=false, reportCallIssue=false

import pickle

import numpy as np
import pytest

import tilewright.language as tl
from tilewright.eager import run_kernel
from tilewright.language import ACTIVE, device_function
from tilewright.support import errors

X = np.zeros(8, np.float32)


def failing(kernel, error, grid=(1,), **arguments):
    """The error that a kernel raises, as text."""
    with pytest.raises(error) as caught:
        run_kernel(kernel, grid, arguments)
    assert ACTIVE.get() is None
    return str(caught.value)


@device_function
def past_the_end(x):
    offsets = tl.arange(0, 16)
    return tl.load(x + offsets)


def test_out_of_bounds_points_at_the_load():
    text = failing(past_the_end, errors.OutOfBounds, x=X)
    assert "load at element 8 of argument 'x', which has 8 elements" in text
    assert "test_eager_errors.py" in text and "in past_the_end" in text
    lines = text.splitlines()
    code = next(i for i, line in enumerate(lines) if "return tl.load(x + offsets)" in line)
    assert lines[code + 1].strip(" |") == "^" * len("tl.load(x + offsets)")
    assert lines[code].index("tl.load") == lines[code + 1].index("^")


@device_function
def adds(x, y):
    return x + y


@device_function
def calls(x):
    wide = tl.arange(0, 8)
    return adds(wide, tl.arange(0, 4))


def test_calls_are_shown_innermost_first():
    text = failing(calls, errors.ShapeMismatch, x=X)
    assert "cannot add tiles of shapes (8,) and (4,)" in text
    first, second = text.index("return x + y"), text.index("return adds(wide")
    assert first < second and "called from" in text[first:second]


@device_function
def unknown_attribute(x):
    return x.sume()


@device_function
def condition_on_a_tile(x):
    if tl.arange(0, 4) > 2:
        tl.store(x, 1.0)


@device_function
def unknown_keyword(x):
    tl.load(x, maks=True)


@device_function
def recursion(x):
    recursion(x)


@device_function
def reduced_by_itself(a, b):
    return tl.reduce(a + b, None, reduced_by_itself)


@device_function
def recursion_in_a_reduction(x):
    tl.store(x, tl.reduce(tl.load(x + tl.arange(0, 4)), 0, reduced_by_itself))


@device_function
def float_index(x):
    for i in range(tl.load(x)):
        tl.store(x, i)


@device_function
def int_of_a_tile(x):
    return int(tl.arange(0, 4))


@device_function
def returns(x):
    return tl.load(x)


@pytest.mark.parametrize(
    "kernel, error, message",
    [
        (unknown_attribute, errors.UnknownAttribute, "did you mean 'sum'"),
        (condition_on_a_tile, errors.InvalidOperation, "shape (4,) as a condition"),
        (unknown_keyword, errors.UnknownArgument, "did you mean 'mask'"),
        (recursion, errors.RecursionNotSupported, "recursion calls recursion"),
        (float_index, errors.InvalidValue, "must be an integer scalar, found fp32"),
        (int_of_a_tile, errors.InvalidOperation, "tile of shape (4,)"),
        (returns, errors.UnsupportedLanguageConstruct, "returning a value from a kernel"),
    ],
)
def test_designed_errors(kernel, error, message):
    text = failing(kernel, error, x=X)
    assert message in text and f"in {kernel.__name__}" in text


def test_recursion_through_a_combine_function_is_refused():
    text = failing(recursion_in_a_reduction, errors.RecursionNotSupported, x=X)
    assert "reduced_by_itself calls reduced_by_itself" in text and "in reduced_by_itself" in text


@device_function
def helper(a, b: tl.constexpr, c=1):
    return a


@device_function
def calls_helper(x, how: tl.constexpr):
    return how.value(x)


@pytest.mark.parametrize(
    "how, error",
    [
        (lambda x: helper(x), errors.MissingArgument),
        (lambda x: helper(x, 1, 2, 3), errors.ArgumentCount),
        (lambda x: helper(x, 1, d=2), errors.UnknownArgument),
        (lambda x: helper(x, 1, a=2), errors.RepeatedArgument),
        (lambda x: tl.arange(0, helper(tl.load(x), 1)), errors.NotConstexpr),
    ],
)
def test_wrong_calls(how, error):
    assert "calls_helper" in failing(calls_helper, error, x=X, how=tl.constexpr(how))


def test_unknown_and_missing_parameters_of_the_kernel():
    assert "'y'" in failing(past_the_end, errors.UnknownArgument, x=X, y=1)
    assert "'x'" in failing(past_the_end, errors.MissingArgument)


@device_function
def raises_its_own(x):
    raise KeyError("mine")


def test_what_the_kernel_raises_itself_passes():
    with pytest.raises(KeyError, match="mine"):
        run_kernel(raises_its_own, (1,), {"x": X})
    assert ACTIVE.get() is None


@device_function
def stores(x):
    tl.store(x, 1.0)


@device_function
def stores_to_const(x: tl.const):
    tl.store(x, 1.0)


def test_stores_to_what_is_read_only():
    x = np.zeros(1, np.float32)
    x.flags.writeable = False
    text = failing(stores, errors.ReadOnlyArray, x=x)
    assert (
        "'x' is a read-only array, but stores stores to it" in text and "tl.store(x, 1.0)" in text
    )
    failing(stores_to_const, errors.StoreToConst, x=np.zeros(1, np.float32))


def test_errors_survive_pickling():
    with pytest.raises(errors.OutOfBounds) as caught:
        run_kernel(past_the_end, (1,), {"x": X})
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_outside_of_a_kernel_stubs_are_errors():
    with pytest.raises(errors.InvalidOperation, match="outside of a kernel"):
        tl.arange(0, 4)
