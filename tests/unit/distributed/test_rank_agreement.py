"""Ranks that tune together: threads with a store in memory."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tilewright.distributed.rank_agreement import Agreement
from tilewright.runtime import SharedChoice, SharedTuning, together
from tilewright.support import TilewrightWarning, errors

TIMEOUT = 0.5


class MemoryStore:
    """The store of a group of threads; `fail` makes every call raise."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.lock = threading.Lock()
        self.fail: Exception | None = None
        self.blocked: float = 0.0

    def _check(self) -> None:
        time.sleep(self.blocked)
        if self.fail is not None:
            raise self.fail

    def set(self, key: str, value: str) -> None:
        self._check()
        with self.lock:
            self.texts[key] = value

    def get(self, key: str) -> bytes:
        self._check()
        with self.lock:
            return self.texts[key].encode()

    def check(self, keys: list[str]) -> bool:
        self._check()
        with self.lock:
            return all(key in self.texts for key in keys)

    def add(self, key: str, amount: int) -> int:
        self._check()
        with self.lock:
            self.texts[key] = str(int(self.texts.get(key, "0")) + amount)
            return int(self.texts[key])

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        self._check()
        with self.lock:
            if self.texts.get(key, "") == expected:
                self.texts[key] = desired
            return self.texts[key].encode()


class Rank:
    """One rank. speed: by which its timings are larger; measured: the numbers that it measured."""

    def __init__(self, store: MemoryStore, rank: int, size: int, timeout: float) -> None:
        self.agreement = Agreement(store, rank, size, timeout)
        together.set(None)  # those of all ranks are in one process
        self.rank, self.slowness = rank, 1.0
        self.measured: list[int] = []

    def tuning(self, times: Sequence[float], title: str = "kernel, n=7", **others: Any) -> Any:
        def measure(numbers: Sequence[int], done: Callable[[], object]) -> dict[int, list[float]]:
            self.measured += numbers
            done()
            return {number: [times[number] * self.slowness] for number in numbers}

        numbers = list(range(len(times)))
        given: dict[str, Any] = {"text": title, "device": "cpu", "numbers": numbers, **others}
        return SharedTuning(title, given["text"], given["device"], given["numbers"], measure)

    def choose(self, times: Sequence[float], title: str = "kernel, n=7", **others: Any) -> Any:
        with self.agreement.turn() as turn:
            return turn.choose(self.tuning(times, title, **others))


def ranks(count: int, timeout: float = TIMEOUT) -> list[Rank]:
    store = MemoryStore()
    return [Rank(store, rank, count, timeout) for rank in range(count)]


def together_(all_ranks: Sequence[Rank], work: Callable[[Rank], Any]) -> list[Any]:
    """The results by rank; exceptions as results."""
    with ThreadPoolExecutor(len(all_ranks)) as pool:
        futures = [pool.submit(work, rank) for rank in all_ranks]
        return [future.exception() or future.result() for future in futures]


