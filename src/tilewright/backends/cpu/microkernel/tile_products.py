"""Emits products by AMX: registers that are tiles of 16 rows of 64 bytes, and one instruction that
multiplies two of them.

    sum[16, 16] += a[16, 16 groups] @ b[16 groups, 16]        a group: 2 of bf16, 4 of bytes

Of A a register holds rows as they lie; B has its groups side by side, as `panel_packing` copies it.
A panel of 32 x 32 sums is four registers, and each step of K loads two of A and two of B:

    for each panel of 32 columns
        copy the columns of B                        # 64 bytes x 2 for each group of rows
        for each panel of 32 rows
            sums[2][2] = C[panel]
            for each 64 bytes of K
                load a[0], a[1], b[0], b[1]
                sums[i][j] += a[i] @ b[j]            # 16 cycles each, as long as two loads
            C[panel] = sums

The registers are named by number: sizes are constants, so LLVM's allocation of tiles has nothing to
decide, and would load a configuration of its own (some 100 cycles) in each function. All
kernels use one, `TILE_CONFIGURATION`, which their entry loads.
"""

from __future__ import annotations

from tilewright.backends.cpu.microkernel.function_text import Loop, Size, Writer
from tilewright.backends.cpu.microkernel.panel_packing import (
    MemoryBlocks,
    Packing,
    function,
    memory_declarations,
)
from tilewright.backends.cpu.microkernel.register_blocking import (
    TILE_ROW_BYTES,
    TILE_ROWS,
    DotSpec,
    Run,
    column_runs,
)

_PAIR = 2
"""Tiles of A, and of B, in a panel: 4 sums and 4 operands are all 8 registers."""
_FIRST_OF_A, _FIRST_OF_B = 4, 6

_MULTIPLY = {"bfloat": "tdpbf16ps", "i8": "tdpbssd", "u8": "tdpbusd"}


def dot_declarations(spec: DotSpec) -> tuple[str, ...]:
    """See `blocked_loops.dot_declarations`."""
    number = "i8 immarg"
    return (
        *memory_declarations(spec),
        f"declare void @llvm.x86.{_MULTIPLY[spec.element]}({number}, {number}, {number})",
        f"declare void @llvm.x86.tileloadd64({number}, ptr, i64)",
        f"declare void @llvm.x86.tilestored64({number}, ptr, i64)",
        f"declare void @llvm.x86.tilezero({number})",
    )


def dot_function(name: str, spec: DotSpec) -> str:
    """See `blocked_loops.dot_function`; the caller has loaded TILE_CONFIGURATION."""
    kernel = _TileKernel(spec)
    kernel.blocks()
    return function(name, spec, kernel.out)


class _TileKernel:
    """Appends the loops of one product to `out`."""

    def __init__(self, spec: DotSpec) -> None:
        self.spec, self.out = spec, Writer()
        self.packing = Packing(spec, self.out)
        size = spec.operand.bytes
        self.a_row: Size = spec.strides.lda * size
        self.c_row = spec.strides.ldc * spec.type.bytes
        self.multiply = _MULTIPLY[spec.element]
        self.memory: MemoryBlocks | None = None
        self.following: str = "%b"

    def blocks(self) -> None:
        """All of it: from memory one block of K after the other."""
        self.packing.reserve()
        if not self.spec.from_memory:
            self.column_panels("%a", "%b")
            return
        self.a_row, self.packing.b_row = "%a.row", "%b.row"
        self.memory = MemoryBlocks(self.packing)
        a, b, self.packing.groups = self.memory.values
        self.column_panels(a, b)
        self.memory.close()

    def column_panels(self, a: str, b: str) -> None:
        c = "%c"
        for run in column_runs(self.spec):
            loop = Loop(self.out, run.times, [("ptr", c), ("ptr", b)])
            c, b = loop.values
            self.packing.pack_columns(b, run.size)
            if self.memory is not None and self.memory.fetches:
                self.following = self.memory.next_panel(b, run.size)
            self.row_panels(c, a, run.size)
            after = self.out.offset(c, run.size * TILE_ROW_BYTES)
            c, b = loop.close([after, self.out.offset(b, self.packing.panel_step(run.size))])

    def row_panels(self, c: str, a: str, across: int) -> None:
        """All rows of `across` tiles of columns."""
        full, rest = divmod(self.spec.m // TILE_ROWS, _PAIR)
        for run in (Run(full, _PAIR), Run(1, rest)):
            if run.times * run.size:
                carried = [("ptr", c), ("ptr", a), ("ptr", self.following)]
                loop = Loop(self.out, run.times, carried)
                c, a, self.following = loop.values
                self.panel(c, a, run.size, across)
                rows = run.size * TILE_ROWS
                below = self.out.offset(a, self.out.times(rows, self.a_row))
                c, a, self.following = loop.close(
                    [self.out.offset(c, rows * self.c_row), below, self.following]
                )

    def panel(self, c: str, a: str, down: int, across: int) -> None:
        """The sums of down x across tiles."""
        places = [(i, j) for i in range(down) for j in range(across)]
        tiles = {
            _PAIR * i + j: self.out.offset(c, i * TILE_ROWS * self.c_row + j * TILE_ROW_BYTES)
            for i, j in places
        }
        for tile, place in tiles.items():
            if self.spec.accumulate:
                self.load(tile, place, self.c_row)
            else:
                self.call("tilezero", f"i8 {tile}")
        self.steps(a, down, across)
        for tile, place in tiles.items():
            self.call("tilestored64", f"i8 {tile}, ptr {place}, i64 {self.c_row}")

    def steps(self, a: str, down: int, across: int) -> None:
        """The loop over K."""
        out, b_row = self.out, across * TILE_ROW_BYTES
        steps = out.part(self.packing.groups, TILE_ROWS)
        carried = [("ptr", a), ("ptr", self.packing.columns), ("ptr", self.following)]
        loop = Loop(out, steps, carried)
        a, b, self.following = loop.values
        for i in range(down):
            down_to = out.times(i * TILE_ROWS, self.a_row)
            self.load(_FIRST_OF_A + i, out.offset(a, down_to), self.a_row)
        for j in range(across):
            self.load(_FIRST_OF_B + j, out.offset(b, j * TILE_ROW_BYTES), b_row)
        for i, j in ((i, j) for i in range(down) for j in range(across)):
            tiles = (_PAIR * i + j, _FIRST_OF_A + i, _FIRST_OF_B + j)
            self.call(self.multiply, ", ".join(f"i8 {tile}" for tile in tiles))
        if self.memory is not None and self.memory.fetches:
            length = TILE_ROW_BYTES // self.spec.operand.bytes
            rows = -(-length * down * TILE_ROWS // self.spec.m)
            self.following = self.memory.fetch(self.following, rows, across)
        a, b = out.offset(a, TILE_ROW_BYTES), out.offset(b, TILE_ROWS * b_row)
        _, _, self.following = loop.close([a, b, self.following])

    def load(self, tile: int, place: str, row: Size) -> None:
        self.call("tileloadd64", f"i8 {tile}, ptr {place}, i64 {row}")

    def call(self, name: str, operands: str) -> None:
        self.out.emit(f"call void @llvm.x86.{name}({operands})")
