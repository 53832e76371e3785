"""Removal of Inductor's configurations of a template that are equal on a CPU.

Inductor measures matmuls, convolutions and attention by templates, each with some twenty
configurations. On a CPU a program is one thread, so configurations that differ only in warps or
stages have equal code: those of a matmul have five distinct codes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tilewright.support import import_late

_TEMPLATE = "TritonTemplateCaller"
"""The interface of Inductor's template with a configuration."""

_MEANINGLESS = re.compile(r",? *num_(?:warps|stages)=\d+")


def distinct(choices: Sequence[Any]) -> list[Any]:
    """The choices; for templates on a CPU, the first with each code."""
    first: dict[object, Any] = {}
    for choice in choices:
        first.setdefault(_code_of(choice), choice)
    return list(first.values())


def _code_of(choice: Any) -> object:
    names = [base.__name__ for base in type(choice).__mro__]
    if _TEMPLATE not in names or choice.layout.device.type != "cpu":
        return id(choice)
    template = choice.name.rpartition("_")[0]  # a number follows it
    return template, _MEANINGLESS.sub("", choice.description)


def register() -> None:
    """Make Inductor measure only distinct choices. Needs torch."""
    selection: Any = import_late("torch._inductor.select_algorithm")
    functions = selection.get_algorithm_selector_cache().preprocessing_fns
    if distinct not in functions:
        selection.add_preprocessing_fn(distinct)
