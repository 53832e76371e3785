"""Kernels of one warpgroup written as LLVM text: shared memory from an image, wgmma, results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tests.emulator.llvm_program import Program
from tests.emulator.memory import Array

TYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8,
    "u8": np.uint8, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
_CODES = {0: 0, 128: 1, 64: 2, 32: 3}
STEPS = 4
"""Instructions along K: 128 bytes."""


@dataclass(frozen=True)
class Tile:
    """(rows, 128 bytes along K) in shared memory. swizzle: bytes of a row of a panel, or 0."""

    rows: int
    dtype: str
    swizzle: int = 128
    is_transposed: bool = False

    @property
    def size(self) -> int:
        return np.dtype(TYPES[self.dtype]).itemsize

    @property
    def depth(self) -> int:
        return 128 // self.size

    @property
    def row_bytes(self) -> int:
        """Of a panel; a core matrix has rows of 16 bytes."""
        return self.swizzle or 16

    @property
    def panel_rows(self) -> int:
        return self.depth if self.is_transposed else self.rows

    @property
    def offsets(self) -> tuple[int, int]:
        """Leading and stride byte offset: panels lie one after another, each without gaps."""
        panel, groups = self.panel_rows * self.row_bytes, 8 * self.row_bytes
        if self.swizzle:
            return (panel if self.is_transposed else 16), groups
        return (groups, panel) if self.is_transposed else (panel, groups)

    def image(self, matrix: Array) -> Array:
        """The bytes of (rows, depth): panels of rows whose 16-byte pieces are permuted."""
        lines = np.ascontiguousarray(matrix.T if self.is_transposed else matrix).view(np.uint8)
        count, width = lines.shape[0], self.row_bytes
        panels = lines.reshape(count, -1, width // 16, 16).transpose(1, 0, 2, 3)
        r, c = np.ogrid[:count, : width // 16]
        shift = {128: 0, 64: 1, 32: 2}.get(self.swizzle, 3)
        mixed = np.empty_like(panels)
        mixed[:, r, c ^ ((r % 8) >> shift) % (width // 16)] = panels
        return mixed.reshape(-1)

    def start(self, step: int) -> int:
        """Bytes to the operand of an instruction along K."""
        if self.is_transposed:
            return step * 2 * self.offsets[1 if self.swizzle else 0]
        columns = 32 * step
        panel = self.rows * self.row_bytes
        return columns // self.row_bytes * panel + columns % self.row_bytes

    def descriptor(self, base: int, step: int, change: int = 0) -> int:
        leading, stride = self.offsets
        start = base + self.start(step)
        code = _CODES[self.swizzle] << 62
        return (code | stride >> 4 << 32 | leading >> 4 << 16 | start >> 4) + change


def fragment_words(a: Array) -> Array:
    """(128, 16) registers of A (64, 128 bytes) for four instructions along K."""
    size = a.dtype.itemsize
    per = 4 // size
    words = np.zeros((128, 4 * STEPS, per), a.dtype)
    for t in range(128):
        row = t // 32 * 16 + t % 32 // 4
        for step in range(STEPS):
            for j in range(4):
                column = step * 32 // size + t % 4 * per + (j // 2) * 4 * per
                words[t, 4 * step + j] = a[row + 8 * (j % 2), column : column + per]
    return words.view(np.uint32).reshape(128, 16)


def accumulator_places(n: int) -> tuple[Array, Array]:
    t, r = np.ogrid[:128, : n // 2]
    return t // 32 * 16 + t % 32 // 4 + r // 2 % 2 * 8, r // 4 * 8 + t % 4 * 2 + r % 2


def begin(
    image_bytes: int, threads: int = 128, by_copies: bool = False, is_masked: bool = True
) -> Program:
    """%tid, %base of shared memory, %at of it in descriptors, and shared memory filled from %image:
    each thread 16 bytes at a time, or by asynchronous copies, each a group."""
    p = Program()
    p.do("%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
    p.do("%base = ptrtoint ptr addrspace(3) @shared_memory to i32")
    p.do(f"%low = and i32 %base, {0x3FFFF if is_masked else -1}")
    p.do("%at = lshr i32 %low, 4")
    for first in range(0, image_bytes, 16 * threads):
        offset = p.let(f"add i32 {p.let('shl i32 %tid, 4')}, {first}")
        wide = p.let(f"zext i32 {offset} to i64")
        pointer = p.let(f"getelementptr i8, ptr %image, i64 {wide}")
        target = f"i32 {p.let(f'add i32 {offset}, %base')}"
        if by_copies:
            p.asm("cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}", target,
                  f"ptr {pointer}")  # fmt: skip
            p.asm("cp.async.commit_group;", "~{memory}")
            continue
        value = p.let(f"load <4 x i32>, ptr {pointer}")
        words = [p.let(f"extractelement <4 x i32> {value}, i32 {i}") for i in range(4)]
        p.asm("st.shared.v4.b32 [$0], {$1, $2, $3, $4};", "r,r,r,r,r,~{memory}",
              target, *[f"i32 {w}" for w in words])  # fmt: skip
    return p


def store_words(p: Program, values: Sequence[str], type_: str, target: str = "%out") -> None:
    """Thread t's values to rows of `target`."""
    index = p.let(f"mul i32 %tid, {len(values)}")
    wide = p.let(f"zext i32 {index} to i64")
    for i, value in enumerate(values):
        pointer = p.let(f"getelementptr i32, ptr {target}, i64 {wide}")
        pointer = p.let(f"getelementptr i32, ptr {pointer}, i64 {i}")
        p.do(f"store {type_} {value}, ptr {pointer}")
