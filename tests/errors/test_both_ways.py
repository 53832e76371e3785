"""Mistakes that give the same text, line and caret compiled and interpreted."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportGeneralTypeIssues=false

# ruff: noqa: E501, F821, F841 -- the mistakes are meant

import functools
import re

import numpy as np
import pytest

import tilewright.language as tl
from tests.errors.python_mistakes import Mistakes
from tests.unit.frontend.python.harness import lower
from tilewright import jit, language
from tilewright.language import device_function, member_names, unknown_names
from tilewright.support import errors

mistake = Mistakes()


@mistake(x="*f32", o="*f32")
def shape_of_pointer(x, o):
    """cannot index the shape of a pointer: it is an address, without the shape of an array [TW113]
    n = x.shape[0]
        ^^^^^^^^^^
    hint: pass the sizes as arguments of the kernel
    """
    n = x.shape[0]
    tl.store(o, n)


@mistake(x="*f32", o="*f32")
def unpack_shape(x, o):
    """cannot unpack the shape of a pointer: it is an address, without the shape of an array [TW113]
    a, b = x.shape
    ^^^^
    hint: pass the sizes as arguments of the kernel
    """
    a, b = x.shape
    tl.store(o, a)


@mistake(x="*f32", o="*f32")
def astype(x, o):
    """a tensor has no attribute 'astype' [TW108]
    tl.store(o + tl.arange(0, 16), v.astype(tl.float32))
                                   ^^^^^^^^
    hint: write x.to(tl.float32)
    """
    v = tl.load(x + tl.arange(0, 16))
    tl.store(o + tl.arange(0, 16), v.astype(tl.float32))


@mistake(x="*f32", o="*f32")
def relu(x, o):
    """a tensor has no attribute 'relu' [TW108]
    tl.store(o, tl.load(x).relu())
                ^^^^^^^^^^^^^^^
    hint: write tl.maximum(x, 0)
    """
    tl.store(o, tl.load(x).relu())


@mistake(x="*f32", o="*f16")
def dtype_of_another_library(x, o):
    """cast: 'dtype' must be a dtype such as tl.float16, found float16 [TW112]
    tl.store(o, tl.load(x).to(np.float16))
                ^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: write tl.float16
    """
    tl.store(o, tl.load(x).to(np.float16))


@device_function
def sum_and_first(a, b):
    return a + b, a


@mistake(x="*f32", o="*f32")
def results_of_a_scan(x, o):
    """associative_scan: the result of combine_fn() takes 1 argument, found 2 [TW116]
    tl.store(o + i, tl.associative_scan(tl.load(x + i), 0, sum_and_first))
                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    i = tl.arange(0, 16)
    tl.store(o + i, tl.associative_scan(tl.load(x + i), 0, sum_and_first))


@mistake(x="*f32", o="*f32")
def range_of_four(x, o):
    """range() takes 1 to 3 arguments, found 4 [TW116]
    for _ in range(0, 10, 1, 2):
             ^^^^^^^^^^^^^^^^^^
    """
    for _ in range(0, 10, 1, 2):
        tl.store(o, 1.0)


@mistake(x="*f32", o="*f32")
def mean(x, o):
    """a tensor has no attribute 'mean' [TW108]
    tl.store(o, v.mean())
                ^^^^^^
    hint: divide tl.sum(x, axis) by the number of elements
    """
    v = tl.load(x + tl.arange(0, 16))
    tl.store(o, v.mean())


@mistake(x="*f32", o="*f32")
def ptr_attr(x, o):
    """a pointer has no attribute 'size' [TW108]
    tl.store(o, x.size)
                ^^^^^^
    hint: it is an address: pass sizes and strides as arguments of the kernel
    """
    tl.store(o, x.size)


@mistake(x="*f32", o="*f32")
def sem(x, o):
    """cannot atomic_add with a mask of 'relaxed': a mask is int1 [TW113]
    tl.atomic_add(o + tl.arange(0, 16), 1.0, "relaxed")
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: name the argument: sem="relaxed"
    """
    tl.atomic_add(o + tl.arange(0, 16), 1.0, "relaxed")


@mistake(x="*f32", o="*f32")
def mask_type(x, o):
    """cannot store with a mask of int32: a mask is int1 [TW113]
    tl.store(o + i, 1.0, i)
    ^^^^^^^^^^^^^^^^^^^^^^^
    hint: compare it: mask=m != 0
    """
    i = tl.arange(0, 16)
    tl.store(o + i, 1.0, i)


