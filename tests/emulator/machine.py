"""Runs one program of a kernel, or one cluster: LLVM's blocks over arrays with one row per thread.

Warps at the same place go in step, those at the earliest first; or one warp after another, block by
block, in an order that is drawn. A warp that must wait is left where it is until it need not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from tests.emulator import values
from tests.emulator.barriers import Barriers
from tests.emulator.bulk_copies import BulkCopies
from tests.emulator.clocks import FENCED, GLOBAL_FENCED, Clocks
from tests.emulator.clusters import ClusterBarrier, RemoteUses
from tests.emulator.copies import Copies
from tests.emulator.lines import END, Step, compile_block
from tests.emulator.mbarriers import MBarriers
from tests.emulator.memory import Array, EmulationError, Global, Shared
from tests.emulator.register_counts import RegisterCounts
from tests.emulator.tensor_maps import TensorMap
from tests.emulator.text import Block, parse
from tests.emulator.waiting import Blocked, Wait
from tests.emulator.wgmma import TensorCores

__all__ = ["EmulationError", "Kernel", "Machine", "run_program"]


class Kernel:
    """A kernel's text, each line compiled to a function of the machine when it is first run.

    warps: if the text does not say how many threads there are; with roles they are more than the
    options of a launch say.
    """

    def __init__(
        self, text: str, warps: int, shared_bytes: int, cluster: int = 1, shared_base: int = 0
    ) -> None:
        self.text = parse(text)
        threads = re.search(r'"nvvm.reqntid"="(\d+)"', text)
        self.warps = int(threads[1]) // 32 if threads is not None else warps
        self.shared_bytes, self.cluster = shared_bytes, cluster
        self.shared_base = shared_base
        self.index = {block.label: i for i, block in enumerate(self.text.blocks)}
        self.constants = {
            name: np.frombuffer(data + b"\0", np.uint8).copy()
            for name, data in self.text.constants.items()
        }
        self.variables = {
            name: np.zeros(max(size, 8), np.uint8) for name, size in self.text.variables.items()
        }
        self.fragments = _fragments(self.text.blocks)
        self.entry_registers = _entry_registers(text, 32 * self.warps)
        self._steps: dict[int, list[tuple[str, Step]]] = {}

    def with_text(self, text: str) -> Kernel:
        """Another text, launched likewise."""
        return Kernel(text, self.warps, self.shared_bytes, self.cluster, self.shared_base)

    def steps(self, number: int) -> list[tuple[str, Step]]:
        found = self._steps.get(number)
        if found is None:
            block = self.text.blocks[number]
            found = self._steps[number] = compile_block(self, block)
        return found


def _fragments(blocks: list[Block]) -> frozenset[str]:
    """Names of the registers that wgmma instructions use."""
    found = set[str]()
    for block in blocks:
        for i in block.instructions:
            if "wgmma.mma_async" in i.rest:
                found.update(re.findall(r"%[\w.]+", i.rest[i.rest.rindex('"') :]))
    return frozenset(found)


def _entry_registers(text: str, threads: int) -> int | None:
    """What each thread has at the start, if the attributes tell ptxas."""
    limit = re.search(r'"nvvm.maxnreg"="(\d+)"', text)
    if limit is not None:
        return int(limit[1])
    if not re.search(r'"nvvm.minctasm"="\d+"', text):
        return None
    return min(65536 // threads // 8 * 8, 248)


@dataclass
class _Paused:
    """A warp that waits: these of its threads, at an instruction of a block; resume: its rest."""

    mask: Array
    block: int
    number: int
    resume: Step | None
    wait: Wait


Batch = tuple[Array, int, Step | None]
"""Threads that go on together, from an instruction on, or from within it."""


class Machine:
    """The state of the blocks of one cluster, or of one block.

    program: of the first block; blocks: of the cluster, along x; order: who draws the warp that
    goes on; None for all warps in step.
    event: counts instructions, to tell which came first.
    """

    def __init__(
        self, kernel: Kernel, program: tuple[int, int, int], grid: tuple[int, int, int],
        memory: Global, order: Random | None = None, blocks: int = 1,
    ) -> None:  # fmt: skip
        self.blocks, self.warps = blocks, blocks * kernel.warps
        self.kernel, self.program, self.grid, self.memory = kernel, program, grid, memory
        self.count = 32 * self.warps
        self.threads = np.arange(self.count, dtype=np.uint32)
        self.warp_of = (self.threads >> np.uint32(5)).astype(np.int64)
        self.rank = self.threads // np.uint32(32 * kernel.warps)
        """Of each thread's block in its cluster."""
        self.clocks = memory.clocks = Clocks(self.warps, memory.clocks.now)
        self.shared = Shared(
            kernel.shared_bytes, self.clocks, kernel.shared_base, blocks, kernel.warps
        )
        self.copies = Copies(self.shared, memory, self.warps)
        self.cluster_barrier, self.remote_uses = ClusterBarrier(self), RemoteUses(self)
        self.barriers = Barriers(self)
        self.tensor = TensorCores(self)
        self.mbarriers, self.bulk = MBarriers(self), BulkCopies(self)
        self.register_counts = RegisterCounts(self)
        self.leader = 0 if order is None else order.randrange(32)
        """The lane that elect.sync chooses."""
        self.env: dict[str, Any] = {}
        self.pc = np.zeros(self.count, np.int64)
        self.previous = np.zeros(self.count, np.int64)
        self.mask = np.ones(self.count, bool)
        self.is_full = True
        self.wrote = np.zeros(self.count, bool)
        """Threads that have written shared memory since their latest proxy fence."""
        self.stack: list[Array] = []
        self.event = 0
        self._order = order
        self._paused: dict[int, _Paused] = {}

    # -- registers ------------------------------------------------------------------------------

    def set(self, name: str, value: Any) -> None:
        if name in self.kernel.fragments:
            self.tensor.define(name)
        if self.is_full or name not in self.env:
            self.env[name] = value
            return
        self.env[name] = values.merge(self.mask, value, self.env[name])

    def rows(self, value: Any) -> Array:
        """One row for each thread that is active."""
        return values.rows(value, self.count)[self.mask]

    def spread(self, active: Array) -> Array:
        """Rows of the active threads as rows of all."""
        if self.is_full:
            return active
        whole = np.zeros((self.count, *active.shape[1:]), active.dtype)
        whole[self.mask] = active
        return whole

    def whole_warps(self, what: str, mask: Array | None = None) -> Array:
        """Which warps are active; all threads of a warp must be, or none."""
        if self.is_full and mask is None:
            return np.ones(self.warps, bool)
        lanes = (self.mask if mask is None else mask).reshape(-1, 32)
        whole: Array = np.asarray(lanes.all(1))
        if (lanes.any(1) != whole).any():
            raise EmulationError(f"{what} that not all threads of a warp reach")
        return whole

    def fence(self, mask: Array) -> None:
        """Threads fence what they have written for the asynchronous proxy.

        It helps a warp only if it is all the threads that have written.
        """
        lanes = mask.reshape(-1, 32)
        lacks = (self.wrote & ~mask).reshape(-1, 32).any(1)
        self.wrote &= ~mask
        self.mbarriers.fence(mask)
        self.clocks.fence(np.flatnonzero(lanes.any(1) & ~lacks), FENCED)

    def fence_global(self, mask: Array) -> None:
        warps = np.flatnonzero(mask.reshape(-1, 32).any(1))
        self.clocks.fence(warps, GLOBAL_FENCED)

    # -- blocks ---------------------------------------------------------------------------------

    def run(self, limit: int = 1_000_000) -> None:
        """To the end of all threads."""
        for _ in range(limit):
            batch = self._next()
            if batch is None:
                for part in (self.tensor, self.bulk, self.register_counts, self.remote_uses):
                    part.finish()
                return
            self._run_block(*batch)
        raise EmulationError("no end")

    def _next(self) -> Batch | None:
        """Who goes on; None when all have ended."""
        if self._order is None and not self._paused:
            now = int(self.pc.min())
            return None if now == END else (self.pc == now, 0, None)
        places = self._places()
        if not places:
            if self._paused:
                raise EmulationError(self._deadlock())
            return None
        if self._order is not None:
            warps = [self._order.choice(sorted(places))]
        else:
            earliest = min(places.values())
            warps = [w for w, place in places.items() if place == earliest]
        return self._together(warps, places[warps[0]][0])

    def _places(self) -> dict[int, tuple[int, int, int]]:
        """Block, instruction and rest of a line at which warps could go on."""
        found: dict[int, tuple[int, int, int]] = {}
        for warp, block in enumerate(self.pc.reshape(-1, 32).min(1).tolist()):
            paused = self._paused.get(warp)
            if paused is None:
                if block != END:
                    found[warp] = block, 0, 0
            elif paused.wait.is_over():
                found[warp] = paused.block, paused.number, id(paused.resume)
        return found

    def _together(self, warps: list[int], block: int) -> Batch:
        """These warps go on, from one place."""
        paused = [self._paused.pop(w) for w in warps if w in self._paused]
        if paused:
            mask = np.logical_or.reduce([p.mask for p in paused])
            return mask, paused[0].number, paused[0].resume
        here = np.zeros(self.warps, bool)
        here[warps] = True
        return here[self.warp_of] & (self.pc == block), 0, None

    def _deadlock(self) -> str:
        waits = [f"warp {w} waits for {p.wait.describe()}" for w, p in self._paused.items()]
        return "\n  ".join(["all warps wait:", *waits])

    def _run_block(self, mask: Array, number: int, resume: Step | None) -> None:
        """Threads that are at one block, from one of its instructions on."""
        block = int(self.pc[mask][0])
        steps = self.kernel.steps(block)
        self._activate(mask)
        while number < len(steps):
            line, step = steps[number]
            self.event += 1
            try:
                (resume or step)(self)
            except Blocked as blocked:
                mask = self._pause(mask, block, number, blocked)
                if not mask.any():
                    return
                resume = blocked.resume
                self._activate(mask)
                continue
            except EmulationError as error:
                raise EmulationError(f"{error}\n  in: {line}") from None
            number, resume = number + 1, None

    def _activate(self, mask: Array) -> None:
        self.mask, self.is_full = mask, bool(mask.all())

    def _pause(self, mask: Array, block: int, number: int, blocked: Blocked) -> Array:
        """Leave the warps that wait where they are; the threads that are left."""
        mask = mask.copy()
        for warp, wait in blocked.waits.items():
            mine = mask & (self.warp_of == warp)
            self._paused[warp] = _Paused(mine, block, number, blocked.resume, wait)
            mask &= ~mine
        return mask

    def jump(self, target: int | Array) -> None:
        self.previous[self.mask] = self.pc[self.mask]
        self.pc[self.mask] = target if isinstance(target, int) else target[self.mask]


def run_program(
    kernel: Kernel, args: list[Any], program: tuple[int, int, int] = (0, 0, 0),
    grid: tuple[int, int, int] = (1, 1, 1), memory: Global | None = None,
    order: Random | None = None, blocks: int = 1,
) -> Machine:  # fmt: skip
    """Run one program, or the cluster of so many blocks whose first it is; args in the order of the
    kernel's parameters: numbers and tensor maps."""
    machine = Machine(kernel, program, grid, memory or Global(), order, blocks)
    for (type_, name), arg in zip(kernel.text.parameters, args, strict=True):
        value = arg.address if isinstance(arg, TensorMap) else arg
        machine.env[name] = values.argument(value, type_)
    with np.errstate(all="ignore"):
        machine.run()
    return machine
