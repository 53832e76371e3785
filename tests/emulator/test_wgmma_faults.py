"""Whatever orders the loops of warpgroup products is missed when it is left out: waits, barriers,
fences and ends of groups."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.emulator import launch, machine
from tests.emulator.memory import Array, EmulationError
from tests.kernels.devices import EmulatedNvidia
from tilewright import jit, settings


@jit
def sums(a, b, c, d, n):
    """Products go on while the next iteration starts."""
    i, j, k = tl.arange(0, 128)[:, None], tl.arange(0, 32)[None, :], tl.arange(0, 32)
    acc = tl.zeros((128, 32), tl.float32)
    for s in range(n):
        x = tl.load(a + s % 4 * 4096 + i * 32 + k[None, :])
        acc = tl.dot(x, tl.load(b + s % 4 * 1024 + k[:, None] * 32 + j), acc)
    tl.store(c + i * 32 + j, acc)


@jit
def two_sums(a, b, c, d, n):
    """Two products of an iteration go on."""
    i, j, k = tl.arange(0, 128)[:, None], tl.arange(0, 32)[None, :], tl.arange(0, 32)
    one, other = tl.zeros((128, 32), tl.float32), tl.zeros((128, 32), tl.float32)
    for s in range(n):
        x = tl.load(a + s % 4 * 4096 + i * 32 + k[None, :])
        one = tl.dot(x, tl.load(b + s % 4 * 1024 + k[:, None] * 32 + j), one)
        other = tl.dot(x, tl.load(b + s % 4 * 1024 + k[:, None] + j * 32), other)
    tl.store(c + i * 32 + j, one)
    tl.store(d + i * 32 + j, other)


@jit
def chained(a, b, c, d, n):
    """A product is an operand of the next one, from registers."""
    i, j = tl.arange(0, 128), tl.arange(0, 32)
    x = tl.load(a + i[:, None] * 32 + j[None, :])
    acc = tl.zeros((128, 32), tl.float32)
    for s in range(n):
        tile = s % 4 * 1024 + j[:, None] * 32 + j[None, :]
        scores = tl.dot(x, tl.trans(tl.load(a + tile)))
        acc = tl.dot(scores.to(tl.float16), tl.load(b + tile), acc)
    tl.store(c + i[:, None] * 32 + j[None, :], acc)


@jit
def written(a, b, c, d, n):
    """Threads write an operand in each iteration."""
    i, j = tl.arange(0, 128), tl.arange(0, 32)
    x = tl.load(a + i[:, None] * 32 + j[None, :])
    y = tl.load(b + j[:, None] * 32 + j[None, :])
    acc = tl.zeros((128, 32), tl.float32)
    for s in range(n):
        acc = tl.dot(x, y * s, acc)
    tl.store(c + i[:, None] * 32 + j[None, :], acc)


@jit
def read_by_all(a, b, c, d, n):
    """Warps of both groups read what one of them then stores, while no group knows of the products
    of the other: barriers order the accesses, not waits."""
    i, j, k = tl.arange(0, 128)[:, None], tl.arange(0, 32)[None, :], tl.arange(0, 32)
    acc = tl.zeros((128, 32), tl.float32)
    for s in range(n):
        x = tl.load(a + s % 4 * 4096 + i * 32 + k[None, :])
        acc = tl.dot(x, tl.load(b + s % 4 * 1024 + k[:, None] * 32 + j), acc)
        acc += tl.load(d + j)
        tl.store(d + k, tl.load(d + k) + 1)
    tl.store(c + i * 32 + j, acc)


@dataclass(frozen=True)
class Loop:
    """iterations: as many as let the last ones use the bytes that the conversion of the result
    writes.

    spare: statements that are not missed, as others order the same: which of their kind, from 0
    """

    kernel: Any
    iterations: int
    spare: tuple[tuple[str, int], ...] = ()
    spare_waits: tuple[tuple[str, int], ...] = ()


LOOPS = [
    Loop(sums, 9),
    Loop(
        two_sums,
        10,
        # nothing writes accumulators between the two dots
        (("wgmma.fence", 1),),
        # each of the two after the loop would wait for all dots
        (("wgmma.wait_group", 1), ("wgmma.wait_group", 2)),
    ),
    # the first fences are those of what is written before the loop, an operand and the zeros of the
    # first slot: another stands in it, where the last copies are waited for, too; sums from
    # zero on are no operands; a product of the iteration before the first one, which does not run,
    # has a fence all the same, and behind the loop a group that nothing counts. The first iteration
    # alone is not straight code: where it has a product before it nothing runs (fence and group 2),
    # and its last wait is for a group without products
    Loop(
        chained,
        5,
        (
            ("fence.proxy", 0),
            ("fence.proxy", 1),
            ("wgmma.fence", 0),
            ("wgmma.fence", 2),
            ("wgmma.commit_group", 2),
            ("wgmma.fence", 3),
            ("wgmma.wait_group", 3),
            ("wgmma.fence", 5),
            ("wgmma.commit_group", 5),
            ("bar.sync", 2),
        ),
        (("wgmma.wait_group", 3),),
    ),  # fmt: skip
    Loop(written, 5, (("fence.proxy", 0),)),
    # the barrier behind the copies comes between this iteration and the store of the one before,
    # and that before the last store between the last product and what the result goes through
    Loop(read_by_all, 9, (("bar.sync", 1), ("bar.sync", 3))),
]

_STATEMENT = re.compile(
    r"(wgmma\.fence|wgmma\.commit_group|wgmma\.wait_group|fence\.proxy|bar\.sync"
    r"|cp\.async\.commit_group|cp\.async\.wait_group)[^;]*;"
)
_WAIT = re.compile(r"((?:wgmma|cp\.async)\.wait_group)(.* )(\d+);")


def run(loop: Loop, seed: int | None = None, compiled: Any = None) -> Array:
    """What a kernel of two warpgroups leaves in c and d; a new one unless it is given compiled."""
    rng = np.random.default_rng(0)
    device = EmulatedNvidia(seed)
    a, b = (device.array(rng.integers(-1, 2, (4, 4096)), np.float16) for _ in range(2))
    c, d = (device.array(np.zeros(4096), np.float32) for _ in range(2))
    with settings().cache.scope(always_compile=True):
        kernel = compiled or jit(loop.kernel.fn)
        device.run(kernel, (1,), a, b, c, d, loop.iterations, num_warps=8, num_stages=3)
    return np.stack([c, d])


def without_each(text: str) -> Iterator[tuple[tuple[str, int], str]]:
    """The text without each of its statements, and which it is of its kind."""
    count: dict[str, int] = {}
    for match in _STATEMENT.finditer(text):
        number = count[match[1]] = count.get(match[1], -1) + 1
        yield (match[1], number), text[: match.start()] + text[match.end() :]


def with_each_wait_weaker(text: str) -> Iterator[tuple[tuple[str, int], str]]:
    """The text with one group more that each wait leaves on its way."""
    count: dict[str, int] = {}
    for match in _WAIT.finditer(text):
        number = count[match[1]] = count.get(match[1], -1) + 1
        weaker = f"{match[1]}{match[2]}{int(match[3]) + 1};"
        yield (match[1], number), text[: match.start()] + weaker + text[match.end() :]


def unnoticed(
    loop: Loop, faults: Any, monkeypatch: pytest.MonkeyPatch
) -> tuple[tuple[tuple[str, int], ...], int]:
    """The faults with which the kernel runs, and the number of all."""
    texts, missed, total = list[str](), list[tuple[str, int]](), 0
    parse, launched = machine.parse, launch.Emulated.launch

    def kept(text: str) -> Any:
        texts.append(text)
        return parse(text)

    def launched_with_faults(self: Any, grid: Any, values: Any) -> None:
        nonlocal total
        right = self.kernel
        for fault, text in faults(texts[0]):
            total += 1
            self.kernel = right.with_text(text)
            try:
                launched(self, grid, values)
            except EmulationError:
                continue
            missed.append(fault)

    with monkeypatch.context() as patched:
        patched.setattr(machine, "parse", kept)
        patched.setattr(launch.Emulated, "launch", launched_with_faults)
        run(loop)
    return tuple(missed), total


def name(loop: Loop) -> str:
    return loop.kernel.fn.__name__


@pytest.mark.parametrize("loop", LOOPS, ids=name)
def test_every_statement_that_orders_is_missed(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    missed, total = unnoticed(loop, without_each, monkeypatch)
    assert missed == loop.spare
    assert total >= 8


@pytest.mark.parametrize("loop", LOOPS, ids=name)
def test_every_wait_is_as_long_as_it_must_be(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    missed, total = unnoticed(loop, with_each_wait_weaker, monkeypatch)
    assert missed == loop.spare_waits
    assert total >= 1


@pytest.mark.parametrize("loop", LOOPS, ids=name)
def test_results_do_not_depend_on_the_order_of_warps(loop: Loop) -> None:
    compiled = jit(loop.kernel.fn)
    expected = run(loop, None, compiled)
    assert np.abs(expected).max() > 4
    for seed in range(2):
        np.testing.assert_array_equal(run(loop, seed, compiled), expected)
