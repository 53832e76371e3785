"""Line tables: debug metadata that maps each instruction to the user's source.

    %v7 = fadd float %v5, %v6, !dbg !1004
    !1004 = !DILocation(line: 31, column: 2, scope: !1003, inlinedAt: !1002)

Only lines are described, neither variables nor types, so that they do not affect optimisation.
`LINE_DIRECTIVES` has LLVM print `.loc` alone, which leaves PTX without the target `debug` that
would stop ptxas from optimising; `LINE_TABLES` also writes the tables that debuggers need.

An `inlinedAt` chain lists the calls that led to a line. The column is the number of such a chain:
unique in a module, since PTX identifies a call site by its line and column.
"""

from __future__ import annotations

import os

from tilewright.ir import Function
from tilewright.support import SourceLoc, settings

LINE_DIRECTIVES = "DebugDirectivesOnly"
LINE_TABLES = "LineTablesOnly"

_FIRST = 1000
"""Number of the first node; lowerings number theirs from 0."""
_MOST_COLUMNS = 0xFFFF
"""The largest column, which LLVM keeps in 16 bits; later chains have none."""


class DebugLines:
    """The debug metadata of a kernel, which grows as its code is emitted.

    emission: LINE_DIRECTIVES or LINE_TABLES; function: the node of the kernel, for its `define`
    """

    def __init__(self, kernel: str, loc: SourceLoc, emission: str) -> None:
        self.nodes: list[str] = []
        self._files: dict[str, int] = {}
        self._functions: dict[tuple[str, str], int] = {}
        self._attachments: dict[SourceLoc | None, str] = {}
        self._chains: dict[tuple[object, ...], int] = {}
        outermost = loc.outermost
        self._unit = self._node(
            "distinct !DICompileUnit(language: DW_LANG_C99, "
            f'file: !{self._file(outermost.file)}, producer: "tilewright", isOptimized: true, '
            f"runtimeVersion: 0, emissionKind: {emission})"
        )
        self._version = self._node('!{i32 2, !"Debug Info Version", i32 3}')
        self._signature = self._node("!DISubroutineType(types: !{})")
        self._kernel = outermost
        self.function = self._subprogram(kernel, outermost)
        # Instructions of no op, such as a thread's index, have the line of the definition.
        self._attachments[None] = f", !dbg !{self._location(outermost)}"

    @classmethod
    def of(cls, function: Function, emission: str) -> DebugLines | None:
        """The line tables of a kernel, if they are enabled and its location is known."""
        if not settings().compilation.line_info:
            return None
        loc = function.loc or next((op.loc for op in function.walk() if op.loc is not None), None)
        return None if loc is None else cls(function.name, loc, emission)

    def attachment(self, loc: SourceLoc | None) -> str:
        """The suffix of an instruction: `, !dbg !N`; without a location, the kernel's."""
        text = self._attachments.get(loc)
        if text is None:
            assert loc is not None
            text = self._attachments[loc] = f", !dbg !{self._location(loc)}"
        return text

    def placed(self, function: str, loc: SourceLoc | None) -> str:
        """The text of a separate function with one line for all of it; its instructions are
        indented by two blanks."""
        place = loc or self._kernel
        head, _, body = function.partition("{\n")
        name = head[head.index("@") + 1 : head.index("(")]
        # A location without call sites: it may have many callers.
        scope = self._subprogram(name, place)
        node = self._node(f"!DILocation(line: {place.line}, column: 0, scope: !{scope})")
        lines = (f"{x}, !dbg !{node}" if x.startswith("  ") else x for x in body.split("\n"))
        return f"{head}!dbg !{scope} {{\n" + "\n".join(lines)

    def footer(self) -> list[str]:
        """The metadata definitions at the end of the module."""
        head = [f"!llvm.dbg.cu = !{{!{self._unit}}}", f"!llvm.module.flags = !{{!{self._version}}}"]
        return [*head, *self.nodes]

    def _node(self, text: str) -> int:
        number = _FIRST + len(self.nodes)
        self.nodes.append(f"!{number} = {text}")
        return number

    def _file(self, name: str) -> int:
        number = self._files.get(name)
        if number is None:
            # Names in angle brackets are no paths: texts, cells of notebooks.
            path = name if name.startswith("<") else os.path.abspath(name)
            text = f'!DIFile(filename: "{metadata_string(path)}", directory: "")'
            number = self._files[name] = self._node(text)
        return number

    def _subprogram(self, name: str, frame: SourceLoc) -> int:
        file = self._file(frame.file)
        return self._node(
            f'distinct !DISubprogram(name: "{metadata_string(name)}", scope: !{file}, '
            f"file: !{file}, line: {frame.line}, type: !{self._signature}, "
            f"scopeLine: {frame.line}, unit: !{self._unit}, "
            "spFlags: DISPFlagDefinition | DISPFlagOptimized)"
        )

    def _location(self, loc: SourceLoc) -> int:
        """The node of a location and the calls that led there; columns are ignored."""
        caller = None if loc.caller is None else self._location(loc.caller)
        key = (str(loc.file), loc.line, loc.function, caller)
        number = self._chains.get(key)
        if number is None:
            column = len(self._chains) + 1
            scope, inlined = self._scope(loc), ""
            if caller is not None:
                inlined = f", inlinedAt: !{caller}"
            number = self._chains[key] = self._node(
                # distinct: two calls on one line differ
                f"distinct !DILocation(line: {loc.line}, "
                f"column: {column if column <= _MOST_COLUMNS else 0}, scope: !{scope}{inlined})"
            )
        return number

    def _scope(self, loc: SourceLoc) -> int:
        if loc.caller is None:
            if loc.file == self._kernel.file:
                return self.function
            # LLVM wants instructions of a function in its scope, whatever file they are from.
            key = (str(loc.file), "")
            if key not in self._functions:
                file = self._file(loc.file)
                text = f"!DILexicalBlockFile(scope: !{self.function}, file: !{file}, "
                self._functions[key] = self._node(f"{text}discriminator: 0)")
            return self._functions[key]
        key = (str(loc.file), loc.function or "?")
        if key not in self._functions:
            self._functions[key] = self._subprogram(key[1], loc)
        return self._functions[key]


def metadata_string(text: str) -> str:
    """Text as an LLVM metadata string; a character that assemblers reject becomes `?`."""
    return "".join(c if " " <= c <= "~" and c not in '"\\' else "?" for c in text)
