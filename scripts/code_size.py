"""Budgets on the size of the package: lines of code of each room, its prose, steps of a pipeline.

    python scripts/code_size.py [ROOT]      # a table of ROOT/src/tilewright, room by room

Code is what is left of a file without blank lines, imports, comments and docstrings, so that
nobody saves on these. A docstring is a string that is a statement, also below an attribute. The
budgets are in `budgets.toml`; `scripts/budgets.py` checks those on lines.
"""

import ast
import io
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["PACKAGE", "Lines", "SizeBudgets", "lines_of", "read_budgets", "rooms", "violations"]

PACKAGE = "src/tilewright"
SPLIT_ROOMS = ("backends",)
"""Packages whose parts are rooms of their own."""

_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


@dataclass(frozen=True)
class Lines:
    """code: lines of code; prose: lines of comments and docstrings, blank ones not counted"""

    code: int = 0
    prose: int = 0

    def __add__(self, other: "Lines") -> "Lines":
        return Lines(self.code + other.code, self.prose + other.prose)


@dataclass(frozen=True)
class SizeBudgets:
    """rooms: lines of code of each, raises included; prose_percent: the least share of comments and
    docstrings, in percent of all code; steps: the most steps of a target's pipeline"""

    rooms: Mapping[str, int]
    prose_percent: int
    steps: Mapping[str, int]


def read_budgets(path: Path) -> SizeBudgets:
    """The budgets in a file; a raise without a reason, or of no room or target, is a KeyError."""
    table: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    allowed, steps = dict(table["rooms"]), dict(table["steps"])
    for row in table.get("raises", ()):
        if not str(row["reason"]).strip():
            raise KeyError("reason")
        if "target" in row:
            steps[row["target"]] += row["steps"]
        else:
            allowed[row["room"]] += row["lines"]
    return SizeBudgets(allowed, table["prose_percent"], steps)


def violations(root: Path, budgets: SizeBudgets) -> list[str]:
    """Rooms of the package below `root` that are too large, and too little prose."""
    found = rooms(root)
    texts = [
        f"{PACKAGE}/{room} has {found[room].code} lines of code, and its budget is "
        f"{budgets.rooms.get(room, 0)}: merge or delete, or add to `raises` why it has to grow"
        for room in found
        if found[room].code > budgets.rooms.get(room, 0)
    ]
    texts += [
        f"budgets.toml: '{room}' is no room; remove it" for room in budgets.rooms.keys() - found
    ]
    total = sum(found.values(), Lines())
    if total.prose * 100 < total.code * budgets.prose_percent:
        share = f"{total.prose} lines of comments and docstrings are {_percent(total)} of code"
        texts.append(f"{PACKAGE}: {share}; at least {budgets.prose_percent} % are wanted")
    return texts


def rooms(root: Path) -> dict[str, Lines]:
    """The lines of each room of the package below `root`, sorted by name."""
    package, found = root / PACKAGE, dict[str, Lines]()
    for room, lines in _files(package):
        found[room] = found.get(room, Lines()) + lines
    return dict(sorted(found.items()))


def _files(package: Path) -> Iterator[tuple[str, Lines]]:
    for path in sorted(package.rglob("*.py")):
        folders = path.relative_to(package).parts[:-1]
        depth = 2 if folders[:1] and folders[0] in SPLIT_ROOMS else 1
        yield "/".join(folders[:depth]) or ".", lines_of(path.read_text("utf-8"))


def lines_of(text: str) -> Lines:
    """The lines of one file of Python. A line of code with a comment counts as both."""
    imported, docstrings = set[int](), set[int]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported.update(_span(node))
        elif isinstance(node, ast.Expr) and _is_text(node.value):
            docstrings.update(_span(node))
    code, comments = set[int](), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    filled = {number for number, line in enumerate(text.splitlines(), 1) if line.strip()}
    code = (code - imported - docstrings) & filled
    return Lines(len(code), len((comments | docstrings) & filled))


def _span(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _percent(lines: Lines) -> str:
    return f"{lines.prose / max(1, lines.code):.1%}"


def main(arguments: list[str]) -> int:
    """Print the table."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[1]
    found = rooms(root)
    for room, lines in (*found.items(), ("total", sum(found.values(), Lines()))):
        print(f"{room:20} {lines.code:7,} {lines.prose:7,} {_percent(lines):>6}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
