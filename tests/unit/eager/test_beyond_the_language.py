"""What the interpreter does where compiled kernels are refused: the list of ADR 0016."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

import contextlib
import io
import linecache
import warnings

import numpy as np
import pytest

from tests.unit.eager import test_one_meaning as one_meaning
from tests.unit.frontend.python.harness import lower
from tilewright.eager import run_kernel
from tilewright.interp import run_function
from tilewright.language import constexpr, device_function
from tilewright.support import errors

RUNS = """
int(n) ; float(n) ; bool(n) ; f"{n}" == "5" ; len(f"{t}") ; ord("a")
{1: n}[1] ; {i: i for i in (1, 2)}[1] ; {'a': n}['a']
sum(i for i in (1, 2)) ; tuple(i for i in (1, 2))[0] ; list(map(abs, (1, -2)))[1]
sorted([n, 2])[0] ; max((1, n), key=abs) ; any((n, 0)) ; all((n,)) ; type(n) == tl.tensor
type(3) == int ; callable(n) ; t if n > 3 else (t, t)
np.int32(3) + n ; math.sqrt(n) ; pair(**{'a': n})[1] ; int(p)
"""
RAISES_PYTHONS_ERROR = """
str(n) ; repr(n) ; hex(N) ; {n} ; {1, 2} ; (i for i in (1, 2)) ; filter(None, (1, 0)) ; max()
abs() ; len(5) ; zip((1,), (2,))[0] ; enumerate((1,))[0] ; range(3)[1] ; range(n)[1]
setattr(n, "a", 1) ; n.dtype ; n.shape ; t.shape ; t.shape[1] ; (1, 2, 3)[n] ; (1, 2, 3)[N]
(1, 2, 3)[5] ; (1, n, 3)[0:2] ; "abc"[N] ; "abc"[n] ; "%d" % n ; "a".join(("b", "c"))
"{}".format(n) ; (1, 2) if n > 3 else (3, 4) ; "a" if n > 3 else "b" ; None if n > 3 else n
(n, 1) if N > 3 else 0 ; 1 / 0 ; 1 // 0 ; 1 % 0 ; 1.0 / 0.0 ; 0.0 / 0.0 ; 5 @ 3 ; 1j ; tl.int32
tl.int32(n) ; tl.float32(3) ; tl.assume(n > 3) ; tl.debug_barrier()
tl.range(3) ; tl.static_range(3)[0] ; globals()
locals() ; iter((1,)) ; slice(0, 2) ; n() ; N() ; t(3)
3() ; "a"() ; p.dtype
"""
OTHER_REASON = """
int(t) ; any(t) ; np.float32(2)
"""
SAME = """
math.foo ; undefined_name ; N.foo ; (1).foo ; "a".foo ; None.foo
min(n) ; abs(t) ; len(n) ; round(2.567, 1) ; round(n, 1) ; divmod(7, 2)[1] ; pow(n, 2)
pow(2, 3, 5) ; sum(t) ; sum((1, 2), 3) ; list(range(n))[0] ; reversed(range(3))[0]
isinstance(n, int) ; isinstance(t, tl.constexpr) ; isinstance(n, str)
getattr(n, "dtype") == tl.int32 ; hasattr(n, "dtype") ; t.shape == [8] ; t.shape == (8,)
n.to(int) ; n.to("int64") ; n.to(float) ; t.sum() ; t.sum(0) ; t.max(axis=0) ; t.reshape(4, 2)
t.reshape((3, 3)) ; t.view(8) ; t.item() ; t.tolist() ; t.__len__() ; n.real ; n.imag ; t[1]
t[0:4] ; t[None, :] ; t[:, None] ; t[None] ; t[..., None] ; t[n] ; t[t] ; t["a"] ; t[True] ; n[0]
n[None, None] ; [1, 2][True] ; "a" + n ; "a" * 2 == "aa" ; "a" * n ; "%d" % 3 == "3"
"a".upper() == "A" ; "{}".format(N) == "4" ; b"ab"[0] ; "a" in "ab" ; n in (1, 2) ; n in t
t in (1, 2) ; n in [5] ; n not in (1,) ; N in range(9) ; n in range(9) ; 1 in (n,) ; n == "a"
n != "a" ; n is t ; t is t ; t is not None ; t == None ; None == None ; None is None ; n == (5,)
(n,) == 5 ; t == [0] ; not None ; not "a" ; not "" ; not (1,) ; n and t ; t and n ; t or n
t and t ; b and b ; b or n ; n or b ; None or n ; "" or n ; n and None ; n and "a" ; () or n
n if t > 3 else 0 ; n if t else 0 ; 1 if None else 2 ; 1 if () else 2 ; 1 if "a" else 2
n if b else t ; n if n else 0 ; n + t8 ; n << 1 ; n << 40 ; 1 << n ; 1 << 40 ; n >> n ; -1 >> n
n ^ n ; n | 1.5 ; n & 2.5 ; t ^ b ; ~f ; -b ; +b ; -True ; ~t ; not f ; f ** 2 ; 2.0 ** N ; n ** n
t ** 2 ; n ** -1 ; 2 ** -1 ; 2 ** 100 ; n / 0 ; n // 0 ; n % 0 ; n / 0.0 ; t @ t ; 1j + n ; n + 1j
1e400 ; -1e400 ; 10 ** 400 ; n + 10 ** 400 ; 2 ** 63 + n ; 2 ** 64 + n ; -2 ** 63 + n ; t8 + 128
t8 + 127 ; u8 + 256 ; u8 - 300 ; t8 * 1000 ; b + b ; b * 3 ; b / 2 ; f + big ; big * big
tl.maximum(n, 3) ; tl.maximum(1, 2) ; tl.max(t) ; tl.max(t, 0) ; tl.max(t, 1)
tl.sum(n) ; tl.sum(5) ; tl.sum(t, axis=N - 4) ; tl.arange(0, n) ; tl.arange(n, 8)
tl.arange(0, 3) ; tl.arange(0, 8)[n] ; tl.zeros(4, tl.int32) ; tl.zeros([4], int)
tl.zeros([n], tl.int32) ; tl.full([4], n, tl.int8) ; tl.full([4], t, tl.int8)
tl.full([2, 2], 1, tl.float32) ; tl.exp(n) ; tl.exp(1.0) ; tl.exp(f) ; tl.sqrt(4) ; tl.abs(-3)
tl.abs(n) ; tl.cast(n, tl.int8) ; tl.cast(3, tl.int8) ; tl.cast(300, tl.int8)
tl.where(n > 3, 1, 2) ; tl.where(True, n, 2) ; tl.where(1, n, 2) ; tl.where(t > 3, t, n)
tl.cdiv(7, n) ; tl.load(n) ; tl.load(p) ; tl.load(p + n) ; tl.load(p, b)
tl.load(p + t, t > 2, 0.5) ; tl.program_id(0) ; tl.program_id(3) ; tl.program_id(n)
tl.num_programs(0) ; tl.broadcast_to(n, [4]) ; tl.reshape(t, [3]) ; tl.dot(t, t) ; tl.foo(n)
tl.constexpr(3) ; tl.constexpr(n) ; tl.multiple_of(n, 3) ; tl.clamp(n, 1, 3) ; tl.fma(f, f, f)
tl.sigmoid(f) ; tl.cumsum(t) ; tl.sort(t) ; tl.flip(t) ; tl.histogram(t, 4) ; tl.philox(1, 2)
tl.rand(1, t) ; tl.join(n, n) ; tl.split(t) ; tl.cat(t, t) ; tl.umulhi(n, n) ; tl.atomic_add(p, 1)
np.pi + n
math.pi * n ; math.floor(2.5) ; larger(1) ; larger(1, 2, 3) ; larger(a=1, b=n) ; larger(1, c=2)
added(n, b=n) ; pair(*(n, 1))[1] ; larger(*[n, 2]) ; (*(1, n), 3)[1] ; [*range(n)][0]
[x for x in t] ; [x for x in n] ; [x for x, y in ((1, n),)][0]
[x + y for x in (1, 2) for y in (n,)][1] ; (m := n) + m ; (n, (t, 1))[1][1] ; (n).to(tl.float32)
PLAIN_GLOBAL.to(tl.int8) ; GLOBAL.value ; GLOBAL == 7 ; GLOBAL is 7 ; p + 1.5 ; p + p ; p * 2
p - p ; p - 1 ; p == p ; p < p ; -p ; ~p ; not p ; p and n ; p if n > 3 else p ; p[0] ; p > 0
p is None ; p == None
"""


def outcomes(expression):
    """Of an expression compiled and interpreted: what it stores, or its error."""
    text = one_meaning.KERNEL.format(expression)
    file = f"<beyond {expression}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace = dict(vars(one_meaning)) | {"np": np}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        exec(compile(text, file, "exec"), namespace)
        kernel = device_function(namespace["kernel"])
        scalars = one_meaning.SCALARS | {"one": 2}
        p = np.array([1, 3, 5, 7, 100, -100, 0, 9], np.int32)

        def compiled(out):
            types = {n: one_meaning.RunTime(scalars[n], one_meaning.TYPES[n]) for n in scalars}
            function = lower(kernel, out="*f64", p="*i32", **types, N=4)
            run_function(function, [out, p.copy(), *scalars.values()])

        def interpreted(out):
            arrays = {"out": out, "p": p.copy()}
            run_kernel(kernel, (1,), {**arrays, **scalars, "N": constexpr(4)})

        return outcome(compiled), outcome(interpreted)


def outcome(run):
    try:
        return one_meaning.outcome(run)
    except Exception as error:
        return (type(error), "", "")


def is_designed(result):
    return isinstance(result, tuple) and issubclass(result[0], errors.TilewrightError)


@pytest.mark.parametrize("expression", one_meaning.expressions(RUNS), ids=str)
def test_python_that_kernels_refuse_runs(expression):
    compiled, interpreted = outcomes(expression)
    assert is_designed(compiled)
    assert isinstance(interpreted, list)


@pytest.mark.parametrize("expression", one_meaning.expressions(RAISES_PYTHONS_ERROR), ids=str)
def test_mistakes_that_python_refuses_itself(expression):
    compiled, interpreted = outcomes(expression)
    assert is_designed(compiled)
    assert isinstance(interpreted, tuple) and not is_designed(interpreted)


@pytest.mark.parametrize("expression", one_meaning.expressions(OTHER_REASON), ids=str)
def test_mistakes_with_two_reasons(expression):
    compiled, interpreted = outcomes(expression)
    assert is_designed(compiled) and is_designed(interpreted)
    assert compiled != interpreted


@pytest.mark.parametrize("expression", one_meaning.expressions(SAME), ids=str)
def test_all_else_is_the_same(expression):
    compiled, interpreted = outcomes(expression)
    assert compiled == interpreted
