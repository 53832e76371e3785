"""Products as PTX: the instruction for each type, loads of its operands, copies ahead."""

import re
from typing import Any

import pytest

import tilewright.language as tl
from tests.unit.backends.nvidia.compiled import bodies_of_loops, compiled, count, instructions, ops
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import jit
from tilewright.compiler import CompiledKernel

pytestmark = needs_ptxas


@jit
def product(a, b, c, ACC: tl.constexpr):
    i, k = tl.arange(0, 64), tl.arange(0, 64)
    x = tl.load(a + i[:, None] * 64 + k[None, :])
    y = tl.load(b + k[:, None] * 64 + i[None, :])
    tl.store(c + i[:, None] * 64 + i[None, :], tl.dot(x, y, out_dtype=ACC))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "dtype, result, acc, capability, instruction",
    [
        ("fp16", "fp32", tl.float32, 80, "m16n8k16.row.col.f32.f16.f16.f32"),
        ("bf16", "fp32", tl.float32, 80, "m16n8k16.row.col.f32.bf16.bf16.f32"),
        ("fp32", "fp32", tl.float32, 80, "m16n8k8.row.col.f32.tf32.tf32.f32"),
        ("i8", "i32", tl.int32, 80, "m16n8k32.row.col.s32.s8.s8.s32"),
        ("u8", "i32", tl.int32, 80, "m16n8k32.row.col.s32.u8.u8.s32"),
        ("fp8e4nv", "fp32", tl.float32, 80, "m16n8k16.row.col.f32.f16.f16.f32"),
        ("fp8e4nv", "fp32", tl.float32, 89, "m16n8k32.row.col.f32.e4m3.e4m3.f32"),
        ("fp8e5", "fp32", tl.float32, 89, "m16n8k32.row.col.f32.e5m2.e5m2.f32"),
        ("fp64", "fp64", tl.float64, 80, "m8n8k4.row.col.f64.f64.f64.f64"),
    ],
)
def test_instruction_of_each_type(
    dtype: str, result: str, acc: Any, capability: int, instruction: str
) -> None:
    types = f"*{dtype}/16 *{dtype}/16 *{result}/16"
    found = instructions(compiled(product, types, capability, ACC=acc))
    products = {name: n for name, n in found.items() if name.startswith("mma.sync")}
    m, n, k = (
        int(x) for x in instruction.split(".")[0][1:].replace("n", " ").replace("k", " ").split()
    )
    assert products == {f"mma.sync.aligned.{instruction}": (64 // m) * (64 // n) * (64 // k) // 4}


@jit
def small_product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j[None, :])
    tl.store(c + i[:, None] * N + j[None, :], tl.dot(x, y))


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize(
    ("m", "n", "k", "products"),
    [(64, 64, 4, 8), (64, 64, 8, 8), (16, 8, 4, 1), (8, 64, 16, 2), (64, 4, 16, 1), (1, 8, 4, 1)],
)
def test_small_products_use_tensor_cores(dtype: str, m: int, n: int, k: int, products: int) -> None:
    types = f"*{dtype}/16 *{dtype}/16 *fp32/16"
    found = compiled(small_product, types, 80, M=m, N=n, K=k)
    assert count(found, "mma.sync") == products and count(found, "fma") == 0


WARPGROUP_PRODUCTS = [
    ("fp16", "fp32", tl.float32, "m64n64k16.f32.f16.f16"),
    # f16 is rounded to behind the sum
    ("fp16", "fp16", tl.float16, "m64n64k16.f32.f16.f16"),
    ("bf16", "fp32", tl.float32, "m64n64k16.f32.bf16.bf16"),
]


@jit
def product_of_columns(a, b, c, ACC: tl.constexpr):
    """B with K in order."""
    i, k = tl.arange(0, 64), tl.arange(0, 64)
    x = tl.load(a + i[:, None] * 64 + k[None, :])
    y = tl.load(b + k[:, None] + i[None, :] * 64)
    tl.store(c + i[:, None] * 64 + i[None, :], tl.dot(x, y, out_dtype=ACC))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("dtype", "result", "acc", "instruction"),
    [
        *WARPGROUP_PRODUCTS,
        ("i8", "i32", tl.int32, "m64n64k32.s32.s8.s8"),
        ("u8", "i32", tl.int32, "m64n64k32.s32.u8.u8"),
        ("fp8e4nv", "fp32", tl.float32, "m64n64k32.f32.e4m3.e4m3"),
        ("fp8e5", "fp32", tl.float32, "m64n64k32.f32.e5m2.e5m2"),
        ("fp32", "fp32", tl.float32, "m64n64k8.f32.tf32.tf32"),
    ],
)
@pytest.mark.parametrize("kernel", [product, product_of_columns], ids=["rows", "columns"])
def test_warpgroups_multiply_rows_and_columns_of_all_types(
    kernel: Any, dtype: str, result: str, acc: Any, instruction: str
) -> None:
    """B with N in order is read into registers, where its type has other than 16 bits."""
    types = f"*{dtype}/16 *{dtype}/16 *{result}/16"
    done = compiled(kernel, types, ACC=acc)
    k = int(instruction.split(".")[0].partition("k")[2])
    assert instructions(done)[f"wgmma.mma_async.sync.aligned.{instruction}"] == 64 // k
    in_registers = kernel is product and k != 16
    assert ("swapped = true" in str(done.asm["ttgir"])) == in_registers
    # Rounding would cost more than the product.
    assert "cvt.rna" not in str(done.asm["ptx"])


