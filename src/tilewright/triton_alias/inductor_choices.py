"""Which of Inductor's configurations of a template are one on a CPU.

Inductor measures products, convolutions and attention by templates, each with some twenty
configurations. On a CPU a program is one thread, so that those with other warps or stages only are
the same code: of the twenty of a product, four.

Needs torch.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any

_selection: Any = importlib.import_module("torch._inductor.select_algorithm")

_MEANINGLESS = re.compile(r",? *num_(?:warps|stages)=\d+")


def distinct(choices: Sequence[Any]) -> list[Any]:
    """The choices, of templates of a CPU the first of those that are the same code."""
    first: dict[object, Any] = {}
    for choice in choices:
        first.setdefault(_code_of(choice), choice)
    return list(first.values())


def _code_of(choice: Any) -> object:
    is_template = isinstance(choice, _selection.TritonTemplateCaller)
    if not is_template or choice.layout.device.type != "cpu":
        return id(choice)
    template = choice.name.rpartition("_")[0]  # behind it stands a number
    return template, _MEANINGLESS.sub("", choice.description)


def register() -> None:
    """Have Inductor measure distinct choices alone, from now on."""
    functions = _selection.get_algorithm_selector_cache().preprocessing_fns
    if distinct not in functions:
        _selection.add_preprocessing_fn(distinct)
