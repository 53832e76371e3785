"""Generated code without what does not run: line tables, debug sections, and paths.

A docstring that grows by one line moves every source line below it, and each checkout has a path of
its own. Neither is a change of generated code, so `scripts/code_diff.py` compares stripped texts.
"""

import re
from collections.abc import Callable, Iterable, Iterator

__all__ = ["COUNTED", "STAGES", "strip"]

STAGES = ("ttir", "ttgir", "llir", "ptx", "asm")
"""The textual stages, in the order of compilation."""

COUNTED = ("llir", "ptx", "asm")
"""The stages in which a difference is a change of generated code."""

_DEBUG_ATTACHMENT = re.compile(r",? !dbg !\d+")
_DEBUG_NODE = re.compile(r"^!(?:\d+ = (?:distinct )?!DI|llvm\.dbg\.cu = )")
_NODE = re.compile(r"!\d+")
_LINE_DIRECTIVE = re.compile(r"^\s*\.(?:loc|file)\b")
_TEMPORARY_LABEL = re.compile(r"^(?:\$L__|\.L)(?:tmp|func_begin|func_end)\d+:$")
_TEMPORARY_SYMBOL = re.compile(r"(?:\$L__|\.L)(?:tmp|func_begin|func_end)\d+")
_SECTION = re.compile(r"^\s*\.(?:section|text|data|bss)\b")
_DEBUG_SECTION = re.compile(r'^\s*\.section\s+"?\.(?:debug|zdebug|note)')
_SOURCE_PLACE = re.compile(r"(?<=\.py)(:\d+)+")


def strip(stage: str, text: str, root: str) -> str:
    """The text of a stage without line tables, debug sections, blank lines and paths below `root`.

    root: the folder of the checkout that compiled it, replaced by `<root>`
    """
    lines = _STRIPPERS.get(stage, iter)(text.replace(root, "<root>").splitlines())
    return "\n".join(_SOURCE_PLACE.sub("", line.rstrip()) for line in lines if line.strip())


def _llvm(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if not _DEBUG_NODE.match(line):
            yield _NODE.sub("!node", _DEBUG_ATTACHMENT.sub("", line))


def _assembly(lines: Iterable[str]) -> Iterator[str]:
    in_debug = False
    for line in lines:
        if _SECTION.match(line):
            in_debug = _DEBUG_SECTION.match(line) is not None
        hidden = _LINE_DIRECTIVE.match(line) or _TEMPORARY_LABEL.match(line)
        if not in_debug and not hidden:
            yield _TEMPORARY_SYMBOL.sub("<label>", line)


_STRIPPERS: dict[str, Callable[[Iterable[str]], Iterator[str]]] = {
    "llir": _llvm,
    "ptx": _assembly,
    "asm": _assembly,
}
