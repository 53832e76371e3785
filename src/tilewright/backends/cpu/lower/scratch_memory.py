"""Scratch memory of a function: blocks whose offsets are assigned after all code is emitted.

Code is emitted in the order in which it runs, except for loops, so it is enough to record when a
block is touched: a clock counts the steps of the plan, and a block that is touched in a loop but
exists before it is live until the loop ends. Blocks that are not live at the same time may share
memory. (Tiles are computed where they are used, so uses in the IR do not show when a buffer is
read.)
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import field

from tilewright.analysis import LiveRange, Request, pack
from tilewright.support.data_class import dataclass

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""


@dataclass(slots=True, eq=False)
class ScratchBlock:
    """A number of bytes, and when they were touched; `name` is the LLVM value of their address."""

    scratch: Scratch
    name: str
    bytes: int
    first: int
    last: int

    def touch(self) -> None:
        """Record that the code that is being emitted reads, writes or passes the block."""
        self.last = max(self.last, self.scratch.clock)


@dataclass(slots=True)
class Scratch:
    """All blocks of one function, and the clock."""

    clock: int = 0
    blocks: list[ScratchBlock] = field(default_factory=list[ScratchBlock])

    def allocate(self, name: str, size: int) -> ScratchBlock:
        """Allocate a block that is live from now on."""
        rounded = -(-size // ALIGNMENT) * ALIGNMENT
        self.blocks.append(ScratchBlock(self, name, rounded, self.clock, self.clock))
        return self.blocks[-1]

    def step(self) -> None:
        """Advance the clock: code emitted from now on runs after all code emitted before."""
        self.clock += 1

    @contextmanager
    def loop(self) -> Generator[None]:
        """The code emitted inside runs repeatedly."""
        self.step()
        # After a step, so that blocks of before the loop are older than all blocks in it.
        start = self.clock
        yield
        for block in self.blocks:
            # Older than the loop and touched in it: the next iteration needs it again.
            if block.first < start <= block.last:
                block.touch()
        self.step()

    def assign_offsets(self) -> tuple[list[str], int]:
        """Instructions that compute the addresses, and the total bytes."""
        lives = [LiveRange(block.first, block.last) for block in self.blocks]
        requests = [
            Request(block.bytes, live, ALIGNMENT)
            for block, live in zip(self.blocks, lives, strict=True)
        ]
        packing = pack(requests)
        lines = [
            f"{block.name} = getelementptr i8, ptr %scratch, i64 {offset}"
            for block, offset in zip(self.blocks, packing.offsets, strict=True)
        ]
        return lines, -(-packing.total // ALIGNMENT) * ALIGNMENT
