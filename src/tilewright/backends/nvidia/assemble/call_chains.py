"""Add the call chains of inlined lines to the `.loc` directives of PTX.

LLVM prints the innermost line only. The chain is in the debug metadata of the LLVM text, whose
columns are numbers of chains (llvm/debug_lines.py). PTX refers to a call by file, line and column
of an earlier directive:

    .loc 1 8 7   ->   .loc 1 20 5                                                  kernel
                      .loc 1 13 6, function_name $chain_scale, inlined_at 1 20 5   scale, from there
                      .loc 1 8 7, function_name $chain_inner, inlined_at 1 13 6    inner, from there
"""

from __future__ import annotations

import re

from tilewright.support.data_class import dataclass

_LOCATION = re.compile(
    r"^!(\d+) = distinct !DILocation\(line: (\d+), column: (\d+), scope: !(\d+)"
    r"(?:, inlinedAt: !(\d+))?\)$",
    re.MULTILINE,
)
_SUBPROGRAM = re.compile(
    r'^!(\d+) = distinct !DISubprogram\(name: "([^"]*)", scope: !(\d+)', re.MULTILINE
)
_BLOCK = re.compile(r"^!(\d+) = !DILexicalBlockFile\(scope: !\d+, file: !(\d+)", re.MULTILINE)
_FILE = re.compile(r'^!(\d+) = !DIFile\(filename: "([^"]*)"', re.MULTILINE)
_DIRECTIVE = re.compile(r"^\t\.loc\t(\d+) (\d+) (\d+)$", re.MULTILINE)
_PTX_FILE = re.compile(r'^\t\.file\t(\d+) "([^"]*)"$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Place:
    """A node of the LLVM text. caller: the node of the call, None in the kernel itself."""

    line: int
    column: int
    function: str
    file: str
    caller: int | None


def add_call_chains(ptx: str, llir: str) -> str:
    """The module with chains at its directives; `llir`: the LLVM text that it was made from."""
    if ", inlinedAt: " not in llir:
        return ptx
    places = _places(llir)
    by_column = {place.column: node for node, place in places.items() if place.column}
    chains = _Chains(places, {name: int(number) for number, name in _PTX_FILE.findall(ptx)})

    def chained(match: re.Match[str]) -> str:
        node = by_column.get(int(match[3]))
        # Column 0: LLVM merged two lines, which have no common chain.
        if node is None or places[node].line != int(match[2]):
            return match[0]
        return "\n".join(chains.directives(node))

    return _DIRECTIVE.sub(chained, ptx) + chains.footer()


def _places(llir: str) -> dict[int, _Place]:
    """The nodes of places by number."""
    files = {int(number): name for number, name in _FILE.findall(llir)}
    scopes = {int(n): (name, files[int(file)]) for n, name, file in _SUBPROGRAM.findall(llir)}
    scopes |= {int(number): ("", files[int(file)]) for number, file in _BLOCK.findall(llir)}
    return {
        int(node): _Place(int(line), int(column), *scopes[int(scope)], int(at) if at else None)
        for node, line, column, scope, at in _LOCATION.findall(llir)
    }


class _Chains:
    """The directives, with the files and names that they use. files: numbers in the PTX by name."""

    def __init__(self, places: dict[int, _Place], files: dict[str, int]) -> None:
        self.places = places
        self.files = files
        self.new_files: list[str] = []
        self.names: dict[str, str] = {}
        self.known: set[int] = set()

    def directives(self, node: int) -> list[str]:
        """Directives of a place, after those of calls that have none yet."""
        lines: list[str] = []
        call = self.places[node].caller
        if call is not None and call not in self.known:
            lines = self.directives(call)
        self.known.add(node)
        return [*lines, self._directive(self.places[node])]

    def _directive(self, place: _Place) -> str:
        text = f"\t.loc\t{self._at(place)}"
        if place.caller is None:
            return text
        name = self.names.setdefault(place.function, f"$L__chain{len(self.names)}")
        return f"{text}, function_name {name}, inlined_at {self._at(self.places[place.caller])}"

    def _at(self, place: _Place) -> str:
        return f"{self._file(place.file)} {place.line} {place.column}"

    def _file(self, name: str) -> int:
        number = self.files.get(name)
        if number is None:
            # LLVM lists only the files that instructions are from.
            number = self.files[name] = max(self.files.values(), default=0) + 1
            self.new_files.append(f'\t.file\t{number} "{name}"')
        return number

    def footer(self) -> str:
        """Further files, and the names of functions as strings that end with a zero."""
        lines = [*self.new_files]
        if self.names:
            lines += ["\t.section\t.debug_str", "\t{"]
            for name, label in self.names.items():
                lines += [f"{label}:", f"\t.b8 {', '.join(str(b) for b in name.encode())}, 0"]
            lines.append("\t}")
        return "".join(f"{line}\n" for line in lines)
