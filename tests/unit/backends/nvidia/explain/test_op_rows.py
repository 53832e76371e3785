"""`kernel.explain()`: a row for each load, store, product and conversion, with what limits it."""

import re
from dataclasses import replace

import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.figures import source_of, widest
from tests.corpus.variants import CORPUS, Variant
from tests.kernels.tutorial_matmul import tutorial_matmul
from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends import Explanation, GPUTarget, OpRow, Resources
from tilewright.kernels.attention_blocks import in_rounds
from tilewright.kernels.elementwise import add_kernel
from tilewright.kernels.softmax import softmax_kernel
from tilewright.support import errors

pytestmark = needs_ptxas


def rows(explanation: Explanation, op: str) -> list[OpRow]:
    return [row for row in explanation.rows if row.op == op]


def one(explanation: Explanation, op: str) -> OpRow:
    (row,) = rows(explanation, op)
    return row


def line(row: OpRow) -> str:
    """The text of the source line of a row."""
    assert row.loc is not None
    with open(row.loc.file, encoding="utf-8") as file:
        return file.read().splitlines()[row.loc.line - 1].strip()


# ---- global memory -------------------------------------------------------------------------------


def test_aligned_loads_and_stores_are_as_wide_as_they_can_be() -> None:
    explained = compiled(add_kernel, "*fp32/16 *fp32/16 *fp32/16 i32/16", BLOCK=1024).explain()
    x, y = rows(explained, "load")
    assert (x.how, x.bytes, x.through) == ("ld.global.v4.b32", 16, "global -> registers")
    assert x.notes == y.notes == () and x.tile == "1024xf32"
    assert "tl.load(x_ptr" in line(x) and "tl.load(y_ptr" in line(y)
    store = one(explained, "store")
    assert (store.how, store.bytes, store.notes) == ("st.global.v4.b32", 16, ())


def test_a_pointer_of_unknown_alignment_is_named() -> None:
    explained = compiled(add_kernel, "*fp32/16 *fp32 *fp32/16 i32/16", BLOCK=1024).explain()
    x, y = rows(explained, "load")
    assert x.bytes == 16 and x.notes == ()
    assert (y.how, y.bytes) == ("ld.global.b32", 4)
    assert y.notes == (
        "addresses are known to be multiples of 4 bytes only (y_ptr as a multiple of 1)",
    )


def test_a_mask_that_may_change_within_a_vector_names_what_it_depends_on() -> None:
    explained = compiled(add_kernel, "*fp32/16 *fp32/16 *fp32/16 i32", BLOCK=1024).explain()
    reason = "the mask may change from element to element (n as a multiple of 1)"
    assert {row.notes for row in explained.rows} == {(reason,)}


@tilewright.jit
def strided(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i * stride))


def test_a_stride_that_is_not_one_is_the_reason() -> None:
    explained = compiled(strided, "*fp32/16 *fp32/16 i32/16", BLOCK=1024).explain()
    load = one(explained, "load")
    assert load.bytes == 4
    assert load.notes[0].startswith("neighbours are not known to be contiguous in memory")
    # Neighbours are loaded by adjacent lanes, and stored as they were loaded.
    assert one(explained, "store").bytes == 4


def test_a_small_tile_leaves_a_thread_few_elements() -> None:
    explained = compiled(strided, "*fp32/16 *fp32/16 i32=1", BLOCK=64).explain()
    load = one(explained, "load")
    assert load.bytes < 16
    assert load.notes == (f"a thread holds {load.bytes // 4} consecutive elements",)


@tilewright.jit
def scaled(x_ptr, scale_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, cache_modifier=".cg") * tl.load(scale_ptr))


def test_a_scalar_is_loaded_by_all_threads_and_modifiers_are_shown() -> None:
    explained = compiled(scaled, "*fp32/16 *fp32/16", BLOCK=1024).explain()
    tile, scalar = sorted(rows(explained, "load"), key=lambda row: row.tile == "f32")
    assert tile.how == "ld.global.cg.v4.b32"
    assert (scalar.how, scalar.bytes) == ("ld.global.nc.b32", 4)
    assert scalar.notes == ("one element, the same for all threads",)


