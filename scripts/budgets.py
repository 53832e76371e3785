"""Check the budgets on size: of files, functions and the package's rooms; and names of files.

    python scripts/budgets.py [ROOT]        # checks ROOT/src, ROOT/tests, ROOT/scripts ...

Files and functions are of Python, C and hand-written LLVM IR. Complexity (10) and nesting (3) are
ruff's C901 and PLR1702. `budgets.toml` has the budgets of rooms (`code_size.py`), and lists what
may exceed the other budgets, with its present size and the reason; a size there may only shrink, so
an entry that is larger than the code needs is a violation as well.
"""

import ast
import itertools
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts.code_size import read_budgets  # noqa: E402
from scripts.code_size import violations as size_violations  # noqa: E402

FILE_LINES = 600
FUNCTION_LINES = 60
CHECKED = ("src", "tests", "scripts", "benchmarks", "examples")
EXCEPTIONS = Path(__file__).with_name("budgets.toml")
_FILE_NAME = re.compile(r"[a-z_][a-z0-9_]*\.(py|c|h|ll)")
_IR_FUNCTION = re.compile(r"^define [^@]*(@[\w.]+)\(.*?^\}", re.MULTILINE | re.DOTALL)
C_FUNCTION = re.compile(
    r"^[^\s/#}][^\n;{}=]*?\b(\w+)\([^;{}]*\) \{\n.*?^\}", re.MULTILINE | re.DOTALL
)
_NATIVE_FUNCTIONS = {".c": C_FUNCTION, ".h": C_FUNCTION, ".ll": _IR_FUNCTION}
_GENERATED = "; Generated from "
_BANNED_NAMES = {"utils.py", "util.py", "helpers.py", "misc.py", "common.py"}

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Size:
    """How large a file, or a function in it, is. `key` is what `budgets.toml` calls it."""

    key: str
    line: int
    lines: int
    limit: int


@dataclass(frozen=True)
class Exemption:
    """What `budgets.toml` allows for one key."""

    lines: int
    reason: str


def main(arguments: list[str]) -> int:
    """Print each violation; the exit status is 1 if there is any."""
    root = Path(arguments[0]) if arguments else EXCEPTIONS.parent.parent
    violations = check(root, read_exceptions(EXCEPTIONS))
    violations += size_violations(root, read_budgets(EXCEPTIONS))
    for violation in violations:
        print(violation)
    return 1 if violations else 0


def read_exceptions(path: Path) -> dict[str, Exemption]:
    """The exemptions in `path` by key; an entry without a reason is a KeyError."""
    table = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    rows = table.get("exceptions", {})
    return {key: Exemption(int(row["lines"]), str(row["reason"])) for key, row in rows.items()}


def check(root: Path, exceptions: dict[str, Exemption]) -> list[str]:
    """All violations below `root`, one line of text each."""
    violations: list[str] = []
    unused = dict(exceptions)
    for path in source_files(root):
        violations += _name_violations(path, root)
        for size in measure(path, root):
            violations += _size_violations(size, unused.pop(size.key, None))
    violations += [f"budgets.toml: '{key}' names nothing; remove it" for key in unused]
    return violations


def source_files(root: Path) -> Iterator[Path]:
    """Every file of Python, C or hand-written LLVM IR in the checked folders of `root`, sorted."""
    for folder, suffix in itertools.product(CHECKED, (".py", *_NATIVE_FUNCTIONS)):
        for path in sorted((root / folder).rglob(f"*{suffix}")):
            if suffix != ".ll" or not path.read_text("utf-8").startswith(_GENERATED):
                yield path


def measure(path: Path, root: Path) -> Iterator[Size]:
    """The size of the file and of each function in it, methods and nested functions included."""
    text = path.read_text("utf-8")
    name = path.relative_to(root).as_posix()
    yield Size(name, 1, text.count("\n"), FILE_LINES)
    if path.suffix in _NATIVE_FUNCTIONS:
        yield from _native_functions(name, text, _NATIVE_FUNCTIONS[path.suffix])
        return
    for qualified, node in _functions(ast.parse(text), ""):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        yield Size(f"{name}::{qualified}", node.lineno, lines, FUNCTION_LINES)


def _native_functions(name: str, text: str, pattern: re.Pattern[str]) -> Iterator[Size]:
    """Functions of C or LLVM IR, up to the brace that closes them."""
    for match in pattern.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Size(f"{name}::{match[1]}", line, match[0].count("\n") + 1, FUNCTION_LINES)


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, FunctionNode]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue  # holds no statement
        if isinstance(child, FunctionNode):
            yield prefix + child.name, child
        named = isinstance(child, FunctionNode | ast.ClassDef)
        yield from _functions(child, f"{prefix}{child.name}." if named else prefix)


def _name_violations(path: Path, root: Path) -> list[str]:
    if _FILE_NAME.fullmatch(path.name) and path.name not in _BANNED_NAMES:
        return []
    return [f"{path.relative_to(root).as_posix()}: name the file for one noun, in snake_case"]


def _size_violations(size: Size, exemption: Exemption | None) -> list[str]:
    where = f"{size.key.partition('::')[0]}:{size.line}: {size.key.rpartition('::')[2]}"
    if exemption is None:
        if size.lines <= size.limit:
            return []
        return [f"{where} has {size.lines} lines; the limit is {size.limit}"]
    if size.lines > exemption.lines:
        return [f"{where} has grown from {exemption.lines} to {size.lines} lines"]
    if size.lines < exemption.lines:
        return [f"{where} has shrunk to {size.lines} lines; say so in budgets.toml, or remove it"]
    return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
