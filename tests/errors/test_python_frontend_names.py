"""Mistakes with names: undefined, undefined on some paths, of changing type."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false, reportUnboundVariable=false, reportUndefinedVariable=false

# ruff: noqa: B007, E501, E731, F401, F821, F823, F841 -- the mistakes are meant

import threading

import pytest

import tilewright.language as tl
from tests.errors.python_mistakes import Mistakes
from tilewright.language import device_function

mistake = Mistakes()

table = {"a": 1}
lock = threading.Lock()


@mistake(out="*i32", size="i32")
def misspelled(out, size):
    """name 'sice' is not defined [TW103]
    tl.store(out, sice)
                  ^^^^
    hint: did you mean 'size'?
    """
    tl.store(out, sice)


@mistake(out="*i32")
def misspelled_attribute(out):
    """'tilewright.language' has no attribute 'programid' [TW108]
    tl.store(out, tl.programid(0))
                  ^^^^^^^^^^^^
    hint: did you mean 'program_id' or 'num_programs'?
    """
    tl.store(out, tl.programid(0))


@mistake(out="*i32")
def assigned_later(out):
    """name 'table' is not defined [TW103]
    tl.store(out, table)
                  ^^^^^
    note: the function assigns 'table', so it is a local variable, but not before here
    """
    tl.store(out, table)
    table = 1


@mistake(out="*i32", n="i32")
def one_sided(out, n):
    """'x' may be undefined here: it is assigned only inside the 'if' of line N [TW120]
    tl.store(out, x)
                  ^
    hint: also assign it before the 'if' of line N
    """
    if n > 0:
        x = n
    tl.store(out, x)


@mistake(out="*i32", n="i32")
def only_in_loop(out, n):
    """'x' may be undefined here: it is assigned only inside the loop of line N [TW120]
    tl.store(out, x)
                  ^
    hint: also assign it before the loop of line N
    """
    for i in range(n):
        x = i
    tl.store(out, x)


@mistake(out="*i32", n="i32")
def loop_variable(out, n):
    """'i' is <[4], int32> before the loop of line N and int32 after it [TW109]
    for i in range(n):
    ^^^^^^^^^^^^^^^^^^
    note: 'i' is used at test_python_frontend_names.py:19
    hint: give it one shape and dtype, for example with .to(...) or tl.full(...)
    """
    i = tl.arange(0, 4)
    for i in range(n):
        pass
    tl.store(out, i)


@mistake(out="*i32", n="i32")
def inconsistent_branches(out, n):
    """'x' is int32 on one path and <[4], int32> on the other [TW123]
    if n > 0:
    ^^^^^^^^^
    note: 'x' is used at test_python_frontend_names.py:19
    hint: give it one shape and dtype, for example with .to(...) or tl.full(...)
    """
    x = 1.5
    if n > 0:
        x = n
    else:
        x = tl.arange(0, 4)
    tl.store(out, x)


@mistake(out="*i32", n="i32")
def inconsistent_loop(out, n):
    """'acc' is <[4], fp32> before the loop of line N and <[4, 1], fp32> after it [TW109]
    for i in range(n):
    ^^^^^^^^^^^^^^^^^^
    note: 'acc' is used at test_python_frontend_names.py:15
    hint: give it one shape and dtype, for example with .to(...) or tl.full(...)
    """
    acc = tl.zeros((4,), tl.float32)
    for i in range(n):
        acc = acc[:, None] + i
    tl.store(out, acc)


@mistake(out="*i32", n="i32")
def inconsistent_while(out, n):
    """'x' is int32 before the loop of line N and fp32 after it [TW109]
    while x < 10:
    ^^^^^^^^^^^^^
    note: 'x' is used at test_python_frontend_names.py:11
    hint: give it one shape and dtype, for example with .to(...) or tl.full(...)
    """
    x = n
    while x < 10:
        x = x + 1.5
    tl.store(out, x)


@mistake(out="*i32", n="i32")
def inconsistent_conditional(out, n):
    """the conditional expression is int32 on one path and pointer<int32> on the other [TW123]
    tl.store(out, n if n > 0 else out)
                  ^^^^^^^^^^^^^^^^^^^
    hint: give it one shape and dtype, for example with .to(...) or tl.full(...)
    """
    tl.store(out, n if n > 0 else out)


@device_function
def two_types(n):
    if n > 0:
        return n
    return 1.5


@mistake(out="*i32", n="i32")
def calls_two_types(out, n):
    """the result of two_types() is int32 on one path and the constant 1.5 on the other [TW123]
    return 1.5
    ^^^^^^^^^^
    called in calls_two_types
    tl.store(out, two_types(n))
                  ^^^^^^^^^^^^
    hint: give it one shape and dtype, for example with .to(...) or tl.full(...)
    """
    tl.store(out, two_types(n))


@mistake(out="*i32")
def uses_lock(out):
    """global 'lock' is a lock, which a kernel cannot use [TW107]
    tl.store(out, lock)
                  ^^^^
    hint: kernels see functions, modules, dtypes, numbers, strings, tuples, lists, dictionaries and constexpr globals
    """
    tl.store(out, lock)


@mistake(out="*i32", n="i32")
def function_changes(out, n):
    """'f' is the function exp before the loop of line N and the function log after it [TW109]
    for i in range(n):
    ^^^^^^^^^^^^^^^^^^
    note: 'f' is used at test_python_frontend_names.py:19
    hint: give it one shape and dtype, for example with .to(...) or tl.full(...)
    """
    f = tl.exp
    for i in range(n):
        f = tl.log
    tl.store(out, f(1.0))


@pytest.mark.parametrize("kernel", list(mistake), ids=str)
def test_mistake(kernel):
    assert kernel.shown() == kernel.expected
