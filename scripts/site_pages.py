"""Pages of the documentation site that code determines: public names, error codes.

`docs/conf.py` writes them into `docs/generated` before Sphinx reads its sources. Nothing there is
versioned.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from scripts.reference_examples import Example, examples, families
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
_QUOTED = re.compile(r"(: |-> )'([^']*)'")
"""An annotation that is kept as text."""

_CODES = {error.__name__: code for code, error in error_classes().items()}
_ERROR_NAME = re.compile(rf"(?<![\w`.\[/])(?:{'|'.join(_CODES)})(?![\w`\]/]|\.\w)")


def public_names(module: str) -> list[str]:
    """The names that a module declares: its `__all__`, or those that its stub exports by name."""
    loaded = importlib.import_module(module)
    declared = getattr(loaded, "__all__", None)
    return sorted(set(declared or stub_names(Path(str(loaded.__file__) + "i").read_text("utf-8"))))


def stub_names(stub: str) -> list[str]:
    """The public names that a stub assigns, annotates, defines or imports as themselves."""
    names = (name for node in ast.parse(stub).body for name in _names(node))
    return [name for name in names if name != "*" and (name == "__version__" or name[0] != "_")]


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
    """The page of one public name: signature, description, example, members."""
    value = getattr(importlib.import_module(module), name)
    example = _examples()[module, name]
    place = f"A name of [{module}]({module}.md)."
    if isinstance(value, ModuleType):
        lines = [f"The module `{value.__name__}`. {place}", "", text_of(value), ""]
    else:
        lines = [place, "", f"{_FENCE}{{py:currentmodule}} {module}", _FENCE, ""]
        lines += entry(name, value, "", example.title)
    lines = [f"# {example.title}", "", *lines, "## Example", "", example.markdown, ""]
    if module == "tilewright.language" and "kernel[" in example.code:
        lines += ["## Where it runs", "", support(example.title), ""]
    found = members(value) if isinstance(value, type) else []
    if found:
        lines += ["## Methods and properties", ""]
    for member, attribute in found:
        lines += entry(member, attribute, name)
    return "\n".join(lines)


EVERYWHERE = (
    "in the interpreter, on CPUs and on the emulated GPU, and is assembled for sm_80, sm_90a and "
    "sm_120a"
)


def support(title: str) -> str:
    """Where a name of the language runs, and the dtypes of its row in the support matrix."""
    text = f"The example runs {EVERYWHERE}."
    cells = _support_rows().get(title)
    if cells is None:
        return text
    taken = [f"`{dtype}`" for dtype, cell in cells.items() if cell == "yes"]
    partly = [f"`{dtype}` ({cell})" for dtype, cell in cells.items() if cell.startswith("not")]
    codes = sorted({code for cell in cells.values() for code in re.findall(r"TW\d+", cell)})
    links = ", ".join(f"[{code}](../errors/{code}.md)" for code in codes)
    others = f" Other dtypes are errors: {links}." if codes else ""
    matrix = "[support matrix](../../support.md)"
    return f"{text} It takes {', '.join([*taken, *partly])} ({matrix}).{others}"


@cache
def _support_rows() -> dict[str, dict[str, str]]:
    """The cells of the support matrix, by op and dtype."""
    lines = (ROOT / "docs/support.md").read_text("utf-8").splitlines()
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    head, _, *rows = table
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


@cache
def _examples() -> dict[tuple[str, str], Example]:
    return {(example.module, example.name): example for example in examples()}


def entry(name: str, value: object, owner: str, alias: str = "") -> list[str]:
    """The directive that describes a value.

    owner: the class that has it, or ""; alias: another name in the index, as `tl.dot`
    """
    kind, arguments = described(value, bool(owner))
    full = f"{owner}.{name}" if owner else name
    options = [f":canonical: {alias}", ""] if alias.startswith("tl.") else []
    directive = f"{_FENCE}{{py:{kind}}} {full}{arguments}"
    return [directive, *options, "", described_text(value), _FENCE, ""]


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
    return _QUOTED.sub(r"\1\2", _ADDRESS.sub("", text).replace("\n", " "))


def described_text(value: object) -> str:
    """A value's description, with a list of parameters, and links to errors."""
    text = text_of(value)
    names = "|".join(map(re.escape, _parameters(value)))
    if names:
        start = rf"(?:^|;[ \n]|(?<=[.:])[ \n]|\n)((?:{names})(?:(?:,\s| and )(?:{names}))*): "
        text = re.sub(start, r"\n\n* **\1**: ", text)
    text = re.sub(r"(?:^|(?<=[.:])[ \n]|\n)Errors: ", "\n\n**Errors**: ", text)
    return _ERROR_NAME.sub(lambda found: _error_link(found[0]), text).strip()


