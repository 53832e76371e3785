"""Arithmetic as PTX: pairs of 16-bit floats, approximate and precise functions, libdevice."""

from collections.abc import Callable
from typing import Any

import pytest

import tilewright.language as tl
from tests.unit.backends.nvidia.compiled import compiled, count, instructions
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import jit
from tilewright.backends.nvidia.arch import ARCHITECTURES
from tilewright.language.extra import libdevice

pytestmark = needs_ptxas


@jit
def pairs(x, y, out):
    i = tl.arange(0, 1024)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.maximum(a + b, -b) - tl.minimum(a, b))


@jit
def fused(x, y, out):
    i = tl.arange(0, 1024)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.fma(a, b, a))


PACKED = [("f16", c) for c in ARCHITECTURES]
PACKED += [("bf16", c) for c, row in ARCHITECTURES.items() if row.bf16_arithmetic]


@pytest.mark.parametrize("dtype, capability", PACKED)
def test_arithmetic_of_16_bits_takes_two_at_a_time(dtype: str, capability: int) -> None:
    types = " ".join([f"*{dtype}/16"] * 3)
    kernel = compiled(pairs, types, capability)
    found = instructions(kernel)
    # Turing has no minimum and maximum of 16 bits; they are computed in f32 there.
    extrema = ("min", "max") if capability >= 80 else ()
    for name in ("add", "sub", *extrema, "neg"):
        assert found[f"{name}.{dtype}x2"] == 4, name
    assert (count(kernel, "cvt") == 0) == bool(extrema)
    assert instructions(compiled(fused, types, capability))[f"fma.rn.{dtype}x2"] == 4


@jit
def halves(x, y, out, EVEN: tl.constexpr):
    """One register of a thread, or a pair whose halves are the same."""
    i = tl.arange(0, 128 if EVEN else 1024)
    a = tl.load(x + i)
    tl.store(out + i, a + (a if EVEN else tl.load(y)))


def test_a_single_register_is_not_packed() -> None:
    found = instructions(compiled(halves, "*fp16/16 *fp16/16 *fp16/16", EVEN=True))
    assert found["add.f16"] == found["add.rn.f16"] + 1 == 1


def test_a_scalar_is_paired_with_itself() -> None:
    assert (
        instructions(compiled(halves, "*fp16/16 *fp16/16 *fp16/16", EVEN=False))["add.f16x2"] == 4
    )


def test_conversions_to_16_bits_take_two_at_a_time() -> None:
    kernel = compiled(cast, "*fp32/16 *fp16/16")
    assert instructions(kernel)["cvt.rn.f16x2.f32"] == 4


@jit
def cast(x, out):
    i = tl.arange(0, 1024)
    tl.store(out + i, tl.load(x + i).to(tl.float16))


# --- functions ------------------------------------------------------------------------------------


@jit
def apply(x, out, F: tl.constexpr):
    i = tl.arange(0, 128)
    tl.store(out + i, F(tl.load(x + i)))


@jit
def apply_two(x, out, F: tl.constexpr):
    i = tl.arange(0, 128)
    value = tl.load(x + i)
    tl.store(out + i, F(value, value + 1))


@jit
def quotient(x, y):
    return x / y


@jit
def fast_quotient(x, y):
    return libdevice.fast_dividef(x, y)


@jit
def compared_quotient(x, y):
    return tl.where(tl.maximum(x / y, 0) > 0.5, x, y)


@jit
def constant_quotient(x, y):
    return x / 3


@jit
def root_of_both(x, y):
    return tl.sqrt(x * y)


@jit
def gate_by_sigmoid(x):
    wide = x.to(tl.float32)
    return (wide * tl.sigmoid(wide)).to(x.dtype)


@jit
def gate_by_quotient(x):
    wide = x.to(tl.float32)
    return (wide / (1 + tl.exp(-wide))).to(x.dtype)


@jit
def row_by_sum(x, out):
    i = tl.arange(0, 128)
    value = tl.load(x + i)
    tl.store(out + i, value / tl.sum(value))


