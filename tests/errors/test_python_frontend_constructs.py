"""Parts of Python that kernels do not have."""

# pyright: reportCallIssue=false, reportMissingImports=false

# ruff: noqa: B007, E501, E731, F401, F821, F823, F841 -- the mistakes are meant

import math
import pdb

import numpy as np
import pytest

import tilewright.language as tl
from tests.errors.python_mistakes import Mistakes

mistake = Mistakes()


def plain(x):
    return x if x > 0 else -x


@mistake(out="*i32")
def stops(out):
    """stopping compiled code in a debugger is not supported in a kernel [TW101]
    from ipdb import set_trace; set_trace()  # fmt: skip  # noqa: E702, I001
    ^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: run it in the interpreter: @jit(interpret=True), or TILEWRIGHT_INTERPRET=1
    """
    from ipdb import set_trace; set_trace()  # fmt: skip  # noqa: E702, I001


@mistake(out="*i32")
def stops_in_pdb(out):
    """stopping compiled code in a debugger is not supported in a kernel [TW101]
    pdb.set_trace()
    ^^^^^^^^^^^^^^^
    hint: run it in the interpreter: @jit(interpret=True), or TILEWRIGHT_INTERPRET=1
    """
    pdb.set_trace()


@mistake(out="*i32")
def breaks_in(out):
    """stopping compiled code in a debugger is not supported in a kernel [TW101]
    breakpoint()
    ^^^^^^^^^^^^
    hint: run it in the interpreter: @jit(interpret=True), or TILEWRIGHT_INTERPRET=1
    """
    breakpoint()


@mistake(out="*i32")
def imports(out):
    """an import is not supported in a kernel [TW101]
    import math
    ^^^^^^^^^^^
    hint: import at the top of the module
    """
    import math


@mistake(out="*i32", n="i32")
def returns_in_loop(out, n):
    """a 'return' inside a loop is not supported in a kernel [TW101]
        return
        ^^^^^^
    hint: let the loop end by its bounds or condition, and return after it
    """
    for i in range(n):
        return


@mistake(out="*i32", n="i32")
def returns_in_unrolled_loop(out, n):
    """a 'return' at run time inside a loop is not supported in a kernel [TW101]
    for i in tl.static_range(3):
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: compute a flag instead
    """
    for i in tl.static_range(3):
        if n == i:
            return


@mistake(out="*i32", n="i32")
def returns_value(out, n):
    """cannot return int32: kernels have no result [TW113]
    return n
    ^^^^^^^^
    hint: store it through a pointer parameter
    """
    return n


@mistake(out="*i32")
def stores_element(out):
    """assigning to an element is not supported in a kernel [TW101]
    out[0] = 1
    ^^^^^^
    hint: store through a pointer with tl.store, or select with tl.where
    """
    out[0] = 1


@mistake(out="*i32")
def stores_attribute(out):
    """assigning to an attribute is not supported in a kernel [TW101]
    out.x = 1
    ^^^^^
    hint: assign to a variable
    """
    out.x = 1


@mistake(out="*i32", n="i32")
def calls_plain(out, n):
    """cannot branch on a run-time value in the Python function 'plain': it runs once, when the kernel is compiled [TW113]
    tl.store(out, plain(n))
                  ^^^^^^^^
    hint: put @jit above it
    """
    tl.store(out, plain(n))


@mistake(out="*i32", n="i32")
def calls_numpy(out, n):
    """calling the Python function 'sqrt' is not supported in a kernel [TW101]
    tl.store(out, np.sqrt(n))
                  ^^^^^^^^^^
    hint: tl.sqrt works on tensors
    """
    tl.store(out, np.sqrt(n))


@mistake(out="*i32", n="i32")
def calls_math(out, n):
    """argument 1 of sqrt() must be known at compile time, but is a run-time value of type int32 [TW104]
    tl.store(out, math.sqrt(n))
                  ^^^^^^^^^^^^
    hint: tl.sqrt works on tensors
    """
    tl.store(out, math.sqrt(n))


