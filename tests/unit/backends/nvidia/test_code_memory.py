"""Accesses to global memory as PTX: width, cache modifiers, eviction, volatile, masks."""

# pyright: reportOptionalOperand=none

import re
from typing import Any

import pytest

import tilewright.language as tl
from tests.unit.backends.nvidia.compiled import compiled, count, instructions
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import jit
from tilewright.backends.nvidia.arch import ARCHITECTURES

pytestmark = needs_ptxas


@jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n), i < n)


@jit
def copy_of_32_bytes(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.multiple_of(n, 32)
    value = tl.load(tl.multiple_of(x, 32) + i, mask)
    tl.store(tl.multiple_of(out, 32) + i, value, mask)


@jit
def copy_hinted(
    x, out, LOAD: tl.constexpr, STORE: tl.constexpr, EVICT: tl.constexpr, VOLATILE: tl.constexpr
):
    i = tl.arange(0, 512)
    value = tl.load(x + i, cache_modifier=LOAD, eviction_policy=EVICT, volatile=VOLATILE)
    tl.store(out + i, value, cache_modifier=STORE, eviction_policy=EVICT)


SUFFIXES = {"fp64": "v2.b64", "fp32": "v4.b32", "fp16": "v4.b32", "bf16": "v4.b32", "i8": "v4.b32"}


@pytest.mark.parametrize("dtype", SUFFIXES)
def test_aligned_accesses_take_16_bytes(dtype: str) -> None:
    found = instructions(compiled(copy, f"*{dtype}/16 *{dtype}/16 i32/16", BLOCK=2048))
    assert found[f"ld.global.{SUFFIXES[dtype]}"] == found[f"st.global.{SUFFIXES[dtype]}"] > 0
    assert (
        sum(n for name, n in found.items() if name.startswith(("ld.global", "st.global")))
        == 2 * found[f"ld.global.{SUFFIXES[dtype]}"]
    )


@pytest.mark.parametrize(
    "types, load",
    [
        ("*fp32/8 *fp32/16 i32/16", "ld.global.v2.b32"),
        ("*fp32 *fp32/16 i32/16", "ld.global.b32"),
        ("*fp16/8 *fp16/8 i32/16", "ld.global.v2.b32"),
        ("*fp16 *fp16 i32/16", "ld.global.b16"),
        ("*fp32/16 *fp32/16 i32/2", "ld.global.v2.b32"),
        ("*fp32/16 *fp32/16 i32", "ld.global.b32"),
        ("*i8 *i8 i32", "ld.global.b8"),
    ],
)
def test_what_is_known_of_pointers_and_masks_limits_the_width(types: str, load: str) -> None:
    found = instructions(compiled(copy, types, BLOCK=1024))
    assert {name for name in found if name.startswith("ld.global")} == {load}


@pytest.mark.parametrize("capability", ARCHITECTURES)
@pytest.mark.parametrize(
    "dtype, suffix", [("fp32", "v8.b32"), ("fp16", "v8.b32"), ("fp64", "v4.b64")]
)
def test_32_bytes_where_the_architecture_has_them(capability: int, dtype: str, suffix: str) -> None:
    types = f"*{dtype}/16 *{dtype}/16 i32/16"
    kernel = compiled(copy_of_32_bytes, types, capability, BLOCK=4096)
    wide = ARCHITECTURES[capability].v8_access
    assert (count(kernel, f"ld.global.{suffix}") > 0) == wide
    assert (count(kernel, f"st.global.{suffix}") > 0) == wide
    total = 4096 // 128 * {"fp32": 4, "fp16": 2, "fp64": 8}[dtype] // (32 if wide else 16)
    assert count(kernel, "ld.global") == count(kernel, "st.global") == total


def test_a_mask_is_a_predicate_and_not_a_branch() -> None:
    kernel = compiled(copy, "*fp32/16 *fp32/16 i32/16", BLOCK=1024)
    lines = [line for line in kernel.asm["ptx"].splitlines() if re.search(r"(ld|st)\.global", line)]
    assert lines and all(line.strip().startswith("@%p") for line in lines)
    assert count(kernel, "bra") == 0


def hinted(**words: Any) -> dict[str, int]:
    known = {"LOAD": "", "STORE": "", "EVICT": "", "VOLATILE": False}
    return instructions(compiled(copy_hinted, "*fp32/16 *fp32/16", **(known | words)))


@pytest.mark.parametrize("modifier", [".ca", ".cg", ".cs", ".cv"])
def test_cache_modifiers_of_loads(modifier: str) -> None:
    assert hinted(LOAD=modifier)[f"ld.global{modifier}.v4.b32"] == 1


@pytest.mark.parametrize("modifier", [".wb", ".cg", ".cs", ".wt"])
def test_cache_modifiers_of_stores(modifier: str) -> None:
    assert hinted(STORE=modifier)[f"st.global{modifier}.v4.b32"] == 1


@pytest.mark.parametrize("policy", ["evict_first", "evict_last"])
def test_eviction_policies(policy: str) -> None:
    found = hinted(EVICT=policy)
    assert found[f"ld.global.L1::{policy}.v4.b32"] == 1
    assert found[f"st.global.L1::{policy}.v4.b32"] == 1


def test_volatile_loads() -> None:
    assert hinted(VOLATILE=True)["ld.volatile.global.v4.b32"] == 1


# --- coalescing, small tiles, broadcasts ----------------------------------------------------------


@jit
def outer_sum(x, y, out):
    i = tl.arange(0, 64)
    total = tl.load(x + i)[:, None] + tl.load(y + i)[None, :]
    tl.store(out + i[:, None] * 64 + i[None, :], total)


def test_broadcast_tiles_are_loaded_once_for_each_thread_that_needs_them() -> None:
    found = instructions(compiled(outer_sum, "*fp32/16 *fp32/16 *fp32/16"))
    assert found["st.global.v4.b32"] == 64 * 64 // (4 * 128)
    assert sum(n for name, n in found.items() if name.startswith("ld.global")) <= 9


@pytest.mark.parametrize("block", [1, 16, 32, 64])
def test_small_tiles_are_stored_once(block: int) -> None:
    """Threads without elements of their own hold copies; one of them stores."""
    kernel = compiled(copy, "*fp32/16 *fp32/16 i32/16", BLOCK=block)
    assert count(kernel, "ld.global") == count(kernel, "st.global") == 1
    assert "@%p" in next(line for line in kernel.asm["ptx"].splitlines() if "st.global" in line)


# --- loads of what nothing stores to --------------------------------------------------------------


@jit
def scaled_rows(x, weight, out, counter, stride, HOW: tl.constexpr, LOAD: tl.constexpr):
    i = tl.program_id(0) * stride + tl.arange(0, 512)
    row = tl.load(x + i)
    if HOW == "barrier":
        tl.debug_barrier()
    if HOW == "waits":
        tl.atomic_add(counter, 1)
    if HOW == "counts":
        tl.atomic_add(counter, 1, sem="relaxed")
    if HOW == "stored":
        tl.store(weight + i, row)
    if HOW == "looked up":
        out = out + tl.load(counter)
        out = tl.where(stride > 3, out, weight)
    factors = tl.load(weight + tl.arange(0, 512), cache_modifier=LOAD)
    tl.store(out + i, row * factors)


SCALED = "*fp32/16 *fp32/16 *fp32/16 *i32/16 i32/16"


def loads_of_scaled_rows(how: str, cache: str = "") -> set[str]:
    kernel = compiled(scaled_rows, SCALED, HOW=how, LOAD=cache)
    return {name for name in instructions(kernel) if name.startswith("ld.global")}


@pytest.mark.parametrize("how", ["", "counts"])
def test_loads_of_what_no_store_changes_have_no_order_with_stores(how: str) -> None:
    """Rows may be scaled in place, by factors of all rows: these cannot be what is stored."""
    assert loads_of_scaled_rows(how) == {"ld.global.v4.b32", "ld.global.nc.v4.b32"}


@pytest.mark.parametrize("how", ["barrier", "waits", "stored", "looked up"])
def test_loads_keep_their_order_where_something_may_store_to_them(how: str) -> None:
    found = loads_of_scaled_rows(how)
    vectors = {name for name in found if name.startswith("ld.global.v")}
    assert vectors and not any(".nc" in name for name in found)


def test_a_cache_operator_stands_before_what_says_that_a_load_has_no_order() -> None:
    assert "ld.global.cg.nc.v4.b32" in loads_of_scaled_rows("", ".cg")


@jit
def scaled_channels(x, weight, out, width):
    i = tl.arange(0, 1024)
    tl.store(out + i, tl.load(x + i) * tl.load(weight + i // width))


def test_a_gather_has_the_layout_of_what_is_computed_with_it() -> None:
    kernel = compiled(scaled_channels, "*bf16/16 *bf16/16 *bf16/16 i32")
    found = instructions(kernel)
    assert found["ld.global.v4.b32"] == found["st.global.v4.b32"] == 1
    assert count(kernel, "bar") == count(kernel, "ld.shared") == 0


@jit
def loss_and_gradient(x, y, loss, gradient):
    i = tl.arange(0, 4096)
    difference = tl.load(x + i).to(tl.float32) - tl.load(y + i)
    tl.store(loss + i, difference * difference)
    tl.store(gradient + i, 2 * difference)


def test_stores_that_fill_sectors_outweigh_half_as_many_accesses() -> None:
    types = "*bf16/16 *bf16/16 *fp32/16 *bf16/16"
    found = instructions(compiled(loss_and_gradient, types))
    # 32 elements per thread
    assert found["st.global.v4.b32"] == found["st.global.v2.b32"] == 8
    assert sum(n for name, n in found.items() if name.startswith("ld.global")) == 16


@jit
def add_one(x, out, n, DIMS: tl.constexpr):
    i = tl.program_id(0) * 4096 + tl.arange(0, 4096)
    if DIMS == 2:
        i = tl.program_id(0) * 16 + tl.arange(0, 16)[:, None]
        i = i * n + tl.arange(0, 256)[None, :]
    tl.store(out + i, tl.load(x + i) + 1)


@pytest.mark.parametrize("dims, rows", [(1, 1), (2, 4)])
def test_addresses_of_a_run_differ_by_constants(dims: int, rows: int) -> None:
    """One offset of each run becomes 64 bits wide: the others are immediate offsets."""
    kernel = compiled(add_one, "*fp32/16 *fp32/16 i32/16", DIMS=dims)
    assert count(kernel, "ld.global") == 8
    wide = ("mul.wide", "cvt.s64", "cvt.u64")
    assert sum(count(kernel, name) for name in wide) <= rows


@jit
def add_one_to_rows(x, out, n, STRIDE: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * 64 + tl.arange(0, 64)
    i = rows[:, None] * STRIDE + tl.arange(0, 64)[None, :]
    tl.store(out + i, tl.load(x + i, mask=rows[:, None] < n) + 1)


def test_rows_with_a_constant_stride_share_one_address() -> None:
    """Rows differ by constants: one 64-bit address for loads, one for stores, and immediates."""
    kernel = compiled(add_one_to_rows, "*fp32/16 *fp32/16 i32/16", STRIDE=4096)
    assert count(kernel, "ld.global") == 8
    found = re.findall(r"add\.s64 \t%rd\d+, (%rd\d+), (\d+);", kernel.asm["ptx"])
    assert len({base for base, _ in found}) == 2
    assert sorted(int(step) for _, step in found) == [
        (4096 * 8 * 4) * (1 + n // 2) for n in range(14)
    ]


@jit
def copy_strided(x, out, s, t):
    i, j = tl.arange(0, 32)[:, None], tl.arange(0, 16)[None, :]
    x += tl.program_id(0) * 32 * s
    tl.store(out + i * 16 + j, tl.load(x + i * s + j * t))


def test_elements_a_parameter_apart_share_one_address() -> None:
    """16 addresses are sums of one of them and few multiples of the strides."""
    kernel = compiled(copy_strided, "*fp32/16 *fp32/16 i32 i32", num_warps=1)
    assert count(kernel, "ld.global") == 16
    assert count(kernel, "mul.wide") + count(kernel, "mul.lo") <= 12


@jit
def weighted_rows(x, weights, out, m, s):
    j = tl.arange(0, 64)
    total = tl.zeros([64], tl.float32)
    for k in range(0, m, 64):
        i = k + tl.arange(0, 64)
        weight = tl.load(weights + i, mask=i < m, other=0)
        rows = tl.load(x + i[:, None] * s + j[None, :], mask=(i < m)[:, None], other=0)
        total += tl.sum(weight[:, None] * rows, 0)
    tl.store(out + j, total)


@pytest.mark.parametrize("warps", [1, 4])
def test_loads_of_an_iteration_do_not_wait_for_exchanges(warps: int) -> None:
    """The weights are exchanged, in a warp or between warps, after the loads of all rows."""
    types = "*fp32/16 *fp32/16 *fp32/16 i32 i32/16"
    kernel = compiled(weighted_rows, types, num_warps=warps)
    accesses = re.findall(
        r"(ld\.global|st\.shared|shfl|stmatrix|bar\.\w+|\bret)", kernel.asm["ptx"]
    )
    last = max(place for place, name in enumerate(accesses) if name == "ld.global")
    assert last and set(accesses[:last]) == {"ld.global"}


@jit
def small_dot(x, y, out):
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    z = tl.dot(tl.load(x + i * 64 + j), tl.load(y + i * 64 + j))
    tl.store(out + i * 64 + j, z)


def test_only_swizzled_bits_of_shared_addresses_are_xored() -> None:
    """Steps along rows of 128 bytes are immediates: few registers hold addresses."""
    kernel = compiled(small_dot, "*fp16/16 *fp16/16 *fp32/16", capability=80)
    steps = [int(n) for n in re.findall(r"xor\.b32 \t%r\d+, %r\d+, (\d+);", kernel.asm["ptx"])]
    assert count(kernel, "ldmatrix") >= 16
    assert steps and max(steps) < 128