@pytest.mark.parametrize(
    "function, instruction",
    [
        (tl.exp2, "ex2.approx.ftz.f32"),
        (tl.exp, "ex2.approx.ftz.f32"),
        (tl.sqrt, "sqrt.approx.ftz.f32"),
        (tl.rsqrt, "rsqrt.approx.ftz.f32"),
        (tl.sqrt_rn, "sqrt.rn.f32"),
    ],
)
def test_functions_of_one_argument(function: Callable[..., Any], instruction: str) -> None:
    assert count(compiled(apply, "*fp32/16 *fp32/16", F=function), instruction) == 1


@pytest.mark.parametrize(
    "function, instruction",
    [
        (quotient, "div.full.f32"),
        (fast_quotient, "div.approx.ftz.f32"),
        (tl.div_rn, "div.rn.f32"),
        (compared_quotient, "rcp.approx.ftz.f32"),
        (constant_quotient, "mul.rn.f32"),
    ],
)
def test_quotients(function: Callable[..., Any], instruction: str) -> None:
    kernel = compiled(apply_two, "*fp32/16 *fp32/16", F=function)
    assert count(kernel, instruction) == 1
    assert count(kernel, "fma.rn.f32") == (2 if function is compared_quotient else 0)


def test_a_row_shares_the_reciprocal_of_its_divisor() -> None:
    found = instructions(compiled(row_by_sum, "*fp32/16 *fp32/16", num_warps=1))
    # x s, (x s) low and (x s) high + ... for each of 4 elements of a thread
    assert found["rcp.approx.ftz.f32"] == 1
    assert (found["mul.rn.f32"], found["fma.rn.f32"]) == (8 + 3, 4 + 1)


@pytest.mark.parametrize("function", [gate_by_sigmoid, gate_by_quotient])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_gates_correct_no_quotient(function: Callable[..., Any], dtype: str) -> None:
    """As Triton's users expect: an exponential, a reciprocal, and products."""
    kernel = compiled(apply, f"*{dtype}/16 *{dtype}/16", F=function)
    assert count(kernel, "fma") == count(kernel, "setp") == 0


def test_correct_rounding_is_an_option() -> None:
    for function, instruction in ((quotient, "div.rn.f32"), (root_of_both, "sqrt.rn.f32")):
        kernel = compiled(apply_two, "*fp32/16 *fp32/16", F=function, ieee_rounding=True)
        assert count(kernel, instruction) == 1


@pytest.mark.parametrize("function", [libdevice.exp, libdevice.log, libdevice.tanh])
def test_libdevice_where_the_language_asks_for_it(function: Callable[..., Any]) -> None:
    """Exact to an ulp or two: more than the approximate instruction, and no call that is left."""
    kernel = compiled(apply, "*fp32/16 *fp32/16", F=function)
    assert count(kernel, "fma.rn.f32") >= 3
    assert count(kernel, "call") == 0


@pytest.mark.parametrize("function", [tl.log, tl.log2])
def test_logarithms_compare_an_argument_and_an_estimate(function: Callable[..., Any]) -> None:
    """The approximate instruction is exact for zeros, infinities, NaNs and negative numbers."""
    kernel = compiled(apply, "*fp32/16 *fp32/16", F=function)
    assert count(kernel, "lg2.approx.ftz.f32") == 1
    assert count(kernel, "setp") == 2
    assert count(kernel, "shr") + count(kernel, "shl") <= 2  # of the address


def test_fusion_of_products_and_sums_is_an_option() -> None:
    fused_too, not_fused = (
        compiled(product_and_sum, "*fp32/16 *fp32/16", enable_fp_fusion=fuse)
        for fuse in (True, False)
    )
    assert (count(fused_too, "fma.rn.f32"), count(fused_too, "mul.rn.f32")) == (1, 0)
    assert (count(not_fused, "fma"), count(not_fused, "mul.rn.f32")) == (0, 1)


@jit
def product_and_sum(x, out):
    i = tl.arange(0, 128)
    value = tl.load(x + i)
    tl.store(out + i, value * value + value)


