"""PTX instructions that synchronize warps, and fences."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tests.emulator.memory import EmulationError
from tests.emulator.registers import Registers

Made = Callable[[Registers], None]


def _sync(match: re.Match[str], args: list[str]) -> Made:
    def run(r: Registers) -> None:
        ident = r.uniform(args[0], "the number of a barrier")
        count = r.uniform(args[1], "the count of a barrier") if len(args) > 1 else None
        r.m.barriers.sync(r.predicate, ident, count)

    return run


def _arrive(match: re.Match[str], args: list[str]) -> Made:
    def run(r: Registers) -> None:
        ident = r.uniform(args[0], "the number of a barrier")
        count = r.uniform(args[1], "the count of a barrier")
        r.m.barriers.arrive(r.predicate, ident, count)

    return run


def _vote(match: re.Match[str], args: list[str]) -> Made:
    """bar.red: how many threads say so, or whether all or any do."""
    kind = match[1]

    def run(r: Registers) -> None:
        m, ident = r.m, r.uniform(args[1], "the number of a barrier")
        count = r.uniform(args[2], "the count of a barrier") if len(args) > 3 else None
        m.barriers.vote(r.predicate, r.get(args[-1]).astype(bool))
        m.barriers.sync(r.predicate, ident, count)
        threads = m.count // m.blocks if count is None else count
        yes = m.barriers.agreed[m.warp_of]
        found = {"popc": yes, "or": yes > 0, "and": yes == threads}[kind]
        r.put(args[0], np.asarray(found).astype(np.uint32 if kind == "popc" else np.bool_))

    return run


def _warp_sync(match: re.Match[str], args: list[str]) -> Made:
    """The threads of a warp see each other's accesses."""
    return lambda r: r.m.clocks.pass_on(np.flatnonzero(r.predicate.reshape(-1, 32).any(1)))


def _elect(match: re.Match[str], args: list[str]) -> Made:
    lane, chosen = args[0].split("|")

    def run(r: Registers) -> None:
        r.m.whole_warps("elect.sync", r.predicate)
        r.put(lane, np.full(r.m.count, r.m.leader, np.uint32))
        r.put(chosen, (r.m.threads & np.uint32(31)) == r.m.leader)

    return run


def _shuffle(match: re.Match[str], args: list[str]) -> Made:
    """Bits 8 to 12 of the last operand but the mask make segments of lanes, bits 0 to 4 the lane of
    a segment that is the last, or for `up` the first, to read."""
    mode = match[1]
    target, _, is_inside = args[0].partition("|")

    def run(r: Registers) -> None:
        m = r.m
        m.whole_warps("a shuffle")
        value = r.get(args[1]).reshape(-1, 32)
        offset, limits = (r.get(arg).astype(np.int64).reshape(-1, 32) for arg in args[2:4])
        lane, segment = np.arange(32)[None], limits >> 8 & 31
        limit = lane & segment | limits & 31 & ~segment
        source = {"bfly": lane ^ offset, "idx": lane & segment | offset & 31 & ~segment,
                  "up": lane - offset, "down": lane + offset}[mode]  # fmt: skip
        inside = source >= limit if mode == "up" else source <= limit
        source = np.where(inside, source, lane)
        r.put(target, np.take_along_axis(value, source, axis=1).reshape(-1))
        if is_inside:
            r.put(is_inside, inside.reshape(-1))

    return run


def _set_registers(match: re.Match[str], args: list[str]) -> Made:
    count, is_more = int(args[0]), match[1] == "inc"
    return lambda r: r.m.register_counts.change(r.predicate, count, is_more)


def _proxy_fence(match: re.Match[str], args: list[str]) -> Made:
    """Of one state space, or of both."""
    space = match[1] or ""

    def run(r: Registers) -> None:
        if space != ".global":
            r.m.fence(r.predicate)
        if not space.startswith(".shared"):
            r.m.fence_global(r.predicate)

    return run


def _cluster_arrive(match: re.Match[str], args: list[str]) -> Made:
    return lambda r: r.m.cluster_barrier.arrive(r.predicate)


def _cluster_wait(match: re.Match[str], args: list[str]) -> Made:
    return lambda r: r.m.cluster_barrier.wait(r.predicate)


def _nothing(match: re.Match[str], args: list[str]) -> Made:
    return lambda r: None


def _trap(match: re.Match[str], args: list[str]) -> Made:
    def run(r: Registers) -> None:
        if r.predicate.any():
            raise EmulationError("a thread traps")

    return run


INSTRUCTIONS = [
    (r"trap", _trap),
    (r"bar\.warp\.sync", _warp_sync),
    (r"elect\.sync", _elect),
    (r"shfl\.sync\.(\w+)\.b32", _shuffle),
    (r"setmaxnreg\.(inc|dec)\.sync\.aligned\.u32", _set_registers),
    (r"bar(?:rier)?(?:\.cta)?\.sync(?:\.aligned)?", _sync),
    (r"bar(?:rier)?(?:\.cta)?\.arrive(?:\.aligned)?", _arrive),
    (r"bar(?:rier)?(?:\.cta)?\.red\.(popc|and|or)(?:\.aligned)?(?:\.\w+)?", _vote),
    (r"fence\.proxy\.async(\.shared::(?:cta|cluster)|\.global)?", _proxy_fence),
    (r"barrier\.cluster\.arrive(?:\.release|\.relaxed)?(?:\.aligned)?", _cluster_arrive),
    (r"barrier\.cluster\.wait(?:\.acquire)?(?:\.aligned)?", _cluster_wait),
    (r"griddepcontrol\..*|nanosleep\.u32|\.pragma", _nothing),
    (r"(?:membar|fence)\.(?:cta|gl|sys|(?:sc|acq_rel)\.\w+)", _nothing),
]