@mistake(x="*f32", o="*f32")
def mask_other(x, o):
    """cannot load with a mask of 0.0: a mask is int1 [TW113]
    v = tl.load(x + i, 0.0)
        ^^^^^^^^^^^^^^^^^^^
    hint: name the argument if it is another: other=0.0
    """
    i = tl.arange(0, 16)
    v = tl.load(x + i, 0.0)


@mistake(x="*f32", o="*f32")
def reshape(x, o):
    """cannot reshape a tile of shape (16,) to (4, 5): it has 16 elements, not 20 [TW125]
    tl.reshape(v, (4, 5))
    ^^^^^^^^^^^^^^^^^^^^^
    """
    v = tl.load(x + tl.arange(0, 16))
    tl.reshape(v, (4, 5))


@mistake(x="*f32", o="*f32")
def view2(x, o):
    """cannot reshape a tile of shape (16,) to (3, 4): it has 16 elements, not 12 [TW125]
    v.view(3, 4)
    ^^^^^^^^^^^^
    """
    v = tl.load(x + tl.arange(0, 16))
    v.view(3, 4)


@mistake(x="*f32", o="*f32")
def dot(x, o):
    """cannot dot tiles of shapes (16, 32) and (16, 64): K is 32 and 16 [TW110]
    tl.dot(a, b)
    ^^^^^^^^^^^^
    note: dot takes (..., M, K) x (..., K, N)
    """
    a = tl.zeros((16, 32), tl.float32)
    b = tl.zeros((16, 64), tl.float32)
    tl.dot(a, b)


@mistake(x="*f32", o="*f32")
def dot_acc(x, o):
    """cannot sum tiles of shapes (16, 16) and (16, 32): the result of dot is the first, 'acc' the second [TW110]
    tl.dot(a, b, tl.zeros((16, 32), tl.float32))
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    a = tl.zeros((16, 32), tl.float32)
    b = tl.zeros((32, 16), tl.float32)
    tl.dot(a, b, tl.zeros((16, 32), tl.float32))


@mistake(x="*f32", o="*f32")
def dot_batch(x, o):
    """cannot dot tiles of shapes (2, 16, 32) and (4, 32, 16): the batch is 2 and 4 [TW110]
    tl.dot(a, b)
    ^^^^^^^^^^^^
    note: dot takes (..., M, K) x (..., K, N)
    """
    a = tl.zeros((2, 16, 32), tl.float32)
    b = tl.zeros((4, 32, 16), tl.float32)
    tl.dot(a, b)


@mistake(x="*f32", o="*f32")
def store_shape(x, o):
    """cannot store a value of shape (32,) through pointers of shape (16,) [TW124]
    tl.store(o + tl.arange(0, 16), tl.zeros((32,), tl.float32))
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: it must broadcast to the shape of the pointers: sizes must be equal or 1
    """
    tl.store(o + tl.arange(0, 16), tl.zeros((32,), tl.float32))


@mistake(x="*f32", o="*f32")
def store_scalar_pointer(x, o):
    """cannot store a value of shape (32,) through a scalar pointer: the pointer must have the shape of the access [TW113]
    tl.store(o, tl.zeros((32,), tl.float32))
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: add a tile of offsets to the pointer, such as tl.arange(...)
    """
    tl.store(o, tl.zeros((32,), tl.float32))


@mistake(x="*f32", o="*f32")
def store_bigger_mask(x, o):
    """cannot store with a mask of shape (32,) through pointers of shape (16,) [TW124]
    tl.store(o + tl.arange(0, 16), 1.0, mask=tl.arange(0, 32) < 3)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: it must broadcast to the shape of the pointers: sizes must be equal or 1
    """
    tl.store(o + tl.arange(0, 16), 1.0, mask=tl.arange(0, 32) < 3)


@mistake(x="*f32", o="*f32")
def load_mask(x, o):
    """cannot load with a mask of shape (32,) through pointers of shape (16,) [TW124]
    tl.load(x + tl.arange(0, 16), mask=tl.arange(0, 32) < 3)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: it must broadcast to the shape of the pointers: sizes must be equal or 1
    """
    tl.load(x + tl.arange(0, 16), mask=tl.arange(0, 32) < 3)


@mistake(x="*f32", o="*f32")
def load_other(x, o):
    """cannot load with 'other' of shape (32,) through pointers of shape (16,) [TW124]
    tl.load(x + tl.arange(0, 16), mask=tl.arange(0, 16) < 3, other=tl.zeros((32,), tl.float32))
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: it must broadcast to the shape of the pointers: sizes must be equal or 1
    """
    tl.load(x + tl.arange(0, 16), mask=tl.arange(0, 16) < 3, other=tl.zeros((32,), tl.float32))


@mistake(x="*f32", o="*f32")
def atomic_shape(x, o):
    """cannot atomic_add a value of shape (32,) through pointers of shape (16,) [TW124]
    tl.atomic_add(o + tl.arange(0, 16), tl.zeros((32,), tl.float32))
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: it must broadcast to the shape of the pointers: sizes must be equal or 1
    """
    tl.atomic_add(o + tl.arange(0, 16), tl.zeros((32,), tl.float32))


@mistake(x="*f32", o="*f32")
def cat_lists(x, o):
    """cat() missing required argument 'other' [TW117]
    tl.cat([a, a])
    ^^^^^^^^^^^^^^
    hint: pass the items one by one: cat(a, b)
    """
    a = tl.arange(0, 16)
    tl.cat([a, a])


@mistake(x="*f32", o="*f32")
def cat_shape(x, o):
    """cannot concatenate tiles of shapes (4, 4) and (4, 8): dimension 1 is 4 and 8, but only axis 0 may differ [TW110]
    tl.cat(tl.zeros((4, 4), tl.int32), tl.zeros((4, 8), tl.int32))
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.cat(tl.zeros((4, 4), tl.int32), tl.zeros((4, 8), tl.int32))


