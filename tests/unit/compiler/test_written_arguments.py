"""Which arguments a kernel may store through."""

from __future__ import annotations

import pytest

import tilewright.language as tl
from tests.unit.frontend.python.harness import lower
from tilewright.compiler import stored_arguments
from tilewright.language import device_function


@device_function
def plain(a, b, n):
    tl.store(b + n, tl.load(a))


@device_function
def atomics(a, b, n):
    tl.atomic_add(a, 1.0)
    tl.atomic_cas(b, 0, n)


@device_function
def in_a_loop(a, b, n):
    for _ in range(n):
        tl.store(b, tl.load(a))
        a += 1
        b += 1


@device_function
def swapped_in_a_loop(a, b, n):
    for _ in range(n):
        tl.store(b, 1.0)
        a, b = b, a


@device_function
def in_a_while(a, b, n):
    p = a
    while n > 0:
        tl.store(p, 1.0)
        p = b
        n -= 1


@device_function
def chosen(a, b, n):
    if n > 3:
        p = a
    else:
        p = b
    tl.store(tl.where(n > 4, p, p + 1), 1.0)


@device_function
def block_pointer(a, b, n):
    p = tl.make_block_ptr(b, (n,), (1,), (0,), (16,), (0,))
    tl.store(p, tl.load(a) + tl.zeros((16,), tl.float32))


@device_function
def through_integers(a, b, n):
    address = a.to(tl.int64) + n
    tl.store(address.to(tl.pointer_type(tl.float32)), tl.load(b))


@device_function
def index_is_loaded(a, b, n):
    tl.store(b + tl.load(a).to(tl.int32), 1.0)


@device_function
def nothing(a, b, n):
    tl.load(a)


@pytest.mark.parametrize(
    ("kernel", "stored"),
    [
        (plain, (1,)),
        (atomics, (0, 1)),
        (in_a_loop, (1,)),
        (swapped_in_a_loop, (0, 1)),
        (in_a_while, (0, 1)),
        (chosen, (0, 1)),
        (block_pointer, (1,)),
        (through_integers, (0,)),
        (index_is_loaded, (1,)),
        (nothing, ()),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_stored(kernel, stored: tuple[int, ...]) -> None:
    b = "*i32" if kernel is atomics else "*f32"
    function = lower(kernel, a="*f32", b=b, n="i32")
    assert stored_arguments(function) == stored
