"""How many threads serve the share of the CPUs that a container has."""

import math
import os
from importlib import import_module
from multiprocessing import process
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilewright.support import thread_count, usable_cpus
from tilewright.support.usable_cpus import cpu_share


def shares(folder: Path, groups: str, files: dict[str, str]) -> float:
    folder.mkdir(exist_ok=True)
    (folder / "groups").write_text(groups)
    for name, text in files.items():
        path = folder / "mounted" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return cpu_share(folder / "groups", folder / "mounted")


@pytest.mark.parametrize(
    ("groups", "files", "share"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, math.inf),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "400000 100000\n"}, 4.0),
        ("0::/a\n", {"a/cpu.max": "800000 100000\n", "cpu.max": "200000 100000\n"}, 2.0),
        ("5:cpu,cpuacct:/d\n", {"cpu/d/cpu.cfs_quota_us": "50000", "cpu/d/cpu.cfs_period_us":
                                "100000"}, 0.5),
        ("5:cpu:/d\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, math.inf),
        ("0::/\n", {"cpu.max": "no numbers here\n"}, math.inf),
        ("what is this\n", {}, math.inf),
    ],
)  # fmt: skip
def test_the_least_share_of_all_groups_counts(
    tmp_path: Path, groups: str, files: dict[str, str], share: float
):
    assert shares(tmp_path, groups, files) == share


def test_systems_without_control_groups_limit_nothing(tmp_path: Path):
    assert cpu_share(tmp_path / "none", tmp_path) == math.inf


def test_a_thread_for_each_cpu_up_to_64(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    module = import_module("tilewright.support.usable_cpus")
    for cpus in (1, 2, 3, 16, 64):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=cpus: set(range(n)), raising=False)
        monkeypatch.setattr(module, "_cpu_share", lambda: math.inf)
        assert thread_count() == cpus
        share = shares(tmp_path / str(cpus), "0::/job\n", {"job/cpu.max": "250000 100000\n"})
        monkeypatch.setattr(module, "_cpu_share", lambda s=share: s)
        assert thread_count() == min(cpus, 3)


def test_a_daemon_of_multiprocessing_has_one_thread(monkeypatch: pytest.MonkeyPatch):
    daemon = SimpleNamespace(daemon=True)
    monkeypatch.setattr(process, "current_process", lambda: daemon)
    assert thread_count() == 1


def test_there_is_a_thread_and_no_more_than_cpus(monkeypatch: pytest.MonkeyPatch):
    assert 1 <= thread_count() <= len(usable_cpus())
    for share, threads in ((0.5, 1), (1e9, len(usable_cpus()))):
        module = import_module("tilewright.support.usable_cpus")
        monkeypatch.setattr(module, "_cpu_share", lambda s=share: s)
        assert thread_count() == threads
