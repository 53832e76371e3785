"""mbarrier instructions. A test_wait is emulated as a try_wait, which waits without a limit."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tests.emulator.memory import EmulationError
from tests.emulator.registers import Registers

Made = Callable[[Registers], None]


def _address(text: str) -> str:
    return text.strip().strip("[]")


def _init(match: re.Match[str], args: list[str]) -> Made:
    address, count = _address(args[0]), args[1]
    return lambda r: r.m.mbarriers.init(r.predicate, r.get(address), r.get(count))


def _invalidate(match: re.Match[str], args: list[str]) -> Made:
    return lambda r: r.m.mbarriers.invalidate(r.predicate, r.get(_address(args[0])))


def _arrive(match: re.Match[str], args: list[str]) -> Made:
    """The state that it returns is not emulated."""
    address, has_size = _address(args[1]), bool(match["expects"])
    last = args[2] if len(args) > 2 else "1"

    def run(r: Registers) -> None:
        sizes = r.get(last) if has_size else None
        counts = r.get("1" if has_size else last)
        is_remote = match["space"] == "cluster"
        r.m.mbarriers.arrive(r.predicate, r.get(address), counts, sizes, is_remote)
        r.put(args[0], np.zeros(r.m.count, np.uint64))

    return run


def _map(match: re.Match[str], args: list[str]) -> Made:
    """mapa: the address of the same place in a block of the cluster."""

    def run(r: Registers) -> None:
        ranks = r.get(args[2]).astype(np.uint32)
        if (ranks[r.predicate] >= r.m.blocks).any():
            raise EmulationError(f"an address in a block that a cluster of {r.m.blocks} has not")
        here = r.get(args[1]).astype(np.uint32) - (r.m.rank << np.uint32(24))
        r.put(args[0], here + (ranks << np.uint32(24)))

    return run


def _expect(match: re.Match[str], args: list[str]) -> Made:
    address, size = _address(args[0]), args[1]
    return lambda r: r.m.mbarriers.expect(r.predicate, r.get(address), r.get(size))


def _wait(match: re.Match[str], args: list[str]) -> Made:
    address, parity = _address(args[1]), args[2]

    def run(r: Registers) -> None:
        addresses = r.uniform(address, "the mbarrier of a wait")
        parities = r.uniform(parity, "the parity of a wait")
        r.m.mbarriers.wait(r.predicate, addresses, parities)
        r.put(args[0], np.ones(r.m.count, np.bool_))

    return run


def _fence(match: re.Match[str], args: list[str]) -> Made:
    return lambda r: r.m.mbarriers.fence(r.predicate)


_SPACE = r"(?:\.(?:release|acquire|relaxed|cta|cluster))*\.shared(?:::(?P<space>cta|cluster))?\.b64"

INSTRUCTIONS = [
    (rf"mbarrier\.init{_SPACE}", _init),
    (rf"mbarrier\.inval{_SPACE}", _invalidate),
    (rf"mbarrier\.arrive(?P<expects>\.expect_tx)?{_SPACE}", _arrive),
    (rf"mbarrier\.expect_tx{_SPACE}", _expect),
    (rf"mbarrier\.(?:try|test)_wait\.parity{_SPACE}", _wait),
    (r"mapa\.shared::cluster\.u32", _map),
    (r"fence\.mbarrier_init\.release\.cluster", _fence),
]