@jit
def narrow_scores(a, b, c, N, REDUCED: tl.constexpr):
    """Products of rows of A with keys of 8 bits: their maxima, or their sums over all blocks."""
    i, k = tl.arange(0, 64), tl.arange(0, 64)
    x = tl.load(a + i[:, None] * 64 + k[None, :])
    best, total = tl.zeros((64,), tl.float32), tl.zeros((64, 64), tl.float32)
    for start in range(0, N, 64):
        y = tl.load(b + (start + i)[None, :] * 64 + k[:, None]).to(tl.float16)
        if REDUCED:
            best = tl.maximum(best, tl.max(tl.dot(x, y), axis=1))
        else:
            total = tl.dot(x, y, total)
    tl.store(c + i[:, None] * 64 + k[None, :], total + best[:, None])


@pytest.mark.parametrize("reduced", [False, True])
def test_products_whose_rows_are_reduced_are_not_transposed(reduced: bool) -> None:
    """Their rows would lie across warps, and each iteration exchange them."""
    done = compiled(narrow_scores, "*fp16/16 *i8/16 *fp32/16 i32/16", 90, REDUCED=reduced)
    assert ("swapped = true" in str(done.asm["ttgir"])) != reduced
    assert count(done, "wgmma") > 0


def test_exact_types_keep_the_products_of_warps() -> None:
    found = compiled(product_of_columns, "*fp64/16 *fp64/16 *fp64/16", ACC=tl.float64)
    assert count(found, "wgmma") == 0 and count(found, "mma.sync") > 0


@jit
def small_half_product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j[None, :])
    tl.store(c + i[:, None] * N + j[None, :], tl.dot(x, y, out_dtype=tl.float16))


@pytest.mark.parametrize("dtype, capability", [("fp16", 90), ("fp8e5", 80)])
def test_small_products_may_be_rounded_to_fp16(dtype: str, capability: int) -> None:
    """Widened, then padded: nothing of the steps between is left."""
    types = f"*{dtype}/16 *{dtype}/16 *fp16/16"
    found = compiled(small_half_product, types, capability, M=2, N=2, K=32)
    assert count(found, "mma.sync") == 2 and count(found, "fma") == 0


def test_operands_of_16_bits_come_by_ldmatrix() -> None:
    found = instructions(compiled(product, "*fp16/16 *fp16/16 *fp32/16", 80, ACC=tl.float32))
    assert found["ldmatrix.sync.aligned.m8n8.x4.shared.b16"] > 0
    assert found["ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"] > 0


# --- loops ----------------------------------------------------------------------------------------


@jit
def prepared(x, HOW: tl.constexpr):
    if HOW == "cast":
        return x.to(tl.float16)
    if HOW == "scaled":
        return (x * 2 + 1).to(tl.float16)
    return x


