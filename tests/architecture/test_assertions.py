"""Each test has an assertion in its own body: a reader need not know the checks of its helpers."""

import ast
from collections.abc import Iterator

from tests.architecture.gates import ROOT

_OF_PYTEST = {"raises", "warns", "fail"}


def _asserts(node: ast.AST) -> bool:
    """Whether a node is an `assert`, or calls `pytest.raises` or a helper named `assert_...`."""
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func).rpartition(".")[2]
    return called in _OF_PYTEST or called.lstrip("_").startswith("assert_")


def silent_tests(source: str) -> Iterator[str]:
    """The test functions of a file without an assertion in their own body."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            if not any(map(_asserts, ast.walk(node))):
                yield node.name


def test_each_test_shows_an_assertion() -> None:
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    assert [(str(p), name) for p in paths for name in silent_tests(p.read_text("utf-8"))] == []


def test_a_helper_that_asserts_says_so() -> None:
    shown = "def test_a():\n    assert_same(1, 1)\ndef test_b():\n    with pytest.raises(E): f()\n"
    assert list(silent_tests(shown + "def test_c():\n    check(1)\n")) == ["test_c"]
