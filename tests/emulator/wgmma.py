"""Tensor cores of warpgroups: wgmma operations from their issue to the wait of their group.

An operation belongs to all four warps of a warpgroup, each of which must issue it. It reads shared
memory and its registers when the first warp waits for it: the latest moment allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.emulator.clocks import Seen
from tests.emulator.fragments import Shape, accumulators_as_matrix, accumulators_as_words, operand_a
from tests.emulator.memory import Array, EmulationError
from tests.emulator.pending import Pending
from tests.emulator.waiting import Blocked, Wait


@dataclass
class Operation:
    """One wgmma.mma_async of a warpgroup.

    places_a, places_b: (rows, depth) addresses of operands in shared memory.
    accumulators, words_a: registers by warp, each (32,) or what another operation will leave.
    pieces: of 16 bytes that it reads, marked as such. number: in its warpgroup.
    taken: by warp, accumulators with which another goes on.
    matrix: (64, n), what it leaves when it has read all it reads; seen: who knows of that.
    """

    shape: Shape
    keep: bool
    places_a: Array | None
    places_b: Array
    key: tuple[Any, ...]
    issued: set[int] = field(default_factory=set[int])
    accumulators: dict[int, Any] = field(default_factory=dict[int, Any])
    words_a: dict[int, list[Array]] = field(default_factory=dict[int, list[Array]])
    pieces: list[Array] = field(default_factory=list[Array])
    number: int = -1
    seen: Seen | None = None
    matrix: Array | None = None
    words: Array | None = None
    taken: dict[int, set[int]] = field(default_factory=dict[int, set[int]])

    def take(self, warp: int, numbers: Iterable[int]) -> None:
        """The next operation goes on with accumulators that this one leaves."""
        taken = self.taken.setdefault(warp, set())
        if not taken.isdisjoint(numbers):
            raise EmulationError("an accumulator is read while its wgmma may be on its way")
        taken.update(numbers)

    def word(self, warp: int, number: int) -> Array:
        """(32,) of an accumulator of a warp, by its number in the warpgroup."""
        if self.words is None:
            self.words = accumulators_as_words(self.shape, self.matrix)
        return self.words[warp, :, number]


class WarpGroup:
    """operations: all, in order. issued, waited: how many each warp has issued, and waited for."""

    def __init__(self, machine: Any, first_warp: int) -> None:
        self._m, self.first_warp = machine, first_warp
        self.operations: list[Operation] = []
        self.issued, self.waited = [0] * 4, [0] * 4
        self.commits: list[list[int]] = [[] for _ in range(4)]
        self._engine: int | None = None
        self._done = 0

    def issue(self, warp: int, operation: Operation) -> Operation:
        """The operation of the group that this warp takes part in by its next one."""
        number = self.issued[warp]
        self.issued[warp] += 1
        if number == len(self.operations):
            operation.number = number
            self.operations.append(operation)
        found = self.operations[number]
        if found.key != operation.key:
            raise EmulationError("the warps of a warpgroup issue different wgmma operations")
        found.issued.add(warp)
        return found

    def target(self, warp: int, pending: int) -> int:
        """How many operations are over when at most `pending` groups are on their way."""
        commits = self.commits[warp]
        return commits[-1 - pending] if len(commits) > pending else 0

    def wait(self, warp: int, target: int) -> None:
        """All four warps have issued so many; they are over for this one."""
        while self._done < target:
            self._perform(self.operations[self._done])
            self._done += 1
        if target > self.waited[warp]:
            self.waited[warp] = target
            seen = self.operations[target - 1].seen
            self._m.clocks.acquire(np.array([self.first_warp + warp]), seen)

    def _perform(self, operation: Operation) -> None:
        shared, shape = self._m.shared, operation.shape
        if self._engine is None:
            self._engine = self._m.clocks.engine()
        stamp, operation.seen = self._m.clocks.act(self._engine)
        for pieces in operation.pieces:
            shared.end_late_read(pieces, self._engine, stamp)
        left = (
            shape.elements(shared.data, operation.places_a)
            if operation.places_a is not None
            else operand_a(shape, [operation.words_a[w] for w in range(4)])
        )
        right = shape.elements(shared.data, operation.places_b, is_b=True)
        initial = self._initial(operation) if operation.keep else None
        operation.matrix = shape.product(left, right, initial)
        operation.accumulators, operation.words_a, operation.pieces = {}, {}, []

    def _initial(self, operation: Operation) -> Any:
        """(64, n) of what the accumulators hold before."""
        held = [operation.accumulators[w] for w in range(4)]
        first = held[0]
        if isinstance(first, Operation) and all(one is first for one in held):
            matrix, first.matrix, first.words = first.matrix, None, None  # nobody else may read it
            return matrix
        count = operation.shape.registers
        words = [[_word(held[w], w, i) for i in range(count)] for w in range(4)]
        return accumulators_as_matrix(operation.shape, np.array(words).transpose(0, 2, 1))


def _word(held: Any, warp: int, number: int) -> Array:
    """A register of a warp: known, or what an operation that is done has left in it."""
    if isinstance(held, Operation):
        return held.word(warp, number)
    one = held[number]
    return one[0].word(warp, one[1]) if isinstance(one, tuple) else one


class TensorCores:
    """Of all warpgroups; also when registers that wgmma uses were written, by LLVM's names."""

    def __init__(self, machine: Any) -> None:
        self._m = machine
        count = machine.warps // 4
        self.groups = [WarpGroup(machine, 4 * i) for i in range(count)]
        self._defined: dict[str, Array] = {}
        self.fenced = np.zeros(machine.warps, np.int64)
        """Event of the latest wgmma.fence of each warp."""
        self._busy: dict[tuple[int, Any], Operation] = {}
        """Registers of A, by warp and name, that an operation may yet read."""

    def of(self, warp: int) -> tuple[WarpGroup, int]:
        """The warpgroup, and the number of the warp in it."""
        if warp // 4 >= len(self.groups):
            raise EmulationError("wgmma in a warpgroup of less than four warps")
        return self.groups[warp // 4], warp % 4

    # -- registers ------------------------------------------------------------------------------

    def define(self, name: str) -> None:
        """The active warps write a register that some wgmma uses."""
        warps = self._active(self._m.mask)
        for warp in warps if self._busy else ():
            self._check_free(warp, name)
        events = self._defined.setdefault(name, np.full(self._m.warps, -1))
        events[warps] = self._m.event

    def check_free(self, r: Any, token: str) -> None:
        """A register may be written by inline assembly."""
        for warp in self._active(r.predicate) if self._busy else ():
            self._check_free(warp, (id(r.values), token))

    def _check_free(self, warp: int, name: Any) -> None:
        operation = self._busy.get((warp, name))
        if operation is None:
            return
        group, number = self.of(warp)
        if operation.number >= group.waited[number]:
            raise EmulationError("a register is written that a wgmma on its way may yet read")
        del self._busy[warp, name]

    def hold(self, warp: int, names: Sequence[Any], operation: Operation) -> None:
        """Registers of A must not change before the operation is over."""
        for name in names:
            self._busy[warp, name] = operation

    def written(self, r: Any, token: str) -> Array | int:
        """Event, per warp or for all, at which a register was last written; constants are just
        now."""
        name = r.names.get(token, "")
        event: int = r.written.get(token, -1)
        if token in r.written or name in ("undef", "poison"):
            return event
        if name.startswith("%"):
            return self._defined.get(name, event)
        return r.start

    def fence(self, mask: Array) -> None:
        self.fenced[self._active(mask, "wgmma.fence")] = self._m.event

    def _active(self, mask: Array, what: str = "") -> Any:
        if what:
            return np.flatnonzero(self._m.whole_warps(what, mask))
        return np.flatnonzero(mask.reshape(-1, 32).any(1))

    # -- groups ---------------------------------------------------------------------------------

    def commit(self, mask: Array) -> None:
        for warp in self._active(mask, "wgmma.commit_group").tolist():
            group, number = self.of(warp)
            group.commits[number].append(group.issued[number])

    def wait(self, r: Any, pending: int) -> None:
        """All but the latest groups are over: registers at hand that they write are known."""
        warps = self._active(r.predicate, "wgmma.wait_group").tolist()
        waits: dict[int, Wait] = {}
        for warp in warps:
            group, number = self.of(warp)
            target = group.target(number, pending)
            if min(group.issued) < target:
                waits[warp] = _others(group, target)
        if waits:
            raise Blocked(waits)
        for warp in warps:
            group, number = self.of(warp)
            group.wait(number, group.target(number, pending))
        for token, value in r.values.items():
            if type(value) is Pending:
                r.values[token] = self._known(value, warps)

    def _known(self, value: Pending, warps: Sequence[int]) -> Any:
        """A register after these warps have waited."""
        data, operations = None, value.operations
        for warp in warps:
            operation = operations.get(warp)
            if operation is None or not self._is_over(operation, warp, value.number):
                continue
            if data is None:
                data, operations = value.data.copy(), dict(operations)
            data[32 * warp : 32 * warp + 32] = operation.word(warp % 4, value.number)
            del operations[warp]
        if data is None:
            return value
        return Pending(data, value.number, operations) if operations else data

    def _is_over(self, operation: Operation, warp: int, register: int) -> bool:
        """Whether what an operation has left in a register is still there, for a warp to read."""
        group, number = self.of(warp)
        is_taken = register in operation.taken.get(warp, ())
        return operation.number < group.waited[number] and not is_taken

    def finish(self) -> None:
        """The program ends."""
        for group in self.groups:
            if any(number < len(group.operations) for number in group.issued):
                raise EmulationError("a wgmma that not all four warps of a warpgroup execute")
            if any(number < len(group.operations) for number in group.waited):
                raise EmulationError("the program ends before a wgmma is waited for")


def _others(group: WarpGroup, target: int) -> Wait:
    def describe() -> str:
        return "a wgmma that not all four warps of its warpgroup execute"

    return Wait(lambda: min(group.issued) >= target, describe)
