"""Groups of ranks: their exchanges, and the errors of wrong, missing and disagreeing ranks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilewright.distributed import FolderGroup, Group, ThreadGroup, group_of, peers
from tilewright.distributed.rank_groups import torch_group
from tilewright.support import errors


def folder_ranks(folder: Path, size: int, timeout: float = 20) -> list[Group]:
    return [FolderGroup(folder, rank, size, timeout) for rank in range(size)]


def thread_ranks(_folder: Path, size: int, timeout: float = 20) -> list[Group]:
    return [*ThreadGroup.ranks(size, timeout)]


KINDS = pytest.mark.parametrize("ranks_of", [folder_ranks, thread_ranks])
Kind = Callable[..., list[Group]]


@KINDS
def test_every_rank_receives_the_texts_of_all(tmp_path: Path, ranks_of: Kind) -> None:
    def rank_main(group: Group) -> list[list[str]]:
        return [group.exchange(f"{count}: {group.rank}") for count in range(20)]

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(rank_main, ranks_of(tmp_path, 3)))
    expected = [[f"{count}: {rank}" for rank in range(3)] for count in range(20)]
    assert found == [expected] * 3
    assert len(list(tmp_path.iterdir())) <= 2 * 3  # those of the last exchanges


@KINDS
def test_a_missing_rank_is_named_after_the_timeout(tmp_path: Path, ranks_of: Kind) -> None:
    first, second, _ = ranks_of(tmp_path, 3, 0.2)
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(group.exchange, "") for group in (first, second)]
        told = [str(future.exception()) for future in found]
    for rank in range(2):
        assert told[rank].startswith(
            f"rank {rank} has waited 0.2 s for rank 2, in an exchange [TW605]\n"
            "  hint: see whether these ranks have failed"
        )


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_outside_its_group_is_an_error(tmp_path: Path, rank: int) -> None:
    with pytest.raises(
        errors.WrongRank, match=f"rank {rank} is outside its group, whose world size is 2"
    ):
        FolderGroup(tmp_path, rank, 2)


@pytest.mark.parametrize("make", [lambda: ThreadGroup.ranks(0), lambda: FolderGroup("/tmp", 0, 0)])
def test_an_empty_group_is_an_error(make: Callable[[], object]) -> None:
    with pytest.raises(errors.WrongWorldSize, match="the group has a world size of 0"):
        make()


def test_a_rank_that_two_processes_have_is_an_error(tmp_path: Path) -> None:
    first, second = (FolderGroup(tmp_path, 0, 2, 0.1) for _ in range(2))
    with pytest.raises(errors.MissingPeer):
        first.exchange("")
    with pytest.raises(errors.WrongRank, match="rank 0 is that of another process as well"):
        second.exchange("")


def test_another_world_size_is_an_error(tmp_path: Path) -> None:
    first, second = FolderGroup(tmp_path, 0, 2, 5), FolderGroup(tmp_path, 1, 3, 5)
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(group.exchange, "") for group in (first, second)]
        told = [str(future.exception()).partition("\n")[0] for future in found]
    assert told == [
        "rank 0 has a world size of 2, but rank 1 of 3 [TW602]",
        "rank 1 has a world size of 3, but rank 0 of 2 [TW602]",
    ]


def test_without_a_group_there_are_no_peers() -> None:
    for call in (group_of, lambda: peers([])):
        with pytest.raises(errors.NoGroup, match="there is no group of ranks"):
            call()


def test_the_default_group_of_torch_is_a_process_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Symmetric memory is that of a process group, so the default one is no None."""
    world = object()
    torch = SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        group=SimpleNamespace(WORLD=world),
        get_rank=lambda group: {world: 1}[group],
        get_world_size=lambda group: {world: 2}[group],
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(distributed=torch))
    monkeypatch.setitem(sys.modules, "torch.distributed", torch)
    group = group_of()
    assert torch_group(group) is world and torch_group(group_of(group)) is world
    assert (group.rank, group.size) == (1, 2)
    assert torch_group(ThreadGroup.ranks(1)[0]) is None
