"""Expressions mean the same compiled and interpreted: type, shape, value, or designed error."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

import ast
import linecache
import math  # noqa: F401 -- named by an expression
import warnings

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.frontend.python.harness import RunTime, lower
from tilewright.eager import run_kernel
from tilewright.frontend.python import ArgSpec
from tilewright.interp import run_function
from tilewright.ir.types import i32
from tilewright.language import device_function
from tilewright.support import errors

GLOBAL = tl.constexpr(7)
PLAIN_GLOBAL = 5


@device_function
def larger(a, b):
    return a if a > b else b


@device_function
def added(a, b: tl.constexpr):
    return a + b


@device_function
def bits_of(dtype: tl.constexpr):
    return dtype.primitive_bitwidth


@device_function
def pair(a, b=2, *, c=3):
    return a, a + b * c


LOGIC = """
not n ; not 0 ; not t ; not b ; not (n > 3) ; n and 3 ; 3 and n ; 0 and n ; n or 3 ; 0 or n
t and 3 ; n and 0 ; t < n and t > 2 ; n > 2 and (n < 9 or n == 5) ; (t > 2) or b ; 1 < n < 9
1 < t < n ; 0 < N < 9 ; 0 < N < n ; 1 < t + 1 < n + 1 ; n < t & t ; (n == 3) | (n == 5)
n is None ; N is None ; 1 < (m := n + 1) < m ; N is not 4 ; n in (3, 5) ; N in (3, 4)
N not in (3, 4) ; (n, 1) == (n, 1) ; (N, 1) == (4, 1) ; (n, n) == (5, 6) ; (t, n) == (t, n)
(n, n) != (n, n) ; [n] * 2 == [n, n] ; n is n ; n is not n ; n == None ; (n > 3) == True
(n, 1) < (n, 2) ; ~b ; ~True ; ~n ; ~N ; not () ; [i for i in (1, 2) if i > 1 and N > 3][0]
[t > i and n > i for i in (1, 2)][1]
"""
CHOICES = """
n if n > 3 else 0 ; 1 if n > 3 else 0 ; 1 if n > 3 else 2.5 ; 0.5 if n < 3 else 2
n if N > 3 else t ; b if n > 3 else 0 ; True if n > 3 else 2 ; w if n > 3 else 0
0 if n > 3 else w ; larger(n, 3) ; larger(2, 3) ; 1 if n > 3 else t ; n if n > 3 else t
-1 if n > 3 else 3000000000 ; y if n > 3 else z
"""
CALLS = """
bits_of(t.dtype) ; bits_of(tl.int8)
added(n, n) ; added(n, N) ; added(t, 3) ; added(2, 3) ; pair(n)[1] ; pair(n, c=N)[1] ; pair(1)[1]
min(n, 3) ; max(n, 3, N) ; min(t, n) ; min(2, 3) ; max([n, 3, N]) ; min((n,)) ; max(t)
abs(n - 9) ; abs(-3) ; len((n, t)) ; len(t) ; len(range(3)) ; len("abc") ; sum((n, n, 1))
sum([]) ; sum(range(4)) ; sum([t * i for i in range(N)]) ; [i * 2 for i in range(N)][2]
[i for i in range(N) if i % 2][1] ; [tl.full([4], i, tl.int32) for i in range(1, N)][1]
tuple(range(3))[2] ; list(range(3))[2] ; [*range(3), n][3] ; tuple(zip((1, 2), (n, t)))[1][0]
tuple(enumerate((n, t), start=2))[1][0] ; sum((n, 1), start=N) ; sum([t], n)
min((3, -4), key=abs) ; tuple(zip((1, 2), (n, t), strict=True))[1][0]
tuple(enumerate((n, t), N))[1][0] ; tuple(reversed((1, n)))[0] ; tuple(reversed(range(3)))[0]
[i for i in range(0, 3, 0)] ; [i for i in range(n)] ; int(2.7) ; float(3) ; bool(0) ; round(2.6)
round(n) ; divmod(N, 3)[0] ; divmod(n, 2) ; pow(N, 2) ; all([N, 1]) ; any([0, N - 4])
sorted([3, N, 1])[1] ; sorted((n, 2)) ; isinstance(n, tl.tensor) ; isinstance(N, tl.constexpr)
isinstance(N, int) ; isinstance(3, int) ; isinstance(t, tl.tensor | int)
isinstance(N, (tl.tensor, int)) ; isinstance(t, int | float) ; hasattr(t, 'sum')
hasattr(t, 'foo') ; hasattr(z, 'sum') ; getattr(t, 'numel') ; getattr(t, 'foo', 3) ; math.sqrt(16)
tl.cdiv(n, N) ; tl.cdiv(7, 2) ; tl.sum([n, n])
"""
TEXTS = """
str(N) == "4" ; repr(N) == "4" ; len(f"{N}") ; len(f"{N!r}") ; len(f"{N!s}") ; len(f"{N:04d}")
len(f"{3!r}{'a'!r}") ; len(f"{(N, 1)!r}") ; "a" + "b" == "ab" ; "abc"[1] == "b" ; "x" in "xyz"
"""
NUMBERS = """
n // 2 ; (0 - n) // 2 ; (0 - n) % 3 ; -7 // 2 ; -7 % 3 ; 7 / 2 ; n / 2 ; n ** 2 ; 2 ** N ; 1 << N
(0 - n) >> 1 ; -n ; +n ; -N ; True + 1 ; True & n ; n * 2.5 ; n / n ; n % 0.5 ; b + 1 ; b + n
b & True ; f + 1 ; f // 2 ; f % 2 ; big ; big > 1.0 ; one ; one + 1 ; one * t8 ; t8 + one
one.to(tl.float32) / 2 ; one == 1 ; not one ; one and n ; one in (1, 2) ; one ** 2 ; one << 1
one / 2 ; t8 + n ; t8 + 1
t8 * 300 ; u8 - 1 ; u8 < 300 ; 3000000000 + n ; 2 ** 40 + n ; n @ t ; n + (1,) ; n + "a"
n + None ; n < "a" ; GLOBAL + n ; PLAIN_GLOBAL + n ; (q := n + 1) + q ; ((1, 2) + (n,))[2]
((1, n) * 2)[3] ; (n, t)[-1] ; n[None]
"""
MEMBERS = """
y.to(tl.int64) ; 1 .to(tl.int64) ; (2.5).to(tl.int32) ; N.to(tl.float32) ; True.to(tl.int32)
z.dtype.primitive_bitwidth ; N.dtype.primitive_bitwidth ; len(z.shape) ; t.shape[0] ; t.numel
n.dtype == tl.int32 ; tl.full([2], y, y.dtype) ; n.foo ; t.astype(tl.int32) ; len(one.shape)
t[0] ; one.dtype == tl.int32 ; y.abs() ; n.value ; N.value + 1 ; p.dtype.element_ty == tl.int32
t.T
"""

KERNEL = """
def kernel(out, p, n, b, f, big, one, w, N: tl.constexpr):
    t = tl.arange(0, 8)
    t8 = tl.load(p + t).to(tl.int8)
    u8 = tl.load(p + t).to(tl.uint8)
    y = 5
    z = 0
    found = {}
    value = tl.cast(found, tl.int64) if isinstance(found, bool | int | float) else found
    kind = value.dtype.primitive_bitwidth + 100 * value.dtype.is_floating()
    kind += 1000 * value.dtype.is_int_signed() + 10000 * isinstance(found, tl.tensor)
    tl.store(out, kind)
    tl.store(out + 1, value.numel)
    if len(value.shape) == 0:
        tl.store(out + 2, value.to(tl.float64))
    else:
        tl.store(out + 2 + tl.arange(0, value.numel), tl.ravel(value).to(tl.float64))