def test_softmax_reads_and_writes_lines_once() -> None:
    """What warps leave of its two reductions goes through shared memory."""
    types = "*fp32/16 *fp32/16 i32/16 i32/16 i32/16"
    explained = compiled(softmax_kernel, types, BLOCK=1024, num_warps=2).explain()
    assert [(row.op, row.bytes, row.notes) for row in explained.rows] == [
        ("load", 16, ()),
        ("reduce", 4, ()),
        ("reduce", 4, ()),
        ("store", 16, ()),
    ]


# ---- products ------------------------------------------------------------------------------------

TUTORIAL = "*fp16/16 *fp16/16 *fp16/16 i32/16 i32/16 i32/16 i32/16 i32=1 i32/16 i32=1 i32/16 i32=1"
SHAPE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
BLOCKS = {**SHAPE, "GROUP_M": 8, "EVEN_K": False, "num_warps": 8}


def matmul(capability: int, types: str = TUTORIAL, **words: int) -> Explanation:
    return compiled(tutorial_matmul, types, capability, **{**BLOCKS, **words}).explain()


def test_products_of_ampere_read_copies_by_ldmatrix() -> None:
    explained = matmul(80)
    for load in rows(explained, "load"):
        assert (load.how, load.bytes, load.through) == ("cp.async.cg", 16, "global -> shared")
        assert load.conflicts == 1 and load.notes == ()
    dot = one(explained, "dot")
    assert dot.how == "mma.sync.m16n8k16.f32.f16.f16.f32"
    assert "A: shared -> registers by ldmatrix.x4" in dot.through
    assert "B: shared -> registers by ldmatrix.x4.trans" in dot.through
    assert (dot.conflicts, dot.bytes, dot.notes) == (1, 16, ("sm_80 has no wgmma",))
    assert line(dot) == "acc = tl.dot(a, b, acc)"


def test_products_of_hopper_are_those_of_warpgroups() -> None:
    explained = matmul(90)
    assert {row.how for row in rows(explained, "load")} == {"cp.async.cg"}
    dot = one(explained, "dot")
    assert dot.how == "wgmma.m64n128k16.f32.f16.f16"
    expected = "A: shared, K-major, 128-byte swizzle, B: shared, N-major, 128-byte swizzle"
    assert dot.through == expected and dot.notes == ()


def test_a_narrow_swizzle_is_noted() -> None:
    dot = one(matmul(90, BLOCK_K=32), "dot")
    assert dot.notes == ("rows of A have fewer than 128 bytes",)


def test_what_keeps_warpgroups_from_a_product_is_told() -> None:
    dot = one(matmul(90, BLOCK_N=64, num_warps=2), "dot")
    assert dot.how.startswith("mma.sync.m16n8k16")
    assert dot.notes == ("2 warps are no whole warpgroups of 4",)


def test_turing_cannot_load_ahead() -> None:
    loads = rows(matmul(75), "load")
    assert {row.notes for row in loads} == {("not loaded ahead: sm_75 has no cp.async",)}


def test_copies_of_a_misaligned_operand_are_narrow_or_none() -> None:
    a, b = rows(matmul(80, TUTORIAL.replace("*fp16/16", "*fp16", 1)), "load")
    assert a.how == "ld.global.b16" and "a_ptr as a multiple of 1" in a.notes[0]
    assert "not loaded ahead: cp.async moves 4 bytes or more" in a.notes
    assert b.how == "cp.async.cg" and b.notes == ()