@jit
def looped(a, b, c, K, HOW: tl.constexpr, OTHER: tl.constexpr, STAGES: tl.constexpr):
    i, k = tl.arange(0, 64), tl.arange(0, 32)
    acc = tl.zeros((64, 64), tl.float32)
    for start in tl.range(0, K, 32, num_stages=STAGES):
        inside = k + start < K
        x = tl.load(a + i[:, None] * K + k[None, :] + start, inside[None, :], other=OTHER)
        y = tl.load(b + (k[:, None] + start) * 64 + i[None, :], inside[:, None], other=OTHER)
        acc = tl.dot(prepared(x, HOW), prepared(y, HOW), acc)
    tl.store(c + i[:, None] * 64 + i[None, :], acc)


def loop(dtype: str = "fp16", capability: int = 90, **words: Any) -> CompiledKernel:
    known = {"HOW": "", "OTHER": 0.0, "STAGES": None}
    return compiled(
        looped, f"*{dtype}/16 *{dtype}/16 *fp32/16 i32/16", capability, **(known | words)
    )


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_loads_are_copied_ahead(stages: int) -> None:
    """Each of two operands has 64 x 32 elements of 2 bytes: two copies of 16 bytes a thread."""
    kernel = loop(num_stages=stages, capability=80)
    assert count(kernel, "cp.async.cg.shared.global") == 4 * stages
    assert instructions(kernel)["cp.async.wait_group"] == 2
    assert f"cp.async.wait_group {stages - 2};" in kernel.asm["ptx"]
    assert kernel.metadata.shared >= stages * 2 * 64 * 32 * 2
    assert ops(bodies_of_loops(kernel.asm["ttgir"]))["nvidia.write"] == 0


def test_warpgroups_multiply_while_the_next_iteration_starts() -> None:
    """Three stages are a hint: five slots leave room for as many programs on a multiprocessor.

    A wait, and a barrier, for the first copies stand before the loop; in it each product waits for
    the one before, and the copies that follow fill the slot which that one has read.
    """
    kernel = loop(num_stages=3, bulk_loads="descriptors")
    ptx, body = str(kernel.asm["ptx"]), bodies_of_loops(str(kernel.asm["ttgir"]))
    assert count(kernel, "cp.async.cg.shared.global") == 4 * 5
    assert kernel.metadata.shared == 5 * 2 * 64 * 32 * 2
    waits = re.findall(r"(cp.async|wgmma).wait_group(?:.sync.aligned)? (\d)", ptx)
    assert waits == [
        *[("cp.async", "3"), ("wgmma", "1"), ("cp.async", "2")],
        *[("cp.async", "0"), ("wgmma", "0")],
    ]
    (looped,) = re.findall(r"\n(?:\$L__BB\w+):(.*?)\bbra\.uni", ptx, re.DOTALL)
    expected = ["wgmma.fence", "wgmma.mma_async", "wgmma.mma_async", "wgmma.commit_group",
                "wgmma.wait_group", "cp.async.wait_group", "fence.proxy.async", "bar.sync",
                *["cp.async.cg"] * 4, "cp.async.commit_group"]  # fmt: skip
    pattern = r"^\s*(?:@!?%\w+\s+)?((?:wgmma|cp\.async|fence\.proxy|bar|ld|st)\.\w+)"
    assert re.findall(pattern, looped, re.MULTILINE) == expected
    assert ops(body)["mem.barrier"] == 1 and ops(body)["nvidia.write"] == 0


def test_warpgroups_wait_for_their_products_where_two_slots_are_asked_for() -> None:
    kernel = loop(num_stages=2, bulk_loads="descriptors")
    assert count(kernel, "cp.async.cg.shared.global") == 4 * 2
    assert re.findall(r"wgmma.wait_group.sync.aligned (\d)", kernel.asm["ptx"]) == ["0"]
    assert kernel.metadata.shared == 2 * 2 * 64 * 32 * 2


@pytest.mark.parametrize(("capability", "slots"), [(80, 4), (90, 5)])
def test_stages_of_the_loop_come_before_those_of_the_launch(capability: int, slots: int) -> None:
    """slots: for four stages, of which warpgroups take more where there is room."""
    wide, narrow = (
        loop("fp16", capability, num_stages=launch, STAGES=own, bulk_loads="descriptors")
        for launch, own in ((2, 4), (4, 1))
    )
    assert count(wide, "cp.async.cg") == 4 * slots
    assert count(narrow, "cp.async") == 0


