"""Integers of Triton-C are those of C: promotions, conversions, literals, on scalars and tiles."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.property.c_integers import LONG, TYPES, Expressions, Statements, statements
from tests.unit.frontend.c.harness import run

ELEMENTS = 8
PIECES = 12
"""Statements of one program: compiling takes longer than running."""

Array = np.ndarray[Any, Any]
VARIABLES = {f"v{i}": type_ for i, type_ in enumerate(TYPES)}
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def program(seed: int) -> tuple[list[Statements], list[Array]]:
    """Statements, and the values of their variables."""
    random = Random(seed)
    made = Expressions(random, VARIABLES)
    pieces = [statements(made, f"t{i}", random.randrange(1, 4)) for i in range(PIECES)]
    return pieces, [np.array(_values(random, t), d) for t, d in zip(TYPES, DTYPES, strict=True)]


def _values(random: Random, type_: Any) -> list[int]:
    edges = [-1, 0, 1, 2, 100, 127, 128, 200, 255, 1 << 15, 1 << 31, (1 << 63) - 1, 1 << 63]
    return [
        type_.wrap(random.choice(edges) if random.random() < 0.5 else random.getrandbits(64))
        for _ in range(ELEMENTS)
    ]


def expected(pieces: list[Statements], arrays: list[Array]) -> Array:
    """What the statements compute, as longs: one row for each."""
    rows = [
        [LONG.wrap(p.value({n: int(a[i]) for n, a in zip(VARIABLES, arrays, strict=True)}))
         for i in range(ELEMENTS)]
        for p in pieces
    ]  # fmt: skip
    return np.array(rows, np.int64)


@pytest.mark.parametrize("seed", range(12))
def test_tiles_compute_what_c_computes(seed: int) -> None:
    pieces, arrays = program(seed)
    out = np.zeros((PIECES, ELEMENTS), np.int64)
    extents = f"[{ELEMENTS}]"
    lines = [f"int n{extents} = 0 ... {ELEMENTS};"]
    for (name, type_), array in zip(VARIABLES.items(), "abcdefghi", strict=True):
        lines.append(f"{type_.name} {name}{extents} = *({array} + n);")
    for number, piece in enumerate(pieces):
        lines.append(piece.text.replace("EXTENTS", extents))
        lines.append(f"*(j + {number * ELEMENTS} + n) = {piece.name};")
    run("\n".join(lines), *arrays, out)
    np.testing.assert_array_equal(out, expected(pieces, arrays), "\n".join(lines))


@pytest.mark.parametrize("seed", range(100, 106))
def test_scalars_compute_what_c_computes(seed: int) -> None:
    pieces, arrays = program(seed)
    out = np.zeros((PIECES, ELEMENTS), np.int64)
    lines = ["int pid = get_program_id(0);"]
    for (name, type_), array in zip(VARIABLES.items(), "abcdefghi", strict=True):
        lines.append(f"{type_.name} {name} = *({array} + pid);")
    for number, piece in enumerate(pieces):
        lines.append(piece.text.replace("EXTENTS", ""))
        lines.append(f"*(j + {number * ELEMENTS} + pid) = {piece.name};")
    run("\n".join(lines), *arrays, out, grid=(ELEMENTS,))
    np.testing.assert_array_equal(out, expected(pieces, arrays), "\n".join(lines))


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_c_compiler_agrees_with_what_is_expected(tmp_path: Path) -> None:
    programs = [program(seed) for seed in range(20)]
    functions: list[str] = ["#include <stdbool.h>"]
    for number, (pieces, _) in enumerate(programs):
        parameters = ", ".join(f"{t.name} *p{i}" for i, t in enumerate(TYPES))
        functions.append(f"void f{number}({parameters}, long *out) {{")
        functions.append(f"for (int i = 0; i < {ELEMENTS}; i++) {{")
        functions += [f"{t.name} v{i} = p{i}[i];" for i, t in enumerate(TYPES)]
        for row, piece in enumerate(pieces):
            functions.append(piece.text.replace("EXTENTS", ""))
            functions.append(f"out[{row * ELEMENTS} + i] = {piece.name};")
        functions.append("}}")
    source, library = tmp_path / "f.c", tmp_path / "f.so"
    source.write_text("\n".join(functions))
    flags = ["-O0", "-w", "-fwrapv", "-fsigned-char", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, str(source), "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    for number, (pieces, arrays) in enumerate(programs):
        out = np.zeros((PIECES, ELEMENTS), np.int64)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, out)]
        getattr(loaded, f"f{number}")(*pointers)
        np.testing.assert_array_equal(out, expected(pieces, arrays))
