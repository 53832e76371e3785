"""`scripts/code_diff.py` finds changes of generated code, and nothing else."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scripts import code_diff
from scripts.code_text import strip
from scripts.commit_claims import Claims, newest_claims
from tests.corpus.variants import CORPUS

ROOT = code_diff.ROOT
ADD = code_diff.Request(kernels=("add",), sample=2)


def kept(folder: Path, kernel: str, **stages: str) -> None:
    code_diff._write(folder, kernel, stages)  # pyright: ignore[reportPrivateUsage]


def copy(folder: Path, file: str = "", old: str = "", new: str = "") -> str:
    """A checkout in `folder` that compiles the corpus, with one text in one file replaced."""
    for name in ("src", "tests/corpus", "tests/kernels"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "tests/__init__.py", folder / "tests/__init__.py")
    if file:
        text = (folder / file).read_text("utf-8")
        assert old in text
        (folder / file).write_text(text.replace(old, new, 1), "utf-8")
    return str(folder)


ELEMENTWISE = "src/tilewright/kernels/elementwise.py"
ADDITION = "tl.store(out_ptr + offsets, x + y, mask=mask)"


def test_equal_trees_in_different_folders_and_a_longer_docstring_are_equal(tmp_path: Path) -> None:
    head = copy(tmp_path / "head", ELEMENTWISE, '"""', '"""One more line.\n\n')
    found, kernels = code_diff.differences_of([str(ROOT)], head, ADD)
    assert found == []
    assert kernels > 10


def test_a_planted_change_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = copy(tmp_path / "head", ELEMENTWISE, ADDITION, ADDITION.replace("x + y", "x - y"))
    assert (
        code_diff.main([str(ROOT), head, "--kernels", "add", "--sample", "3", "--show", "ptx"]) == 1
    )
    assert "sub.f32" in capsys.readouterr().out


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the history")
def test_head_equals_head() -> None:
    assert code_diff.main(["HEAD", "HEAD", "--kernels", "add", "--sample", "5"]) == 0


def test_slots_hold_each_variant_once_whatever_else_a_revision_has() -> None:
    def labels(slot: int, corpus: Mapping[str, Sequence[Any]]) -> list[str]:
        parts = [code_diff.Part(index, 2, (), 3, slot) for index in range(2)]
        return [v.label for part in parts for _, v in part.variants(corpus)]

    slots = [labels(slot, {"users/scans": CORPUS["users/scans"][::3]}) for slot in range(3)]
    assert all(slots)
    assert sorted(sum(slots, [])) == sorted(v.label for v in CORPUS["users/scans"][::3])
    fewer = {"users/scans": CORPUS["users/scans"][3::3]}
    assert set(labels(1, fewer)) == set(slots[1]) - {CORPUS["users/scans"][0].label}


def test_the_slot_is_the_commit_s(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(stdout="00000000000000000000000000000000000000ff\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: found)
    assert (code_diff.slot_of("HEAD", 8), code_diff.slot_of("HEAD", 1)) == (7, 0)
    found.stdout = ""
    assert code_diff.slot_of(None, 8) == 0


def test_sides_without_a_common_kernel_are_not_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_diff, "differences_of", lambda *_: ([], 0))
    assert code_diff.main(["HEAD"]) == 1


def test_a_changed_line_is_counted_and_shown(tmp_path: Path) -> None:
    kept(tmp_path / "base", "add", ptx="a\nb\nc", llir="x")
    kept(tmp_path / "head", "add", ptx="a\nd\ne\nc", llir="x")
    (found,) = code_diff.compare(*(code_diff.read(tmp_path / s, "/") for s in ("base", "head")))
    assert (found.kernel, found.stage, found.lines, found.counts) == ("add", "ptx", (1, 2), True)
    assert {"-b", "+d", "+e"} <= set(found.unified())


@pytest.mark.parametrize("stage", ["ttir", "ttgir"])
def test_tile_ir_is_reported_and_does_not_count(stage: str) -> None:
    (found,) = code_diff.compare({("k", stage): ["a"]}, {("k", stage): ["b"]})
    assert not found.counts


def test_a_kernel_on_one_side_only_is_reported_and_does_not_count(tmp_path: Path) -> None:
    kept(tmp_path / "head", "new", ptx="a")
    (found,) = code_diff.compare({}, code_diff.read(tmp_path / "head", "/"))
    assert (found.kernel, found.lines, found.counts) == ("new", (0, 1), False)


def test_kernels_of_one_name_are_compared_as_a_set(tmp_path: Path) -> None:
    """Dumps have an arbitrary order, since tests compile in any order."""
    for number, text in enumerate(["b", "a", "b"]):
        kept(tmp_path / f"part{number}", "k", ptx=text)
    code = code_diff.read(tmp_path, "/")
    assert code_diff.compare({("k", "ptx"): ["a", "b"]}, code) == []
    (found,) = code_diff.compare(code, {("k", "ptx"): ["a"]})
    assert found.lines == (1, 0)


def test_dumps_of_the_compiler_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "add-0123"
    folder.mkdir()
    (folder / "add.ptx").write_text("a")
    (folder / "kernel.json").write_text("{}")
    assert code_diff.read(tmp_path, "/") == {("add", "ptx"): ["a"]}


def test_sass_is_counted_by_instruction() -> None:
    sass = "  /*0000*/   LDC R1, c[0x0][0x28] ;\n  /*0010*/ @!P0 LDC R2, c ;\n  /*0020*/ EXIT ;"
    kernel = SimpleNamespace(
        metadata=SimpleNamespace(registers=8, spills=0, shared=16), asm={"sass": sass}
    )
    counters = code_diff._counters(kernel)  # pyright: ignore[reportPrivateUsage]
    assert counters.splitlines() == ["registers 8", "spills 0", "shared 16", "EXIT 1", "LDC 2"]


def test_a_revision_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        code_diff.main([])
    assert "name the revision" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stage", "text", "stripped"),
    [
        ("llir", "%1 = add i32 %0, 1, !dbg !7\n!7 = !DILocation(line: 3, scope: !2)",
         "%1 = add i32 %0, 1"),
        ("llir", "br label %1, !llvm.loop !9\n!9 = distinct !{!9, !10}",
         "br label %1, !llvm.loop !node\n!node = distinct !{!node, !node}"),
        ("ptx", "$L__tmp1:\n\t.loc 1 2 3\n\tret;\n\t.section\t.debug_info\n{\n.b8 1\n}", "\tret;"),
        ("asm", '\t.file 1 "a"\n.Ltmp3:\n\tret\n\t.section .debug_line,""\n.L1:\n\t.text\n\tnop',
         "\tret\n\t.text\n\tnop"),
        ("ttir", 'cf.assert {text = "/tree/k.py:12:3"}', 'cf.assert {text = "<root>/k.py"}'),
    ],
)  # fmt: skip
def test_line_tables_debug_sections_and_paths_are_stripped(
    stage: str, text: str, stripped: str
) -> None:
    assert strip(stage, text, "/tree") == stripped


def repository(folder: Path, messages: list[str]) -> Path:
    """A repository with a commit for each message."""
    git = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run([*git, "init", "-q"], check=True)
    for message in messages:
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", message], check=True)
    return folder


SAME = "x\n\nGenerated-code: unchanged"


def test_the_newest_row_of_claims_is_found(tmp_path: Path) -> None:
    messages = ["first", SAME, "y\n\nGenerated-code: changed (why)", SAME, SAME, "last"]
    place = repository(tmp_path, messages)
    names = subprocess.run(
        ["git", "-C", str(place), "log", "--format=%H"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert newest_claims(place) == Claims(base=names[3], commits=[names[2], names[1]])


def test_a_base_that_does_not_compile_gives_way_to_the_first_that_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = copy(tmp_path / "broken", ELEMENTWISE, "import", "no syntax")
    bases, head = [broken, str(ROOT)], copy(tmp_path / "head")
    found, kernels = code_diff.differences_of(bases, head, ADD)
    assert found == []
    assert kernels > 10
    assert f"{broken} does not compile" in capsys.readouterr().out
    with pytest.raises(code_diff.DoesNotCompile):
        code_diff.differences_of(bases, broken, ADD)


def test_a_history_without_claims_has_none(tmp_path: Path) -> None:
    assert newest_claims(repository(tmp_path, ["first", "second"])) is None
