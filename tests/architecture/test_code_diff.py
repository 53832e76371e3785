"""scripts/code_diff.py sees what differs between two compilations, and nothing else."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts import code_diff


def kept(folder: Path, kernel: str, **stages: str) -> None:
    folder.mkdir(exist_ok=True)
    code_diff._write(folder, kernel, stages)  # pyright: ignore[reportPrivateUsage]


def test_equal_code_gives_an_empty_report(tmp_path: Path) -> None:
    for side in ("base", "head"):
        kept(tmp_path / side, "add", ptx="a\nb", asm="c")
    base, head = (code_diff.read(tmp_path / side) for side in ("base", "head"))
    assert base == {("add", "ptx"): ["a\nb"], ("add", "asm"): ["c"]}
    assert code_diff.compare(base, head) == []


def test_a_changed_line_is_counted_and_shown(tmp_path: Path) -> None:
    kept(tmp_path / "base", "add", ptx="a\nb\nc", llir="x")
    kept(tmp_path / "head", "add", ptx="a\nd\ne\nc", llir="x")
    (found,) = code_diff.compare(*(code_diff.read(tmp_path / s) for s in ("base", "head")))
    assert (found.kernel, found.stage, found.lines) == ("add", "ptx", (1, 2))
    assert {"-b", "+d", "+e"} <= set(found.unified())


def test_a_kernel_on_one_side_only_differs(tmp_path: Path) -> None:
    kept(tmp_path / "head", "new", ptx="a")
    (found,) = code_diff.compare({}, code_diff.read(tmp_path / "head"))
    assert (found.kernel, found.lines) == ("new", (0, 1))


def test_kernels_of_one_name_are_compared_as_a_set(tmp_path: Path) -> None:
    """As dumps have them: the order in which tests compile says nothing."""
    base = {("k", "ptx"): ["a", "b", "b"]}
    assert code_diff.compare(base, {("k", "ptx"): ["b", "a", "b"]}) == []
    (found,) = code_diff.compare(base, {("k", "ptx"): ["a", "b"]})
    assert found.lines == (1, 0)


def test_dumps_of_the_compiler_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "add-0123"
    folder.mkdir()
    (folder / "add.ptx").write_text("a")
    (folder / "kernel.json").write_text("{}")
    assert code_diff.read(tmp_path) == {("add", "ptx"): ["a"]}


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
