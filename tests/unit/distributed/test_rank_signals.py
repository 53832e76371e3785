"""Signals and waits between ranks: processes, interpreted threads, the emulated GPU, and PTX."""

from __future__ import annotations

import importlib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests import emulator
from tests.guarded_devices import OnGpu, address
from tests.unit.backends.nvidia.compiled import compiled, count
from tests.unit.backends.nvidia.requires import needs_ptxas
from tests.unit.distributed.rank_processes import run_ranks
from tilewright import jit
from tilewright.distributed import Group, Signals, ThreadGroup, peers, zeros
from tilewright.support import errors, settings

PING = '''
@tilewright.jit
def ping(table, out, RANK: tl.constexpr):
    """Hand a number back and forth by compare-and-swap, as users of Triton write it."""
    mine = tl.load(table + RANK).to(tl.pointer_type(tl.int32))
    theirs = tl.load(table + 1 - RANK).to(tl.pointer_type(tl.int32))
    for i in range(20):
        if RANK == 0:
            tl.store(theirs + 1, i)
            while tl.atomic_cas(theirs, 0, 1, sem="release", scope="sys") != 0:
                pass
            while tl.atomic_cas(mine, 1, 0, sem="acquire", scope="sys") != 1:
                pass
            tl.store(out + i, tl.load(mine + 1))
        else:
            while tl.atomic_cas(mine, 1, 0, sem="acquire", scope="sys") != 1:
                pass
            tl.store(theirs + 1, tl.load(mine + 1) * 10)
            while tl.atomic_cas(theirs, 0, 1, sem="release", scope="sys") != 0:
                pass
'''


def test_processes_wait_by_compare_and_swap(tmp_path: Path) -> None:
    (tmp_path / "pings.py").write_text(
        f"import tilewright\nimport tilewright.language as tl\n{PING}"
    )
    printed = run_ranks(
        tmp_path,
        """
        from pings import ping
        flags = zeros(2, "int32", group)
        out = np.zeros(20, np.int32)
        for _ in range(10):
            ping[(1,)](peers(flags, group).table, out, RANK=rank)
        print(out.tolist())
        """,
        2,
    )
    assert printed[0] == f"{[10 * i for i in range(20)]}\n"


def test_interpreted_ranks_are_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pinged.py").write_text(
        f"import tilewright\nimport tilewright.language as tl\n{PING}"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_INTERPRET", "1")
    pinged: Any = importlib.import_module("pinged")

    def rank_main(group: Group) -> list[int]:
        table, out = peers(zeros(2, "int32", group), group).table, np.zeros(20, np.int32)
        pinged.ping[(1,)](table, out, RANK=group.rank)
        return out.tolist()

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(rank_main, ThreadGroup.ranks(2)))
    assert found[0] == [10 * i for i in range(20)]


@jit(interpret=True)
def waits_for_a_peer(flag):
    while tl.atomic_load(flag, sem="acquire", scope="sys") == 0:
        pass


def test_an_interpreted_wait_for_a_dead_peer_ends() -> None:
    with settings().cpu.scope(wait_seconds=0.2), pytest.raises(errors.Deadlock) as caught:
        waits_for_a_peer[(1,)](np.zeros(1, np.int32))
    assert "it polls element 0 of argument 'flag'" in str(caught.value)


WAITS = """
signals = Signals.of(group, 4, seconds=3)
if rank == {dead}:
    sys.exit()
for _ in range(3):
    signals.barrier()
signals.check()
"""


def test_a_dead_rank_is_named_by_the_others(tmp_path: Path) -> None:
    printed = run_ranks(tmp_path, WAITS.format(dead=1), 3)
    expected = "rank {} has waited 3 s for rank 1, in a kernel [TW605]"
    assert [text.partition("\n")[0] for text in printed] == [
        expected.format(0), "", expected.format(2)
    ]  # fmt: skip


def test_a_wait_of_the_users_own_for_a_dead_rank_ends(tmp_path: Path) -> None:
    (tmp_path / "pings.py").write_text(
        f"import tilewright\nimport tilewright.language as tl\n{PING}"
    )
    printed = run_ranks(
        tmp_path,
        """
        from pings import ping
        table = peers(zeros(2, "int32", group), group).table
        tilewright.settings().cpu.wait_seconds = 0.3
        if rank == 0:
            ping[(1,)](table, np.zeros(20, np.int32), RANK=0)
        """,
        2,
    )
    assert "a program of 'ping' has waited for 0.3 s for another one" in printed[0]
    assert "pings.py:14:13 in ping" in printed[0] and printed[1] == ""


def test_signals_have_a_largest_group() -> None:
    class Large:
        rank, size = 0, 32

        def exchange(self, text: str) -> list[str]:
            return [text] * 32

    with pytest.raises(errors.WrongWorldSize, match="but signals allow one of 31"):
        Signals.of(Large())


