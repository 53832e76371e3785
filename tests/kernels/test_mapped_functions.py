"""Functions applied to each element, with branches and loops of their own, and assembly."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import assert_near, assert_same
from tests.kernels.devices import Device
from tilewright import jit
from tilewright.support import errors


@jit
def selu(x, alpha):
    if x > 0:
        return x
    else:
        return alpha * (tl.exp(x) - 1)


@jit
def selu_kernel(x, out, alpha, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, tl.map_elementwise(selu, tl.load(x + i), alpha))


@pytest.mark.parametrize("size", [1, 32, 512])
def test_a_branch_for_each_element(device: Device, rng: np.random.Generator, size: int):
    x = rng.normal(size=size).astype(np.float32)
    out = device.empty(size, np.float32)
    device.run(selu_kernel, (1,), device.array(x), out, 1.5, SIZE=size)
    exact = np.where(x > 0, x, 1.5 * (np.exp(x.astype(np.float64)) - 1))
    assert_near(out, exact, 4.0, floor=3e-7)


@jit
def collatz(n):
    steps = n * 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@jit
def collatz_kernel(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, tl.map_elementwise(collatz, tl.load(x + i)))


def test_a_loop_of_each_element(device: Device):
    x = np.arange(1, 65, dtype=np.int32)
    out = device.empty(64, np.int32)
    device.run(collatz_kernel, (1,), device.array(x), out, SIZE=64)

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    assert out.tolist() == [steps(int(n)) for n in x]


@jit
def quotient_and_rest(a, b):
    return a // b, (a % b).to(tl.float32)


@jit
def several_kernel(x, y, quotients, rests, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS)[:, None]
    j = tl.arange(0, COLUMNS)[None, :]
    at = i * COLUMNS + j
    q, r = tl.map_elementwise(quotient_and_rest, tl.load(x + at), tl.load(y + j))
    tl.store(quotients + at, q)
    tl.store(rests + at, r)


def test_several_results_of_arguments_that_broadcast(device: Device, rng: np.random.Generator):
    x = rng.integers(0, 999, (8, 16)).astype(np.int32)
    y = rng.integers(1, 99, 16).astype(np.int32)
    q, r = device.empty((8, 16), np.int32), device.empty((8, 16), np.float32)
    device.run(several_kernel, (1,), device.array(x), device.array(y), q, r, ROWS=8, COLUMNS=16)
    np.testing.assert_array_equal(q, x // y)
    np.testing.assert_array_equal(r, x % y)


@jit
def sorted_pair(a0, a1, b0, b1):
    if a0 > a1:
        return a1, a0, b1, b0
    else:
        return a0, a1, b0, b1


@jit
def packed_kernel(x, y, out_x, out_y, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a, b = tl.map_elementwise(sorted_pair, tl.load(x + i), tl.load(y + i), pack=2)
    tl.store(out_x + i, a)
    tl.store(out_y + i, b)


@pytest.mark.parametrize("size", [2, 64, 512])
def test_packs_are_neighbours(device: Device, rng: np.random.Generator, size: int):
    x = rng.normal(size=size).astype(np.float32)
    y = np.arange(size, dtype=np.int16)
    out_x, out_y = device.empty(size, np.float32), device.empty(size, np.int16)
    device.run(packed_kernel, (1,), device.array(x), device.array(y), out_x, out_y, SIZE=size)
    order = np.argsort(x.reshape(-1, 2), 1)
    assert_same(out_x, np.take_along_axis(x.reshape(-1, 2), order, 1).reshape(-1))
    assert_same(out_y, np.take_along_axis(y.reshape(-1, 2), order, 1).reshape(-1))


@jit
def larger_by_a_branch(a, i, b, j):
    if a > b or (a == b and i < j):
        return a, i
    return b, j


@jit
def folds_kernel(x, top, at, running, places, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS)[:, None]
    j = tl.arange(0, COLUMNS)[None, :]
    v = tl.load(x + i * COLUMNS + j)
    columns = tl.broadcast_to(j, (ROWS, COLUMNS))
    best, where = tl.reduce((v, columns), 1, larger_by_a_branch)
    tl.store(top + tl.arange(0, ROWS), best)
    tl.store(at + tl.arange(0, ROWS), where)
    so_far, place = tl.associative_scan((v, columns), 1, larger_by_a_branch)
    tl.store(running + i * COLUMNS + j, so_far)
    tl.store(places + i * COLUMNS + j, place)


@pytest.mark.parametrize("shape", [(4, 64), (32, 8)], ids=str)
def test_reductions_and_scans_by_functions_that_branch(
    device: Device, rng: np.random.Generator, shape: Any
):
    x = rng.integers(0, 20, shape).astype(np.float32)
    rows, columns = shape
    top, at = device.empty(rows, np.float32), device.empty(rows, np.int32)
    running, places = device.empty(shape, np.float32), device.empty(shape, np.int32)
    device.run(
        folds_kernel, (1,), device.array(x), top, at, running, places, ROWS=rows, COLUMNS=columns
    )
    assert_same(top, x.max(1))
    assert_same(at, x.argmax(1).astype(np.int32))
    assert_same(running, np.maximum.accumulate(x, 1))
    first = [[int(np.argmax(row[: j + 1])) for j in range(columns)] for row in x]
    np.testing.assert_array_equal(places, first)


@jit
def square_kernel(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    y = tl.inline_asm_elementwise(
        "mul.rn.f32 $0, $1, $1;", "=f,f", [tl.load(x + i)], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(out + i, y)


@pytest.mark.parametrize("size", [1, 64, 512])
def test_assembly_of_floats(device: Device, rng: np.random.Generator, size: int):
    x = rng.normal(size=size).astype(np.float32)
    out = device.empty(size, np.float32)
    device.run(square_kernel, (1,), device.array(x), out, SIZE=size)
    assert_same(out, x * x)


@jit
def documented_kernel(A, B, C, D, BLOCK: tl.constexpr):
    """The example of Triton's documentation: bytes to integers, and the larger of them and b."""
    i = tl.arange(0, BLOCK)
    c, d = tl.inline_asm_elementwise(
        asm="""
        {
            // Unpack a into ai.
            .reg .b8 tmp<4>;
            mov.b32 {tmp0, tmp1, tmp2, tmp3}, $8;
            cvt.u32.u8 $0, tmp0;
            cvt.u32.u8 $1, tmp1;
            cvt.u32.u8 $2, tmp2;
            cvt.u32.u8 $3, tmp3;
        }
        // Convert ai to float.
        cvt.rn.f32.s32 $4, $0;
        cvt.rn.f32.s32 $5, $1;
        cvt.rn.f32.s32 $6, $2;
        cvt.rn.f32.s32 $7, $3;
        // Take max of ai and b.
        max.f32 $4, $4, $9;
        max.f32 $5, $5, $10;
        max.f32 $6, $6, $11;
        max.f32 $7, $7, $12;
        """,
        constraints="=r,=r,=r,=r,=r,=r,=r,=r,r,r,r,r,r",
        args=[tl.load(A + i), tl.load(B + i)],
        dtype=(tl.int32, tl.float32),
        is_pure=True,
        pack=4,
    )
    tl.store(C + i, c)
    tl.store(D + i, d)


