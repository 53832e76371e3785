"""Mistakes in kernels and launches: what the user sees, and that nothing else happens.

Each case is a launch. It must raise one designed error that shows the user's line with a caret (in
the message for a mistake inside a kernel, in the traceback for one at the launch), show no frame of
this package, leave the arrays as they were, and leave the caches such that a right launch works.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportUndefinedVariable=false

# ruff: noqa: B018, F821 -- the mistakes are meant

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright import jit
from tilewright.support import errors, settings

PACKAGE = str(Path(tilewright.__file__).parent)

X = np.arange(16, dtype=np.float32)
LOCKED = X.copy()
LOCKED.flags.writeable = False


@jit
def good(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) + 1, mask=i < n)


@jit
def shape_mismatch(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) + tl.arange(0, 8))


@jit
def mask_mismatch(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=tl.arange(0, 8) < n)


@jit
def dtype_mismatch(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) & 1)


@jit
def dot_mismatch(x, n, BLOCK: tl.constexpr):
    a = tl.zeros((BLOCK, BLOCK), tl.float16)
    b = tl.zeros((BLOCK, BLOCK), tl.float32)
    tl.store(x + tl.arange(0, BLOCK), tl.sum(tl.dot(a, b), 0))


@jit
def run_time_size(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(x + i, 1.0)


@jit
def run_time_shape(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), tl.zeros((n,), tl.float32))


@jit
def missing_name(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, vlaue)


@jit
def index_outside(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, (1, 2)[BLOCK])


@jit
def missing_function(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.laod(x + i))


@jit
def missing_method(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i).sqroot())


@jit
def handles_exceptions(x, n, BLOCK: tl.constexpr):
    try:
        tl.store(x, 1.0)
    except ValueError:
        pass


@jit
def defines_a_class(x, n, BLOCK: tl.constexpr):
    class Local:
        pass


@jit
def yields(x, n, BLOCK: tl.constexpr):
    yield x


@jit
def writes_elements(x, n, BLOCK: tl.constexpr):
    v = tl.arange(0, BLOCK)
    v[0] = 1


@jit
def sum_of_two(a, b):
    return a + b


@jit
def too_few_inside(x, n, BLOCK: tl.constexpr):
    tl.store(x, sum_of_two(tl.load(x)))


@jit
def too_many_inside(x, n, BLOCK: tl.constexpr):
    tl.store(x, sum_of_two(tl.load(x), 1, 2))


@jit
def unknown_inside(x, n, BLOCK: tl.constexpr):
    tl.store(x, tl.load(x, maks=n > 0))


@jit
def large_block(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK * 128)
    tl.store(x + (i[:, None] + i[None, :]), 1.0)


@jit
def even_block(x, n, BLOCK: tl.constexpr):
    i = tl.zeros((BLOCK - 16,), tl.int32)
    tl.store(x + i, 1.0)


@jit
def countdown(x, n):
    return countdown(x, n - 1)


@jit
def recursion(x, n, BLOCK: tl.constexpr):
    tl.store(x, countdown(x, n))


@jit
def stores_to_const(x: tl.const, n, BLOCK: tl.constexpr):
    tl.store(x, 1.0)


@jit
def other_without_mask(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, other=0.0))


@jit
def tile_condition(x, n, BLOCK: tl.constexpr):
    if tl.load(x + tl.arange(0, BLOCK)) > 0:
        tl.store(x, 1.0)


@jit
def changing_type(x, n, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    for _ in range(n):
        v = tl.sum(v, 0)
    tl.store(x, v)


@jit
def failing_static_assert(x, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK > 100, "BLOCK is too small")


INSIDE: list[tuple[Any, type[Exception], str, str]] = [
    # kernel, error, a part of the message, the code above the caret
    (shape_mismatch, errors.ShapeMismatch, "cannot add tiles of shapes (16,) and (8,)",
     "tl.load(x + i) + tl.arange(0, 8)"),
    (mask_mismatch, errors.ShapeMismatch, "(8,)", "tl.store(x + i, 1.0, mask=tl.arange(0, 8) < n)"),
    (dtype_mismatch, errors.DTypeMismatch, "bitwise operators take integers", "tl.load(x + i) & 1"),
    (dot_mismatch, errors.DTypeMismatch, "fp16", "tl.dot(a, b)"),
    (run_time_size, errors.NotConstexpr, "must be known at compile time", "tl.arange(0, n)"),
    (run_time_shape, errors.NotConstexpr, "'shape[0]' of zeros", "tl.zeros((n,), tl.float32)"),
    (missing_name, errors.UndefinedName, "name 'vlaue' is not defined", "vlaue"),
    (missing_function, errors.UnknownAttribute, "did you mean 'load'?", "tl.laod"),
    (missing_method, errors.UnknownAttribute, "sqroot", "tl.load(x + i).sqroot"),
    (handles_exceptions, errors.UnsupportedLanguageConstruct, "'try' is not supported", "try:"),
    (defines_a_class, errors.UnsupportedLanguageConstruct, "not supported", "class Local:"),
    (yields, errors.UnsupportedLanguageConstruct, "not supported", "yield x"),
    (writes_elements, errors.UnsupportedLanguageConstruct, "", "v[0]"),
    (too_few_inside, errors.MissingArgument, "missing required argument 'b'",
     "sum_of_two(tl.load(x))"),
    (too_many_inside, errors.ArgumentCount, "takes 2 arguments, found 3",
     "sum_of_two(tl.load(x), 1, 2)"),
    (unknown_inside, errors.UnknownArgument, "did you mean 'mask'?", "tl.load(x, maks=n > 0)"),
    (large_block, errors.BlockTooLarge, "the limit is 1048576", "i[:, None] + i[None, :]"),
    (even_block, errors.NonPowerOfTwo, "positive, found 0",
     "tl.zeros((BLOCK - 16,), tl.int32)"),
    (recursion, errors.RecursionNotSupported, "calls itself", "countdown(x, n)"),
    (stores_to_const, errors.StoreToConst, "const", "tl.store(x, 1.0)"),
    (other_without_mask, errors.InvalidOperation, "mask", "tl.load(x + i, other=0.0)"),
    (tile_condition, errors.InvalidOperation, "tile", "tl.load(x + tl.arange(0, BLOCK)) > 0"),
    (changing_type, errors.InconsistentType, "'v' is <[16], fp32> before the loop",
     "for _ in range(n):"),
    (failing_static_assert, errors.CompileTimeAssertionFailure, "BLOCK is too small",
     'tl.static_assert(BLOCK > 100, "BLOCK is too small")'),
]  # fmt: skip

ONLY_COMPILED = {
    # Python runs these, so that a debugging session may use them
    "handles_exceptions", "defines_a_class",
    # Python's own errors, with its own words
    "yields", "writes_elements",
    # seen only by looking at the whole loop
    "changing_type", "tile_condition",
}  # fmt: skip


class OnAnotherDevice:
    """A tensor in the memory of a device that is not here."""

    dtype = "float32"
    device = "xpu:0"
    is_cpu = False

    def data_ptr(self) -> int:
        return 4096


def sourceless() -> Any:
    names: dict[str, Any] = {"tl": tl}
    exec("def nowhere(x, n, BLOCK: tl.constexpr):\n    tl.store(x, 1.0)\n", names)
    return jit(names["nowhere"])


Launch = Callable[[Any], object]

AT_LAUNCH: dict[str, tuple[Launch, type[Exception], str]] = {
    "missing argument": (
        lambda k: k[(1,)](X, 7), errors.MissingArgument, "missing required argument 'BLOCK'"),
    "too many arguments": (
        lambda k: k[(1,)](X, 7, 16, 17), errors.ArgumentCount, "takes 3 arguments, found 4"),
    "unknown argument": (
        lambda k: k[(1,)](X, 7, BLOKC=16, BLOCK=16), errors.UnknownArgument, "mean 'BLOCK'?"),
    "read-only array": (
        lambda k: k[(1,)](LOCKED, 7, BLOCK=16), errors.ReadOnlyArray, "pass a writable copy"),
    "another device": (
        lambda k: k[(1,)](OnAnotherDevice(), 7, BLOCK=16), errors.DeviceMismatch, "xpu:0"),
    "grid function below zero": (
        lambda k: k[lambda meta: (meta["n"] - 8,)](X, 7, BLOCK=16), errors.BadGrid, "holds -1"),
    "grid function of nothing": (
        lambda k: k[lambda: (1,)](X, 7, BLOCK=16), errors.BadCallback, "takes 0 positional"),
    "negative grid": (
        lambda k: k[(4, -1)](X, 7, BLOCK=16), errors.BadGrid, "holds -1"),
    "grid of four": (
        lambda k: k[(1, 1, 1, 1)](X, 7, BLOCK=16), errors.BadGrid, "has 4 extents"),
    "fractional grid": (
        lambda k: k[(1.5,)](X, 7, BLOCK=16), errors.BadGrid, "not an integer"),
    "no grid": (
        lambda k: k(X, 7, BLOCK=16), errors.InvalidOperation, "good[grid](...)"),
    "list": (
        lambda k: k[(1,)]([1, 2], 7, BLOCK=16), errors.UnsupportedArgument, "pass a tuple"),
    "dictionary": (
        lambda k: k[(1,)]({}, 7, BLOCK=16), errors.UnsupportedArgument, "is a dict"),
    "array of objects": (
        lambda k: k[(1,)](np.array([None]), 7, BLOCK=16), errors.UnsupportedArgument, "object"),
    "complex array": (
        lambda k: k[(1,)](X.astype(complex), 7, BLOCK=16), errors.UnsupportedArgument, "complex"),
    "foreign byte order": (
        lambda k: k[(1,)](X.astype(">f4"), 7, BLOCK=16), errors.UnsupportedArgument, "native"),
    "huge integer": (
        lambda k: k[(1,)](X, 2**64, BLOCK=16), errors.UnsupportedArgument, "64 bits"),
    "array for a constexpr": (
        lambda k: k[(1,)](X, 7, BLOCK=X), errors.UnsupportedArgument, "is an ndarray"),
    "option out of range": (
        lambda k: k[(1,)](X, 7, BLOCK=16, num_warps=3), errors.InvalidOption, "num_warps"),
    "reserved word": (
        lambda k: k[(1,)](X, 7, BLOCK=16, stream=0), errors.RefusedKeyword, "stream"),
    "word of the decorator": (
        lambda k: k[(1,)](X, 7, BLOCK=16, check="race"), errors.RefusedKeyword, "@jit(check="),
    "word of the decorator, and an argument missing": (
        lambda k: k[(1,)](X, BLOCK=16, interpret=True), errors.RefusedKeyword, "@jit(interpret="),
}  # fmt: skip


def mode(kernel: Any, interpret: bool) -> Any:
    return jit(kernel.fn, interpret=interpret)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """A disk cache with one kernel in it."""
    with settings().cache.scope(dir=tmp_path):
        x = X.copy()
        mode(good, False)[(1,)](x, 7, BLOCK=16)
        assert files_of_the_cache()
        yield


def files_of_the_cache() -> dict[Path, bytes]:
    """Every file of the disk cache with what it holds."""
    files = (path for path in settings().cache.dir.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files}


def failure_of(launch: Callable[[], object], expected: type[Exception]) -> Exception:
    """The error of a launch that must fail; arrays and caches stay as they are."""
    before, kept = X.copy(), files_of_the_cache()
    with pytest.raises(expected) as caught:
        launch()
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(LOCKED, before)
    now = files_of_the_cache()
    assert all(now.get(path) == content for path, content in kept.items())
    if expected is not errors.ReadOnlyArray:  # that is found when the kernel is known, and kept
        assert now.keys() == kept.keys()
    return caught.value


def frames_of_the_package(error: Exception) -> list[str]:
    found = traceback.extract_tb(error.__traceback__)
    return [
        f"{frame.filename}:{frame.lineno}" for frame in found if frame.filename.startswith(PACKAGE)
    ]


def marked_code(text: str) -> list[str]:
    """What the carets of a message stand under."""
    lines = text.splitlines()
    found: list[str] = []
    for line, below in zip(lines, lines[1:], strict=False):
        start, end = below.find("^"), below.rfind("^") + 1
        if start >= 0 and set(below[start:end]) == {"^"}:
            found.append(line[start:end])
    return found


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize(
    ("kernel", "expected", "message", "code"), INSIDE, ids=[case[0].__name__ for case in INSIDE]
)
def test_mistake_in_a_kernel(
    kernel: Any, expected: type[Exception], message: str, code: str, interpret: bool
):
    if interpret and kernel.__name__ in ONLY_COMPILED:
        pytest.skip("means something to Python")
    kernel = mode(kernel, interpret)
    error = failure_of(lambda: kernel[(1,)](X, 7, BLOCK=16), expected)
    text = str(error)
    assert message in text
    assert code in marked_code(text)
    assert frames_of_the_package(error) == []
    assert error.__cause__ is None and error.__suppress_context__


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("name", AT_LAUNCH)
def test_mistake_at_a_launch(name: str, interpret: bool):
    launch, expected, message = AT_LAUNCH[name]
    kernel = mode(good, interpret)
    error = failure_of(lambda: launch(kernel), expected)
    assert message in str(error)
    assert frames_of_the_package(error) == []
    last = traceback.extract_tb(error.__traceback__)[-1]
    assert last.filename == __file__ and last.name == "<lambda>"


def test_source_not_available():
    error = failure_of(lambda: sourceless()[(1,)](X, 7, BLOCK=16), errors.SourceNotAvailable)
    assert "'nowhere'" in str(error) and "define the kernel in a file" in str(error)
    assert frames_of_the_package(error) == []


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
def test_a_right_launch_works_after_each_mistake(interpret: bool):
    kernel = mode(good, interpret)
    for launch, expected, _ in AT_LAUNCH.values():
        with pytest.raises(expected):
            launch(kernel)
        x = X.copy()
        kernel[(1,)](x, 7, BLOCK=16)
        np.testing.assert_array_equal(x, X + (np.arange(16) < 7))


def test_arrays_of_two_devices():
    @jit
    def two(x, y, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(y + i))

    error = failure_of(lambda: two[(1,)](X, OnAnotherDevice(), BLOCK=16), errors.DeviceMismatch)
    assert "argument 'y' is on xpu:0" in str(error)
    assert frames_of_the_package(error) == []


def test_debugging_keeps_the_frames_of_the_compiler():
    with settings().compilation.scope(debug=True):
        error = failure_of(
            lambda: mode(shape_mismatch, False)[(1,)](X, 7, BLOCK=16), errors.ShapeMismatch
        )
    assert frames_of_the_package(error)


def test_mistakes_of_python_in_an_interpreted_kernel_show_its_frames_alone():
    kernel = mode(index_outside, True)
    error = failure_of(lambda: kernel[(1,)](X, 7, BLOCK=16), IndexError)
    assert frames_of_the_package(error) == []
    last = traceback.extract_tb(error.__traceback__)[-1]
    assert last.name == "index_outside" and last.line == "tl.store(x + i, (1, 2)[BLOCK])"


def test_an_access_out_of_bounds_is_found_by_the_interpreter():
    kernel = mode(good, True)
    error = failure_of(lambda: kernel[(1,)](X, 32, BLOCK=32), errors.OutOfBounds)
    assert "tl.load(x + i)" in marked_code(str(error))
    assert frames_of_the_package(error) == []