def test_one_stage_copies_nothing_ahead() -> None:
    kernel = loop(num_stages=1, capability=80)
    assert count(kernel, "cp.async") == 0
    assert count(kernel, "mma.sync") == 16


def test_one_stage_copies_nothing_ahead_for_warpgroups() -> None:
    """They read what threads have written, behind a barrier, and have ended before it changes."""
    kernel = loop(num_stages=1)
    assert count(kernel, "cp.async") == 0
    assert count(kernel, "wgmma.mma_async") == 32 // 16
    assert re.findall(r"wgmma.wait_group.sync.aligned (\d)", kernel.asm["ptx"]) == ["0"]
    assert ops(bodies_of_loops(kernel.asm["ttgir"]))["mem.barrier"] == 2


@pytest.mark.parametrize("other", [1.0, -0.0])
def test_copies_fill_with_zeros_only(other: float) -> None:
    """Another `other` than zero, whose bits are all 0, is loaded through registers."""
    assert count(loop(OTHER=other), "cp.async") == 0


@pytest.mark.parametrize(
    "dtype, how, capability",
    [("fp32", "cast", 80), ("i8", "cast", 80), ("fp16", "scaled", 80), ("fp8e4nv", "", 80)],
)
def test_loads_are_copied_ahead_through_elementwise_code(
    dtype: str, how: str, capability: int
) -> None:
    kernel = loop(dtype, capability, HOW=how)
    assert count(kernel, "cp.async.c") > 0
    assert count(kernel, "mma.sync.aligned.m16n8k16") == 16
    body = ops(bodies_of_loops(kernel.asm["ttgir"]))
    widened = dtype in ("i8", "fp8e4nv")
    # What is widened goes through shared memory once more, in the layout of the product.
    assert (body["nvidia.write"], body["nvidia.read"]) == ((2, 4) if widened else (0, 2))


@pytest.mark.parametrize(("dtype", "how"), [("fp32", "cast"), ("i8", "cast"), ("fp16", "scaled")])
def test_warpgroups_multiply_what_elementwise_code_makes_of_copies(dtype: str, how: str) -> None:
    """A comes from registers, B from a buffer that all threads write in each iteration."""
    kernel = loop(dtype, HOW=how)
    assert count(kernel, "cp.async.c") > 0
    assert count(kernel, "wgmma.mma_async.sync.aligned.m64n64k16") == 2
    body = ops(bodies_of_loops(kernel.asm["ttgir"]))
    assert (body["nvidia.read"], body["nvidia.share"]) == (2, 1)


@jit
def widened(a, b, c, K, BLOCK: tl.constexpr):
    i, k = tl.arange(0, 128), tl.arange(0, BLOCK)
    acc = tl.zeros((128, 128), tl.float32)
    for start in range(0, K, BLOCK):
        x = tl.load(a + i[:, None] * K + k[None, :] + start).to(tl.float16)
        y = tl.load(b + (k[:, None] + start) * 128 + i[None, :]).to(tl.float16)
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * 128 + i[None, :], acc)


def test_buffers_leave_room_for_what_the_loop_converts() -> None:
    """5 slots of 32 KB would fit the 163 KB, but not beside a conversion of 32 KB."""
    kernel = compiled(
        widened, "*i8/16 *i8/16 *fp32/16 i32/16", 80, BLOCK=128, num_warps=8, num_stages=5
    )
    assert kernel.metadata.shared == (4 * 32 + 32) * 1024


@jit
def chained(q, k, v, out, n):
    """Two products of each iteration, the second of what the first made."""
    i, j = tl.arange(0, 64), tl.arange(0, 64)
    x = tl.load(q + i[:, None] * 64 + j[None, :])
    acc = tl.zeros((64, 64), tl.float32)
    for start in range(0, n, 64):
        place = (start + j)[:, None] * 64 + j[None, :]
        scores = tl.dot(x, tl.trans(tl.load(k + place)))
        acc = tl.dot(scores.to(tl.float16), tl.load(v + place), acc)
    tl.store(out + i[:, None] * 64 + j[None, :], acc)


