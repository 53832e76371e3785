"""The texts that the fuzzers start from: goldens, kernels of the tests, sources with mistakes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.kernels import test_c_kernels
from tests.unit.frontend.c import test_twins
from tilewright.c import CSource
from tilewright.frontend.semantics import FrontendOptions
from tilewright.ir import Module, parse_module, print_module
from tilewright.support.errors import TilewrightError
from tilewright.transforms import SHARED

TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class CText:
    """A source in Triton-C and its definitions."""

    text: str
    defines: dict[str, Any] = field(default_factory=dict[str, Any])


_KERNEL = "__global__ void k(float *a, int *b, char *c, half *d, int n, float x) {{ {} }}"
_PIECES = (
    "int i[16] = 0 ... 16; *(b + i) = *(c + i) * *(c + i) + n;",
    "float z[16, 8] = *(a + (0 ... 16)[:, newaxis] * 8 + (0 ... 8)[newaxis, :]); *a = z[+, max];",
    "for (int i = 0; i < n; i++) { if (i == 3) continue; *(a + i) += x; if (*a > 3) break; }",
    "int i[32] = get_program_id(0) * 32 + 0 ... 32; *?(i < n) (a + i) = i % 3 ? *(a + i) : 0;",
    "half u[16, 16] = 1, v[16, 16] = 2; float w[16, 16] = 0; w += u @ ^v; *a = w[+, +];",
    "unsigned char s = 200; short t = s << 2; *b = s + t >> 1; *c = ~s & 0x7f | t ^ n;",
    "int j = 0; while (j < n) { j += 2; do { j--; } while (j > 5); } *b = j;",
    "float y[8, 4] = 2.5f; *(a + 0 ... 4) = y[3, :] + y[0:4, 1]; *a = exp(x) * max(x, 1);",
    'assert(n > 0, "positive"); printf("%d %f", n, x); atomic_add(b, n); *d = (half) x;',
    "if (n > 3) return; float *p[4] = a + 0 ... 4; p += n; *p = *(p + 1) ? 1 : -INFINITY;",
    "bool m[16] = (0 ... 16) < n; *(b + 0 ... 16) = select(m, 1, 0) + cumsum((int) m);",
)
_MACROS = """
#define SQUARE(v) ((v) * (v))
#define LOOP(i, n) for (int i = 0; i < (n); ++i)
#if defined(SIZE) && SIZE > 16
#define PART SIZE / 2
#else
#define PART 8
#endif
const int WIDTH = 4;
float twice(float v) { return v + v; }
int sign(int v) { if (v < 0) return -1; if (v > 0) return 1; return 0; }
__global__ void k(float *a, const int *b __aligned(16), int n __multipleof(8)) {
    float s[PART] = 0;
    LOOP(i, n) s += SQUARE(*(a + i * PART + 0 ... PART)) * twice(WIDTH);
    *(a + 0 ... PART) = sign(*b) * s;
}
"""


@cache
def c_texts() -> tuple[CText, ...]:
    """Sources in Triton-C; most of them are right."""
    sizes: dict[str, Any] = {"TM": 32, "TN": 16, "TK": 16, "TYPE": "float", "SIZE": 32}
    plain = {**sizes, **test_c_kernels.PLAIN_A, **test_c_kernels.PLAIN_B}
    found = [CText(_KERNEL.format(piece)) for piece in _PIECES]
    found += [CText(text, plain) for text in (test_c_kernels.MATMUL, test_twins.MATMUL)]
    found += [
        CText(text, sizes)
        for text in (
            test_c_kernels.ADD, test_c_kernels.TRANSPOSE, test_c_kernels.SOFTMAX, test_twins.ADD,
            _MACROS,
        )
    ]  # fmt: skip
    found.append(CText(test_c_kernels.CONVOLUTION, {**sizes, "SIZE_R": 3, "SIZE_S": 2}))
    found.append(CText(test_c_kernels.PARTS, {"TYPE": "float", "N": 3}))
    sections = (TESTS / "errors" / "c_mistakes.txt").read_text("utf-8").split("=== ")[1:]
    found += [CText(section.partition("\n")[2].partition("\n---\n")[0]) for section in sections]
    return tuple(found)


@cache
def right_c_texts() -> tuple[CText, ...]:
    """Those of `c_texts` that are lowered."""
    return tuple(text for text in c_texts() if _lowered(text) is not None)


def _lowered(source: CText) -> Module | None:
    try:
        return CSource(source.text, source.defines).lower(FrontendOptions())
    except TilewrightError:
        return None


@cache
def tile_texts() -> tuple[str, ...]:
    """Texts of tile IR: the inputs of all goldens, and what Triton-C and the passes make."""
    files = sorted((TESTS / "golden").rglob("*.tile"))
    found = [_without_marks(file.read_text("utf-8")) for file in files]
    for module in filter(None, map(_lowered, c_texts())):
        found.append(print_module(module))
        SHARED.run(module)
        found.append(print_module(module))
    return tuple(found)


def _without_marks(text: str) -> str:
    """The input of a golden, without the errors that it expects."""
    return re.sub(r" // error: .*", "", text.partition("// expect")[0])


@cache
def valid_tile_texts() -> tuple[str, ...]:
    """Those of `tile_texts` that can be read."""
    found: list[str] = []
    for text in tile_texts():
        try:
            parse_module(text)
        except TilewrightError:
            continue
        found.append(text)
    return tuple(found)
