"""Compiles a variant without a GPU, and takes the figures of its code that must not change."""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tilewright
from tests.corpus.variants import Variant
from tilewright.backends import GPUTarget
from tilewright.compiler import ASTSource
from tilewright.compiler.sources import NON_NEGATIVE

_GLOBAL = re.compile(r"\b(ld|st|cp\.async)\.([\w.:]*global[\w.:]*) ([^;]*);")
_COPIED = re.compile(r"\], (\d+)")


@dataclass(frozen=True)
class Figures:
    """registers: of a thread; spills: words of a thread in local memory; shared: bytes;
    load, store: the widest access of a thread to global memory, in bytes; mma, ldmatrix, copies:
    instructions of the PTX: matrix products of warps or warpgroups, loads of their operands,
    asynchronous copies;
    barriers: `bar.sync` of the PTX
    """

    registers: int
    spills: int
    shared: int
    load: int
    store: int
    mma: int
    ldmatrix: int
    copies: int
    barriers: int


def figures_of(variant: Variant) -> Figures:
    """Compile and assemble it."""
    target = GPUTarget("cuda", variant.capability, 32)
    kernel = tilewright.compile(source_of(variant), target, variant.options)
    return figures_of_code(kernel)


def figures_of_code(kernel: Any) -> Figures:
    """The figures of an assembled kernel."""
    assert kernel.asm["cubin"].startswith(b"\x7fELF")
    metadata, ptx = kernel.metadata, str(kernel.asm["ptx"])
    return Figures(
        registers=metadata.registers,
        spills=metadata.spills,
        shared=metadata.shared,
        load=widest(ptx, "ld", "cp.async"),
        store=widest(ptx, "st"),
        mma=count(ptx, r"(?:mma\.sync|wgmma\.mma_async)"),
        ldmatrix=count(ptx, r"ldmatrix\.sync"),
        copies=count(ptx, r"cp\.async\.(?:c[ag]|bulk\.tensor)"),
        barriers=count(ptx, r"(?:bar|barrier)\.(?:cta\.)?sync"),
    )


def source_with(kernel: Any, types: str, words: Mapping[str, Any]) -> ASTSource:
    """A kernel with types and words as those of a variant."""
    return source_of(Variant(90, "", kernel, types, tuple(words.items())))


def source_of(variant: Variant) -> ASTSource:
    """The kernel with the types of the variant."""
    names = list(inspect.signature(variant.kernel.fn).parameters)
    signature: dict[str, str] = {}
    constants = dict(variant.constants)
    facts: dict[tuple[int], list[Any]] = {}
    for position, (name, text) in enumerate(zip(names, variant.types.split(), strict=False)):
        text, _, value = text.partition("=")
        type_, _, multiple = text.partition("/")
        signature[name] = "constexpr" if value else type_
        if value:
            constants[name] = int(value)
        facts[position,] = [["tt.divisibility", int(multiple)]] if multiple else []
        if type_.startswith("i"):
            facts[position,].append([NON_NEGATIVE, 1])
    signature |= dict.fromkeys(variant.constants, "constexpr")
    return ASTSource(variant.kernel, signature, constants, facts)


def count(ptx: str, pattern: str) -> int:
    """Instructions of a PTX module whose name matches."""
    return len(re.findall(rf"(?<![\w.]){pattern}\b", ptx))


def widest(ptx: str, *names: str) -> int:
    """Bytes of the widest access to global memory by the instructions `names`; 0 without one."""
    found = (_bytes(*match) for match in _GLOBAL.findall(ptx) if match[0] in names)
    return max(found, default=0)


def _bytes(name: str, modifiers: str, operands: str) -> int:
    if name == "cp.async":
        copied = _COPIED.search(operands)
        return int(copied[1]) if copied else 0
    vector = re.search(r"\.v(\d)", modifiers)
    bits = re.search(r"\.[bfsu](\d+)$", modifiers)
    assert bits, modifiers
    return int(vector[1] if vector else 1) * int(bits[1]) // 8
