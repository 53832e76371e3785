"""The budgets on the size of rooms and pipelines hold here, and planted faults exceed them."""

from pathlib import Path

import pytest

from scripts import budgets, code_size
from scripts.code_size import Lines, SizeBudgets
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.pipeline import Choices, front_pipeline, layout_pipeline

ONE = '"""One."""\n\nimport os\n\nx = os  # y\n'
"""One line of code; one of docstring and one comment."""


def write(root: Path, name: str, text: str) -> None:
    path = root / code_size.PACKAGE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def too_long(limits: dict[str, int]) -> list[str]:
    """The architectures whose pipelines have more steps than their budgets."""
    choices = {target: Choices(row_for(int(target.removeprefix("sm_")))) for target in limits}
    steps = {
        target: len(front_pipeline(choice).steps) + len(layout_pipeline(choice).steps)
        for target, choice in choices.items()
    }
    return [target for target, limit in limits.items() if steps[target] > limit]


def test_pipelines_hold_their_budgets() -> None:
    limits = dict(code_size.read_budgets(budgets.EXCEPTIONS).steps)
    assert "sm_90" in limits
    assert too_long(limits) == []
    assert too_long({"sm_90": 20}) == ["sm_90"]


def test_one_more_line_in_a_room_is_found(tmp_path: Path) -> None:
    for name in ("ir/a.py", "ir/more/b.py", "backends/cpu/c.py", "__init__.py"):
        write(tmp_path, name, ONE)
    limits = SizeBudgets({"ir": 2, "backends/cpu": 1, ".": 1}, 25, {})
    assert code_size.violations(tmp_path, limits) == []
    write(tmp_path, "ir/a.py", ONE + "z = x\n")
    (found,) = code_size.violations(tmp_path, limits)
    assert found.startswith("src/tilewright/ir has 3 lines of code, and its budget is 2: ")


def test_a_room_without_a_budget_and_a_budget_without_a_room_are_found(tmp_path: Path) -> None:
    write(tmp_path, "new/a.py", ONE)
    new, gone = code_size.violations(tmp_path, SizeBudgets({"gone": 9}, 25, {}))
    assert new.startswith("src/tilewright/new has 1 lines of code, and its budget is 0: ")
    assert gone == "budgets.toml: 'gone' is no room; remove it"


def test_too_little_prose_is_found(tmp_path: Path) -> None:
    write(tmp_path, "ir/a.py", "x = 1  # one\n" + "y = 1\n" * 4)
    (found,) = code_size.violations(tmp_path, SizeBudgets({"ir": 5}, 25, {}))
    assert "1 lines of comments and docstrings are 20.0% of code; at least 25 %" in found
    assert code_size.violations(tmp_path, SizeBudgets({"ir": 5}, 20, {})) == []


RAISED = """
prose_percent = 25
rooms = {{ ir = 10 }}
steps = {{ sm_90 = 2 }}
[[raises]]
{what}
{reason}
"""
ROOM, TARGET = 'room = "ir"\nlines = 5', 'target = "sm_90"\nsteps = 3'


def test_a_raise_needs_a_room_or_target_and_a_reason(tmp_path: Path) -> None:
    table = tmp_path / "budgets.toml"
    given = 'reason = "moved here"'
    table.write_text(RAISED.format(what=ROOM, reason=given), "utf-8")
    assert code_size.read_budgets(table) == SizeBudgets({"ir": 15}, 25, {"sm_90": 2})
    table.write_text(RAISED.format(what=TARGET, reason=given), "utf-8")
    assert code_size.read_budgets(table) == SizeBudgets({"ir": 10}, 25, {"sm_90": 5})
    unknown = ROOM.replace("ir", "ops"), TARGET.replace("9", "8")
    for what, reason in ((ROOM, ""), (ROOM, 'reason = " "'), *((u, given) for u in unknown)):
        table.write_text(RAISED.format(what=what, reason=reason), "utf-8")
        with pytest.raises(KeyError):
            code_size.read_budgets(table)


TEXT = '''"""Two lines
of docstring."""

from os import (
    path,
)


class A:
    """One."""

    x: int = 1
    """An attribute's."""

    def f(self) -> str:  # a comment
        # another

        return """
        code
        """
'''


def test_lines_are_counted_as_code_or_prose() -> None:
    assert code_size.lines_of(TEXT) == Lines(code=6, prose=6)
    assert code_size.lines_of("") == Lines()


def test_the_script_prints_rooms_and_total(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "ir/a.py", ONE)
    assert code_size.main([str(tmp_path)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows == [["ir", "1", "2", "200.0%"], ["total", "1", "2", "200.0%"]]
