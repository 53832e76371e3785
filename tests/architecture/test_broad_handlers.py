"""Handlers that could catch a signal handler's exception are written `except synchronous(...)`.

The command line and the testing tools do not run user code next to them.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture import gates

BROAD = {"Exception", "OSError", "RuntimeError", "TimeoutError", "ValueError"}
SOURCES = gates.ROOT / "src" / "tilewright"
APART = ("tools", "testing")


def broad_handlers(text: str) -> Iterator[tuple[int, str]]:
    """Line and type of each handler for a broad class of exceptions."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ExceptHandler):
            continue
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        names = {kind.id for kind in kinds if isinstance(kind, ast.Name)}
        if node.type is None or names & BROAD:
            yield node.lineno, "" if node.type is None else ast.unparse(node.type)


def test_broad_handlers_leave_out_signal_handlers() -> None:
    found = [
        f"{path.relative_to(SOURCES)}:{line} {kind}"
        for path in sorted(SOURCES.rglob("*.py"))
        if path.relative_to(SOURCES).parts[0] not in APART
        for line, kind in broad_handlers(path.read_text("utf-8"))
    ]
    assert found == []


def test_a_planted_handler_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        "try:\n    pass\nexcept (KeyError, OSError):\n    pass\n"
        "try:\n    pass\nexcept synchronous(OSError):\n    pass\n"
        "try:\n    pass\nexcept:\n    pass\n"
    )
    assert list(broad_handlers(planted.read_text())) == [(3, "(KeyError, OSError)"), (11, "")]
