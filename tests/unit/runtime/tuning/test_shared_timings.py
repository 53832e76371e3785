"""Timings that processes and machines share, and tables of them: nothing is lost or measured
twice."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.runtime.tuned import Clock, scaled
from tilewright.runtime import Config, TuningTable, kept_timings
from tilewright.runtime.tuning import timing_store
from tilewright.runtime.tuning.timing_store import StoredTimings
from tilewright.support import TilewrightWarning, errors, settings
from tilewright.support.remote_cache import shared_tier
from tilewright.tools.cli import main

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
MS = {16: 3.0, 32: 1.0}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILEWRIGHT_CPU_THREADS", "3")
    return tmp_path / "cache"


class AnyChoice(timing_store.Choice):
    """A choice without a kernel."""

    __slots__ = ()

    def name(self) -> str:
        return "kernel-" + "0" * 32


def choice() -> timing_store.Choice:
    about = {"kernel": "kernel", "key": "n=1", "target": "cpu", "source": "0"}
    nothing: Any = None
    return AnyChoice(nothing, 1, nothing, (), about)


def add_rounds(number: int, rounds: int) -> None:
    stored = StoredTimings(choice(), {})
    for turn in range(rounds):
        stored.add([Config({"BLOCK": turn, "writer": number})], [1.0])


@needs_fork
def test_processes_that_measure_at_once_lose_no_timing(cache: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=add_rounds, args=(number, 10)) for number in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    configs = [Config({"BLOCK": t, "writer": number}) for t in range(10) for number in range(8)]
    assert len(StoredTimings(choice(), {}).read(configs)) == 80
    (kept,) = kept_timings()
    assert len(kept.timings) == 80


def tune(clock: Clock, n: int = 7, **words: Any) -> Any:
    kernel = scaled(clock, **words)
    kernel[1](clock.out, n)
    return kernel


def test_a_machine_uses_the_timings_of_another(tmp_path: Path) -> None:
    remote = f"file://{tmp_path}/remote"
    first, second = Clock(MS), Clock({**MS, 64: 0.5})
    with settings().cache.scope(dir=tmp_path / "a", remote=remote, remote_trust=True):
        tune(first)
        tier = shared_tier(settings().cache)
        assert tier is not None and tier.flush(60)
    with settings().cache.scope(dir=tmp_path / "b", remote=remote, remote_trust=True):
        tune(second)
    assert (first.measured, second.measured) == ([16, 32], [64])
    assert second.out[0] == 64


def test_a_group_of_processes_publishes_one_object(tmp_path: Path) -> None:
    remote, configs = f"file://{tmp_path}/remote", [Config({"BLOCK": 1}), Config({"BLOCK": 2})]
    for number in range(3):
        ordered = configs if number else configs[::-1]
        with (
            settings().cache.scope(dir=tmp_path / "a", remote=remote, remote_trust=True),
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr(timing_store.Choice, "shared_name", lambda self: "kernel-1")
            patch.setattr(timing_store._Writer, "text", lambda number=number: f"1-{number}")
            StoredTimings(choice(), {}).add_all({c: [float(c.kwargs["BLOCK"])] for c in ordered})
            tier = shared_tier(settings().cache)
            assert tier is not None and tier.flush(60)
            with settings().cache.scope(dir=tmp_path / "b"):
                assert len(StoredTimings(choice(), {}).read(configs)) == 2
    assert len([*(tmp_path / "remote/timings/kernel-1").iterdir()]) == 1


def test_timings_without_trust_or_signature_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"secret")
    remote = f"file://{tmp_path}/remote"
    for name, trust in (
        ("a", {"remote_trust": True}),
        ("b", {"remote_trust": False}),
        ("c", {"remote_key": tmp_path / "key"}),
    ):
        clock = Clock(MS)
        with (
            pytest.warns(TilewrightWarning) if name != "a" else settings().cpu.scope(),
            settings().cache.scope(dir=tmp_path / name, remote=remote, **trust),
        ):
            tune(clock)
            tier = shared_tier(settings().cache)
            assert tier is not None and tier.flush(60)
        assert clock.measured == [16, 32]


def test_a_remote_that_is_down_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    clock = Clock(MS)
    remote = f"file://{tmp_path}/file/not-a-folder"
    start = time.perf_counter()
    with settings().cache.scope(dir=tmp_path / "a", remote=remote, remote_trust=True):
        with pytest.warns(TilewrightWarning, match="remote cache"):
            tune(clock)
            tier = shared_tier(settings().cache)
            assert tier is not None
            tier.flush(5)
    assert clock.measured == [16, 32]
    assert time.perf_counter() - start < 30


# --- tables ---------------------------------------------------------------------------------------


@pytest.fixture
def table(cache: Path, tmp_path: Path) -> Path:
    """A table of one row, and an empty cache."""
    tune(Clock(MS))
    assert main(["tuning", "export", str(tmp_path / "t.json")]) == 0
    for file in (cache / "autotune").iterdir():
        file.unlink()
    return tmp_path / "t.json"


def test_a_table_chooses_without_measuring(table: Path) -> None:
    clock = Clock({16: 1.0, 32: 3.0})
    with settings().autotuning.scope(tables=(table,)):
        tune(clock)
    assert clock.measured == []
    assert clock.out[0] == 32


def test_a_miss_is_measured_with_a_warning(table: Path) -> None:
    clock = Clock(MS)
    with settings().autotuning.scope(tables=(table,)):
        with pytest.warns(TilewrightWarning, match="no row .* n=8, float32, .* it is measured"):
            tune(clock, 8)
    assert clock.measured == [16, 32]


def test_a_miss_takes_the_first_configuration_if_that_is_chosen(table: Path) -> None:
    clock = Clock(MS)
    with settings().autotuning.scope(tables=(table,), fallback="first"):
        with pytest.warns(TilewrightWarning, match="its first configuration is used"):
            tune(clock, 8)
    assert (clock.measured, clock.out[0]) == ([], 16)


def test_a_miss_is_an_error_if_that_is_chosen(table: Path) -> None:
    with settings().autotuning.scope(tables=(table,), fallback="error"):
        with pytest.raises(errors.AutotunerError, match="no row of the tuning tables") as raised:
            tune(Clock(MS), 8)
    assert "TILEWRIGHT_TUNING_FALLBACK" in str(raised.value)


def test_a_row_of_another_version_of_the_kernel_is_a_miss(table: Path) -> None:
    members = json.loads(table.read_text())
    members["rows"][0]["source"] = "f" * 16
    table.write_text(json.dumps(members))
    with settings().autotuning.scope(tables=(table,), fallback="error"):
        with pytest.raises(errors.AutotunerError, match="version"):
            tune(Clock(MS))
    del members["rows"][0]["source"]  # of any version
    table.write_text(json.dumps(members))
    clock = Clock(MS)
    with settings().autotuning.scope(tables=(table,), fallback="error"):
        tune(clock)
    assert (clock.measured, clock.out[0]) == ([], 32)


def test_later_tables_override_earlier_ones(table: Path, tmp_path: Path) -> None:
    members = json.loads(table.read_text())
    (text,) = [text for text in members["rows"][0]["timings"] if "16" in text]
    members["rows"][0]["timings"] = {text: [0.1, 0.1, 0.1]}
    (tmp_path / "other.json").write_text(json.dumps(members))
    for files, expected in (
        ((table, tmp_path / "other.json"), 16),
        ((tmp_path / "other.json", table), 32),
    ):
        clock = Clock(MS)
        with settings().autotuning.scope(tables=files):
            tune(clock)
        assert (clock.measured, clock.out[0]) == ([], expected)
    words = ["tuning", "merge", str(tmp_path / "m.json"), str(table), str(tmp_path / "other.json")]
    assert main(words) == 0
    merged = TuningTable.load(tmp_path / "m.json")
    assert [*map(sorted, merged.rows.values())] == [
        sorted(TuningTable.load(table).rows.popitem()[1])
    ]
    assert [min(row, key=lambda t: row[t]) for row in merged.rows.values()] == [text]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "other", "rows": []}', "[" * 9999])
def test_a_file_that_is_no_table_is_an_error(tmp_path: Path, cache: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with settings().autotuning.scope(tables=(tmp_path / "t.json",)):
        with pytest.raises(errors.AutotunerError, match="is not a table of timings"):
            tune(Clock(MS))


def test_tables_are_a_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = (tmp_path / "a.json", tmp_path / "b.json")
    monkeypatch.setenv("TILEWRIGHT_TUNING_TABLES", os.pathsep.join(map(str, files)))
    assert settings().autotuning.tables == files


@pytest.mark.parametrize("words", [["export"], ["merge", "t.json"], ["export", "a", "b"]])
def test_wrong_commands_are_explained(cache: Path, capsys, words) -> None:
    assert main(["tuning", *words]) == 1
    assert "file" in capsys.readouterr().err