@pytest.mark.parametrize(("capability", "reads", "tiles"), [(80, 8, 6), (90, 0, 5)])
def test_chained_products_need_no_memory_between_them(
    capability: int, reads: int, tiles: int
) -> None:
    types = "*fp16/16 *fp16/16 *fp16/16 *fp32/16 i32/16"
    kernel = compiled(chained, types, capability, bulk_loads="descriptors")
    body = bodies_of_loops(kernel.asm["ttgir"])
    assert ops(body)["nvidia.read"] == reads
    assert ops(body)["nvidia.write"] == ops(body)["nvidia.share"] == 0
    # Warpgroups need v an iteration later, so it is copied one less ahead.
    assert count(kernel, "cp.async.cg") == tiles * 4
    assert "q" not in [line.split()[0].strip("%") for line in body.splitlines()]


def test_what_a_loop_does_not_change_is_shared_before_it() -> None:
    text = compiled(chained, "*fp16/16 *fp16/16 *fp16/16 *fp32/16 i32/16").asm["ttgir"]
    assert ops(text)["nvidia.share"] == 1
    # The second one stands where it runs, too, and where it may not.
    assert ops(bodies_of_loops(text))["nvidia.wgmma"] == 3


def test_what_a_loop_does_not_change_is_converted_before_it() -> None:
    text = compiled(chained, "*fp16/16 *fp16/16 *fp16/16 *fp32/16 i32/16", 80).asm["ttgir"]
    assert ops(text)["nvidia.write"] > ops(bodies_of_loops(text))["nvidia.write"]
    converted = [line for line in text.splitlines() if "nvidia.write %x" in line]
    assert len(converted) == 1 and converted[0] not in bodies_of_loops(text)


@jit
def two_kinds(a, b, e, c, d, K):
    """A product of tensor cores and an exact one, whose operands are in shared memory too."""
    i, j, s = tl.arange(0, 128), tl.arange(0, 64), tl.arange(0, 64)
    acc, exact = tl.zeros((128, 128), tl.float32), tl.zeros((64, 64), tl.float32)
    p = tl.load(e + s[:, None] * 64 + s[None, :])
    for k in range(0, K, 64):
        x = tl.load(a + i[:, None] * K + k + j[None, :])
        y = tl.load(b + (k + j[:, None]) * 128 + i[None, :])
        acc = tl.dot(x, y, acc)
        exact = tl.dot(p, exact + 1.0, exact, input_precision="ieee")
    tl.store(c + i[:, None] * 128 + i[None, :], acc)
    tl.store(d + s[:, None] * 64 + s[None, :], exact)


@pytest.mark.parametrize("stages", [5, 6, 7, 50])
def test_stages_are_a_hint(stages: int) -> None:
    """6 slots of 32 KB fit beside the 34 KB of the exact product, 7 do not."""
    types = "*fp16/16 *fp16/16 *fp32/16 *fp32/16 *fp32/16 i32/16"
    kernel = compiled(two_kinds, types, num_warps=8, num_stages=stages)
    slots = min(stages, 6)
    assert f"cp.async.wait_group {slots - 2};" in kernel.asm["ptx"]
    assert slots * 32 * 1024 < kernel.metadata.shared <= 227 * 1024


@jit
def chain(a, w, n, D: tl.constexpr, FENCE: tl.constexpr):
    """Loads what the D-th iteration before has stored."""
    i = tl.arange(0, 64)
    tile = i[:, None] * 64 + i[None, :]
    y = tl.load(w + tile)
    for s in range(n):
        if FENCE:
            tl.debug_barrier()
        x = tl.load(a + s * 4096 + tile)
        tl.store(a + (s + D) * 4096 + tile, tl.dot(x, y).to(tl.float16))


@pytest.mark.parametrize(
    "distance, fence, slots",
    [(0, False, 4), (1, False, 0), (2, False, 2), (3, False, 3), (9, False, 4), (-1, False, 4),
     (0, True, 0)],
)  # fmt: skip
def test_copies_go_as_far_ahead_as_memory_allows(distance: int, fence: bool, slots: int) -> None:
    """4 copies of 16 bytes a thread for each slot; 4 slots are asked for."""
    types = "*fp16/16 *fp16/16 i32"
    kernel = compiled(chain, types, num_stages=4, D=distance, FENCE=fence)
    assert count(kernel, "cp.async.cg.shared.global") == 4 * slots


