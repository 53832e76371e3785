"""The text of a golden file: reading it, and writing it again with what really happens."""

from __future__ import annotations

import re
from dataclasses import field

from tilewright.support.data_class import dataclass

_HEADER = re.compile(r"//\s*(run|args|grid):\s*(.*?)\s*$")
_ERROR = re.compile(r"\s*// error: (.*)$")
_SEPARATOR = " // error: "
EXPECT = "// expect"


class BadGolden(Exception):
    """A golden file that does not follow the format."""


Errors = dict[int, list[str]]
"""Messages by line of the file, from 1."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case leads to: the text after the passes, or messages by line."""

    output: str = ""
    errors: Errors = field(default_factory=Errors)


@dataclass(frozen=True, slots=True)
class Case:
    """One golden file."""

    passes: str
    """Text of the pipeline; `verify` and `parse` stand for one without passes."""
    args: dict[str, float]
    grid: tuple[int, ...]
    source: str
    """The lines above `// expect`, so that line numbers are those of the file."""
    expected: Outcome
    output_line: int
    """Line of the file on which the expected output starts."""

    def written(self, actual: Outcome) -> str:
        """The text of the file, if `actual` were expected."""
        lines = [_ERROR.sub("", line) for line in self.source.splitlines()]
        for number, messages in actual.errors.items():
            lines[number - 1] += "".join(_SEPARATOR + message for message in messages)
        text = "\n".join(lines).rstrip("\n") + "\n"
        return text if actual.errors else f"{text}{EXPECT}\n{actual.output}"


def read_case(text: str) -> Case:
    """The case that a file describes; raises BadGolden."""
    lines = text.splitlines()
    at = lines.index(EXPECT) if EXPECT in lines else len(lines)
    source, output = lines[:at], lines[at + 1 :]
    header = {match[1]: match[2] for line in source if (match := _HEADER.match(line))}
    if "run" not in header:
        raise BadGolden("the first line must say what to run: // run: <passes>")
    errors = {n: messages for n, line in enumerate(source, 1) if (messages := _messages(line))}
    expected = Outcome("\n".join(output) + "\n" if output else "", errors)
    return Case(
        header["run"],
        _args(header.get("args", "")),
        # Two programs by default, so that a wrong program id shows.
        _grid(header.get("grid", "2")),
        "\n".join(source) + "\n",
        expected,
        at + 2,
    )


def _messages(line: str) -> list[str]:
    match = _ERROR.search(line)
    return match[1].split(_SEPARATOR) if match else []


def _args(text: str) -> dict[str, float]:
    args: dict[str, float] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, separator, value = part.partition("=")
        if not separator:
            raise BadGolden(f"expected name = number in args, found '{part}'")
        number = value.strip()
        args[name.strip().lstrip("%")] = (
            int(number) if number.lstrip("-").isdigit() else float(number)
        )
    return args


def _grid(text: str) -> tuple[int, ...]:
    return tuple(int(extent) for extent in text.split(","))
