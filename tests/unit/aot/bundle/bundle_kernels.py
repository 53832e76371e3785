"""Kernels of the bundles in these tests, and their specs."""

from __future__ import annotations

import tilewright
import tilewright.language as tl
from tests.kernels.tutorial_matmul import tutorial_matmul
from tilewright.aot import KernelSpec


@tilewright.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@tilewright.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    """Of a row, by each program; fp16 calls conversions by name on x86-64-v2."""
    row = tl.program_id(0) * columns
    i = tl.arange(0, BLOCK)
    values = tl.load(x + row + i, mask=i < columns, other=float("-inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row + i, (powers / tl.sum(powers, 0)).to(tl.float16), mask=i < columns)


@tilewright.jit
def matmul(a, b, c, M, N, K, BLOCK: tl.constexpr):
    """Of row-major matrices."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        left = tl.load(a + rows * K + k[None, :], mask=(rows < M) & (k[None, :] < K), other=0.0)
        right = tl.load(
            b + k[:, None] * N + columns, mask=(k[:, None] < K) & (columns < N), other=0
        )
        total += tl.dot(left, right)
    tl.store(c + rows * N + columns, total, mask=(rows < M) & (columns < N))


@tilewright.jit
def scale(x, factor, wide, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.device_assert(wide > 0, "wide is positive")
    tl.store(x + i, tl.load(x + i, mask=i < n) * factor / wide, mask=i < n)


@tilewright.jit
def reserved(queue, double, int, match: tl.constexpr):
    """Parameters whose names are keywords of C or of Rust, or variables of a bundle."""
    i = tl.arange(0, 16)
    tl.store(queue + i, tl.load(queue + i) * double + int + match)


@tilewright.jit
def turns(flag, out, WAITED: tl.constexpr):
    """A program waits for the one before it; for one that never runs, with WAITED."""
    pid = tl.program_id(0)
    while tl.atomic_add(flag, 0, sem="acquire") < pid + WAITED:
        pass
    tl.store(out + pid, pid)
    tl.atomic_add(flag, 1, sem="release")


@tilewright.jit
def load(x):
    tl.store(x, 1.0)


@tilewright.jit
def nothing():
    pass


@tilewright.jit
def printing(x):
    tl.device_print("x", tl.load(x))


def add_specs() -> list[KernelSpec]:
    """Two variants: any arguments, and aligned ones."""
    grid = "(cdiv(n, BLOCK),)"
    plain = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
    aligned = {name: f"{text}:16" for name, text in plain.items()}
    return [KernelSpec(add, names, {"BLOCK": 1024}, grid=grid) for names in (plain, aligned)]


def softmax_spec() -> KernelSpec:
    """One variant, whose caller passes the grid."""
    arguments = {"x": "*fp16", "out": "*fp16", "columns": "i32:>=0"}
    return KernelSpec(softmax, arguments, {"BLOCK": 1024})


def matmul_specs(*blocks: int) -> list[KernelSpec]:
    """Variants that differ in a compile-time value, which is then an argument."""
    arguments = {"a": "*fp32:16", "b": "*fp32:16", "c": "*fp32:16"}
    arguments |= dict.fromkeys("MNK", "i32:>=0")
    grid = "(cdiv(M, BLOCK), cdiv(N, BLOCK))"
    return [KernelSpec(matmul, arguments, {"BLOCK": block}, grid=grid) for block in blocks]


def scale_spec(**options: object) -> KernelSpec:
    """Floats of both widths, and an assertion with `debug`."""
    arguments = {"x": "*fp32", "factor": "fp32", "wide": "fp64", "n": "i32=100"}
    return KernelSpec(scale, arguments, {"BLOCK": 128}, options, "1")


def tutorial_spec(
    grid: str | None = "cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)",
) -> KernelSpec:
    """The matmul of the tutorials: TMA and persistent blocks on sm_90."""
    pointers = dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16:16")
    sizes = dict.fromkeys(("M", "N", "K", "stride_am", "stride_bk", "stride_cm"), "i32:16,>=0")
    ones = dict.fromkeys(("stride_ak", "stride_bn", "stride_cn"), "i32=1")
    constants = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8, "EVEN_K": True}
    return KernelSpec(
        tutorial_matmul,
        {**pointers, **sizes, **ones},
        constants,
        {"num_warps": 8},
        grid,
    )


def turns_specs() -> list[KernelSpec]:
    """Programs that end, and programs that wait in vain."""
    arguments = {"flag": "*i32", "out": "*i32"}
    return [KernelSpec(turns, arguments, {"WAITED": n}) for n in (0, 1)]


def reserved_specs() -> list[KernelSpec]:
    """Two variants, so that one of the names is that of a choice."""
    arguments = {"queue": "*fp32", "double": "fp32", "int": "i32"}
    return [KernelSpec(reserved, arguments, {"match": n}, grid="int // int") for n in (1, 2)]
