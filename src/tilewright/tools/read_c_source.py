"""The source of `tilewright cc`: a kernel of a file, with macros and facts from the shell."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from tilewright.c import CSource
from tilewright.c.macro_values import choices_of, definitions, text_of
from tilewright.frontend.c import kernel_named, parameters_of
from tilewright.ir.types import PointerType
from tilewright.tools.command_failure import CommandFailed
from tilewright.tools.compile_command import pair
from tilewright.tools.read_tile_ir import STDIN, read_text


def variants_of(chosen: argparse.Namespace) -> dict[str, CSource]:
    """The kernel named by the command's arguments, for every combination of listed values.

    The keys name the combination, as in `SIZE=32`; without lists the key is empty.
    Errors: CommandFailed, EmptyDefine.
    """
    defines = definitions([_definition(text) for text in chosen.defines])
    # A text with a line end is never a file name.
    source = read_text(STDIN) + "\n" if str(chosen.file) == STDIN else chosen.file
    return {
        " ".join(f"{name}={text_of(name, value)}" for name, value in choice.items()): _source_of(
            chosen, source, {**defines, **choice}
        )
        for choice in choices_of(defines)
    }


def _source_of(
    chosen: argparse.Namespace, source: str | Path, defines: Mapping[str, object]
) -> CSource:
    plain = CSource(source, defines, chosen.kernel)
    parsed = plain.program.parsed(plain.defines)
    parameters = parameters_of(parsed, kernel_named(parsed, plain.name))
    types = {parameter.name: parameter.type for parameter in parameters}
    facts: dict[str, dict[str, int]] = {}
    for name, amount in map(pair, chosen.multiple):
        if name not in types:
            raise CommandFailed(
                f"{plain.name} has no parameter '{name}'; it has {', '.join(types)}"
            )
        if not amount.isdecimal() or int(amount) < 1:
            raise CommandFailed(f"--multiple takes NAME=N with a positive number, not '{amount}'")
        fact = "aligned" if isinstance(types[name], PointerType) else "multiple_of"
        facts[name] = {fact: int(amount)}
    return CSource(source, defines, chosen.kernel, facts)


def _definition(text: str) -> str:
    if not text.partition("=")[0].isidentifier():
        raise CommandFailed(f"-D takes NAME or NAME=TEXT, not '{text}'")
    return text
