"""Check the field's words: private words, openings of docstrings, figures of machines in code.

    python scripts/glossary.py [ROOM ...]        # src and docs, or the files below some rooms

`glossary.toml` lists the words, where they may not occur, and exceptions with their reason. Beyond
words, no docstring opens with "Of" or "What", and no line of `src` names a machine or library next
to a measured figure: figures belong to `docs/adr` and `benchmarks`.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("glossary.toml")
_OPENING = re.compile(r"(Of|What)\b")
_NAME = re.compile(
    r"\b([HAB]\d{2,3}s?|RTX|Zen ?\d|Xeon|EPYC|Graviton|Neoverse"
    r"|cuBLAS|cuDNN|MKL|OpenBLAS|oneDNN|torch|PyTorch|Triton|Inductor)\b"
)
_FIGURE = re.compile(r"\d ?(?:%|×|[uµnm]s\b|GB/s|TB/s|T?FLOPS?\b|times (?:as|faster|slower))")


@dataclass(frozen=True)
class Rule:
    """Words that may not occur below some folders, and what replaces them."""

    pattern: re.Pattern[str]
    instead: str
    rooms: tuple[str, ...]

    def covers(self, path: PurePosixPath) -> bool:
        """Whether a file, by its path from the root, is below one of the rooms."""
        return any(
            parent.match(room) and len(parent.parts) == room.count("/") + 1
            for parent in path.parents
            for room in self.rooms
        )


@dataclass(frozen=True)
class Allowed:
    """A part of a line whose words are right."""

    file: str
    text: str


@dataclass(frozen=True)
class Finding:
    """One occurrence: where it is and what is wrong."""

    path: str
    line: int
    text: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.problem}\n    {self.text.strip()}"


def main(arguments: list[str]) -> int:
    """Print each finding; the exit status is 1 if there is any."""
    rooms = tuple(argument.rstrip("/") for argument in arguments)
    findings = check(ROOT, tomllib.loads(TABLE.read_text("utf-8")))
    shown = [found for found in findings if not rooms or found.path.startswith(rooms)]
    for finding in shown:
        print(finding)
    print(f"{len(shown)} findings")
    return 1 if shown else 0


def check(root: Path, table: dict[str, Any]) -> list[Finding]:
    """All findings, by file and line; exceptions without use are findings too."""
    rules = [_rule(row) for row in table.get("rule", [])]
    allowed = [_allowed(row) for row in table.get("exception", [])]
    used: set[Allowed] = set()
    findings: list[Finding] = []
    for file in [*sorted((root / "src").rglob("*.py")), *sorted(_pages(root / "docs"))]:
        for finding in _in_file(file.relative_to(root).as_posix(), file.read_text("utf-8"), rules):
            reasons = [a for a in allowed if a.file == finding.path and a.text in finding.text]
            used.update(reasons)
            if not reasons:
                findings.append(finding)
    problem = "glossary.toml: no finding needs this exception"
    return findings + [Finding(a.file, 0, a.text, problem) for a in allowed if a not in used]


def _pages(docs: Path) -> Iterator[Path]:
    """Pages but decision records, which quote old words, and generated ones, written in src."""
    for page in docs.rglob("*.md"):
        folder = page.relative_to(docs).parts[0]
        if folder not in ("adr", "generated") and page.name != "renames.md":
            yield page


def _rule(row: dict[str, Any]) -> Rule:
    words = "|".join(row["words"])
    pattern = re.compile(rf"(?<![a-z])(?:{words})(?![a-z])", re.IGNORECASE)
    return Rule(pattern, row["instead"], tuple(row["rooms"]))


def _allowed(row: dict[str, Any]) -> Allowed:
    if not row["reason"]:
        raise ValueError(f"glossary.toml: an exception of {row['file']} has no reason")
    return Allowed(row["file"], row["text"])


def _in_file(path: str, text: str, rules: list[Rule]) -> Iterator[Finding]:
    covering = [rule for rule in rules if rule.covers(PurePosixPath(path))]
    for number, line in enumerate(text.splitlines(), 1):
        yield from (Finding(path, number, line, problem) for problem in _problems(line, covering))
        if path.endswith(".py") and _FIGURE.search(line) and _NAME.search(line):
            problem = "figures of machines and libraries belong to docs/adr"
            yield Finding(path, number, line, problem)
    if path.endswith(".py"):
        yield from _openings(path, text)


def _problems(line: str, rules: list[Rule]) -> Iterator[str]:
    # A capital within an identifier begins a word.
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", line)
    for rule in rules:
        found = rule.pattern.search(words)
        if found:
            yield f"'{found[0]}': say {rule.instead}"


def _openings(path: str, text: str) -> Iterator[Finding]:
    """Docstrings, also of attributes, that open with a fragment."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            continue
        words = node.value.value
        if isinstance(words, str) and _OPENING.match(words.lstrip()):
            problem = "a docstring opens with a noun phrase or an imperative"
            yield Finding(path, node.lineno, words.splitlines()[0], problem)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