@mistake(out="*i32", n="i32")
def calls_numpy_for_what_the_language_lacks(out, n):
    """calling the Python function 'median' is not supported in a kernel [TW101]
    tl.store(out, np.median(n))
                  ^^^^^^^^^^^^
    hint: the functions of tilewright.language work on tensors
    """
    tl.store(out, np.median(n))


@mistake(out="*i32", n="i32")
def prints_several_texts(out, n):
    """cannot print 'out =': values in a print must be numbers or tensors [TW113]
    print("n =", n, "out =", out)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: a print has one text, its first argument: print each value in a call of its own
    """
    print("n =", n, "out =", out)


@mistake(out="*i32", n="i32")
def prints_a_shape(out, n):
    """cannot print a tuple: values in a print must be numbers or tensors [TW113]
    print(tl.arange(0, 4).shape)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: tl.static_print prints compile-time values, once, when the kernel is compiled
    """
    print(tl.arange(0, 4).shape)


@mistake(out="*i32", n="i32")
def calls_dtype(out, n):
    """cannot call fp32: a dtype is not a function [TW113]
    tl.store(out, tl.float32(n))
                  ^^^^^^^^^^^^^
    hint: write x.to(dtype)
    """
    tl.store(out, tl.float32(n))


@mistake(out="*i32", n="i32")
def converts(out, n):
    """calling float() on a run-time value is not supported in a kernel [TW101]
    tl.store(out, float(n))
                  ^^^^^^^^
    hint: write x.to(tl.float32)
    """
    tl.store(out, float(n))


@mistake(out="*i32", n="i32")
def iterates(out, n):
    """iterating over a tensor is not supported in a kernel [TW101]
    for x in tl.arange(0, 4):
             ^^^^^^^^^^^^^^^
    hint: loop over tl.range, or use a reduction such as tl.sum
    """
    for x in tl.arange(0, 4):
        pass


@mistake(out="*i32", n="i32")
def multiplies(out, n):
    """the operator '@' is not supported in a kernel [TW101]
    n = n @ n
        ^^^^^
    hint: call tl.dot
    """
    n = n @ n


@mistake(out="*i32")
def tries(out):
    """'try' is not supported in a kernel [TW101]
    try:
    ^^^^
    hint: check before: kernels raise nothing
    """
    try:
        pass
    except ValueError:
        pass


@mistake(out="*i32")
def builds_dictionary(out):
    """a dictionary is not supported in a kernel [TW101]
    d = {"a": 1}
        ^^^^^^^^
    hint: use a tuple, or pass the values as constexpr parameters
    """
    d = {"a": 1}


@mistake(out="*i32", n="i32")
def loops_forever(out, n):
    """cannot run this loop: its condition is always true, and nothing leaves it [TW113]
    while True:
          ^^^^
    hint: add a 'break'
    """
    while True:
        tl.store(out, n)


@mistake(out="*i32", n="i32")
def else_of_loop(out, n):
    """'else' of a run-time loop is not supported in a kernel [TW101]
        tl.store(out, n)
        ^^^^^^^^^^^^^^^^
    hint: put it after the loop
    """
    for i in range(n):
        pass
    else:
        tl.store(out, n)


@mistake(out="*i32", n="i32")
def tile_condition(out, n):
    """cannot use a tile of shape (4,) as a condition: the whole program instance takes one branch [TW113]
    if tl.arange(0, 4) > n:
       ^^^^^^^^^^^^^^^^^^^
    hint: select with tl.where, or reduce it, for example tl.max(x, axis=None) != 0
    """
    if tl.arange(0, 4) > n:
        tl.store(out, n)


@pytest.mark.parametrize("kernel", list(mistake), ids=str)
def test_mistake(kernel):
    assert kernel.shown() == kernel.expected