"""
SCALARS = {"n": 5, "b": True, "f": 2.5, "big": 1e300, "one": 1, "w": 2**40}
TYPES = {"n": "i32", "b": "i1", "f": "f32", "big": "f32", "one": "i32", "w": "i64"}


def expressions(*texts):
    found = [
        part.strip() for text in texts for line in text.splitlines() for part in line.split(";")
    ]
    return [e for e in found if e]


def outcome(run):
    """What a run stores, or the error that it raises, without its place."""
    out = np.full(10, -1.0)
    try:
        run(out)
    except errors.TilewrightError as error:
        return type(error), error.message, error.hint
    return np.nan_to_num(out, posinf=1e99).tolist()


def mentions_one(expression):
    return any(isinstance(n, ast.Name) and n.id == "one" for n in ast.walk(ast.parse(expression)))


@pytest.mark.parametrize(
    "expression", expressions(LOGIC, CHOICES, CALLS, TEXTS, NUMBERS, MEMBERS), ids=str
)
def test_interpreted_as_compiled(expression):
    text = KERNEL.format(expression)
    file = f"<meaning of {expression}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace = dict(globals())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, file, "exec"), namespace)
        kernel = device_function(namespace["kernel"])
        p = np.array([1, 3, 5, 7, 100, -100, 0, 9], np.int32)

        def compiled(out):
            scalars = {name: RunTime(SCALARS[name], TYPES[name]) for name in SCALARS}
            function = lower(kernel, out="*f64", p="*i32", **scalars, N=4)
            run_function(function, [out, p, *SCALARS.values()])

        def specialized(out):
            scalars = {name: RunTime(SCALARS[name], TYPES[name]) for name in SCALARS}
            scalars["one"] = ArgSpec("one", "constexpr", i32, 1)
            function = lower(kernel, out="*f64", p="*i32", **scalars, N=4)
            run_function(function, [out, p, *(v for k, v in SCALARS.items() if k != "one")])

        def interpreted(out):
            run_kernel(kernel, (1,), {"out": out, "p": p, **SCALARS, "N": tl.constexpr(4)})

        expected = outcome(specialized)
        assert outcome(interpreted) == expected
        # an integer that is 1 is known at compile time; others are not
        assert outcome(compiled) == expected or mentions_one(expression)


STATEMENTS = {
    "a literal that a branch sets is a tensor": (
        """
        x = 1
        if n > 3:
            x = 200
        tl.store(out, t8 + x)
        """,
        201.0,
    ),
    "numbers of different kinds join": (
        """
        if n > 3:
            x = 1
        else:
            x = 2.5
        tl.store(out, x / 2)
        """,
        0.5,
    ),
    "what both sides set alike stays known": (
        """
        if n > 3:
            size: tl.constexpr = 4
            other = 2
        else:
            size: tl.constexpr = 4
            other = 2
        tl.store(out, tl.sum(tl.arange(0, size) * other))
        """,
        12.0,
    ),
    "a loop variable outlives its loop": (
        """
        i = 77
        for i in range(n, 0, -2):
            pass
        tl.store(out, i)
        """,
        1.0,
    ),
    "a loop that does not run leaves its variable": (
        """
        i = 77
        for i in range(n, 0):
            pass
        tl.store(out, i)
        """,
        77.0,
    ),
    "a while loop begins with tensors": (
        """
        x = 1
        while x < n + 200:
            x += t8 * 100
        tl.store(out, x)
        """,
        301.0,
    ),
    "assertions take tiles": (
        """
        assert tl.arange(0, 4) < n
        tl.store(out, 1)
        """,
        1.0,
    ),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_are_interpreted_as_compiled(name):
    body, expected = STATEMENTS[name]
    lines = [line[4:] for line in body.splitlines()]
    head = "def kernel(out, n):\n    t8 = tl.full([], 1, tl.int8)"
    text = "\n".join([head, *lines])
    file = f"<meaning of {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace = dict(globals())
    exec(compile(text, file, "exec"), namespace)
    kernel = device_function(namespace["kernel"])
    compiled, interpreted = np.zeros(1), np.zeros(1)
    run_function(lower(kernel, out="*f64", n="i32"), [compiled, 5])
    run_kernel(kernel, (1,), {"out": interpreted, "n": 5})
    assert compiled[0] == interpreted[0]
    assert compiled[0] == expected


@device_function
def misreads(out, n):
    i = tl.arange(0, 8)
    tl.store(out + i, i < n & i > 2)


@device_function
def reads(out, n):
    i = tl.arange(0, 8)
    tl.store(out + i, i < (n & i) > 2)
    tl.store(out + i, (i < n) & (i > 2))
    tl.store(out + i, 0 < i < n)


WARNING = """\
warning: this reads as `i < (n & i) > 2`: '&' binds tighter than a comparison
  --> {file}:{line}:23 in misreads
    |
{line} |     tl.store(out + i, i < n & i > 2)
    |                       ^^^^^^^^^^^^^
  hint: put each comparison in parentheses"""


@pytest.mark.parametrize("how", ["compiled", "interpreted"])
def test_an_and_between_comparisons_warns(how):
    def run(kernel):
        if how == "compiled":
            lower(kernel, out="*i32", n="i32")
        else:
            run_kernel(kernel, (1,), {"out": np.zeros(8, np.int32), "n": 5})

    with pytest.warns(errors.TilewrightWarning) as caught:
        run(misreads)
    (warning,) = caught
    line = misreads.fn.__code__.co_firstlineno + 3
    assert str(warning.message) == WARNING.format(file=__file__, line=line)
    assert (warning.filename, warning.lineno) == (__file__, line)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(reads)
