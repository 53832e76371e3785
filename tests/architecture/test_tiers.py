"""Every test is in one tier, and the guard tier has a case of every test function."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

import pytest

from tests.architecture.gates import ROOT
from tests.tiers import pytest_plugin
from tests.tiers.selection import GUARD, MARKED, REST, Case, Share, read_shares, share_of, tiers

FILE = """
import pytest

@pytest.mark.parametrize("device", ["cpu", "emulated"])
@pytest.mark.parametrize("n", range(20))
def test_sampled(device, n): pass

@pytest.mark.parametrize("n", range(5))
def test_left_out(n): pass

@pytest.mark.torch
def test_tensors(): pass

@pytest.mark.gpu
def test_launch(): pass

def test_alone(): pass
"""
SHARES = (
    Share("test_file.py::test_sampled", 0.1, "many alike"),
    Share("test_file.py::test_left_out", 0, "takes minutes"),
)


@pytest.fixture(scope="module")
def tier_of() -> dict[str, str]:
    """The tier of each test of this checkout, by id."""
    command = [sys.executable, "-m", "tests.tiers", "--ids"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows = (line.partition(" ") for line in done.stdout.splitlines())
    return {nodeid: tier for tier, _, nodeid in rows}


def test_every_function_has_a_case_in_the_guard_tier(tier_of: dict[str, str]) -> None:
    found: dict[str, set[str]] = {}
    for nodeid, tier in tier_of.items():
        found.setdefault(nodeid.partition("[")[0], set()).add(tier)
    assert len(found) > 3000
    without = {name for name, kinds in found.items() if kinds & {REST} and GUARD not in kinds}
    assert [name for name in without if share_of(name, read_shares())] == []


def test_every_row_of_the_table_matches_tests(
    tier_of: dict[str, str],
) -> None:
    shares = read_shares()
    assert [row for row in shares if not 0 <= row.share <= 1 or not row.reason] == []
    assert max(Counter(row.prefix for row in shares).values()) == 1
    names = [nodeid for nodeid, tier in tier_of.items() if tier not in MARKED]
    assert [row for row in shares if not any(n.startswith(row.prefix) for n in names)] == []


def test_a_case_of_each_function_and_device_comes_first() -> None:
    cases = [Case(f"t.py::test[{n}-{d}]", d) for n in range(100) for d in ("cpu", "emulated")]
    found = tiers(cases, [Share("t.py", 1e-9, "many alike")])
    guarded = [nodeid for nodeid, tier in found.items() if tier == GUARD]
    assert sorted(nodeid.rpartition("-")[2] for nodeid in guarded) == ["cpu]", "emulated]"]
    assert found == tiers(reversed(cases), [Share("t.py", 1e-9, "many alike")])


def test_shares_are_those_of_the_longest_prefix() -> None:
    rows = [Share("a/", 0.5, "r"), Share("a/b.py", 0, "r")]
    assert [share_of(name, rows) for name in ("a/b.py::t", "a/c.py::t", "d.py::t")] == [0, 0.5, 1]


def names_of(pytester: pytest.Pytester, *words: str) -> list[str]:
    """The tests of the file that a command runs."""
    result = pytester.runpytest_inprocess("-p", "tests.tiers", "-n0", "-v", *words)
    return re.findall(r"test_file.py::(\S+) PASSED", result.stdout.str())


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with `FILE` and `SHARES`."""
    monkeypatch.setattr(pytest_plugin, "read_shares", lambda: SHARES)
    pytester.makepyfile(test_file=FILE)
    pytester.makeini("[pytest]\nmarkers =\n    torch\n    gpu\n")
    return pytester


def test_processes_of_a_run_have_its_tier(suite: pytest.Pytester) -> None:
    suite.makeconftest(f"""
        import sys
        sys.path.insert(0, {str(ROOT)!r})
        pytest_plugins = ("tests.tiers",)
        from tests.tiers import pytest_plugin
        pytest_plugin.read_shares = lambda: {SHARES!r}
        from tests.tiers.selection import Share
    """)
    result = suite.runpytest_subprocess("-n2", "-v")
    expected = names_of(suite)
    assert 1 < len(expected) < 15
    assert sorted(re.findall(r"PASSED test_file.py::(\S+)", result.stdout.str())) == sorted(
        expected
    )


def test_guard_tier_slices_and_marked_tests_are_the_whole_suite(suite: pytest.Pytester) -> None:
    parts = [names_of(suite), *(names_of(suite, "--slice", f"{k}/3") for k in (1, 2, 3))]
    parts += [names_of(suite, "-m", "torch"), names_of(suite, "-m", "gpu")]
    assert all(parts)
    assert Counter(name for part in parts for name in part) == Counter(names_of(suite, "--all"))
    assert "test_alone" in parts[0] and not any("left_out" in name for name in parts[0])
    assert len(parts[0]) < 15


@pytest.mark.parametrize("words", [["test_file.py"], ["-k", "file"], ["-m", "not gpu"]])
def test_named_tests_are_not_sampled(suite: pytest.Pytester, words: list[str]) -> None:
    found = names_of(suite, *words)
    assert len(found) >= 47
    assert set(names_of(suite, "--guard", *words)) < set(found)


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "1/0", "a/b"])
def test_a_slice_that_does_not_exist_is_a_mistake(suite: pytest.Pytester, text: str) -> None:
    result = suite.runpytest_inprocess("-p", "tests.tiers", "--slice", text)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--slice takes K/N with 1 <= K <= N, not '{text}'*"])
