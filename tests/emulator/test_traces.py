"""Which accesses nothing orders: the traces against a list of all accesses, in random programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.emulator.clocks import FENCED, GLOBAL_FENCED, Clocks
from tests.emulator.traces import ThreadTrace, WarpTrace

_BYTES, _WARPS, _ENGINES = 6, 4, 2


@dataclass(eq=False)
class Access:
    """overwritten: an access that comes after it has been made to the same byte."""

    byte: int
    warp: int
    thread: int
    overwritten: bool = False


Accesses = set[Access]


@dataclass
class Model:
    """All accesses, and those that each warp knows to be over, and fenced.

    recent: of each warp, made since its threads last saw what the others did.
    """

    all: list[Access] = field(default_factory=list[Access])
    known: list[Accesses] = field(default_factory=lambda: [set() for _ in range(_WARPS)])
    recent: list[Accesses] = field(default_factory=lambda: [set() for _ in range(_WARPS)])
    fenced: list[Accesses] = field(default_factory=lambda: [set() for _ in range(_WARPS)])

    def unseen(self, byte: int, warp: int, thread: int | None = None) -> bool:
        """thread: None if those of a warp see each other's accesses at once."""
        own = {a for a in self.recent[warp] if thread in (None, a.thread)}
        return any(a.byte == byte and a not in self.known[warp] | own for a in self.all)

    def unfenced(self, byte: int, warp: int) -> bool:
        here = [a for a in self.all if a.byte == byte and not a.overwritten]
        return any(a not in self.fenced[warp] for a in here)

    def note(self, made: list[tuple[Access, bool]]) -> None:
        """Accesses of one instruction, and whether others are not over for whoever makes them."""
        ordered = {access.byte for access, is_unseen in made if not is_unseen}
        for access in self.all:
            access.overwritten |= access.byte in ordered
        for access, _ in made:
            self.all.append(access)
            if access.warp >= 0:
                self.recent[access.warp].add(access)

    def pass_on(self, warp: int) -> None:
        self.known[warp] |= self.recent[warp]
        self.recent[warp].clear()

    def fence(self, warp: int) -> None:
        self.fenced[warp] |= {a for a in self.all if a.warp == warp}
        self.pass_on(warp)

    def synchronize(self, warps: list[int]) -> None:
        for table in (self.known, self.fenced):
            for warp in warps:
                self.pass_on(warp)
            both = set[Access]().union(*(table[w] for w in warps))
            for warp in warps:
                table[warp] |= both


def synchronize(clocks: Clocks, model: Model, warps: list[int]) -> None:
    clocks.acquire(np.array(warps), clocks.release(np.array(warps)))
    model.synchronize(warps)


def some_warps(rng: Random) -> list[int]:
    return sorted(rng.sample(range(_WARPS), rng.randint(1, _WARPS)))


def change_order(rng: Random, clocks: Clocks, model: Model, table: int) -> None:
    """Warps synchronize, the threads of one do, or one fences what it wrote."""
    kind, warp = rng.randrange(4), rng.randrange(_WARPS)
    if kind == 0:
        clocks.pass_on(np.array([warp]))
        model.pass_on(warp)
    elif kind == 1:
        clocks.fence(np.array([warp]), table)
        model.fence(warp)
    else:
        synchronize(clocks, model, some_warps(rng))


def engine_reads(rng: Random, trace: WarpTrace, clocks: Clocks, model: Model, engine: int) -> None:
    """An engine ends an access to all bytes; one warp waits for it, who then knows of it.

    So it is of an engine's stores of shared memory, and of the tensor core of another warpgroup.
    """
    stamp, seen = clocks.act(engine)
    trace.note_engine(np.array([0]), engine, stamp, alone=False)
    accesses = [Access(byte, -1 - engine, 0) for byte in range(16)]
    model.note([(access, True) for access in accesses])
    warp = rng.randrange(_WARPS)
    clocks.acquire(np.array([warp]), seen)
    model.pass_on(warp)
    same = {a for a in model.all if a.warp == -1 - engine}
    model.known[warp] |= same
    model.fenced[warp] |= same


