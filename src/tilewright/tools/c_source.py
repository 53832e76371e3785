"""What `tilewright cc` compiles: a kernel of a file, with macros and promises from the shell."""

from __future__ import annotations

import argparse

from tilewright.c import CSource
from tilewright.frontend.c import kernel_named, parameters_of
from tilewright.ir.types import PointerType
from tilewright.tools.compile_kernel import pair
from tilewright.tools.failure import CommandFailed
from tilewright.tools.tile_ir import STDIN, read_text


def source_of(chosen: argparse.Namespace) -> CSource:
    """The kernel that the arguments of the command name. Errors: CommandFailed."""
    defines = dict(_definition(text) for text in chosen.defines)
    # A text that ends a line is never taken for the name of a file.
    source = read_text(STDIN) + "\n" if str(chosen.file) == STDIN else chosen.file
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


def _definition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name.isidentifier():
        raise CommandFailed(f"-D takes NAME or NAME=TEXT, not '{text}'")
    return name, value if equals else "1"
