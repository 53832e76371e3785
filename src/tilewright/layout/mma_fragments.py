"""Tensor-core fragments: the layouts of a matrix instruction's operands and result.

A `Fragment` is one instruction of the table `FRAGMENTS`: the layouts of A, B and C as the hardware
fixes them. The PTX ISA draws them as pictures; here they are bases. A is (m, k),
B is (k, n), C is (m, n); within a thread the low register bits are elements of one 32-bit register.

`result_layout` spreads C over a tile of any size, and `operand_layout` derives from it the layouts
of the same MMA's operands. Both serve ``mma.sync`` and ``wgmma``: a wgmma fragment has two warp
bits. Sources: PTX ISA 8.7, "Matrix fragments for
mma.m16n8k16" and its neighbours, "Register fragments for wgmma.mma_async".
"""

from collections.abc import Sequence
from functools import cache
from typing import Literal

from tilewright.layout.distributed_layouts import fit
from tilewright.layout.linear_layout import LANE, REGISTER, WARP, LinearLayout, log2
from tilewright.support.data_class import dataclass

Operand = Literal["a", "b"]


@dataclass(frozen=True, slots=True)
class Fragment:
    """The layouts of one matrix instruction: ``c[m, n] += a[m, k] * b[k, n]``.

    ``element_bits`` is the width of A and B elements. ``b`` is None where B can only come from
    shared memory (wgmma).
    """

    name: str
    m: int
    n: int
    k: int
    element_bits: int
    a: LinearLayout
    b: LinearLayout | None
    c: LinearLayout

    @property
    def warps(self) -> int:
        """The number of warps that execute one instruction together: 1, or 4 for wgmma."""
        return self.c.in_size(WARP)


_ROWS = "(1,0)(2,0)(4,0)"  # lane bits 2..4 of every fragment that is m16 tall
_COLUMNS = "(0,1)(0,2)(0,4)"  # the same for B, whose n is its second dim
_C = f"register=(0,1)(8,0) lane=(0,2)(0,4){_ROWS}"

# k x element -> A as (m, k), B as (k, n), for the m16n8 instructions.
_M16N8: tuple[tuple[str, int, int, str, str], ...] = (
    ("m16n8k16.b16", 16, 16, f"register=(0,1)(8,0)(0,8) lane=(0,2)(0,4){_ROWS}",
     f"register=(1,0)(8,0) lane=(2,0)(4,0){_COLUMNS}"),
    ("m16n8k8.b16", 8, 16, f"register=(0,1)(8,0) lane=(0,2)(0,4){_ROWS}",
     f"register=(1,0) lane=(2,0)(4,0){_COLUMNS}"),
    ("m16n8k8.tf32", 8, 32, f"register=(8,0)(0,4) lane=(0,1)(0,2){_ROWS}",
     f"register=(4,0) lane=(1,0)(2,0){_COLUMNS}"),
    ("m16n8k4.tf32", 4, 32, f"register=(8,0) lane=(0,1)(0,2){_ROWS}",
     f"register= lane=(1,0)(2,0){_COLUMNS}"),
    ("m16n8k16.b8", 16, 8, f"register=(0,1)(0,2)(8,0) lane=(0,4)(0,8){_ROWS}",
     f"register=(1,0)(2,0) lane=(4,0)(8,0){_COLUMNS}"),
    ("m16n8k32.b8", 32, 8, f"register=(0,1)(0,2)(8,0)(0,16) lane=(0,4)(0,8){_ROWS}",
     f"register=(1,0)(2,0)(16,0) lane=(4,0)(8,0){_COLUMNS}"),
    ("m16n8k4.f64", 4, 64, f"register=(8,0) lane=(0,1)(0,2){_ROWS}",
     f"register= lane=(1,0)(2,0){_COLUMNS}"),
    ("m16n8k8.f64", 8, 64, f"register=(8,0)(0,4) lane=(0,1)(0,2){_ROWS}",
     f"register=(4,0) lane=(1,0)(2,0){_COLUMNS}"),
    ("m16n8k16.f64", 16, 64, f"register=(8,0)(0,4)(0,8) lane=(0,1)(0,2){_ROWS}",
     f"register=(4,0)(8,0) lane=(1,0)(2,0){_COLUMNS}"),
)  # fmt: skip


def _text(bases: str, rows: int, columns: int) -> LinearLayout:
    return LinearLayout.parse(f"{bases} -> dim0:{rows} dim1:{columns}")


def _m16n8(name: str, k: int, bits: int, a: str, b: str) -> Fragment:
    return Fragment(name, 16, 8, k, bits, _text(a, 16, k), _text(b, k, 8), _text(_C, 16, 8))


_M8N8K4_F64 = Fragment(
    "m8n8k4.f64", 8, 8, 4, 64,
    _text(f"register= lane=(0,1)(0,2){_ROWS}", 8, 4),
    _text(f"register= lane=(1,0)(2,0){_COLUMNS}", 4, 8),
    _text(f"register=(0,1) lane=(0,2)(0,4){_ROWS}", 8, 8),
)  # fmt: skip