@jit
def persistent(a, b, c, items, K):
    """A loop over tiles around the loop along the inner dimension, with a load of its own."""
    i = tl.arange(0, 64)
    tile = i[:, None] * 64 + i[None, :]
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        acc = tl.dot(tl.load(a + item * 4096 + tile), tl.load(b + tile))
        for k in range(K):
            acc = tl.dot(tl.load(a + k * 4096 + tile), tl.load(b + k * 4096 + tile), acc)
        tl.store(c + item * 4096 + tile, acc)


@pytest.mark.parametrize(("capability", "reads"), [(80, 8), (90, 0)])
def test_innermost_loops_are_pipelined(capability: int, reads: int) -> None:
    """reads: of both operands in four steps; warpgroups read the slots themselves."""
    text = compiled(persistent, "*fp16/16 *fp16/16 *fp32/16 i32 i32", capability).asm["ttgir"]
    inner = bodies_of_loops(bodies_of_loops(text))
    assert ops(inner)["nvidia.read"] == reads
    assert ops(text)["nvidia.read"] - ops(text)["nvidia.write"] == reads, "others are conversions"
    assert ops(inner)["nvidia.async_copy"] == 2
    assert ops(inner)["mem.load"] == 2, "of the copies"


@pytest.mark.parametrize(("capability", "reads"), [(80, 8), (90, 0)])
def test_a_loop_around_others_is_pipelined_if_they_are_not(capability: int, reads: int) -> None:
    types = "*fp16/16 *fp16/16 *fp32/16 i32 i32"
    text = compiled(persistent_with_sum, types, capability).asm["ttgir"]
    outer, inner = bodies_of_loops(text), bodies_of_loops(bodies_of_loops(text))
    assert ops(outer)["nvidia.read"] - ops(outer)["nvidia.write"] == reads
    assert (ops(outer)["nvidia.async_copy"], ops(inner)["nvidia.async_copy"]) == (2, 0)


@jit
def persistent_with_sum(a, b, c, items, K):
    i = tl.arange(0, 64)
    tile = i[:, None] * 64 + i[None, :]
    for item in range(items):
        acc = tl.dot(tl.load(a + item * 4096 + tile), tl.load(b + item * 4096 + tile))
        for k in range(K):
            acc += k
        tl.store(c + item * 4096 + tile, acc)


def test_buffers_of_two_loops_share_memory() -> None:
    """By liveness: the second loop begins when the first has ended."""
    types = "*fp16/16 *fp16/16 *fp32/16 i32/16"
    one, two = (
        compiled(repeated, types, TIMES=n, bulk_loads="descriptors").metadata.shared for n in (1, 2)
    )
    assert one == two


@jit
def repeated(a, b, c, K, TIMES: tl.constexpr):
    i, k = tl.arange(0, 64), tl.arange(0, 32)
    acc = tl.zeros((64, 64), tl.float32)
    for _ in tl.static_range(TIMES):
        for start in range(0, K, 32):
            x = tl.load(a + i[:, None] * K + k[None, :] + start)
            y = tl.load(b + (k[:, None] + start) * 64 + i[None, :])
            acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * 64 + i[None, :], acc)


@jit
def whole_register_file(a, b, c, K):
    """Sums that take all registers of a multiprocessor."""
    i, k = tl.arange(0, 256), tl.arange(0, 32)
    acc = tl.zeros((256, 256), tl.float32)
    for start in range(0, K, 32):
        x = tl.load(a + i[:, None] * K + start + k[None, :])
        y = tl.load(b + i[None, :] * K + start + k[:, None])
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * 256 + i[None, :], acc)


@pytest.mark.parametrize(("warps", "registers"), [(8, 255), (16, 128)])
def test_what_spills_takes_all_registers(warps: int, registers: int) -> None:
    """Triton spills 1026 words with 8 warps, and cannot be assembled with 16."""
    types = "*fp32/16 *fp32/16 *fp32/16 i32/16"
    kernel = compiled(whole_register_file, types, num_warps=warps, num_stages=2)
    assert kernel.metadata.registers == registers
    assert 0 < kernel.metadata.spills < 1026