# --- the emulated GPU, and PTX --------------------------------------------------------------------


def on_gpu(array: Any) -> OnGpu:
    return OnGpu(address(array), array.dtype, "emulated:0", array)


@pytest.mark.parametrize("name", ["one_shot_kernel", "two_shot_kernel"])
def test_two_emulated_gpus_add_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "examples" / "distributed")
    kernel: Any = getattr(importlib.import_module("all_reduce"), name)
    n, programs, block = 1504, 2, 256

    def prepared(group: Group) -> tuple[Any, ...]:
        buffers = peers(zeros(programs * 8 * block, "float32", group), group)
        x = np.random.default_rng(group.rank).normal(size=n).astype(np.float32)
        return Signals.of(group, programs, 100), buffers, x, np.zeros_like(x)

    def launch(rank: int, n: int) -> None:
        signals, buffers, x, out = ranks[rank]
        tables = [on_gpu(a) for a in (buffers.table, signals.pad, signals.table)]
        kernel[(programs,)](
            on_gpu(x), on_gpu(out), n, *tables, signals.timeout_ns, RANK=rank, WORLD=2,
            LANES=2, BLOCK=block, ROUND=block, num_warps=2,
        )  # fmt: skip

    def launched(rank: int) -> None:
        for _ in range(2):
            launch(rank, n)
        ranks[rank][0].check()

    with ThreadPoolExecutor(2) as pool:
        ranks = list(pool.map(prepared, ThreadGroup.ranks(2)))
    arrays = [a for s, b, x, out in ranks for a in (s.pad, s.table, b.table, b.tensor, x, out)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-3)
    try:
        with (
            emulator.accessible([(address(a), address(a) + a.nbytes) for a in arrays], 3),
            ThreadPoolExecutor(2) as pool,
        ):
            for rank in range(2):
                launch(rank, 0)  # compiles, which a launch that waits would not let the other do
            list(pool.map(launched, range(2)))
    finally:
        sys.setswitchinterval(interval)
    for _, _, _, out in ranks:
        np.testing.assert_array_equal(out, ranks[0][2] + ranks[1][2])


@needs_ptxas
@pytest.mark.parametrize("capability", [80, 90, 120])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(("name", "barriers"), [("one_shot_kernel", 1), ("two_shot_kernel", 2)])
def test_all_reduces_are_assembled(
    name: str, barriers: int, dtype: str, capability: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "examples" / "distributed")
    script: Any = importlib.import_module("all_reduce")
    kernel = compiled(
        getattr(script, name), f"*{dtype}/16 *{dtype}/16 i32/16 *i64/16 *i32/16 *i64/16 i64",
        capability, RANK=0, WORLD=2, LANES=2, BLOCK=4096, ROUND=4096, num_warps=8,
    )  # fmt: skip
    assert kernel.metadata.spills == 0
    assert count(kernel, "st.release.sys.global.b32") == barriers
    # The first look of each wait, and its loop.
    assert count(kernel, "ld.acquire.sys.global.b32") == 2 * barriers
    words = 4096 // 256 // (4 if dtype == "fp32" else 8)
    assert count(kernel, "st.global.v4.b32") >= 2 * words
    assert ".nc" not in kernel.asm["ptx"]


@jit
def hands_on(x, table, out, RANK: tl.constexpr):
    """Store a tile on a peer, and load the one that it has stored here."""
    i = tl.arange(0, 1024)
    theirs = tl.load(table + 1 - RANK).to(tl.pointer_type(tl.float32))
    mine = tl.load(table + RANK).to(tl.pointer_type(tl.float32))
    tl.store(theirs + i, tl.load(x + i))
    flag = tl.load(table + 3 - RANK).to(tl.pointer_type(tl.int32))
    tl.atomic_xchg(flag, 1, sem="release", scope="sys")
    own = tl.load(table + 2 + RANK).to(tl.pointer_type(tl.int32))
    while tl.atomic_cas(own, 1, 0, sem="acquire", scope="sys") != 1:
        pass
    tl.store(out + i, tl.load(mine + i))


@needs_ptxas
def test_flags_are_of_the_system_and_data_are_coherent() -> None:
    kernel = compiled(hands_on, "*fp32/16 *i64/16 *fp32/16", 90, RANK=0)
    assert count(kernel, "atom.release.sys.global.exch.b32") == 1
    assert count(kernel, "atom.acquire.sys.global.cas.b32") == 1
    text = kernel.asm["ptx"]
    assert ".nc" not in text and "cp.async" not in text
    before, after = text.split("atom.release.sys")
    # All threads have stored, then one releases; one acquires, then all threads load.
    assert "bar.sync" in before[before.rindex("st.global") :]
    assert after.index("atom.acquire.sys") < after.index("bar.sync") < after.index("st.global")