@jit
def reversed_bytes(X, Z, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    text = '// a "comment"\nprmt.b32 $0, $1, 0, 0x0123;'
    tl.store(Z + i, tl.inline_asm_elementwise(text, "=r,r", [tl.load(X + i)], tl.int32, True, 1))


@jit
def pauses(X, Z):
    value = tl.load(X)
    tl.store(Z, tl.inline_asm_elementwise("nanosleep.u32 0; mov.b32 $0, $1;", "=r,r", [value],
                                          tl.int32, False, 1))  # fmt: skip
    tl.inline_asm_elementwise("nanosleep.u32 1; mov.b32 $0, 0;", "=r", [], tl.int32, False, 1)


def test_assembly_stands_in_the_code_as_it_was_written():
    """Without effects once for each register, which is one for two elements of 64 by 32 threads."""
    kernel = compiled(reversed_bytes, "*i32/16 *i32/16", BLOCK=64, num_warps=1)
    assert count(kernel, "prmt.b32") == 2 and '// a "comment"' in str(kernel.asm["ptx"])
    assert count(compiled(pauses, "*i32/16 *i32/16", num_warps=1), "nanosleep") == 2


@jit
def fused_toward_zero(x, y, z, out):
    i = tl.arange(0, 32)
    found = libdevice.fma_rz(tl.load(x + i), tl.load(y + i), tl.load(z + i))
    tl.store(out + i, found)


@needs_ptxas
def test_error_free_transformations_are_not_fused() -> None:
    """The result and what its product lacks; a sum that took the product in would lack other."""
    ptx = compiled(fused_toward_zero, "*fp64 *fp64 *fp64 *fp64").asm["ptx"]
    assert ptx.count("fma.rn.f64") == 2


# --- sums -----------------------------------------------------------------------------------------


@jit
def sums(x, out, AXIS: tl.constexpr, WIDE: tl.constexpr):
    i = tl.arange(0, 16)[:, None] * 256 + tl.arange(0, 256)[None, :]
    value = tl.load(x + i)
    if WIDE:
        value = value.to(tl.float32)
        tl.store(out + i, value)
    if AXIS is None:
        tl.store(out, tl.sum(value))
    else:
        tl.store(out + tl.arange(0, 16), tl.sum(value, AXIS))


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_floats_of_16_bits_are_added_by_matrix_instructions(dtype: str) -> None:
    kernel = compiled(sums, f"*{dtype}/16 *{dtype}/16", AXIS=None, WIDE=False)
    assert count(kernel, "mma.sync.aligned.m16n8k16") == 4096 // 128 // 8
    assert count(kernel, "shfl") == 3 * 4  # rows of a warp
    assert count(kernel, "add") < 32  # of addresses, too


@pytest.mark.parametrize(
    "types, capability, words",
    [
        ("*fp32/16 *fp32/16", 90, {"AXIS": None, "WIDE": False}),
        ("*bf16/16 *fp32/16", 90, {"AXIS": None, "WIDE": True}),  # converted anyway
        ("*bf16/16 *bf16/16", 75, {"AXIS": None, "WIDE": False}),
    ],
)
def test_other_sums_are_added_by_elements(
    types: str, capability: int, words: dict[str, Any]
) -> None:
    assert count(compiled(sums, types, capability, **words), "mma") == 0


@jit
def rows_and_columns(out, n, w):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    tl.store(out + i, (i // w) * 3 + i % w, mask=i < n)


def test_a_quotient_and_a_remainder_take_one_division() -> None:
    """The divisor is not negative: it is compared with 0 only."""
    found = instructions(compiled(rows_and_columns, "*i32/16 i32 i32"))
    assert found["div.s32"] == 2
    assert found["rem.s32"] == found["setp.eq.b32"] == 0


@jit
def running_totals(x, out, AXIS: tl.constexpr):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 32)[None, :]
    tl.store(out + i * 32 + j, tl.cumsum(tl.load(x + i * 32 + j), AXIS))


@pytest.mark.parametrize(("axis", "shuffles"), [(0, 4 * 2), (1, 3 + 1)])
def test_scans_shift_once_more_only_for_runs(axis: int, shuffles: int) -> None:
    """The last element of a thread is the fold of the lanes up to it; the others of its run add
    that of the lanes before."""
    kernel = compiled(running_totals, "*fp32/16 *fp32/16", AXIS=axis)
    assert count(kernel, "shfl.sync.up") == shuffles
