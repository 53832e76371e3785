"""Figures of users' kernels: those of the ready-made ones and what exchanges cost, and a CPU's."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import tilewright
from tests.corpus.figures import Figures, count, figures_of_code, source_of
from tests.corpus.variants import Variant
from tilewright.backends import GPUTarget

__all__ = ["CPU", "CpuFigures", "UserFigures", "figures_of"]

CPU = "x86-64-v4"
"""The CPU of the tables: any machine generates the same code for it."""
_PTX = re.compile(r"^\t(?:@!?%p\d+ )?[a-z][\w.:]*\b.*;", re.MULTILINE)
_ASSEMBLY = re.compile(r"^\t([a-z]\w*)\b[^\n]*", re.MULTILINE)
_FRAME = re.compile(r"^\tsubq\t\$(\d+), %rsp", re.MULTILINE)


@dataclass(frozen=True)
class UserFigures(Figures):
    """instructions: of the PTX; shuffles: `shfl.sync`; shared_accesses: reads and writes of shared
    memory; branches: `bra` with a condition"""

    instructions: int
    shuffles: int
    shared_accesses: int
    branches: int


@dataclass(frozen=True)
class CpuFigures:
    """instructions: of all functions; vectors: those on 512 bits; gathers: with scatters;
    calls, branches: jumps included; stack: bytes of the largest frame; scratch: bytes of a program
    """

    instructions: int
    vectors: int
    gathers: int
    calls: int
    branches: int
    stack: int
    scratch: int


def figures_of(variant: Variant, target: GPUTarget) -> UserFigures | CpuFigures:
    """Compile it for a GPU or a CPU, and assemble it for the GPU."""
    on_cpu = target.backend == "cpu"
    options = {} if on_cpu else variant.options
    kernel = tilewright.compile(source_of(variant), target, options)
    return _of_assembly(kernel) if on_cpu else _of_ptx(kernel)


def _of_ptx(kernel: Any) -> UserFigures:
    ptx = str(kernel.asm["ptx"])
    return UserFigures(
        **vars(figures_of_code(kernel)),
        instructions=len(_PTX.findall(ptx)),
        shuffles=count(ptx, r"shfl\.sync"),
        shared_accesses=count(ptx, r"(?:ld|st)\.(?:volatile\.)?shared"),
        branches=len(re.findall(r"@!?%p\d+ bra\b", ptx)),
    )


def _of_assembly(kernel: Any) -> CpuFigures:
    text = str(kernel.asm["asm"])
    lines = [match[0] for match in _ASSEMBLY.finditer(text)]
    return CpuFigures(
        instructions=len(lines),
        vectors=_number(lines, r"%zmm"),
        gathers=_number(lines, r"\tv\w*(?:gather|scatter)"),
        calls=_number(lines, r"\tcall"),
        branches=_number(lines, r"\tj"),
        stack=max((int(match[1]) for match in _FRAME.finditer(text)), default=0),
        scratch=kernel.metadata.scratch_bytes,
    )


def _number(lines: Iterable[str], pattern: str) -> int:
    return sum(re.search(pattern, line) is not None for line in lines)