def accesses_of_warps(rng: Random, trace: WarpTrace, model: Model) -> None:
    count = rng.randint(1, 4)
    warps = np.array([rng.randrange(_WARPS) for _ in range(count)])
    places = np.array([[rng.randrange(_BYTES)] for _ in range(count)])
    found = [trace.unseen(places, warps), trace.unfenced(places, warps)]
    made = list[tuple[Access, bool]]()
    for (byte,), warp, unseen, unfenced in zip(
        places.tolist(), warps.tolist(), *found, strict=True
    ):
        assert bool(unseen) == model.unseen(byte, warp)
        assert bool(unfenced) == model.unfenced(byte, warp)
        made.append((Access(byte, warp, 0), bool(unseen)))
    pieces = np.array([0])
    warp = rng.randrange(_WARPS)
    assert trace.pieces_unseen(pieces, warp) == any(model.unseen(b, warp) for b in range(16))
    assert trace.pieces_unfenced(pieces, warp) == any(model.unfenced(b, warp) for b in range(16))
    trace.note(places, warps)
    model.note(made)


def accesses_of_threads(rng: Random, trace: ThreadTrace, clocks: Clocks, model: Model) -> None:
    count = rng.randint(1, 4)
    threads = np.array([rng.randrange(_WARPS) * 32 + rng.randrange(2) for _ in range(count)])
    places = np.array([[rng.randrange(_BYTES)] for _ in range(count)])
    made = list[tuple[Access, bool]]()
    unseen = trace.unseen(places, threads, clocks)
    for (byte,), thread, meets in zip(places.tolist(), threads.tolist(), unseen, strict=True):
        assert bool(meets) == model.unseen(byte, thread >> 5, thread)
        made.append((Access(byte, thread >> 5, thread), bool(meets)))
    byte, warp = rng.randrange(_BYTES), rng.randrange(_WARPS)
    assert trace.unfenced(np.array([[byte]]), warp, clocks) == model.unfenced(byte, warp)
    trace.note(places, threads, clocks)
    model.note(made)


@pytest.mark.parametrize("seed", range(60))
def test_shared_memory_against_all_accesses(seed: int) -> None:
    rng = Random(seed)
    clocks, model = Clocks(_WARPS), Model()
    trace = WarpTrace(clocks, 16)
    engines = [clocks.engine() for _ in range(_ENGINES)]
    for _ in range(60):
        kind = rng.randrange(8)
        if kind == 0:
            engine_reads(rng, trace, clocks, model, rng.choice(engines))
        elif kind < 4:
            change_order(rng, clocks, model, FENCED)
        else:
            accesses_of_warps(rng, trace, model)
    assert len(model.all) > 40


@pytest.mark.parametrize("seed", range(60))
def test_global_memory_against_all_accesses(seed: int) -> None:
    """While an engine acts that nobody, or one warp, has waited for."""
    rng = Random(seed)
    clocks, model = Clocks(_WARPS), Model()
    trace, engine = ThreadTrace(_BYTES), clocks.engine()
    for _ in range(80):
        kind = rng.randrange(8)
        if kind == 0:
            clocks.act(engine)
        elif kind < 4:
            change_order(rng, clocks, model, GLOBAL_FENCED)
        else:
            accesses_of_threads(rng, trace, clocks, model)
    assert len(model.all) > 40


def two_readers(clocks: Clocks, first: int, second: int) -> Any:
    trace, place = ThreadTrace(4), np.array([[0]])
    trace.note(place, np.array([32 * first]), clocks)
    trace.note(place, np.array([32 * second]), clocks)
    return lambda warp: bool(trace.unseen(place, np.array([32 * warp]), clocks).any())


@pytest.mark.parametrize("is_waited_for", [False, True])
def test_a_tensor_core_that_not_all_have_waited_for_hides_and_invents_nothing(
    is_waited_for: bool,
) -> None:
    """The barrier is what orders accesses to global memory, whatever else goes on."""
    clocks = Clocks(3)
    _, seen = clocks.act(clocks.engine())
    if is_waited_for:
        clocks.acquire(np.array([0]), seen)
    meets = two_readers(clocks, 0, 1)
    assert meets(2)
    clocks.acquire(np.array([2]), clocks.release(np.array([0])))
    assert meets(2)
    clocks.acquire(np.array([2]), clocks.release(np.array([1])))
    assert not meets(2)


def test_the_latest_of_several_stamps_counts() -> None:
    """The second reader has not synchronized for long, so that its stamp is the earlier one."""
    clocks = Clocks(3)
    clocks.pass_on(np.array([0]))
    clocks.acquire(np.array([2]), clocks.release(np.array([1])))
    meets = two_readers(clocks, 0, 1)
    clocks.acquire(np.array([2]), clocks.release(np.array([1])))
    assert meets(2)
