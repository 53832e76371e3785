"""Compiles kernels for a GPU that need not be here, and counts what came of them."""

import re
from collections import Counter
from typing import Any

import tilewright
from tests.corpus.figures import source_with
from tests.corpus.variants import OPTIONS
from tilewright.backends import GPUTarget
from tilewright.compiler import CompiledKernel

_INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)", re.MULTILINE)
_OPCODE = re.compile(r"(?:^|= )([a-z]+\.\w+)", re.MULTILINE)


def compiled(kernel: Any, types: str, capability: int = 90, **words: Any) -> CompiledKernel:
    """types: of the run-time parameters, as in the corpus: "*fp32/16 i32"; words: constants and
    launch options. Threads make loads through pointers, unless `bulk_loads` says so."""
    source = source_with(kernel, types, words)
    options = {k: v for k, v in words.items() if k in OPTIONS}
    by_threads = {"bulk_loads": "descriptors"} if capability >= 90 else {}
    return tilewright.compile(source, GPUTarget("cuda", capability, 32), by_threads | options)


def instructions(kernel: CompiledKernel) -> Counter[str]:
    """How often each instruction, by its whole name, stands in the PTX."""
    return Counter(_INSTRUCTION.findall(str(kernel.asm["ptx"])))


def count(kernel: CompiledKernel, prefix: str) -> int:
    """Instructions of the PTX whose names start so."""
    return sum(n for name, n in instructions(kernel).items() if name.startswith(prefix))


def ops(text: str) -> Counter[str]:
    """How often each op stands in textual tile IR."""
    return Counter(_OPCODE.findall(re.sub(r"^ +", "", text, flags=re.MULTILINE)))


def bodies_of_loops(text: str) -> str:
    """The lines of textual tile IR that stand inside loops."""
    depth, kept = 0, list[str]()
    for line in text.splitlines():
        if depth and line.strip().startswith("}"):
            depth -= 1
        if depth:
            kept.append(line)
        if line.rstrip().endswith("{") and (depth or "cf.for" in line or "cf.while" in line):
            depth += 1
    return "\n".join(kept)


def loop_of_products(ptx: str) -> str:
    """The body of the loop in PTX that multiplies; of several the longest."""
    return max(loops_of_products(ptx), key=len)


def loops_of_products(ptx: str) -> list[str]:
    """The bodies of loops in PTX in which products are, also of loops around others."""
    labels = {
        match[1]: match.start() for match in re.finditer(r"^(\$L__BB\w+):", ptx, re.MULTILINE)
    }
    jumps = re.finditer(r"\bbra(?:\.uni)?\s+(\$L__BB\w+);", ptx)
    bodies = [ptx[labels[jump[1]] : jump.start()] for jump in jumps]
    return [body for body in bodies if "mma" in body]