def test_assembly_of_packed_bytes_with_two_results(device: Device, rng: np.random.Generator):
    a = rng.integers(0, 256, 256).astype(np.uint8)
    b = (rng.normal(size=256) * 200).astype(np.float32)
    c, d = device.empty(256, np.int32), device.empty(256, np.float32)
    device.run(documented_kernel, (1,), device.array(a), device.array(b), c, d, BLOCK=256)
    assert_same(c, a.astype(np.int32))
    assert_same(d, np.maximum(a.astype(np.float32), b))


@jit
def integer_kernel(x, out, ASM: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, tl.inline_asm_elementwise(ASM, "=r,r", [tl.load(x + i)], tl.int32, True, 1))


def bits_of(x: np.ndarray) -> np.ndarray:
    """32 for each number, from the highest."""
    return x.view(np.uint32)[:, None] >> np.arange(32, dtype=np.uint32)[::-1] & 1


BITS = {
    "a predicate": (
        "{ .reg .pred p; setp.gt.s32 p, $1, 5; mov.u32 $0, 7; @p mov.u32 $0, $1; }",
        lambda x: np.where(x > 5, x, 7),
    ),
    "shifts by too much": ("shl.b32 $0, $1, 40;", lambda x: x * 0),
    "an arithmetic shift": ("shr.s32 $0, $1, 3;", lambda x: x >> 3),
    "a field": ("bfe.u32 $0, $1, 4, 8;", lambda x: x >> 4 & 255),
    "a signed field": ("bfe.s32 $0, $1, 0, 8;", lambda x: x.astype(np.int8).astype(np.int32)),
    "a table": ("lop3.b32 $0, $1, 0xF0, 0xFF, 0x6A;", lambda x: (x & 0xF0) ^ 0xFF),
    "bytes": (
        "prmt.b32 $0, $1, 0, 0x0123;",
        lambda x: x.view(np.uint32).byteswap().view(np.int32),
    ),
    "a funnel": (
        "shf.l.wrap.b32 $0, $1, $1, 8;",
        lambda x: (x << 8) | (x.view(np.uint32) >> 24).view(np.int32),
    ),
    "a count": ("popc.b32 $0, $1;", lambda x: bits_of(x).sum(1)),
    "zeros in front": ("clz.b32 $0, $1;", lambda x: (bits_of(x).cumsum(1) == 0).sum(1)),
    "bits in reverse": (
        "brev.b32 $0, $1;",
        lambda x: (bits_of(x).astype(np.int64) << np.arange(32)).sum(1).astype(np.uint32),
    ),
    "a selection": (
        "{ .reg .pred p; setp.lt.s32 p, $1, 0; selp.b32 $0, 1, 2, p; }",
        lambda x: np.where(x < 0, 1, 2),
    ),
}