def test_ranks_divide_the_configurations_and_choose_alike() -> None:
    four = ranks(4)
    times = [5.0, 4.0, 3.0, 1.0, 2.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    choices = together_(four, lambda rank: rank.choose(times))
    assert [choice.number for choice in choices] == [3, 3, 3, 3]
    assert all(rank.measured[0] == 0 and len(rank.measured) <= 1 + 3 for rank in four)
    shares = sorted(number for rank in four for number in rank.measured[1:])
    assert shares == list(range(1, 10))
    assert choices[0].timings == {n: pytest.approx([ms]) for n, ms in enumerate(times)}


@pytest.mark.parametrize("slow", range(4))
def test_a_slow_rank_does_not_bias(slow: int) -> None:
    four = ranks(4)
    four[slow].slowness = 5.0
    times = [5.0, 4.0, 3.0, 1.0, 2.0, 6.0, 7.0, 8.0]
    choices = together_(four, lambda rank: rank.choose(times))
    assert {choice.number for choice in choices} == {3}
    assert choices[slow].timings[3] == pytest.approx([5.0])
    assert choices[slow - 1].timings[3] == pytest.approx([1.0])


def test_the_reference_is_the_first_configuration_that_runs() -> None:
    two = ranks(2)
    inf = float("inf")
    choices = together_(two, lambda rank: rank.choose([inf, inf, 4.0, 3.0, 5.0, 6.0]))
    assert {choice.number for choice in choices} == {3}
    assert choices[0].timings[0] == [inf]


def test_nothing_runs() -> None:
    inf = float("inf")
    choices = together_(ranks(2), lambda rank: rank.choose([inf, inf, inf]))
    assert [choice.timings for choice in choices] == [{0: [inf], 1: [inf], 2: [inf]}] * 2


def test_unequal_devices_measure_all_and_take_the_smallest_slowdown() -> None:
    four = ranks(4)
    times = {0: [4.0, 1.0, 2.0], 1: [4.0, 9.0, 6.0]}
    choices = together_(four, lambda rank: rank.choose(times[rank.rank % 2], device=rank.rank % 2))
    # slowdowns: 4 and 1; 1 and 2.25; 2 and 1.5
    assert {choice.number for choice in choices} == {2}
    assert choices[1].timings == {0: [4.0], 1: [9.0], 2: [6.0]}


def test_several_keys_in_a_row() -> None:
    three = ranks(3)

    def work(rank: Rank) -> list[int]:
        lists = [[float((n * 7 + k) % 11 + 1) for n in range(11)] for k in range(5)]
        return [rank.choose(times, f"n={k}").number for k, times in enumerate(lists)]

    first, *others = together_(three, work)
    assert first == [0, 3, 6, 9, 1]
    assert others == [first, first]


def test_keys_in_another_order_raise_on_every_rank() -> None:
    two = ranks(2)
    problems = together_(two, lambda rank: rank.choose([1.0, 2.0], f"kernel, n={rank.rank}"))
    assert all(isinstance(problem, errors.RanksDiffer) for problem in problems)
    message = "rank 1 tunes kernel, n=1, but rank 0 tunes kernel, n=0"
    assert [problem.message for problem in problems] == [message] * 2
    assert "same order" in str(problems[0])
    # The agreement goes on.
    again = together_(two, lambda rank: rank.choose([2.0, 1.0]))
    assert [choice.number for choice in again] == [1, 1]


def test_other_configurations_raise() -> None:
    problems = together_(ranks(2), lambda rank: rank.choose([1.0] * (2 + rank.rank), text="same"))
    assert all(isinstance(problem, errors.RanksDiffer) for problem in problems)
    assert "another source or list of configurations" in problems[0].message


def test_a_rank_that_raises_gives_the_others_the_default() -> None:
    three = ranks(3, timeout=20.0)

    def work(rank: Rank) -> Any:
        with rank.agreement.turn() as turn:
            if rank.rank == 1:
                raise ZeroDivisionError("planted")
            return turn.choose(rank.tuning([3.0, 2.0, 1.0]))

    start = time.monotonic()
    with pytest.warns(TilewrightWarning, match=r"failed on rank 1 \(ZeroDivisionError: planted\)"):
        first, second, third = together_(three, work)
    assert isinstance(second, ZeroDivisionError)
    assert first == third == SharedChoice(0, {})
    assert time.monotonic() - start < 10
    choices = together_(three, lambda rank: rank.choose([3.0, 2.0, 1.0]))
    assert [choice.number for choice in choices] == [2, 2, 2]


@pytest.mark.parametrize("missing", range(3))
def test_a_rank_that_never_comes_gives_the_default(missing: int) -> None:
    three = ranks(3)
    alive = [rank for rank in three if rank.rank != missing]
    with pytest.warns(TilewrightWarning, match=rf"rank {missing} made no progress for 0\.5 s"):
        choices = together_(alive, lambda rank: rank.choose([3.0, 2.0, 1.0]))
    assert choices == [SharedChoice(0, {})] * 2
    # Later keys do not wait, and neither does the rank that comes late.
    start = time.monotonic()
    assert together_(alive, lambda rank: rank.choose([3.0, 2.0])) == [SharedChoice(0, {})] * 2
    assert time.monotonic() - start < TIMEOUT
    with pytest.warns(TilewrightWarning, match="made no progress"):
        assert three[missing].choose([3.0, 2.0, 1.0]) == SharedChoice(0, {})


def test_a_rank_that_dies_while_it_measures_gives_the_default() -> None:
    two = ranks(2)

    class Dead(BaseException):
        pass

    def work(rank: Rank) -> Any:
        tuning = rank.tuning([3.0, 2.0, 1.0])
        if rank.rank == 1:
            rank.agreement.board._problem = None

            def die(*_: object) -> Any:
                rank.agreement.is_over = True  # so that it reports nothing
                raise Dead

            tuning = SharedTuning(tuning.title, tuning.text, tuning.device, tuning.numbers, die)
        with rank.agreement.turn() as turn:
            return turn.choose(tuning)

    with pytest.warns(TilewrightWarning, match="rank 1 made no progress"):
        choices = together_(two, work)
    assert choices[0] == SharedChoice(0, {})


def test_progress_extends_the_wait() -> None:
    two = ranks(2)

    def work(rank: Rank) -> Any:
        plain = rank.tuning([3.0, 2.0, 1.0, 5.0])

        def slow(numbers: Sequence[int], done: Callable[[], object]) -> Any:
            for _ in range(4 * rank.rank):
                time.sleep(0.6 * TIMEOUT)
                done()
            return plain.measure(numbers, done)

        with rank.agreement.turn() as turn:
            return turn.choose(
                SharedTuning(plain.title, plain.text, plain.device, plain.numbers, slow)
            )

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [choice.number for choice in together_(two, work)] == [2, 2]


@pytest.mark.parametrize("blocks", [False, True])
def test_a_store_that_fails_or_blocks_gives_the_default(blocks: bool) -> None:
    (rank,) = ranks(1)
    store: Any = rank.agreement.board._store
    if blocks:
        store.blocked = 3.0
    else:
        store.fail = RuntimeError("Connection reset by peer\nC++ CapturedTraceback: ...")
    expected = "no answer for 0.5 s" if blocks else "Connection reset by peer"
    start = time.monotonic()
    with pytest.warns(TilewrightWarning, match=rf"store .* does not respond .*\({expected}\)"):
        assert rank.choose([2.0, 1.0]) == SharedChoice(0, {})
    assert rank.choose([2.0, 1.0]) == SharedChoice(0, {})
    assert time.monotonic() - start < 2.5


def test_mistakes_of_the_call() -> None:
    store = MemoryStore()
    with pytest.raises(errors.InvalidOption, match="timeout"):
        Agreement(store, 0, 1, 0.0)
    with Agreement(store, 0, 1, 1.0), pytest.raises(errors.InvalidOption, match="close the other"):
        Agreement(store, 0, 1, 1.0)
    assert together.now is None
