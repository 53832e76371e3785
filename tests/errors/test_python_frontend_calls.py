"""Mistakes in calls, constants and loop bounds, and where they are shown."""

# pyright: reportArgumentType=false, reportAssignmentType=false, reportCallIssue=false, reportGeneralTypeIssues=false

# ruff: noqa: B007, E501, E731, F401, F821, F823, F841 -- the mistakes are meant

import pytest

import tilewright.language as tl
from tests.errors.python_mistakes import Mistakes
from tilewright.language import constexpr_function, device_function

mistake = Mistakes()


@device_function
def add_tiles(x, y):
    return x + y


@device_function
def through(x):
    return add_tiles(x, tl.arange(0, 8))


@mistake(out="*i32")
def calls_through(out):
    """cannot add tiles of shapes (4,) and (8,) [TW110]
    return x + y
           ^^^^^
    called in through
    return add_tiles(x, tl.arange(0, 8))
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    called in calls_through
    tl.store(out, through(tl.arange(0, 4)))
                  ^^^^^^^^^^^^^^^^^^^^^^^^
    hint: tile shapes broadcast from the right, and sizes must be equal or 1
    """
    tl.store(out, through(tl.arange(0, 4)))


@mistake(out="*i32")
def keyword_that_range_has_not(out):
    """range() has no parameter 'stop' [TW118]
    for i in range(0, stop=3):
             ^^^^^^^^^^^^^^^^
    hint: it has 'num_stages', 'loop_unroll_factor', 'disallow_acc_multi_buffer', 'flatten', 'warp_specialize', 'disable_licm'
    """
    for i in range(0, stop=3):
        tl.store(out, i)


@mistake(out="*i32")
def enumerate_from_a_fraction(out):
    """cannot enumerate a tuple: TypeError: 'float' object cannot be interpreted as an integer [TW113]
    for i, x in enumerate((1, 2), 0.5):
                ^^^^^^^^^^^^^^^^^^^^^^
    """
    for i, x in enumerate((1, 2), 0.5):
        tl.store(out, x)


@mistake(out="*i32", n="i32")
def enumerate_at_run_time(out, n):
    """the start of enumerate() must be known at compile time, but is a run-time value of type int32 [TW104]
    for i, x in enumerate((1, 2), n):
                ^^^^^^^^^^^^^^^^^^^^
    hint: pass it as a parameter annotated 'tl.constexpr', or use a literal
    """
    for i, x in enumerate((1, 2), n):
        tl.store(out, x)


@device_function
def even(n):
    return odd(n - 1)


@device_function
def odd(n):
    return even(n - 1)


@mistake(out="*i32", n="i32")
def recursive(out, n):
    """'even' calls itself: even calls odd calls even [TW105]
    return even(n - 1)
           ^^^^^^^^^^^
    called in even
    return odd(n - 1)
           ^^^^^^^^^^
    called in recursive
    tl.store(out, even(n))
                  ^^^^^^^
    hint: calls are inlined: let a compile-time value end it, or write a loop
    """
    tl.store(out, even(n))


@device_function
def takes_constant(x, SIZE: tl.constexpr):
    return x + tl.arange(0, SIZE)


@mistake(out="*i32", n="i32")
def passes_run_time(out, n):
    """'end' of arange must be known at compile time, but is a run-time value of type int32 [TW104]
    return x + tl.arange(0, SIZE)
               ^^^^^^^^^^^^^^^^^^
    called in passes_run_time
    tl.store(out, takes_constant(n, n))
                  ^^^^^^^^^^^^^^^^^^^^
    hint: pass it as a parameter annotated 'tl.constexpr', or use a literal
    """
    tl.store(out, takes_constant(n, n))


@mistake(out="*i32", n="i32")
def annotates(out, n):
    """'end' of arange must be known at compile time, but is a run-time value of type int32 [TW104]
    tl.store(out + tl.arange(0, SIZE), 0)
                   ^^^^^^^^^^^^^^^^^^
    hint: pass it as a parameter annotated 'tl.constexpr', or use a literal
    """
    SIZE: tl.constexpr = n + 1
    tl.store(out + tl.arange(0, SIZE), 0)


@mistake(out="*i32", n="i32")
def too_many(out, n):
    """takes_constant() takes 2 arguments, found 3 [TW116]
    tl.store(out, takes_constant(n, 4, 5))
                  ^^^^^^^^^^^^^^^^^^^^^^^
    """
    tl.store(out, takes_constant(n, 4, 5))


@mistake(out="*i32", n="i32")
def too_few(out, n):
    """takes_constant() missing required argument 'SIZE' [TW117]
    tl.store(out, takes_constant(n))
                  ^^^^^^^^^^^^^^^^^
    hint: pass it by position or by name, or give it a default in the function
    """
    tl.store(out, takes_constant(n))


@mistake(out="*i32", n="i32")
def unknown_keyword(out, n):
    """takes_constant() has no parameter 'SIZES' [TW118]
    tl.store(out, takes_constant(n, SIZES=4))
                  ^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: did you mean 'SIZE'?
    """
    tl.store(out, takes_constant(n, SIZES=4))