@pytest.mark.parametrize("name", BITS)
def test_assembly_of_bits(device: Device, rng: np.random.Generator, name: str):
    assembly, expected = BITS[name]
    x = rng.integers(-(2**31), 2**31, 64).astype(np.int32)
    out = device.empty(64, np.int32)
    if device.name == "emulated":
        pytest.skip("the emulator knows few instructions; these are PTX as they stand")
    device.run(integer_kernel, (1,), device.array(x), out, ASM=assembly, SIZE=64)
    np.testing.assert_array_equal(out, expected(x).astype(np.int32))


@jit
def unknown_register_kernel(x, LETTERS: tl.constexpr):
    i = tl.arange(0, 16)
    text = "mov.b32 $0, $1;"
    tl.store(x + i, tl.inline_asm_elementwise(text, LETTERS, [tl.load(x + i)], tl.int32, True, 1))


@pytest.mark.parametrize("letters", ["=q,r", "=r,x", "=r,1", "r,r", "=r", "=r,r,r"])
def test_constraints_that_no_register_meets_are_refused(device: Device, letters: str):
    with pytest.raises(errors.InvalidValue, match="inline_asm_elementwise: 'constraints' must be"):
        device.run(unknown_register_kernel, (1,), device.empty(16, np.int32), LETTERS=letters)


@jit
def three_by_while(x):
    count = 0
    while count < 3:
        count += 1
    return count + x


@jit
def three_by_for(x):
    count = 0
    for step in range(3):
        count += step
    return count + x


@jit
def counted_where_large(x):
    count = 0
    for step in range(2):
        inner = 0
        while inner < 2:
            inner += 1
            if x > inner * 20:
                count += inner + step
    return count + x


@jit
def larger_of_two(a, b):
    if a > b:
        larger = a
    else:
        larger = b
    return larger


@jit
def sum_after_a_loop(a, b):
    count = 0
    while count < 3:
        count += 1
    return a + b + (count - 3)


@jit
def applied_in_loop_kernel(x, out, n, FUNCTION: Any, WHERE: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    total = tl.zeros((SIZE,), tl.int32)
    for step in range(n):
        v = tl.load(x + i) + step
        if WHERE == "map":
            total += tl.map_elementwise(FUNCTION, v)
        elif WHERE == "reduce":
            total += tl.reduce(v, 0, FUNCTION)
        else:
            total += tl.associative_scan(v, 0, FUNCTION)
    tl.store(out + i, total)


def _counts(x: Any) -> Any:
    counts = [(step + inner) * (x > 20 * inner) for step in range(2) for inner in (1, 2)]
    return x + np.sum(counts, 0, x.dtype)


def _id(value: Any) -> str:
    return str(getattr(value, "__name__", value))


IN_LOOPS: list[tuple[str, Any, Any]] = [
    ("map", three_by_while, lambda x: x + 3),
    ("map", three_by_for, lambda x: x + 3),
    ("map", counted_where_large, _counts),
    ("reduce", larger_of_two, lambda x: np.full_like(x, x.max())),
    ("reduce", sum_after_a_loop, lambda x: np.full_like(x, x.sum())),
    ("scan", larger_of_two, np.maximum.accumulate),
    ("scan", sum_after_a_loop, lambda x: x.cumsum(dtype=x.dtype)),
]


@pytest.mark.parametrize("where, function, exact", IN_LOOPS, ids=_id)
def test_functions_with_control_flow_in_a_loop(
    device: Device, rng: np.random.Generator, where: str, function: Any, exact: Any
):
    """What does not change in the loop, as the start of an inner loop, stands before it."""
    x = rng.integers(0, 60, 64).astype(np.int32)
    out = device.empty(64, np.int32)
    device.run(
        applied_in_loop_kernel, (1,), device.array(x), out, 3, FUNCTION=function, WHERE=where,
        SIZE=64,
    )  # fmt: skip
    assert_same(out, np.sum([exact(x + step) for step in range(3)], 0, x.dtype))
