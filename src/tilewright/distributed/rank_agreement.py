"""`agree`: the ranks of a process group tune together and launch equal configurations.

A choice passes through four texts in the store of the group, which exist once for each choice `n`:

    n/arrival/RANK   what this rank tunes, and its device
    n/plan           by the last rank that arrives: which ranks have equal devices
    n/part/RANK      its timings, and the reference that they are compared with
    n/decision       the choice, by the last rank that finishes; or the default, by any rank that
                     fails or gives up waiting. The first text that is written is that of all ranks.

No collective operation is used, so none can hang, and none can meet another one.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from tilewright.distributed.combine_timings import Part, best_number, ratios_by_kind
from tilewright.distributed.message_board import MessageBoard, Store, UnreachableError
from tilewright.distributed.rank_groups import group_of, torch_group
from tilewright.runtime import SharedChoice, SharedTuning, Turn, together
from tilewright.support import ForkLock, TilewrightError, TilewrightWarning, errors, import_late

TIMEOUT_SECONDS = 25.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1e-3, 0.05
_LONGEST_TEXT = 400

Decision = dict[str, Any]


def agree(group: Any = None, *, timeout: float = TIMEOUT_SECONDS) -> Agreement:
    """Make the autotuners of all ranks of a process group choose together, from now on.

        torch.distributed.init_process_group("gloo")  # or "nccl"
        tilewright.distributed.agree()

    group: a process group of torch.distributed, None for the default one. Its store is used, and
    none of its collective operations, so any backend will do.

    Ranks with equal devices divide the configurations of each key, and every rank measures the
    first one as well. Timings are compared by their ratio to it, and every rank uses the same
    configuration; among unequal devices, the one with the smallest slowdown on any of them. All
    timings go to the tuning cache of each rank.

    Every rank calls `agree` equally often, and tunes the same kernels, with the same keys and
    configurations, in the same order: otherwise RanksDiffer is raised on all of them. One thread
    of a rank tunes at a time.

    timeout: seconds without progress on any rank, where progress is a configuration that was
    compiled or measured. After that, or if a rank raises, every rank uses the default, the first
    configuration, and warns. After a timeout the agreement is over: later keys use the default
    at once.

    The agreement ends by `close`, or as a `with` block. Errors: NoGroup, WrongRank, InvalidOption
    if an agreement is active.
    """
    ranks = group_of(group)
    process_group = torch_group(ranks)
    if process_group is None:
        found = type(group).__name__
        raise errors.InvalidOption("group", "a process group of torch.distributed", found)
    return Agreement(_store_of(process_group), ranks.rank, ranks.size, timeout)


def _store_of(group: Any) -> Store:
    if hasattr(group, "get_group_store"):
        return group.get_group_store()
    c10d: Any = import_late("torch.distributed.distributed_c10d")
    return c10d._get_process_group_store(group)


class Agreement:
    """An agreement in force; made by `agree`."""

    def __init__(self, store: Store, rank: int, size: int, timeout: float) -> None:
        if not timeout > 0:
            raise errors.InvalidOption("timeout", "seconds above 0", timeout)
        if together.now is not None:
            expected = "called when no agreement is active: close the other one"
            raise errors.InvalidOption("agree", expected, "one inside another")
        self.rank, self.size, self.timeout = rank, size, timeout
        self.board = MessageBoard(store, "tilewright/agree/", timeout)
        # A number of its own, so that this agreement does not read texts of an earlier one.
        self.board.prefix += f"{self.board.count(f'rank {rank}')}/"
        self.is_over = False
        self._count = 0
        self._lock = ForkLock()
        together.set(self)

    def close(self) -> None:
        """End the agreement: autotuners of this process choose alone."""
        if together.now is self:
            together.set(None)
            self.board.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def turn(self) -> Generator[Turn]:
        """A block around one choice. An exception inside is reported to the other ranks."""
        with self._lock:
            self._count += 1
            turn = RankTurn(self, self._count)
            try:
                yield turn
            except BaseException as problem:
                turn.report(problem)
                raise


class RankTurn:
    """One choice of one rank."""

    def __init__(self, agreement: Agreement, number: int) -> None:
        self._agreement = agreement
        self._number = number
        self._title = "a kernel"
        self._rank, self._size = agreement.rank, agreement.size

    def choose(self, tuning: SharedTuning) -> SharedChoice:
        """The choice of all ranks. Errors: RanksDiffer, those of measuring."""
        self._title = tuning.title
        default = SharedChoice(tuning.numbers[0], {})
        if self._agreement.is_over:
            return default
        try:
            return self._choose(tuning) or default
        except UnreachableError as problem:
            self._end(errors.StoreLost(self._title, str(problem)))
            return default

    def report(self, problem: BaseException) -> None:
        """Give the other ranks the default, unless they have a decision."""
        if self._agreement.is_over or isinstance(problem, errors.RanksDiffer):
            return
        message = problem.message if isinstance(problem, TilewrightError) else str(problem)
        why = f"{type(problem).__name__}: {message}"[:_LONGEST_TEXT]
        try:
            self._decide({"failed": why, "rank": self._rank, "title": self._title})
        except UnreachableError:
            self._agreement.is_over = True

    # --- one choice -------------------------------------------------------------------------------

    def _choose(self, tuning: SharedTuning) -> SharedChoice | None:
        """None for the default."""
        plan = self._arrive(tuning)
        if plan is None:
            return self._adopt(None, 0)
        kind, position, count = plan
        part = self._measured(tuning, kind, tuning.numbers[1:][position::count])
        self._put(f"part/{self._rank}", [part.kind, part.reference, list(part.timings.items())])
        if self._progress("parts") == self._size:
            self._decide(self._combined(tuning.numbers[0]))
        self._wait(lambda: self._get("decision") is not None, "part")
        return self._adopt(part, kind)

    def _arrive(self, tuning: SharedTuning) -> tuple[int, int, int] | None:
        """The kind of this rank's device, its position among ranks of this kind, and their number;
        None if there is a decision already."""
        arrival = {"title": tuning.title, "text": tuning.text}
        arrival |= {"device": tuning.device, "numbers": list(tuning.numbers)}
        self._put(f"arrival/{self._rank}", arrival)
        if self._progress("arrivals") == self._size:
            self._plan()
        self._wait(lambda: bool(self._get("decision") or self._get("plan")), "arrival")
        kinds: list[int] | None = self._get("plan")
        if kinds is None or self._get("decision") is not None:
            return None
        kind = kinds[self._rank]
        return kind, kinds[: self._rank].count(kind), kinds.count(kind)

    def _plan(self) -> None:
        """Write the kinds of devices by rank, or a decision for ranks that differ."""
        arrivals: list[Any] = [self._get(f"arrival/{rank}") for rank in range(self._size)]
        devices: dict[str, int] = {}
        kinds = [devices.setdefault(one["device"], len(devices)) for one in arrivals]
        for rank, one in enumerate(arrivals):
            alike = arrivals[kinds.index(kinds[rank])]
            if one["text"] != arrivals[0]["text"] or one["numbers"] != alike["numbers"]:
                titles = [found["title"] for found in (one, arrivals[0])]
                self._decide({"differs": rank, "titles": titles})
                return
        self._put("plan", kinds)

    def _measured(self, tuning: SharedTuning, kind: int, share: Any) -> Part:
        """The timings of a share, and of the first configuration that runs."""

        def done() -> None:
            self._progress("steps")

        numbers = list(tuning.numbers)
        timings = dict(tuning.measure([numbers[0], *share], done))
        for number in numbers:
            if number not in timings:
                timings.update(tuning.measure([number], done))
            if number in timings and timings[number][0] != float("inf"):
                return Part(kind, number, timings)
        return Part(kind, None, timings)

    def _combined(self, default: int) -> Decision:
        texts: list[Any] = [self._get(f"part/{rank}") for rank in range(self._size)]
        parts = [Part(kind, reference, dict(rows)) for kind, reference, rows in texts]
        ratios = ratios_by_kind(parts)
        best = best_number(ratios.values())
        rows = {str(kind): list(found.items()) for kind, found in ratios.items()}
        return {"number": default if best is None else best, "ratios": rows}

    def _adopt(self, part: Part | None, kind: int) -> SharedChoice | None:
        """The choice of the decision; None for the default, with a warning."""
        decision: Decision = self._get("decision")
        if "differs" in decision:
            other, (title, expected) = decision["differs"], decision["titles"]
            raise errors.RanksDiffer(other, _distinct(title, expected), 0, expected)
        if "lost" in decision:
            seconds = f"{decision['seconds']:g}"
            self._end(errors.RanksLost(decision["lost"], seconds, self._title))
            return None
        if "failed" in decision or part is None:
            _warn(errors.RankFailed(self._title, decision["rank"], decision["failed"]))
            return None
        own = 1.0 if part.reference is None else part.timings[part.reference][0]
        rows = decision["ratios"].get(str(kind), [])
        timings = {number: [ratio * own for ratio in row] for number, row in rows}
        return SharedChoice(decision["number"], timings)

    def _end(self, problem: TilewrightError) -> None:
        self._agreement.is_over = True
        _warn(problem)

    # --- the store --------------------------------------------------------------------------------

    def _wait(self, is_there: Callable[[], bool], phase: str) -> None:
        """Wait for a text; after the time without progress, decide for the default."""
        pause, seen, since = _FIRST_PAUSE, -1, time.monotonic()
        while not is_there():
            time.sleep(pause)
            pause = min(1.5 * pause, _LONGEST_PAUSE)
            progress = self._agreement.board.count(f"{self._number}/progress", 0)
            if progress != seen:
                seen, since = progress, time.monotonic()
            elif time.monotonic() - since > self._agreement.timeout:
                ranks = range(self._size)
                lost = [rank for rank in ranks if self._get(f"{phase}/{rank}") is None]
                self._decide({"lost": lost, "seconds": self._agreement.timeout})

    def _progress(self, counter: str) -> int:
        self._agreement.board.count(f"{self._number}/progress")
        return self._agreement.board.count(f"{self._number}/{counter}")

    def _decide(self, decision: Decision) -> None:
        text = json.dumps(decision)
        self._agreement.board.put_first(f"{self._number}/decision", text)

    def _put(self, name: str, value: object) -> None:
        self._agreement.board.put(f"{self._number}/{name}", json.dumps(value))

    def _get(self, name: str) -> Any:
        text = self._agreement.board.get(f"{self._number}/{name}")
        return None if text is None else json.loads(text)


def _distinct(title: str, other: str) -> str:
    """A title; the difference is in the kernel or its configurations if titles are equal."""
    return title if title != other else f"{title} from another source or list of configurations"


def _warn(problem: TilewrightError) -> None:
    warnings.warn(str(problem), TilewrightWarning, stacklevel=2)