@mistake(x="*f32", o="*f32")
def cat_rank(x, o):
    """cannot concatenate tiles of shapes (4, 4) and (4,): their ranks are 2 and 1 [TW110]
    tl.cat(tl.zeros((4, 4), tl.int32), tl.zeros((4,), tl.int32))
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.cat(tl.zeros((4, 4), tl.int32), tl.zeros((4,), tl.int32))


@mistake(x="*f32", o="*f32")
def cat_three(x, o):
    """cannot concatenate more than two tiles: cat takes two [TW113]
    tl.cat(a, a, a)
    ^^^^^^^^^^^^^^^
    hint: call it twice: tl.cat(tl.cat(a, b), c)
    """
    a = tl.arange(0, 16)
    tl.cat(a, a, a)


@mistake(x="*f32", o="*f32")
def list_sum(x, o):
    """sum: 'input' must be a tensor, found a tuple [TW112]
    tl.sum([tl.arange(0, 4), tl.arange(0, 4)])
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: it takes one tile: make one with tl.join or tl.cat, or call it for each
    """
    tl.sum([tl.arange(0, 4), tl.arange(0, 4)])


@mistake(x="*f32", o="*f32")
def list_arith(x, o):
    """cannot apply 'add' to tuples: these are (the constant 1, the constant 2) and fp32 [TW113]
    tl.store(o, [1, 2] + tl.load(x))
                ^^^^^^^^^^^^^^^^^^^
    """
    tl.store(o, [1, 2] + tl.load(x))


@mistake(x="*f32", o="*f32")
def list_where(x, o):
    """cannot use a tuple as a condition: it is no number [TW113]
    tl.where([True, False], 1, 2)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.where([True, False], 1, 2)


@mistake(x="*f32", o="*f32")
def list_maximum(x, o):
    """cannot take the maximum of a tuple and 3: a tuple is no number [TW113]
    tl.maximum([1, 2], 3)
    ^^^^^^^^^^^^^^^^^^^^^
    """
    tl.maximum([1, 2], 3)


@mistake(x="*f32", o="*f32")
def sort_of_a_scalar(x, o):
    """sort: 'x' must be a tile, found a scalar int32 [TW112]
    tl.sort(tl.program_id(0))
    ^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.sort(tl.program_id(0))


@mistake(x="*f32", o="*f32")
def topk_of_too_many(x, o):
    """topk: 'k' must be in [1, 16], found 32 [TW112]
    tl.topk(tl.arange(0, 16), 32)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.topk(tl.arange(0, 16), 32)


@mistake(x="*f32", o="*f32")
def histogram_of_floats(x, o):
    """histogram: 'input' must be an integer tile of rank 1, found <[8], fp32> [TW112]
    tl.histogram(tl.zeros((8,), tl.float32), 4)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.histogram(tl.zeros((8,), tl.float32), 4)


@mistake(x="*f32", o="*f32")
def assembly_of_unknown_instructions(x, o):
    """cannot run the assembly 'activemask.b32 $0' here: only GPUs have the instruction activemask.b32 [TW113]
    tl.inline_asm_elementwise("activemask.b32 $0;", "=r,r", [1], tl.int32, True, 1)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: write it in the language, or launch the kernel on a GPU
    """  # noqa: E501
    tl.inline_asm_elementwise("activemask.b32 $0;", "=r,r", [1], tl.int32, True, 1)


@jit
def same(x):
    return x


@mistake(x="*f32", o="*f32")
def packs_that_do_not_divide(x, o):
    """map_elementwise: 'pack' must be a number that divides the last extent, 16, found 3 [TW112]
    tl.map_elementwise(same, tl.arange(0, 16), pack=3)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.map_elementwise(same, tl.arange(0, 16), pack=3)


