"""Numbers that variables hold: dtypes as in Triton 3.6, and still compile-time constants."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportOperatorIssue=false, reportAssignmentType=false

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit

GLOBAL = tl.constexpr(2.5)


@jit
def two():
    return 2.0


@jit
def times(x, factor=2.0):
    return x * factor


@jit
def floats_kernel(out, half, OPTION: tl.constexpr):
    h = tl.load(half)
    named = 1.7343046
    literal: tl.constexpr = 1.7343046
    annotated: float = 1.7343046
    pair = (1.7343046, 3)
    first, _ = 1.7343046, 3
    option = OPTION
    changed = 0.7343046
    changed += 1
    tl.store(out, h * named)
    tl.store(out + 1, h * literal)
    tl.store(out + 2, h * annotated)
    tl.store(out + 3, h * pair[0])
    tl.store(out + 4, h * first)
    tl.store(out + 5, h * OPTION)
    tl.store(out + 6, h * option)
    tl.store(out + 7, h * changed)
    tl.store(out + 8, times(h, 1.7343046))
    tl.store(out + 9, times(h, named))


def test_named_floats_are_fp32_and_literals_weak(device: Device):
    out, half = device.empty(10, np.float32), device.array([1.7], np.float16)
    device.run(floats_kernel, (1,), out, half, 1.7343046)
    h = np.float16(1.7)
    wide, narrow = np.float32(h) * np.float32(1.7343046), h * np.float16(1.7343046)
    assert wide != narrow
    expected = [wide, narrow, wide, wide, wide, narrow, wide, wide, narrow, wide]
    assert out.tolist() == expected


@jit
def dtypes_kernel(out, half, byte):
    h, i8 = tl.load(half), tl.load(byte)
    n = 3
    high = 1 << 31
    flag = True
    small = 1e-50
    g = GLOBAL
    tl.static_assert((i8 * n).dtype == tl.int32)
    tl.static_assert((i8 * 3).dtype == tl.int8)
    tl.static_assert((i8.to(tl.uint8) + n).dtype == tl.int32)
    tl.static_assert((h.to(tl.bfloat16) * n).dtype == tl.float32)
    tl.static_assert((h * n).dtype == tl.float16)
    tl.static_assert((i8 * high).dtype == tl.uint32)
    tl.static_assert((i8 * flag).dtype == tl.int8)
    tl.static_assert((h * small).dtype == tl.float64)
    tl.static_assert((h * g).dtype == tl.float32)
    tl.static_assert((h * GLOBAL).dtype == tl.float16)
    tl.static_assert((h * two()).dtype == tl.float32)
    tl.static_assert((i8 * (n * 2)).dtype == tl.int32)
    tl.static_assert((i8 * min(n, 5)).dtype == tl.int32)
    tl.static_assert(tl.where(i8 > 0, h, 0.5).dtype == tl.float16)
    tl.static_assert(tl.where(i8 > 0, h, g).dtype == tl.float32)
    tl.static_assert(tl.maximum(i8, n).dtype == tl.int32)
    tl.static_assert((n / 2).dtype == tl.float32)
    for i in tl.static_range(2):
        tl.static_assert((i8 * i).dtype == tl.int8)
        j = i * 2
        tl.static_assert((i8 * j).dtype == tl.int32)
    tl.store(out, i8 * n)
    tl.store(out + 1, i8 * 3)


def test_dtypes_beside_tensors(device: Device):
    out = device.empty(2, np.int32)
    byte = device.array([100], np.int8)
    device.run(dtypes_kernel, (1,), out, device.array([1.5], np.float16), byte)
    assert out.tolist() == [300, 44]


@jit
def constants_kernel(out, BLOCK: tl.constexpr):
    half = BLOCK // 2
    third = -7
    scale = 0.1
    biggest = 2147483647
    tl.store(out + tl.arange(0, half), tl.zeros((half,), tl.float64) + half)
    for i in tl.static_range(half):
        tl.store(out + half + i, i)
    if half == 4:
        tl.store(out + 8, third // 2)
        tl.store(out + 9, third % 2)
    tl.static_assert(scale == 0.1)
    tl.store(out + 10, scale * 3)
    tl.store(out + 11, biggest + 1)
    tl.store(out + 12, (1 << 31) - half)
    tl.store(out + 13, half**2)


def test_they_stay_compile_time_constants_and_compute_as_tensors(device: Device):
    out = device.empty(14, np.float64)
    device.run(constants_kernel, (1,), out, 8)
    tenth = float(np.float32(0.1) * np.float32(3))
    rest = [-3, -1, tenth, -(2**31), 2**31 - 4, 16]
    assert out.tolist() == [4.0] * 4 + [0, 1, 2, 3] + rest


@jit
def unsigned_kernel(out, x):
    n = 3
    value = tl.load(x)
    tl.store(out, value // n)
    tl.store(out + 1, value % n)


def test_a_number_without_a_rule_beside_a_tensor_is_weak(device: Device):
    out = device.empty(2, np.int64)
    device.run(unsigned_kernel, (1,), out, device.array([2**32 - 5], np.uint32))
    assert out.tolist() == [(2**32 - 5) // 3, (2**32 - 5) % 3]


@jit
def joins_kernel(out, half, n):
    if n > 2:
        scale = 1.5
    else:
        scale = tl.load(half)
    total = 0
    for _ in range(n):
        total += tl.load(half).to(tl.float32)
    tl.store(out, scale)
    tl.store(out + 1, total)


@pytest.mark.parametrize("n", [1, 3])
def test_they_join_with_tensors_as_literals_do(device: Device, n: int):
    out = device.empty(2, np.float32)
    device.run(joins_kernel, (1,), out, device.array([2.5], np.float16), n)
    assert out.tolist() == [1.5 if n > 2 else 2.5, 2.5 * n]


@jit
def types_kernel(out, n):
    number = 3
    known: tl.constexpr = 3
    pair: tl.constexpr = (0, 1)
    mixed = (1, 2.0, tl.arange(0, 4))
    tl.static_assert(number.type == tl.int32)
    tl.static_assert(known.type == tl.constexpr_type(3))
    tl.static_assert(isinstance(known.type, tl.constexpr_type))
    tl.static_assert(pair.type == ((0, 1)).type)
    tl.static_assert(pair.type != (0, n).type)
    types = [tl.int32, tl.float32, tl.arange(0, 4).type]
    tl.static_assert(mixed.type == tl.tuple_type(types))
    tl.store(out, n)


def test_types_of_numbers_and_tuples(device: Device):
    out = device.empty(1, np.int32)
    device.run(types_kernel, (1,), out, 7)
    assert out.tolist() == [7]


@jit
def tenfold_of_large(x):
    if x > 2:
        return (x * 10, 2.5)


@jit
def one_path_kernel(out, n):
    whole, part = tenfold_of_large(n)
    tenfold_of_large(n)
    if n > 2:
        tl.store(out, whole + part)
    else:
        tl.store(out, -1)


@pytest.mark.filterwarnings("ignore:warning. tenfold_of_large")
@pytest.mark.parametrize(("n", "expected"), [(3, 32.5), (2, -1)])
def test_a_function_may_return_a_value_on_one_path(device: Device, n: int, expected: float):
    if device.name == "interpreter" and n == 2:
        pytest.skip("the interpreter has no value there")
    out = device.empty(1, np.float64)
    device.run(one_path_kernel, (1,), out, n)
    assert out.tolist() == [expected]


def test_a_value_on_one_path_is_warned_of():
    with pytest.warns(UserWarning, match=r"tenfold_of_large\(\) returns no value on one path"):
        jit(one_path_kernel.fn)[(1,)](np.zeros(1, np.float32), 3)


@jit
def endless_kernel(out, n):
    steps = 0
    while steps < 10:
        tl.store(out, n)


def test_a_loop_without_end_is_compiled_with_a_warning():
    with pytest.warns(UserWarning, match="this loop never ends"):
        kernel = endless_kernel.warmup(np.zeros(1, np.int32), 5, grid=(1,))
    assert "cf.while" in kernel.asm["ttir"]