@mistake(out="*i32", n="i32")
def twice(out, n):
    """takes_constant() got multiple values for 'x' [TW119]
    tl.store(out, takes_constant(n, 4, x=n))
                  ^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: pass it by position or by name, not both
    """
    tl.store(out, takes_constant(n, 4, x=n))


@constexpr_function
def inverse(n):
    return 1 / n


@mistake(out="*f32", n="i32")
def divides(out, n):
    """cannot evaluate inverse(): ZeroDivisionError: division by zero [TW113]
    tl.store(out, inverse(0))
                  ^^^^^^^^^^
    """
    tl.store(out, inverse(0))


@mistake(out="*f32", n="i32")
def run_time_to_constant(out, n):
    """argument 1 of inverse() must be known at compile time, but is a run-time value of type int32 [TW104]
    tl.store(out, inverse(n))
                  ^^^^^^^^^^
    hint: pass it as a parameter annotated 'tl.constexpr', or use a literal
    """
    tl.store(out, inverse(n))


@mistake(out="*i32", BLOCKS=4)
def meta_missing(out, **META):
    """name 'BLOCK' is not defined [TW103]
    tl.store(out, META["BLOCK"])
                  ^^^^^^^^^^^^^
    note: it is looked up among the keyword arguments of the launch
    hint: did you mean 'BLOCKS'?
    """
    tl.store(out, META["BLOCK"])


@mistake(out="*i32")
def unpacks(out):
    """cannot unpack: 3 values for 2 variables [TW113]
    a, b = (1, 2, 3)
    ^^^^
    """
    a, b = (1, 2, 3)


@mistake(out="*i32", n="i32")
def zero_step(out, n):
    """range: 'step' must be a number other than 0, found 0 [TW112]
    for i in range(0, n, 0):
             ^^^^^^^^^^^^^^
    """
    for i in range(0, n, 0):
        pass


@mistake(out="*i32", n="f32")
def float_bound(out, n):
    """range: 'end' must be an integer scalar, found fp32 [TW112]
    for i in range(n):
             ^^^^^^^^
    """
    for i in range(n):
        pass


@mistake(out="*i32", n="i32")
def static_bound(out, n):
    """'end' of static_range must be known at compile time, but is a run-time value of type int32 [TW104]
    for i in tl.static_range(n):
             ^^^^^^^^^^^^^^^^^^
    hint: pass it as a parameter annotated 'tl.constexpr', or use a literal
    """
    for i in tl.static_range(n):
        pass


@mistake(out="*i32", n="i32")
def formats(out, n):
    """a value in an f-string must be known at compile time, but is a run-time value of type int32 [TW104]
    tl.static_assert(n is not None, f"{n}")
                                       ^
    hint: format a compile-time value, or print this one by tl.device_print("text", value)
    """
    tl.static_assert(n is not None, f"{n}")


@mistake(out="*i32", BLOCK=8)
def asserts(out, BLOCK: tl.constexpr):
    """static assertion failed: BLOCK is 8 [TW102]
    assert BLOCK >= 16, f"BLOCK is {BLOCK}"
           ^^^^^^^^^^^
    hint: it depends on constexpr parameters: launch with other values
    """
    assert BLOCK >= 16, f"BLOCK is {BLOCK}"


@mistake(out="*i32", BLOCK=8)
def asserts_without_message(out, BLOCK: tl.constexpr):
    """static assertion failed: BLOCK >= 16 [TW102]
    assert BLOCK >= 16
           ^^^^^^^^^^^
    hint: it depends on constexpr parameters: launch with other values
    """
    assert BLOCK >= 16


@mistake(out="*i32")
def index_error(out):
    """cannot index a tuple: IndexError: tuple index out of range [TW113]
    tl.store(out, (1, 2)[2])
                  ^^^^^^^^^
    """
    tl.store(out, (1, 2)[2])


@mistake(out="*i32", n="i32")
def run_time_index(out, n):
    """the index into a tuple must be known at compile time, but is a run-time value of type int32 [TW104]
    tl.store(out, (1, 2)[n])
                  ^^^^^^^^^
    hint: pass it as a parameter annotated 'tl.constexpr', or use a literal
    """
    tl.store(out, (1, 2)[n])


@mistake(out="*i32")
def not_a_function(out):
    """cannot call the constant 1: it is not a function [TW113]
    tl.store(out, one(2))
                  ^^^^^^
    """
    one = 1
    tl.store(out, one(2))


@mistake(out="*i32")
def lacks_argument(out, n):
    """lacks_argument() missing required argument 'n' [TW117]
    def lacks_argument(out, n):
    hint: pass it by position or by name, or give it a default in the function
    """
    tl.store(out, n)


@mistake(out="*i32", n="i32", m=3)
def has_no_such_parameter(out, n):
    """has_no_such_parameter() has no parameter 'm' [TW118]
    def has_no_such_parameter(out, n):
    hint: it has 'n', 'out'
    """
    tl.store(out, n)


@pytest.mark.parametrize("kernel", list(mistake), ids=str)
def test_mistake(kernel):
    assert kernel.shown() == kernel.expected