@language.must_use_result("it only computes")
@jit
def doubled(x):
    return 2 * x


@mistake(x="*f32", o="*f32")
def result_of_a_function_that_is_dropped(x, o):
    """the result of doubled is not used: it only computes [TW128]
    doubled(x)
    ^^^^^^^
    """
    doubled(x)


@mistake(x="*f32", o="*f32")
def window_that_is_dropped(x, o):
    """the result of p.advance is not used: it has no side effects: assign the window that it returns to a variable [TW128]
    p.advance((16,))
    ^^^^^^^^^
    """  # noqa: E501
    p = tl.make_block_ptr(x, (64,), (1,), (0,), (16,), (0,))
    p.advance((16,))


@mistake(x="*f32", o="*f32")
def sort_method(x, o):
    """a tensor has no attribute 'sorted' [TW108]
    tl.arange(0, 16).sorted()
    ^^^^^^^^^^^^^^^^^^^^^^^
    hint: did you mean 'sort' or 'store'?
    """
    tl.arange(0, 16).sorted()


@mistake(x="*f32", o="*f32")
def typo_tl(x, o):
    """'tilewright.language' has no attribute 'mximum' [TW108]
    tl.mximum(1, 2)
    ^^^^^^^^^
    hint: did you mean 'maximum' or 'minimum'?
    """
    tl.mximum(1, 2)


@pytest.mark.parametrize("kernel", list(mistake), ids=str)
def test_mistake(kernel):
    arrays = {name: np.zeros(64, np.float32) for name in ("x", "o")}
    assert kernel.shown() == kernel.expected
    assert kernel.interpreted(**arrays) == kernel.expected


def test_what_is_said_to_write_instead_exists():
    tables = (unknown_names._OF_TENSORS, unknown_names._OF_MODULE)
    for advice in [text for table in tables for text in table.values()]:
        for name in re.findall(r"\btl\.(\w+)", advice):
            assert hasattr(tl, name), advice
        for name in re.findall(r"\bx\.(\w+)", advice):
            assert name in member_names(), advice
        for name in re.findall(r"libdevice\.(\w+)", advice):
            assert hasattr(tl.extra.libdevice, name), advice
    assert not unknown_names._OF_TENSORS.keys() & set(member_names())
    assert not unknown_names._OF_MODULE.keys() & set(dir(tl))


def test_modules_of_the_language_say_what_they_lack():
    with pytest.raises(AttributeError, match="has no attribute 'concatenate'") as caught:
        _ = tl.concatenate
    assert caught.value.advice == "write tl.cat(a, b)"
    assert not hasattr(tl, "concatenate") and getattr(tl, "stack", None) is None
    with pytest.raises(ImportError):
        from tilewright.language import stack  # noqa: F401  # pyright: ignore[reportAttributeAccessIssue]


def logged(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper


def plainly_wrapped(fn):
    def wrapper(*args):
        return fn(*args)

    return wrapper


@logged
@device_function
def helper(a):
    return a + 1


@device_function
def calls_wrapped_helper(x, o):
    tl.store(o, helper(tl.load(x)))


@pytest.mark.parametrize("interpret", [False, True])
def test_jit_belongs_below_other_decorators(interpret):
    with pytest.raises(errors.NotAKernel) as caught:
        jit(interpret=interpret)(logged(calls_wrapped_helper.fn))
    assert caught.value.message.endswith("has put around 'calls_wrapped_helper'")
    assert caught.value.hint == "put @jit innermost, right above the 'def'"


def test_functions_that_decorators_have_wrapped_cannot_be_called():
    with pytest.raises(errors.UnsupportedLanguageConstruct) as caught:
        lower(calls_wrapped_helper, x="*f32", o="*f32")
    assert caught.value.hint == "remove the decorator above its @jit: kernels call what @jit gives"
    wrapped = device_function(plainly_wrapped(calls_wrapped_helper.fn))

    @device_function
    def calls_wrapper(x, o):
        wrapped(x, o)

    with pytest.raises(errors.UnsupportedLanguageConstruct) as caught:
        lower(calls_wrapper, x="*f32", o="*f32")
    assert "put @jit innermost, right above the 'def'" in str(caught.value)
