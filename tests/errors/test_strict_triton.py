"""`strict_triton=True`: what Triton's language lacks is an error, in both executions."""

# pyright: reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tilewright import jit
from tilewright.support import errors

PLAIN = 3
LIST = [1, 2]
TABLE = {"two": 2}
CONSTANT = tl.constexpr(3)
KERNELS: list[tuple[Callable[..., Any], str, str]] = []


def beyond(message: str, code: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: a kernel that runs, but not as Triton; the message, and where it points."""

    def register(kernel: Callable[..., Any]) -> Callable[..., Any]:
        KERNELS.append((kernel, message, code))
        return kernel

    return register


@beyond("a chain of comparisons is not in Triton's language", "0 <= n < 9")
def chains(out, n):
    tl.store(out, 1 if 0 <= n < 9 else 0)


@beyond("':=' is not in Triton's language", "m := n + 1")
def assigns_in_expressions(out, n):
    if (m := n + 1) > 1:
        tl.store(out, m)


@beyond("an index or slice of a tile is not in Triton's language", "tl.arange(0, 4)[1]")
def indexes(out, n):
    tl.store(out, tl.arange(0, 4)[1])


@beyond("an index or slice of a tile is not in Triton's language", "tl.arange(0, 4)[1:3]")
def slices(out, n):
    tl.store(out, tl.sum(tl.arange(0, 4)[1:3]))


@beyond("the length of arange must be a power of two, found 3", "tl.arange(0, 3)")
def makes_three_elements(out, n):
    tl.store(out, tl.sum(tl.arange(0, 3)))


@beyond("extent 0 of a tile of shape (6,) must be a power of two", "tl.zeros((6,), tl.int32)")
def makes_six_elements(out, n):
    tl.store(out, tl.sum(tl.zeros((6,), tl.int32)))


@beyond("a function inside a function is not in Triton's language", "def inside(x):")
def nests_functions(out, n):
    def inside(x):
        return x + n

    tl.store(out, inside(1))


@beyond("a lambda is not in Triton's language", "lambda x: x + n")
def names_no_function(out, n):
    inside = lambda x: x + n  # noqa: E731
    tl.store(out, inside(1))


@beyond("exp of fp16 is not in Triton's language", "tl.exp(tl.full((1,), 1, tl.float16))")
def computes_in_half(out, n):
    tl.store(out, tl.sum(tl.exp(tl.full((1,), 1, tl.float16))))


@beyond("the global variable 'PLAIN', which is no tl.constexpr, is not in", "PLAIN")
def reads_a_global(out, n):
    tl.store(out, CONSTANT + PLAIN)


@beyond("the global variable 'LIST', which is no tl.constexpr, is not in", "LIST")
def reads_a_list(out, n):
    tl.store(out, LIST[1])


@beyond("the global variable 'TABLE', which is no tl.constexpr, is not in", "TABLE")
def reads_a_dictionary(out, n):
    tl.store(out, TABLE["two"])


@beyond("extent 0 of a tile of shape (6,) must be a power of two", "tl.make_tensor_descriptor")
def describes_blocks_of_six(out, n):
    desc = tl.make_tensor_descriptor(out, [1], [1], [6])
    tl.store(out, tl.sum(desc.load([0])))


@beyond("'break' is not in Triton's language", "break")
def leaves_a_loop(out, n):
    for k in range(n):
        tl.store(out, k)
        break


@beyond("'continue' is not in Triton's language", "continue")
def skips_the_rest(out, n):
    for k in range(n):
        if k == 1:
            continue
        tl.store(out, k)


@beyond("'total', which the loop changes from int32 to fp32, is not in", "range(n)")
def begins_a_sum_with_an_integer(out, n):
    total = 0
    for _ in range(n):
        total += 0.5
    tl.store(out, total.to(tl.int32))  # pyright: ignore[reportAttributeAccessIssue]


@beyond("'total', which the loop changes from int32 to <[4], int32>, is not", "steps < n")
def begins_a_tile_with_a_scalar(out, n):
    total = 0
    steps = 0
    while steps < n:
        total += tl.arange(0, 4)
        steps += 1
    tl.store(out, tl.sum(total))


@jit
def calls(out, n, FUNCTION: tl.constexpr):
    FUNCTION(out, n)


@pytest.mark.parametrize(
    ("kernel", "message", "code"), KERNELS, ids=[k[0].__name__ for k in KERNELS]
)
@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
def test_what_triton_lacks_is_refused_where_asked(
    kernel: Callable[..., Any], message: str, code: str, interpret: bool
):
    out = np.zeros(1, np.int32)
    jit(kernel, interpret=interpret)[(1,)](out, 2)
    strict = jit(kernel, interpret=interpret, strict_triton=True)
    with pytest.raises(errors.CompilationError) as caught:
        strict[(1,)](out, 2)
    text = str(caught.value)
    assert message in text and "test_strict_triton.py:" in text
    assert code in text.splitlines()[3]


def test_both_executions_say_the_same_and_helpers_are_looked_at_too():
    texts: list[str] = []
    for interpret in (False, True):
        launch: Any = jit(calls.fn, interpret=interpret)[(1,)]
        with pytest.raises(errors.BeyondTriton) as caught:
            launch(np.zeros(1, np.int32), 2, FUNCTION=jit(chains), strict_triton=True)
        texts.append(str(caught.value))
    assert texts[0] == texts[1] and "called from" in texts[0]
