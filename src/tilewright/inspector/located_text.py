"""Lines of a stage's text with the source lines that they come from.

Tile IR has locations in its text. LLVM IR has numbered metadata. PTX and assembly have `.loc`
directives, whose column is the number of a chain of calls in that metadata (`llvm/debug_lines.py`);
the disassembly of a cubin has comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

from tilewright.support.data_class import dataclass

__all__ = ["Chain", "LocatedLine", "located_lines"]

Chain = tuple[tuple[str, int], ...]
"""File and line of an op, then of the calls that lead there; empty where they are unknown."""


@dataclass(frozen=True, slots=True)
class LocatedLine:
    """A line as shown, and its chain."""

    text: str
    chain: Chain = ()


def located_lines(stage: str, text: str, llvm_ir: str) -> list[LocatedLine]:
    """The lines of a stage; without directives and metadata that only carry locations. llvm_ir: of
    the same kernel, for the chains of calls."""
    reader = _READERS.get(stage, _tile_ir)
    return list(reader(text, llvm_ir))


# ---- tile IR -------------------------------------------------------------------------------------

_STRING = r'"(?:[^"\\]|\\.)*"'
_FRAME = rf"{_STRING}:\d+(?::\d+)*(?: in {_STRING})?"
_LOCATION = re.compile(rf" @ ({_FRAME}(?: from {_FRAME})*)")
_ONE_FRAME = re.compile(rf"({_STRING}):(\d+)(?::\d+)*(?: in {_STRING})?")


def _tile_ir(text: str, _llvm_ir: str) -> Iterator[LocatedLine]:
    for line in text.splitlines():
        found = _LOCATION.search(line)
        if found is None:
            yield LocatedLine(line)
            continue
        frames = _ONE_FRAME.findall(found[1])
        chain = tuple((json.loads(file), int(number)) for file, number in frames)
        yield LocatedLine(line[: found.start()] + line[found.end() :], chain)


# ---- LLVM IR -------------------------------------------------------------------------------------

_ATTACHED = re.compile(r",? !dbg !(\d+)")
_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(\w+)\((.*)\)$", re.MULTILINE)
_FIELD = re.compile(r'(\w+): (?:!(\d+)|"([^"]*)"|(\w+))')


class _Metadata:
    """The debug metadata of a module in LLVM IR."""

    def __init__(self, llvm_ir: str) -> None:
        self.nodes = {
            int(number): (kind, {n: a or b or c for n, a, b, c in _FIELD.findall(fields)})
            for number, kind, fields in _NODE.findall(llvm_ir)
        }
        self.by_column = {
            int(fields["column"]): self.chain(number)
            for number, (kind, fields) in self.nodes.items()
            if kind == "DILocation" and fields.get("column", "0") != "0"
        }

    def chain(self, number: int) -> Chain:
        """The chain of a DILocation; of a DISubprogram its definition."""
        frames: list[tuple[str, int]] = []
        while number in self.nodes:
            kind, fields = self.nodes[number]
            scope = number if kind == "DISubprogram" else int(fields.get("scope", -1))
            frames.append((self._file(scope), int(fields.get("line", 0))))
            number = int(fields.get("inlinedAt", -1))
        return tuple(frames)

    def _file(self, scope: int) -> str:
        _, fields = self.nodes.get(scope, ("", {}))
        _, file = self.nodes.get(int(fields.get("file", -1)), ("", {}))
        return file.get("filename", "?")


def _llvm_ir(text: str, llvm_ir: str) -> Iterator[LocatedLine]:
    metadata = _Metadata(llvm_ir)
    for line in text.splitlines():
        if re.match(r"!\d+ = |!llvm\.(dbg|module)", line):
            continue
        found = _ATTACHED.search(line)
        chain = () if found is None else metadata.chain(int(found[1]))
        yield LocatedLine(_ATTACHED.sub("", line), chain)


# ---- assembly ------------------------------------------------------------------------------------

_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_HIDDEN = re.compile(
    r"\s*(\.cfi_|\.file\b|\.loc\b|\.Ltmp\d+:|\$L__tmp\d+:|\.Lfunc_(begin|end)\d+:$"
    r"|// (begin|end) inline asm)"
)
_DEBUG = re.compile(r'\s*\.section\s+"?\.debug_')
_INSTRUCTION = re.compile(r"\s+[@{]?[!%]?[a-zA-Z]")


def _assembly(text: str, llvm_ir: str) -> Iterator[LocatedLine]:
    """PTX, or the assembly of a CPU, to the tables at its end."""
    metadata, chain = _Metadata(llvm_ir), Chain()
    # PTX has them at its end.
    found_files = map(_FILE.match, text.splitlines())
    files = {int(m[1]): f"{m[2]}/{m[3]}" if m[3] else m[2] for m in found_files if m}
    for line in text.splitlines():
        if _DEBUG.match(line):
            return
        if found := _LOC.match(line):
            file, number, column = map(int, found.groups())
            chain = _chain_at(metadata, files.get(file, "?"), number, column)
        if not _HIDDEN.match(line) and line.strip():
            shown = line.replace("\t", "  ", 1).replace(" \t", " ").replace("\t", " ")
            yield LocatedLine(shown, chain if _INSTRUCTION.match(line) else ())


def _chain_at(metadata: _Metadata, file: str, line: int, column: int) -> Chain:
    if not line:
        return ()
    chain = metadata.by_column.get(column, ())
    return chain if chain and chain[0][1] == line else ((file, line),)


_SASS_LINE = re.compile(r'\s*//## File "([^"]*)", line (\d+)(.*)')
_SASS_ADDRESS = re.compile(r"\s*/\*[0-9a-f]{4,}\*/")
_SASS_PADDING = re.compile(r" {3,}")
_SASS_CALL = re.compile(r'inlined at "([^"]*)", line (\d+)')


def _sass(text: str, _llvm_ir: str) -> Iterator[LocatedLine]:
    chain, is_continued = Chain(), False
    for line in text.splitlines():
        found = _SASS_LINE.match(line)
        if found is None:
            is_continued = False
            if line.strip():
                is_code = _SASS_ADDRESS.match(line)
                shown = _SASS_PADDING.sub("  ", line.strip()) if is_code else line
                yield LocatedLine(shown, chain if is_code else ())
            continue
        calls = tuple((file, int(number)) for file, number in _SASS_CALL.findall(found[3]))
        # A call is repeated in the next comment, with the call around it.
        chain = (*chain, *calls) if is_continued else ((found[1], int(found[2])), *calls)
        is_continued = bool(calls)


_READERS: Mapping[str, Callable[[str, str], Iterator[LocatedLine]]] = {
    "llir": _llvm_ir,
    "ptx": _assembly,
    "asm": _assembly,
    "sass_lines": _sass,
}
