"""The text form of a layout: ``register=(0,1..4)(8,0) lane=(1,0)(2,0)(4,0) -> dim0:16 dim1:8``.

One item ``name=bases`` for each input dim, an arrow, one item ``name:size`` for each output dim.
A basis is ``(a,b)``; a run of bases that doubles along one dim, all others 0, is written with its
ends: ``(0,1..4)`` is ``(0,1)(0,2)(0,4)``. An input dim of size 1 is ``warp=``. There are no
spaces inside an item, so a layout can be part of a larger grammar.
"""

import re
from collections.abc import Mapping, Sequence

Basis = tuple[int, ...]

_ITEM = re.compile(r"(\w+)=((?:\([0-9.,]*\))*)")
_BASIS = re.compile(r"\(([0-9.,]*)\)")
_RUN = re.compile(r"(\d+)(?:\.\.(\d+))?")


def render(bases: Mapping[str, Sequence[Basis]], sizes: Mapping[str, int]) -> str:
    """The text of a map given by its bases per input dim and its sizes per output dim."""
    ins = " ".join(f"{name}={_render_bases(vectors)}" for name, vectors in bases.items())
    outs = " ".join(f"{name}:{size}" for name, size in sizes.items())
    return f"{ins} -> {outs}"


def parse(text: str) -> tuple[dict[str, list[Basis]], dict[str, int]]:
    """The inverse of `render`. ValueError, naming the offending part, on any other text."""
    left, arrow, right = text.partition("->")
    if not arrow:
        raise ValueError(f"a layout reads 'in=(..)(..) in=.. -> out:size ..', not {text!r}")
    sizes: dict[str, int] = {}
    for item in right.split():
        name, colon, size = item.partition(":")
        if not colon or not size.isdigit():
            raise ValueError(f"an output dim reads 'name:size', not {item!r}")
        sizes[name] = int(size)
    bases: dict[str, list[Basis]] = {}
    for item in left.split():
        match = _ITEM.fullmatch(item)
        if match is None:
            raise ValueError(f"an input dim reads 'name=(a,b)(c,d)', not {item!r}")
        parts = _BASIS.findall(match[2])
        bases[match[1]] = [basis for part in parts for basis in _parse_basis(part)]
    return bases, sizes


def _render_bases(vectors: Sequence[Basis]) -> str:
    parts: list[str] = []
    index = 0
    while index < len(vectors):
        end = index + 1
        while end < len(vectors) and _doubles(vectors[end - 1], vectors[end]):
            end += 1
        first, last = vectors[index], vectors[end - 1]
        items = (str(a) if a == b else f"{a}..{b}" for a, b in zip(first, last, strict=True))
        parts.append("(" + ",".join(items) + ")")
        index = end
    return "".join(parts)


def _doubles(previous: Basis, following: Basis) -> bool:
    """Whether both are powers of two along one and the same dim, the second twice the first."""
    alone = sum(item.bit_count() for item in previous) == 1
    return alone and following == tuple(2 * item for item in previous)


def _parse_basis(part: str) -> list[Basis]:
    """The bases of one parenthesis: ``0,1..4`` gives (0,1), (0,2), (0,4)."""
    first: list[int] = []
    last: list[int] = []
    for item in part.split(",") if part else []:
        match = _RUN.fullmatch(item)
        if match is None:
            raise ValueError(f"a coordinate reads '3' or '1..8', not {item!r}")
        first.append(int(match[1]))
        last.append(int(match[2] or match[1]))
    run = [tuple(first)]
    while run[-1] != tuple(last):
        # The second test stops a run that steps over its last basis.
        if not _doubles(run[-1], tuple(2 * item for item in run[-1])) or max(run[-1]) > max(last):
            raise ValueError(f"({part}) is not a run that doubles along one dim")
        run.append(tuple(2 * item for item in run[-1]))
    return run