def _parameters(value: object) -> list[str]:
    """Names of the parameters of a callable, and of the fields of a class."""
    try:
        return list(inspect.signature(value).parameters)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return []


def _error_link(name: str) -> str:
    return f"[{name}](../errors/{_CODES[name]}.md)"


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
    """The page of a module: its description, and its public names by family."""
    loaded = importlib.import_module(module)
    lines = [f"# {module}", "", f"{_FENCE}{{py:module}} {module}", _FENCE, "", text_of(loaded), ""]
    for family in families():
        names = [example.name for example in family.examples if example.module == module]
        rows = [f"| [{n}]({module}.{n}.md) | {first_line(getattr(loaded, n))} |" for n in names]
        if rows:
            lines += [f"## {family.title}", "", family.summary, "", "| name | |", "|---|---|"]
            lines += [*rows, ""]
    return "\n".join(lines)


def first_line(value: object) -> str:
    """The first line of a value's description, for a cell of a table."""
    return text_of(value).partition("\n")[0].replace("|", "\\|")


# ---- error codes ---------------------------------------------------------------------------------


def error_page(error: type[TilewrightError]) -> str:
    """The page of one error: its reason, a mistake with its exact message, and the remedy."""
    lines = [f"# {error.code}: {summary(error).removesuffix('.')}", ""]
    lines += [f"{_FENCE}{{py:exception}} tilewright.errors.{error.__name__}", _FENCE, ""]
    lines += ["[All codes](index.md)", ""]
    section = sections()[error.code]
    reason, _, example = section.partition("\n\n")
    mistake, _, remedy = example.partition("\n\nInstead: ")
    if not remedy:
        return "\n".join([*lines, section, ""])
    lines += ["## Why", "", reason, "", "## A kernel with the mistake", ""]
    lines += [mistake.replace("\n\n```text\n", "\n\n## Its message\n\n```text\n"), ""]
    if "## Its message" not in lines[-2]:
        lines += ["## The message", "", "```text", error.template, "```", ""]
    return "\n".join([*lines, "## The remedy", "", remedy[0].upper() + remedy[1:], ""])


def error_index() -> str:
    """The page of all error codes."""
    classes = error_classes()
    rows = [
        f"| [{code}]({code}.md) | {summary(error)} | {_tested(sections()[code])} |"
        for code, error in classes.items()
    ]
    written = inspect.getdoc(importlib.import_module("tilewright.support.errors")) or ""
    text = "\n\n".join(written.split("\n\n")[:2])  # the rest is for who raises errors
    table = ["| code | mistake | program run by tests |", "|---|---|---|", *rows]
    note = (
        "The programs on the pages have the names `tilewright`, `jit`, `tl`, `np`, and `x`, an "
        "array of 16 float32. Tests run each and compare its message, but for those that need "
        "another installation; their pages say so."
    )
    return "\n".join(["# Error codes", "", text, "", note, "", *table, ""])


def _tested(section: str) -> str:
    """Whether tests run the programs of a code's section: yes, or why not; a family has none."""
    if found := re.search(r"^Not run: (.*)$", section, re.MULTILINE):
        return found[1]
    return "yes" if "\nInstead: " in section else "a family"


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
        path.unlink(missing_ok=True)
    for path, text in wanted.items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Another build may read the page at the same time.
            part = path.with_suffix(f".{os.getpid()}")
            part.write_text(text, "utf-8")
            part.replace(path)


def llms_text(titles: dict[str, str]) -> str:
    """`llms.txt` of the site: its pages with their titles, by folder, for programs that read."""
    lines = ["# Tilewright", "", "> " + " ".join(tilewright_summary().split()), ""]
    folders: dict[str, list[str]] = {}
    for page, title in sorted(titles.items()):
        folders.setdefault(page.rpartition("/")[0] or "start", []).append(
            f"- [{title}]({page}.html)"
        )
    for folder, rows in folders.items():
        lines += [f"## {folder.removeprefix('generated/')}", "", *rows, ""]
    return "\n".join(lines)


def tilewright_summary() -> str:
    """The first paragraph of the start page."""
    return (ROOT / "docs/index.md").read_text("utf-8").split("\n\n")[1]
