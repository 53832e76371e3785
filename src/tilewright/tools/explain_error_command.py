"""`tilewright explain-error TW103`, also `tilewright explain TW103`: explain an error with an
example, from `error_catalogue.txt`."""

from __future__ import annotations

import argparse
import re
from functools import cache
from pathlib import Path

from tilewright.support import TilewrightError, errors
from tilewright.tools.command_output import fit

CATALOGUE = Path(__file__).with_name("error_catalogue.txt")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subcommand."""
    parser.add_argument("code", nargs="?", help="such as TW103; without it, all codes are listed")


def run(arguments: argparse.Namespace) -> int:
    """Print a section, or the list of codes. Errors: UnknownName."""
    classes = error_classes()
    if arguments.code is None:
        for code, error in classes.items():
            print(fit(f"{code}  {summary(error)}", " " * 7))
        return 0
    return show_page(arguments.code)


def show_page(name: str) -> int:
    """Print the section of a code, in either case. Errors: UnknownName."""
    classes, code = error_classes(), name.upper()
    if code not in classes:
        raise errors.UnknownName("error code", name, list(classes))
    error = classes[code]
    print(fit(f"{code}: {summary(error)}") + "\n")
    # Base classes have no message of their own.
    if error.template != "error":
        print(fit(f"    {_with_blanks(error.template)}", " " * 4) + "\n")
    print("\n\n".join(fit(part) for part in _paragraphs(sections()[code])))
    return 0


def _with_blanks(template: str) -> str:
    """A template of a message with `<name>` for each field."""
    return re.sub(r"\{(\w+)\}", r"<\1>", template)


def _paragraphs(section: str) -> list[str]:
    """The paragraphs and examples of a section; an example keeps its line breaks."""
    parts = re.split(r"(^```.*?^```$)", section, flags=re.MULTILINE | re.DOTALL)
    return [
        part
        for text in parts
        for part in ([text] if text.startswith("```") else text.strip().split("\n\n"))
        if part
    ]


def error_classes() -> dict[str, type[TilewrightError]]:
    """The class of each code, in the order of the codes."""
    found = [getattr(errors, name) for name in errors.__all__]
    classes = [c for c in found if isinstance(c, type) and issubclass(c, TilewrightError)]
    return {c.code: c for c in sorted(classes, key=lambda c: c.code)}


def summary(error: type[TilewrightError]) -> str:
    """The first sentence of a class's docstring, without those that describe its fields."""
    return re.split(r"(?<=\.)\s", error.__doc__ or "", maxsplit=1)[0].partition("\n")[0]


@cache
def sections() -> dict[str, str]:
    """The section of each code: the remedy, with an example."""
    _, *parts = re.split(r"^## (TW\d+)\n", CATALOGUE.read_text("utf-8"), flags=re.MULTILINE)
    return {code: text.strip() for code, text in zip(parts[::2], parts[1::2], strict=True)}