_M8N8K16_B8 = Fragment(
    "m8n8k16.b8", 8, 8, 16, 8,
    _text(f"register=(0,1)(0,2) lane=(0,4)(0,8){_ROWS}", 8, 16),
    _text(f"register=(1,0)(2,0) lane=(4,0)(8,0){_COLUMNS}", 16, 8),
    _text(f"register=(0,1) lane=(0,2)(0,4){_ROWS}", 8, 8),
)  # fmt: skip

FRAGMENTS: dict[str, Fragment] = {
    fragment.name: fragment
    for fragment in (*(_m16n8(*row) for row in _M16N8), _M8N8K4_F64, _M8N8K16_B8)
}
"""The mma.sync instructions by shape and element kind; b16 is f16 and bf16, b8 any 8-bit type.

An architecture (`Arch.mma`) names its rows, and for which types.
"""

_WGMMA_K = {8: "m16n8k32.b8", 16: "m16n8k16.b16", 32: "m16n8k8.tf32"}


@cache
def wgmma_fragment(n: int, element_bits: int) -> Fragment:
    """The ``m64nNkK`` wgmma instruction for A, B elements of 8, 16 or 32 (tf32) bits.

    Warp ``w`` of the warpgroup owns rows 16w to 16w+15, in which A is laid out as for
    ``mma.sync`` and C is N/8 adjacent n8 tiles. N is a power of two from 8 to 256: other multiples
    of 8 exist in hardware but are not linear maps.
    """
    if n not in (8, 16, 32, 64, 128, 256) or element_bits not in _WGMMA_K:
        raise ValueError(f"no linear wgmma fragment with n={n} and {element_bits}-bit elements")
    narrow = FRAGMENTS[_WGMMA_K[element_bits]]
    warps = LinearLayout.identity(WARP, "dim0", 4)
    # The n8 tiles of C follow each other in registers.
    wide = LinearLayout.identity(REGISTER, "dim1", n // 8)
    name = f"m64n{n}k{narrow.k}.wgmma{element_bits}"
    c = narrow.c * wide * warps
    return Fragment(name, 64, n, narrow.k, element_bits, narrow.a * warps, None, c)


def result_layout(fragment: Fragment, shape: Sequence[int], warps: tuple[int, int]) -> LinearLayout:
    """C of a whole (M, N) tile, computed by ``warps`` = (along M, along N) fragments at a time.

    ``warps`` counts single warps for mma.sync and warpgroups of four for wgmma. The fragments of
    all warps are adjacent, those along M numbered first; that pattern repeats in registers,
    along N first. Where the tile is smaller than the pattern, warps hold copies. ValueError for a
    tile that is smaller than one instruction.
    """
    if shape[0] < fragment.m or shape[1] < fragment.n:
        raise ValueError(f"a {shape[0]}x{shape[1]} tile is smaller than one {fragment.name}")
    pattern = fragment.c
    for dim, count in enumerate(warps):
        pattern *= LinearLayout.identity(WARP, f"dim{dim}", count)
    return fit(pattern, shape, order=(1, 0))


def operand_layout(
    fragment: Fragment, result: LinearLayout, operand: Operand, k: int
) -> LinearLayout:
    """A (M, K) or B (K, N) in registers for a dot whose result has layout ``result``.

    A thread needs the rows (columns) of C that it computes, over all of K. So the warps keep
    their position along M (N) and hold copies along the other dim; the registers are those of one
    fragment, then its repetitions along K, then along M (N) in the order of the result's
    registers.
    """
    own = 0 if operand == "a" else 1
    single = fragment.a if operand == "a" else fragment.b
    if single is None:
        raise ValueError(f"{fragment.name} takes operand {operand} from shared memory only")
    if k % fragment.k:
        raise ValueError(f"k={k} is not a multiple of the {fragment.k} of {fragment.name}")
    # Above the registers of one fragment: its repetitions over the tile.
    outer = result.bases(REGISTER)[log2(fragment.c.in_size(REGISTER)) :]
    bases = {name: list(single.bases(name)) for name in (REGISTER, LANE)}
    bases[REGISTER] += [_on(1 - own, 1 << bit) for bit in range(log2(fragment.k), log2(k))]
    bases[REGISTER] += [_on(own, basis[own]) for basis in outer if basis[own]]
    bases[WARP] = [_on(own, basis[own]) for basis in result.bases(WARP)]
    shape = (result.shape[0], k) if own == 0 else (k, result.shape[1])
    return LinearLayout.from_bases(bases, {"dim0": shape[0], "dim1": shape[1]})


def _on(dim: int, value: int) -> tuple[int, int]:
    """The basis ``value`` along ``dim`` of two dims."""
    return (value, 0) if dim == 0 else (0, value)
