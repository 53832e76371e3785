"""Examples of the public names, from `docs/reference/*.md`: one section for each name.

A page of names is a family, in the order in which the reference lists it. `tests/kernels` runs
each example; the site shows it on the page of its name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs/reference"
PRELUDE = """import numpy as np

import tilewright
import tilewright.language as tl
from tilewright import jit


"""
"""The first lines of each example's program."""

_PREFIXES = {
    "tl.": "tilewright.language",
    "tilewright.testing.": "tilewright.testing",
    "tilewright.": "tilewright",
}
_SECTION = re.compile(r"^## (\S+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^```(\w+)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """The example of one public name.

    module, name: the name and where it is; note: text before the example; needs: "gpu" for one that
    runs on a GPU alone; output: what the program prints
    """

    module: str
    name: str
    note: str
    needs: str
    code: str
    output: str

    @property
    def title(self) -> str:
        """The heading of its section: `tl.dot`."""
        prefix = {module: prefix for prefix, module in _PREFIXES.items()}[self.module]
        return prefix + self.name

    @property
    def program(self) -> str:
        """The whole program."""
        imports = re.match(r"((?:import|from) [^\n]*\n+)*", self.code)
        own = imports[0] if imports else ""
        return (own.rstrip() + "\n\n" if own else "") + PRELUDE + self.code[len(own) :]

    @property
    def markdown(self) -> str:
        """The program and its output as fenced blocks."""
        used = re.sub(r"^import tilewright\n", "", self.program, flags=re.MULTILINE)
        text = self.program if "tilewright." in self.code else used
        blocks = ["```python", text.rstrip(), "```"]
        if self.output:
            blocks += ["", "It prints:", "", "```text", self.output.rstrip(), "```"]
        elif self.needs:
            blocks += ["", "It needs an NVIDIA GPU."]
        return "\n".join([self.note, "", *blocks] if self.note else blocks)


@dataclass(frozen=True)
class Family:
    """A page of examples. title, summary: what its names have in common"""

    title: str
    summary: str
    examples: tuple[Example, ...]


@cache
def families() -> tuple[Family, ...]:
    """The pages, in the order of `docs/reference/order.txt`."""
    order = (FOLDER / "order.txt").read_text("utf-8").split()
    return tuple(_family((FOLDER / f"{name}.md").read_text("utf-8")) for name in order)


def examples() -> list[Example]:
    """All examples."""
    return [example for family in families() for example in family.examples]


def _family(text: str) -> Family:
    head, _, _ = text.partition("\n## ")
    title, _, summary = head.removeprefix("# ").partition("\n")
    found = tuple(_example(*section) for section in _SECTION.findall(text))
    return Family(title, summary.strip(), found)


def _example(title: str, body: str) -> Example:
    blocks = _FENCE.findall(body)
    code = next(text for language, _, text in blocks if language == "python")
    needs = next(needs for language, needs, _ in blocks if language == "python")
    output = next((text for language, _, text in blocks if language == "output"), "")
    note = body.partition("```")[0].strip()
    prefix = next(prefix for prefix in _PREFIXES if title.startswith(prefix))
    return Example(_PREFIXES[prefix], title.removeprefix(prefix), note, needs, code, output)
