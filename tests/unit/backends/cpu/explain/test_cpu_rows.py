"""`kernel.explain()` on CPUs: vectors, micro-kernels, loop nests, and why not better."""

from typing import Any

import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.figures import source_with
from tests.kernels.tutorial_matmul import tutorial_matmul
from tests.unit.backends.nvidia.explain.test_op_rows import BLOCKS, TUTORIAL
from tilewright.backends import CpuResources, Explanation, GPUTarget, OpRow
from tilewright.compiler import compile
from tilewright.kernels.elementwise import add_kernel
from tilewright.kernels.softmax import softmax_kernel
from tilewright.llvm import host_cpu
from tilewright.support import settings


def explained(kernel: Any, types: str, arch: str = "x86-64-v4", **words: Any) -> Explanation:
    return compile(source_with(kernel, types, words), GPUTarget("cpu", arch, 1), {}).explain()


def one(explanation: Explanation, op: str) -> OpRow:
    (row,) = (row for row in explanation.rows if row.op == op)
    return row


ADD = "*fp32 *fp32 *fp32 i32"


@pytest.mark.parametrize(
    ("arch", "bits", "lanes"), [("x86-64-v4", 512, 32), ("x86-64-v3", 256, 16)]
)
def test_the_vector_width_is_that_of_the_target(arch: str, bits: int, lanes: int) -> None:
    explanation = explained(add_kernel, ADD, arch, BLOCK=1024)
    resources = explanation.resources
    assert isinstance(resources, CpuResources) and resources.vector_bits == bits
    for row in explanation.rows:
        assert row.how == f"{lanes} contiguous lanes, last step masked"
        assert row.bytes == 4 * lanes and row.notes == ()


def test_loads_in_one_nest_are_fused_with_the_store() -> None:
    (nest,) = explained(add_kernel, ADD, BLOCK=1024).loops
    assert (nest.shape, nest.lanes, nest.writes) == ((1024,), 32, ())


def test_a_softmax_has_three_nests_with_the_reasons() -> None:
    explanation = explained(softmax_kernel, "*fp32 *fp32 i32 i32 i32", BLOCK=1024)
    assert [nest.writes for nest in explanation.loops] == [(), ("1024xf32",), ()]
    assert all(
        nest.notes[0] == "not fused with the nest before: it needs that nest's reductions"
        for nest in explanation.loops[1:]
    )
    assert [row.op for row in explanation.rows] == ["load", "store", "reduce", "reduce"]
    assert isinstance(explanation.resources, CpuResources)
    assert explanation.resources.scratch == 4096


@tilewright.jit
def gathered(x_ptr, i_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.load(i_ptr + offsets))
    tl.store(out_ptr + offsets, x + tl.load(x_ptr + 3 * offsets))


def test_gathers_have_the_reason() -> None:
    explanation = explained(gathered, "*fp32 *i32 *fp32", BLOCK=64)
    rows = [row for row in explanation.rows if row.how.startswith("gather")]
    assert [row.how for row in rows] == ["gather of 32 lanes"] * 2
    by_indices, by_stride = (row.notes[0] for row in rows)
    assert "addresses depend on loaded values" in by_indices
    assert by_stride == "lanes are 3 elements apart in memory"


@tilewright.jit
def short_rows(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i, j = tl.arange(0, 64), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i[:, None] * 4 * BLOCK + j[None, :])
    tl.store(out_ptr + i[:, None] * 4 * BLOCK + j[None, :], x)


def test_rows_shorter_than_a_vector_have_the_reason() -> None:
    load = one(explained(short_rows, "*fp32 *fp32", BLOCK=4), "load")
    assert load.bytes == 16
    assert load.notes[0].startswith("a step has 128 bits of a vector of 512")


@tilewright.jit
def transposition(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i[:, None] * N + i[None, :])
    tl.store(out_ptr + i[:, None] * N + i[None, :], tl.trans(x))


def test_transpositions_in_registers_have_a_row() -> None:
    explanation = explained(transposition, "*fp32/16 *fp32/16 i32/16", BLOCK=64)
    assert one(explanation, "convert").how == "16x16 blocks transposed in registers"
    accesses = [row.how for row in explanation.rows if row.op in ("load", "store")]
    assert accesses == ["16 contiguous lanes", "32 contiguous lanes"]


# ---- dots ----------------------------------------------------------------------------------------

FP32 = TUTORIAL.replace("fp16", "fp32")


def test_a_loop_of_loaded_tiles_is_one_matmul_from_memory() -> None:
    explanation = explained(tutorial_matmul, FP32, **BLOCKS)
    dot = one(explanation, "dot")
    assert dot.how == "8x2 micro-kernel of 16 f32 lanes, FMA" and dot.notes == ()
    assert dot.through.startswith("A: memory -> registers, B: memory -> packed panels")
    loads = [row.how for row in explanation.rows if row.op == "load"]
    assert loads == ["read in place by the micro-kernel", "packed into panels by the micro-kernel"]


def test_converted_operands_are_no_matmul_from_memory() -> None:
    dot = one(explained(tutorial_matmul, TUTORIAL, **BLOCKS), "dot")
    assert dot.notes[0] == (
        "the loop is not one matmul: operands are converted from f16 to f32 first"
    )
    assert dot.through == "A, B: memory -> scratch memory -> registers"


@tilewright.jit
def squares(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for _ in range(n):
        x = tl.load(x_ptr + i[:, None] * BLOCK + i[None, :])
        acc = tl.dot(x, x, acc)
        total += x
        x_ptr += BLOCK * BLOCK
    tl.store(out_ptr + i[:, None] * BLOCK + i[None, :], acc + total)


def test_loops_with_other_work_have_the_reason() -> None:
    dot = one(explained(squares, "*fp32 *fp32 i32", BLOCK=64), "dot")
    assert "its loop does more than accumulate one dot of loaded tiles" in dot.notes[0]


# ---- launches ------------------------------------------------------------------------------------


def launched(programs: int, threads: int, arch: str = host_cpu().name) -> Explanation:
    source = source_with(add_kernel, ADD, {"BLOCK": 1024})
    with settings().cpu.scope(threads=threads):
        kernel = compile(source, GPUTarget("cpu", arch, 1), {})
        return kernel.explain({"n": 1024 * programs}, grid=(programs,))


def test_programs_of_the_busiest_thread() -> None:
    resources = launched(1000, threads=3).resources
    assert isinstance(resources, CpuResources)
    assert (resources.threads, resources.per_thread) == (3, 334)


def test_a_small_launch_runs_on_the_calling_thread() -> None:
    resources = launched(2, threads=3).resources
    assert isinstance(resources, CpuResources)
    assert resources.alone >= 2 and resources.per_thread == 2
    assert "runs on the calling thread" in str(launched(2, threads=3))


def test_work_is_compared_with_this_machine() -> None:
    bound = launched(1024, threads=2).bound
    assert bound is not None
    assert bound.requested == bound.distinct == 12 * (1 << 20)
    assert bound.other_flops == 1 << 20 and bound.limit == "memory"
    assert "measured by copying" in bound.device and bound.byte_seconds > 0


def test_another_machine_has_no_bound() -> None:
    assert launched(1024, threads=2, arch="aarch64").bound is None
