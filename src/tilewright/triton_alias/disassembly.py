"""`triton.tools.disasm`: the instructions of a cubin with their scheduling control codes.

Each line is "wait:read:write:yield:stall<tab>instruction", fields of the control code that NVIDIA's
GPUs have had since compute capability 7.0, in the upper half of an instruction of 128 bits:
bits 41-44 stall cycles, 45 no yield, 46-48 and 49-51 the barrier that is set when the result is
written or the operands are read (7: none), 52-57 the barriers to wait for. Branch targets are
labels. Needs cuobjdump of the CUDA toolkit.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tilewright.triton_alias import knobs

__all__ = ["extract", "get_sass", "parseCtrl", "path_to_cuobjdump"]

_FUNCTION = re.compile(r"\s*Function : (\S+)")
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s*(.*?)\s*;\s*/\* 0x[0-9a-f]{16} \*/")
_UPPER_HALF = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/")
_BRANCH = re.compile(r"(?<=\s)BRA\b.*?\b(0x[0-9a-f]+)$|^BRA\b.*?\b(0x[0-9a-f]+)$")
_NONE = 7


class _Instruction(NamedTuple):
    address: int
    control: str
    text: str

    @property
    def target(self) -> int | None:
        """The target address of a branch."""
        found = _BRANCH.search(self.text)
        return None if found is None else int(found[1] or found[2], 16)


@lru_cache
def get_sass(cubin_asm: bytes, fun: str | None = None) -> str:
    """The instructions of a cubin, or of one of its functions. Errors: ToolMissing."""
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin_asm)
        return extract(str(path), fun)


def path_to_cuobjdump() -> str:
    """The disassembler. Errors: ToolMissing."""
    return knobs.nvidia.cuobjdump.path


def extract(file_path: str, fun: str | None) -> str:
    """The instructions of a cubin in a file. Errors: ToolMissing, CalledProcessError."""
    chosen = [] if fun is None else ["-fun", fun]
    said = subprocess.check_output([path_to_cuobjdump(), *chosen, "-sass", file_path])
    return "".join(map(_shown, *zip(*_functions(said.decode().splitlines()), strict=True)))


def parseCtrl(sline: str) -> str:
    """The control code in the second of an instruction's two lines."""
    word = _UPPER_HALF.match(sline)
    if word is None:
        raise ValueError(f"no encoding of an instruction: {sline!r}")
    code = int(word[1], 16) >> 41
    stall, no_yield, write, read, wait = (
        code & 0xF, code >> 4 & 1, code >> 5 & 7, code >> 8 & 7, code >> 11 & 0x3F,
    )  # fmt: skip
    barriers = ["-" if barrier == _NONE else str(barrier) for barrier in (read, write)]
    waits = f"{wait:02d}" if wait else "--"
    return ":".join((waits, *barriers, "-" if no_yield else "Y", f"{stall:x}"))


def _functions(lines: Sequence[str]) -> Iterator[tuple[str, list[_Instruction]]]:
    """(name, instructions) of each function that cuobjdump shows."""
    name, instructions = "", list[_Instruction]()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        function, instruction = _FUNCTION.match(line), _INSTRUCTION.match(line)
        if function is not None:
            if name:
                yield name, instructions
            name, instructions = function[1], []
        elif instruction is not None:
            address, text = int(instruction[1], 16), instruction[2]
            instructions.append(_Instruction(address, parseCtrl(after), text))
    if name:
        yield name, instructions


def _shown(name: str, instructions: Sequence[_Instruction]) -> str:
    targets = dict.fromkeys(i.target for i in instructions if i.target is not None)
    labels = {target: f"LBB{number}" for number, target in enumerate(targets)}
    lines = [f"Function:{name}"]
    for instruction in instructions:
        if instruction.address in labels:
            lines.append(f"{labels[instruction.address]}:")
        text, target = instruction.text, instruction.target
        if target is not None:
            text = text[: text.rindex("0x")] + labels[target]
        lines.append(f"{instruction.control}\t{text};")
    return "\n".join(lines) + "\n\n"
