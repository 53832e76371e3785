"""The mistakes that newcomers make first: the same text and remedy compiled and interpreted."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportGeneralTypeIssues=false

# ruff: noqa: E501, F841 -- the mistakes are meant

import numpy as np
import pytest

import tilewright.language as tl
from tests.errors.python_mistakes import Mistakes
from tilewright.language import device_function

mistake = Mistakes()


@mistake(x="*f32", o="*f16")
def dtype_as_text(x, o):
    """cast: 'dtype' must be a dtype such as tl.float16, found 'float16' [TW112]
    tl.store(o, tl.load(x).to("float16"))
                ^^^^^^^^^^^^^^^^^^^^^^^^
    hint: write tl.float16
    """
    tl.store(o, tl.load(x).to("float16"))


@mistake(x="*f32", o="*f32")
def class_for_a_dtype(x, o):
    """zeros: 'dtype' must be a dtype such as tl.float32, found float [TW112]
    v = tl.zeros((16,), float)
        ^^^^^^^^^^^^^^^^^^^^^^
    hint: write tl.float32
    """
    v = tl.zeros((16,), float)


@mistake(x="*f32", o="*f32")
def no_dtype_at_all(x, o):
    """zeros() missing required argument 'dtype' [TW117]
    v = tl.zeros((16, 16))
        ^^^^^^^^^^^^^^^^^^
    hint: pass a dtype, such as zeros(shape, dtype=tl.float32)
    """
    v = tl.zeros((16, 16))


@mistake(x="*f32", o="*f32")
def offsets_index_a_pointer(x, o):
    """cannot index pointer<fp32>: a pointer is one address [TW113]
    v = x[i]
        ^^^^
    hint: load through it: tl.load(x + i)
    """
    i = tl.arange(0, 16)
    v = x[i]


@mistake(x="*f32", o="*f32")
def a_condition_indexes_a_pointer(x, o):
    """cannot index pointer<fp32>: a pointer is one address [TW113]
    v = x[i > 3]
        ^^^^^^^^
    hint: load through it: tl.load(x + (i > 3))
    """
    i = tl.arange(0, 16)
    v = x[i > 3]


@mistake(x="*f32", o="*f32")
def a_slice_of_a_pointer(x, o):
    """cannot index pointer<fp32>: a pointer is one address [TW113]
    v = x[:16]
        ^^^^^^
    hint: load through it: tl.load(x + tl.arange(0, 16))
    """
    v = x[:16]


@device_function
def first_of(pointer):
    return pointer[0]


@mistake(x="*f32", o="*f32")
def a_called_function_indexes_a_pointer(x, o):
    """cannot index pointer<fp32>: a pointer is one address [TW113]
    return pointer[0]
           ^^^^^^^^^^
    called in a_called_function_indexes_a_pointer
    tl.store(o, first_of(x))
                ^^^^^^^^^^^
    hint: load through it: tl.load(pointer + 0)
    """
    tl.store(o, first_of(x))


@mistake(x="*f32", o="*f32")
def an_array_for_a_number(x, o):
    """cannot combine pointer<fp32> with numbers: it is a pointer [TW113]
    v = tl.arange(0, 16) < x
        ^^^^^^^^^^^^^^^^^^^^
    hint: argument 'x' is a pointer: pass a number, or load it by tl.load(x)
    """
    v = tl.arange(0, 16) < x


@mistake(x="*f32", o="*f32")
def max_of_a_tensor(x, o):
    """Python's max() of a tensor is not supported in a kernel [TW101]
    tl.store(o, max(tl.load(x + tl.arange(0, 16))))
                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: reduce it by tl.max(x)
    """
    tl.store(o, max(tl.load(x + tl.arange(0, 16))))


@mistake(x="*f32", o="*f32")
def sum_of_a_tensor(x, o):
    """Python's sum() of a tensor is not supported in a kernel [TW101]
    tl.store(o, sum(tl.load(x + tl.arange(0, 16)), 1))
                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: reduce it by tl.sum(x)
    """
    tl.store(o, sum(tl.load(x + tl.arange(0, 16)), 1))


@mistake(x="*f32", o="*f32")
def text_among_printed_values(x, o):
    """cannot print 'n =': values in a print must be numbers or tensors [TW113]
    tl.device_print("x =", tl.load(x), "n =")
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: a print has one text, its first argument: print each value in a call of its own
    """
    tl.device_print("x =", tl.load(x), "n =")


@pytest.mark.parametrize("kernel", list(mistake), ids=str)
def test_mistake(kernel):
    arrays = {name: np.zeros(64, np.float32) for name in ("x", "o")}
    assert kernel.shown() == kernel.expected
    assert kernel.interpreted(**arrays) == kernel.expected
