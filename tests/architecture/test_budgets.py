"""The budget script finds files and functions that are too large, and stale exceptions."""

from pathlib import Path

import pytest

from scripts import budgets
from scripts.budgets import Exemption


def write(root: Path, name: str, lines: int) -> None:
    path = root / "src" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x = 1\n" * lines, "utf-8")


def function_of(lines: int, indent: str = "") -> str:
    return f"{indent}def f():\n" + f"{indent}    x = 1\n" * (lines - 1)


def test_limits_are_inclusive(tmp_path: Path) -> None:
    write(tmp_path, "full.py", 600)
    (tmp_path / "src" / "long_function.py").write_text(function_of(60), "utf-8")
    assert budgets.check(tmp_path, {}) == []


def test_finds_a_large_file(tmp_path: Path) -> None:
    write(tmp_path, "large.py", 601)
    assert budgets.check(tmp_path, {}) == [
        "src/large.py:1: src/large.py has 601 lines; the limit is 600"
    ]


def test_finds_a_long_method_and_a_long_nested_function(tmp_path: Path) -> None:
    text = "class A:\n" + function_of(61, "    ") + "\n\nif x:\n" + function_of(62, "    ")
    write(tmp_path, "a.py", 0)
    (tmp_path / "src" / "a.py").write_text(text, "utf-8")
    assert budgets.check(tmp_path, {}) == [
        "src/a.py:2: A.f has 61 lines; the limit is 60",
        "src/a.py:66: f has 62 lines; the limit is 60",
    ]


def test_finds_a_long_function_of_llvm_ir(tmp_path: Path) -> None:
    write(tmp_path, "a.py", 0)
    short, long = ("  ret void\n" * lines for lines in (58, 59))
    text = f"define void @f() {{\n{short}}}\n; g\ndefine internal ptr @g(ptr %x) {{\n{long}}}\n"
    (tmp_path / "src" / "a.ll").write_text(text, "utf-8")
    assert budgets.check(tmp_path, {}) == ["src/a.ll:62: @g has 61 lines; the limit is 60"]


def test_finds_a_long_function_of_c(tmp_path: Path) -> None:
    write(tmp_path, "a.py", 0)
    short, long = ("    g();\n" * lines for lines in (58, 59))
    text = f"void f(void) {{\n{short}}}\n// g\nstatic int *g(int x,\n    int y) {{\n{long}}}\n"
    (tmp_path / "src" / "a.c").write_text(text, "utf-8")
    assert budgets.check(tmp_path, {}) == ["src/a.c:62: g has 62 lines; the limit is 60"]


def test_generated_ir_has_no_budget(tmp_path: Path) -> None:
    write(tmp_path, "a.py", 0)
    (tmp_path / "src" / "a.ll").write_text("; Generated from a.c\n" + "; line\n" * 700, "utf-8")
    assert budgets.check(tmp_path, {}) == []


@pytest.mark.parametrize("name", ["utils.py", "CamelCase.py", "two-words.py"])
def test_finds_a_bad_file_name(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, 1)
    assert budgets.check(tmp_path, {}) == [f"src/{name}: name the file for one noun, in snake_case"]


@pytest.mark.parametrize(
    ("allowed", "complaint"),
    [
        (700, None),
        (699, "grown from 699 to 700"),
        (701, "shrunk to 700"),
    ],
)
def test_exceptions_may_only_shrink(tmp_path: Path, allowed: int, complaint: str | None) -> None:
    write(tmp_path, "a.py", 700)
    found = budgets.check(tmp_path, {"src/a.py": Exemption(allowed, "a table")})
    assert [complaint in violation for violation in found if complaint] == [True] * bool(complaint)
    assert bool(found) == bool(complaint)


def test_exceptions_name_something_and_have_a_reason(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    found = budgets.check(tmp_path, {"src/gone.py": Exemption(700, "a table")})
    assert found == ["budgets.toml: 'src/gone.py' names nothing; remove it"]
    table = tmp_path / "budgets.toml"
    table.write_text('[exceptions."src/a.py"]\nlines = 700\n', "utf-8")
    with pytest.raises(KeyError, match="reason"):
        budgets.read_exceptions(table)


def test_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "budgets.toml"
    table.write_text("prose_percent = 0\nrooms = {}\nsteps = {}\n", "utf-8")
    monkeypatch.setattr(budgets, "EXCEPTIONS", table)
    write(tmp_path, "a.py", 1)
    assert budgets.main([str(tmp_path)]) == 0
    write(tmp_path, "large.py", 601)
    assert budgets.main([str(tmp_path)]) == 1
    assert "src/large.py" in capsys.readouterr().out
