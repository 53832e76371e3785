"""Pages of the documentation site that code determines: public names, error codes.

`docs/conf.py` writes them into `docs/generated` before Sphinx reads its sources. Nothing there is
versioned.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from tilewright.support import TilewrightError
from tilewright.tools.explain_error_command import error_classes, sections, summary

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs/generated"
MODULES = ("tilewright", "tilewright.language", "tilewright.testing")
_FENCE = "``````"
ORPHAN = "---\norphan: true\n---\n\n"
"""Front matter of pages that only a table links. Every page repeats the whole table of contents in
its sidebar: with all names in it, the size of the site would grow with their square."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def public_names(module: str) -> list[str]:
    """The names that a module declares: its `__all__`, or those that its stub exports by name."""
    loaded = importlib.import_module(module)
    declared = getattr(loaded, "__all__", None)
    return sorted(set(declared or stub_names(Path(str(loaded.__file__) + "i").read_text("utf-8"))))


def stub_names(stub: str) -> list[str]:
    """The names that a stub assigns, annotates or imports as themselves."""
    return [name for node in ast.parse(stub).body for name in _names(node) if name != "*"]


def _names(node: ast.stmt) -> Iterator[str]:
    """The names that one statement of a stub declares."""
    match node:
        case ast.ImportFrom(names=names):
            yield from (alias.name for alias in names if alias.asname == alias.name)
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case _:
            return


# ---- public names --------------------------------------------------------------------------------


def name_page(module: str, name: str) -> str:
    """The page of one public name: its kind, signature, description and members."""
    value = getattr(importlib.import_module(module), name)
    if isinstance(value, ModuleType):
        return f"# {name}\n\nThe module `{value.__name__}`.\n\n{text_of(value)}\n"
    place = f"Module [{module}]({module}.md)"
    lines = [f"# {name}", "", place, "", f"{_FENCE}{{py:currentmodule}} {module}", _FENCE, ""]
    return "\n".join([*lines, *entry(name, value, "")])


def entry(name: str, value: object, owner: str) -> list[str]:
    """The directive that describes a value, with those of a class's members after it."""
    kind, arguments = described(value, bool(owner))
    full = f"{owner}.{name}" if owner else name
    lines = [f"{_FENCE}{{py:{kind}}} {full}{arguments}", "", text_of(value), _FENCE, ""]
    if isinstance(value, type) and not owner:
        for member, found in members(value):
            lines += entry(member, found, name)
    return lines


def described(value: object, is_member: bool) -> tuple[str, str]:
    """The kind of directive for a value, and its signature with parentheses or nothing."""
    if isinstance(value, property):
        return "property", ""
    if inspect.isclass(value):
        return ("exception" if issubclass(value, BaseException) else "class"), signature(value)
    if callable(value) and not is_member:
        return "function", signature(value) or "(*args, **kwargs)"
    function = getattr(value, "__func__", value)
    if callable(function):
        return "method", signature(function)
    return ("attribute" if is_member else "data"), ""


def signature(value: object) -> str:
    """The parameters and result of a callable; empty where Python has none."""
    try:
        text = str(inspect.signature(value))  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return ""
    return _ADDRESS.sub("", text).replace("\n", " ")


def text_of(value: object) -> str:
    """A value's own docstring, as Markdown; for plain data, its type and value."""
    written = inspect.getdoc(value) if _has_own_text(value) else None
    if written:
        return written
    if callable(value) or isinstance(value, property):
        return ""
    return f"`{type(value).__name__}`: `{_ADDRESS.sub('', repr(value)):.200}`"


def _has_own_text(value: object) -> bool:
    """Whether `value.__doc__` describes the value itself, rather than its class."""
    is_definition = isinstance(value, type | property | staticmethod | classmethod | ModuleType)
    return is_definition or inspect.isroutine(value) or "__doc__" in getattr(value, "__dict__", {})


def members(owner: type) -> list[tuple[str, object]]:
    """The public methods and properties that a class or its bases in this package define."""
    found: dict[str, object] = {}
    for base in reversed(owner.__mro__):
        if base.__module__.startswith("tilewright"):
            found |= {k: v for k, v in vars(base).items() if not k.startswith("_")}
    return [(name, found[name]) for name in sorted(found) if _is_method(found[name])]


def _is_method(value: object) -> bool:
    """Whether a class's attribute is a method or a property."""
    return inspect.isfunction(value) or isinstance(value, property | staticmethod | classmethod)


def module_index(module: str) -> str:
    """The page of a module: its description, and a table of its public names."""
    names = public_names(module)
    loaded = importlib.import_module(module)
    rows = [f"| [{n}]({module}.{n}.md) | {first_line(getattr(loaded, n))} |" for n in names]
    return "\n".join(
        [
            f"# {module}", "", f"{_FENCE}{{py:module}} {module}", _FENCE, "", text_of(loaded), "",
            "| name | |", "|---|---|", *rows, "",
        ]
    )  # fmt: skip


def first_line(value: object) -> str:
    """The first line of a value's description, for a cell of a table."""
    return text_of(value).partition("\n")[0].replace("|", "\\|")


# ---- error codes ---------------------------------------------------------------------------------


def error_page(error: type[TilewrightError]) -> str:
    """The page of one error: its meaning, message, hint, and a mistake with its remedy."""
    lines = [
        f"# {error.code}: {summary(error)}",
        "",
        f"Class `{error.__name__}`; [all codes](index.md)",
        "",
    ]
    if error.template != "error":
        lines += ["## Message", "", "```text", error.template, "```", ""]
    if error.hint_template:
        lines += ["## Hint", "", "```text", error.hint_template, "```", ""]
    return "\n".join([*lines, "## Example and remedy", "", sections()[error.code], ""])


def error_index() -> str:
    """The page of all error codes."""
    classes = error_classes()
    rows = [f"| [{code}]({code}.md) | {summary(error)} |" for code, error in classes.items()]
    text = inspect.getdoc(importlib.import_module("tilewright.support.errors")) or ""
    table = ["| code | mistake |", "|---|---|", *rows]
    return "\n".join(["# Error codes", "", text, "", *table, ""])


# ---- all pages -----------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """The text of each generated page, by its path in `FOLDER`."""
    found = {f"errors/{code}.md": error_page(error) for code, error in error_classes().items()}
    for module in MODULES:
        for name in public_names(module):
            found[f"api/{module}.{name}.md"] = name_page(module, name)
    found = {path: ORPHAN + text for path, text in found.items()}
    indexes = {f"api/{module}.md": module_index(module) for module in MODULES}
    return {**found, **indexes, "errors/index.md": error_index()}


def write(folder: Path = FOLDER) -> None:
    """Write the pages that changed, and delete those that are no longer generated."""
    wanted = {folder / path: text for path, text in pages().items()}
    for path in set(folder.rglob("*.md")) - set(wanted):
        path.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