@tilewright.jit
def exact(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = x_ptr + i[:, None] * BLOCK + i[None, :]
    x = tl.load(p)
    tl.store(p, tl.dot(x, x, input_precision="ieee"))


def test_a_product_without_tensor_cores_says_so() -> None:
    dot = one(compiled(exact, "*fp32/16", BLOCK=32).explain(), "dot")
    assert dot.how == "fma"
    assert dot.notes == ("tensor cores do not compute exact fp32 dots (ieee)",)


# ---- operands in registers, and copies that blocks share -----------------------------------------


@tilewright.jit
def with_bytes(a_ptr, w_ptr, c_ptr, K, BLOCK: tl.constexpr):
    i, j = tl.arange(0, 64), tl.arange(0, BLOCK)
    acc = tl.zeros((64, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + i[:, None] * K + k + j[None, :])
        w = tl.load(w_ptr + (k + j)[:, None] * BLOCK + j[None, :])
        acc = tl.dot(a, w.to(tl.float16) * 2, acc)
    tl.store(c_ptr + i[:, None] * BLOCK + j[None, :], acc)


def test_an_operand_in_registers_says_which_load_it_is_read_from_and_what_it_was() -> None:
    types = "*fp16/16 *i8/16 *fp32/16 i32/16"
    dot = one(compiled(with_bytes, types, BLOCK=64).explain(), "dot")
    a, b = dot.through.split(", B: ")
    assert a == "A: shared, K-major, 128-byte swizzle"
    assert re.fullmatch(
        r"registers, read by ld\.shared\.\S+ from the load of line \d+, converted from i8", b
    )
    load = next(r for r in rows(compiled(with_bytes, types, BLOCK=64).explain(), "load")
                if r.tile.endswith("i8"))  # fmt: skip
    assert load.loc is not None and f"the load of line {load.loc.line}," in b
    assert dot.bytes > 0 and dot.conflicts is not None


@tilewright.jit
def two_products(x_ptr, y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i, j = tl.arange(0, 64), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i[:, None] * BLOCK + j[None, :])
    acc = tl.zeros((64, BLOCK), tl.float32)
    for n in range(0, N, BLOCK):
        y = tl.load(y_ptr + (n + j)[:, None] * BLOCK + j[None, :])
        s = tl.dot(x, tl.trans(y))
        acc = tl.dot(tl.exp(s).to(tl.float16), y, acc)
    tl.store(out_ptr + i[:, None] * BLOCK + j[None, :], acc)


def test_the_product_of_a_product_comes_from_it_and_may_be_carried() -> None:
    types = "*fp16/16 *fp16/16 *fp32/16 i32/16"
    explained = compiled(two_products, types, BLOCK=64).explain()
    first = next(row for row in rows(explained, "dot") if line(row).startswith("s ="))
    texts = [row.through for row in rows(explained, "dot") if line(row).startswith("acc =")]
    assert first.loc is not None and texts
    expected = f"A: registers, the dot of line {first.loc.line}, converted from f32"
    assert {text.partition(", B: ")[0] for text in texts} <= {
        expected,
        f"{expected}, carried from the iteration before",
    }


def test_why_tma_does_not_issue_a_load_outside_of_loops() -> None:
    """By the threads of a program; with a producer that has no room for it."""
    types = "*fp16/16 *fp16/16 *fp32/16 i32/16"
    explained = [compiled(two_products, types, BLOCK=64, bulk_loads="all").explain()]
    attention = {v.label: v for v in CORPUS["attention"] if v.capability == 90}["fp16 256 causal"]
    kernel = tilewright.compile(source_of(attention), GPUTarget("cuda", 90, 32), attention.options)
    explained.append(kernel.explain())
    start = "not by TMA: outside of loops"
    assert [rows(each, "load")[0].notes for each in explained] == [
        (f"{start} only a producer warp issues TMA loads, and this program has none",),
        (f"{start} the producer warp loads only what fits, before any store",),
    ]


@tilewright.jit
def narrow_products(x_ptr, y_ptr, v_ptr, out_ptr, ROUND: tl.constexpr):
    i = tl.arange(0, 64)
    rows = i[:, None] * 64 + i[None, :]
    s = tl.dot(tl.load(x_ptr + rows), tl.trans(tl.load(y_ptr + rows)))
    v = tl.trans(tl.load(v_ptr + rows))
    acc = tl.dot((in_rounds(s) if ROUND else s).to(x_ptr.dtype.element_ty), v)
    tl.store(out_ptr + rows, acc)


@pytest.mark.parametrize(("rounds", "exchanged"), [(True, ""), (False, " by shfl.sync.idx")])
def test_an_operand_of_registers_says_how_other_lanes_get_it(rounds: bool, exchanged: str) -> None:
    types = "*fp8e4nv/16 *fp8e4nv/16 *fp8e4nv/16 *fp32/16"
    explained = compiled(narrow_products, types, ROUND=rounds).explain()
    last = next(row for row in rows(explained, "dot") if line(row).startswith("acc ="))
    moved = f", brought to other lanes{exchanged}" if exchanged else ""
    assert re.search(rf"the dot of line \d+, converted from f32{moved}, B: ", last.through)


@tilewright.jit
def scaled_before(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    where = i[:, None] * BLOCK + i[None, :]
    x = (tl.load(x_ptr + where) * 0.5).to(tl.float16)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(n):
        y = tl.load(y_ptr + k * BLOCK * BLOCK + where)
        s = tl.dot(x, y)
        acc = tl.dot(s.to(tl.float16), y, acc)
    tl.store(out_ptr + where, acc)


def test_what_is_computed_before_a_loop_is_shared() -> None:
    """ptxas 13.0 gave its registers to what the loop computes, of which products come here."""
    types = "*fp16/16 *fp16/16 *fp32/16 i32"
    found = rows(compiled(scaled_before, types, BLOCK=64).explain(), "dot")
    first = [row for row in found if line(row).startswith("s =")]
    assert first and all(row.through.startswith("A: shared, K-major") for row in first)


def test_gradients_of_attention_show_their_schedule() -> None:
    """A producer asks for queries; weights and their changes are operands where they are made."""
    (variant,) = (
        v for v in CORPUS["attention_backward"] if (v.capability, v.label) == (90, "fp16 64 keys")
    )
    kernel = tilewright.compile(source_of(variant), GPUTarget("cuda", 90, 32), variant.options)
    explained = kernel.explain()
    copied = [row.through for row in rows(explained, "load") if "bulk" in row.how]
    assert len(copied) == 2 and all("issued by a producer warp" in text for text in copied)
    scores, changes, *sums = (row.through for row in rows(explained, "dot"))
    assert all(text.startswith("A: shared, K-major") for text in (scores, changes))
    assert len(sums) == 2 and all(text.startswith("A: registers, the dot") for text in sums)


@tilewright.jit
def doubled_by_descriptors(a_ptr, c_ptr, M, N, BLOCK: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    for j in range(0, N, BLOCK):
        c.store([0, j], a.load([0, j]) * 2.0)


def test_descriptor_accesses_that_tma_does_not_issue_have_the_reason() -> None:
    explained = compiled(
        doubled_by_descriptors, "*fp32/16 *fp32/16 i32/16 i32/16", BLOCK=64
    ).explain()
    load, store = one(explained, "load"), one(explained, "store")
    assert "not by TMA: not only wgmma reads it" in load.notes
    assert "not by TMA: threads store whole lines of a tile that no dot computes" in store.notes


def note_on_clusters(explanation: Explanation) -> str:
    (note,) = (note for note in explanation.notes if "clusters" in note)
    return note


SHARED_BLOCKS = BLOCKS | {"BLOCK_M": 64, "num_warps": 4, "bulk_loads": "all"}


def test_copies_that_the_blocks_of_a_cluster_share_are_told() -> None:
    explained = matmul(90, TUTORIAL.replace("i32/16", "i32/8"), **SHARED_BLOCKS)
    loads = rows(explained, "load")
    assert len(loads) == 2 and all("of a cluster of 2 where both" in row.through for row in loads)
    lines = ", ".join(str(row.loc.line) for row in loads if row.loc)
    assert f"clusters of 2 blocks share the copies of lines {lines}" in note_on_clusters(explained)


@pytest.mark.parametrize(
    ("types", "words", "expected"),
    [
        ("i32/16", {}, "no copies in clusters: rows begin at sectors of 32 bytes"),
        ("i32/8", {"persistent": False}, "no copies in clusters: each block runs one program"),
        ("i32/8", {"maxnreg": 128}, "no copies in clusters: maxnreg or num_ctas leaves no"),
        ("i32/8", {"num_ctas": 2}, "clusters of 2 blocks (num_ctas), of which the first"),
    ],
)
def test_why_blocks_share_no_copies(types: str, words: dict[str, int], expected: str) -> None:
    explained = matmul(90, TUTORIAL.replace("i32/16", types), **SHARED_BLOCKS | words)
    assert expected in note_on_clusters(explained)
    assert not any("both blocks" in row.through for row in explained.rows)


def test_without_the_copy_engine_nothing_is_said_of_clusters() -> None:
    assert matmul(80).notes == ()


# ---- between layouts -----------------------------------------------------------------------------


@tilewright.jit
def transposed(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i[:, None] * BLOCK + i[None, :])
    tl.store(out_ptr + i[:, None] + i[None, :] * BLOCK, x)


def test_a_conversion_through_shared_memory_has_its_conflicts() -> None:
    convert = one(compiled(transposed, "*fp32/16 *fp32/16", BLOCK=64).explain(), "convert")
    assert convert.through == "registers -> shared (16384 bytes) -> registers"
    assert convert.how == "st.shared.v4.b32, ld.shared.b32" and convert.conflicts == 1


# ---- beside the code -----------------------------------------------------------------------------

CASES = [v for variants in CORPUS.values() for v in variants if v.capability in (80, 90)][::60]


@pytest.mark.parametrize("variant", CASES, ids=lambda v: f"{v.kernel.__name__}-{v.label}")
def test_widths_are_those_of_the_code(variant: Variant) -> None:
    target = GPUTarget("cuda", variant.capability, 32)
    options = variant.options | {"bulk_loads": "descriptors"}
    kernel = tilewright.compile(source_of(variant), target, options)
    explained, ptx = kernel.explain(), str(kernel.asm["ptx"])
    loads, stores = ([row.bytes for row in rows(explained, op)] for op in ("load", "store"))
    assert max(loads, default=0) == widest(ptx, "ld", "cp.async")
    assert max(stores, default=0) == widest(ptx, "st")
    products = {row.how.split(".")[0] for row in rows(explained, "dot")}
    names = {"wgmma": "wgmma.mma_async", "mma": "mma.sync"}
    assert products == {short for short, name in names.items() if name in ptx}


# ---- the whole -----------------------------------------------------------------------------------


def test_resources_are_those_of_the_compiled_kernel() -> None:
    kernel = compiled(tutorial_matmul, TUTORIAL, **BLOCKS)
    resources = kernel.explain().resources
    assert isinstance(resources, Resources)
    assert resources.registers == kernel.metadata.registers
    assert (resources.shared, resources.warps) == (kernel.metadata.shared, 8)
    assert resources.programs >= 1


def test_text_has_the_source_the_reasons_and_the_resources() -> None:
    text = str(compiled(add_kernel, "*fp32/16 *fp32 *fp32/16 i32/16", BLOCK=1024).explain())
    for part in ("tl.load(y_ptr", "ld.global.v4.b32", "y_ptr as a multiple of 1", "registers"):
        assert part in text
    assert "programs per multiprocessor" in text


def test_backends_of_other_packages_may_explain_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = compiled(add_kernel, "*fp32/16 *fp32 *fp32/16 i32/16", BLOCK=1024)
    monkeypatch.setattr(kernel, "backend", replace(kernel.backend, name="other", explain=None))
    with pytest.raises(errors.NotExplained, match="backend 'other' does not explain"):
        kernel.explain()
