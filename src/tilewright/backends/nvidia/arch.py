"""NVIDIA architectures as data: one row each; other code tests only fields of rows.

Limits are those of the CUDA programming guide ("Compute Capabilities", technical specifications).
ptxas 13.0 decided which instructions a row has: the unit tests assemble, for each row and each
field, PTX that must be accepted or refused. `assemble/nvptx_legality.py` reads some fields by name
(`Intrinsic.needs`).
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.layout import FRAGMENTS, Fragment
from tilewright.llvm import TargetSpec
from tilewright.support import errors
from tilewright.support.data_class import dataclass

TRIPLE = "nvptx64-nvidia-cuda"
_KB = 1024


@dataclass(frozen=True, slots=True)
class MmaForm:
    """A warp's MMA d = a @ b + d: `mma.sync.aligned.m{m}n{n}k{k}.row.col`.

    operand: element type of a and b; accumulator: of d; fragment: where their elements are held.
    """

    operand: str
    accumulator: str
    fragment: Fragment

    @property
    def shape(self) -> tuple[int, int, int]:
        """(m, n, k)."""
        return self.fragment.m, self.fragment.n, self.fragment.k


@dataclass(frozen=True, slots=True, kw_only=True)
class Arch:
    """One architecture: limits, then its instructions.

    capability: 10 * major + minor; cpu: name for LLVM and ptxas, where a letter at the end means
    that code runs on this capability only; ptx: version of PTX that is emitted, 10 * major + minor.
    Sizes are in bytes; `_sm` is what a multiprocessor has, the rest what a program (block) or a
    thread may use.
    """

    capability: int
    cpu: str
    ptx: int

    shared_optin: int
    shared_sm: int
    shared_reserved: int = _KB
    """Taken from `shared_sm` for each resident program."""
    registers_thread: int = 255
    registers_sm: int = 65536
    register_unit: int = 256
    """Registers are allocated to warps in multiples of this."""
    warp_size: int = 32
    warps_sm: int
    blocks_sm: int

    mma: tuple[MmaForm, ...]

    # copies between global and shared memory
    cp_async: bool = True
    tma: bool = False
    # between shared memory and registers
    stmatrix: bool = False
    # MMAs that read shared memory
    wgmma: bool = False
    # synchronization and roles
    proxy_fence: bool = False
    clusters: bool = False
    elect_sync: bool = False
    setmaxnreg: bool = False
    dependent_launch: bool = False
    # across a warp
    redux_integer: bool = True
    redux_float: bool = False
    # global memory
    v8_access: bool = False
    """Loads and stores of 32 bytes."""
    bf16_atomic_add: bool = False
    vector_atomic_add: bool = False
    # arithmetic
    fp8_conversion: bool = False
    bf16_conversion_packed: bool = True
    bf16_fma: bool = True
    bf16_arithmetic: bool = False
    """Addition, multiplication and conversion to integers; without it the former are FMAs."""

    @property
    def name(self) -> str:
        """sm_80 ...: without the letter of `cpu`."""
        return f"sm_{self.capability}"

    @property
    def access_bytes(self) -> int:
        """The widest load or store of global memory."""
        return 32 if self.v8_access else 16

    @property
    def target(self) -> TargetSpec:
        """The target for LLVM."""
        return TargetSpec(TRIPLE, self.cpu, f"+ptx{self.ptx}", effort=1)

    def mma_forms(self, operand: str, accumulator: str) -> tuple[MmaForm, ...]:
        """MMAs of these element types, the largest last; empty without any."""
        return tuple(
            form for form in self.mma if form.operand == operand and form.accumulator == accumulator
        )


def _forms(operands: str, accumulator: str, *fragments: str) -> tuple[MmaForm, ...]:
    """Rows of `FRAGMENTS`, the table of all instructions, for some types."""
    rows = [FRAGMENTS[name] for name in fragments]
    return tuple(MmaForm(o, accumulator, row) for o in operands.split() for row in rows)


_MMA_TURING = (
    *_forms("f16", "f32", "m16n8k8.b16"),
    *_forms("f16", "f16", "m16n8k8.b16"),
    *_forms("i8 u8", "i32", "m8n8k16.b8"),
)
_MMA_AMPERE = (
    *_forms("f16", "f32", "m16n8k8.b16", "m16n8k16.b16"),
    *_forms("f16", "f16", "m16n8k8.b16", "m16n8k16.b16"),
    *_forms("bf16", "f32", "m16n8k8.b16", "m16n8k16.b16"),
    *_forms("tf32", "f32", "m16n8k4.tf32", "m16n8k8.tf32"),
    *_forms("f64", "f64", "m8n8k4.f64"),
    *_forms("i8 u8", "i32", "m8n8k16.b8", "m16n8k16.b8", "m16n8k32.b8"),
)
_MMA_FP8 = (
    *_forms("f8e4m3 f8e5m2", "f32", "m16n8k16.b8", "m16n8k32.b8"),
    *_forms("f8e4m3 f8e5m2", "f16", "m16n8k16.b8", "m16n8k32.b8"),
)
_MMA_F64 = _forms("f64", "f64", "m16n8k4.f64", "m16n8k8.f64", "m16n8k16.f64")

_SM_75 = Arch(
    capability=75,
    cpu="sm_75",
    ptx=87,
    shared_optin=64 * _KB,
    shared_sm=64 * _KB,
    # The driver takes shared memory for itself from Ampere on only.
    shared_reserved=0,
    warps_sm=32,
    blocks_sm=16,
    mma=_MMA_TURING,
    cp_async=False,
    redux_integer=False,
    bf16_conversion_packed=False,
    bf16_fma=False,
)
_SM_80 = Arch(
    capability=80,
    cpu="sm_80",
    ptx=87,
    shared_optin=163 * _KB,
    shared_sm=164 * _KB,
    warps_sm=64,
    blocks_sm=32,
    mma=_MMA_AMPERE,
)
_SM_86 = replace(
    _SM_80,
    capability=86,
    cpu="sm_86",
    shared_optin=99 * _KB,
    shared_sm=100 * _KB,
    warps_sm=48,
    blocks_sm=16,
)
_SM_89 = replace(
    _SM_86,
    capability=89,
    cpu="sm_89",
    blocks_sm=24,
    mma=_MMA_AMPERE + _MMA_FP8,
    fp8_conversion=True,
)
_SM_90 = replace(
    _SM_89,
    capability=90,
    cpu="sm_90a",
    shared_optin=227 * _KB,
    shared_sm=228 * _KB,
    warps_sm=64,
    blocks_sm=32,
    mma=_MMA_AMPERE + _MMA_FP8 + _MMA_F64,
    tma=True,
    stmatrix=True,
    wgmma=True,
    proxy_fence=True,
    clusters=True,
    elect_sync=True,
    setmaxnreg=True,
    dependent_launch=True,
    bf16_atomic_add=True,
    vector_atomic_add=True,
    bf16_arithmetic=True,
)
_BLACKWELL = replace(
    _SM_90,
    ptx=88,
    # Hopper only; tensor memory replaces it on sm_100.
    wgmma=False,
    setmaxnreg=False,
    v8_access=True,
)
_SM_100 = replace(
    _BLACKWELL,
    capability=100,
    cpu="sm_100a",
    setmaxnreg=True,
    redux_float=True,
)
# Code for sm_100a runs on 10.0 only: 10.3 gets the common subset of the family.
_SM_103 = replace(_BLACKWELL, capability=103, cpu="sm_100")
_SM_120 = replace(
    _BLACKWELL,
    capability=120,
    cpu="sm_120",
    shared_optin=99 * _KB,
    shared_sm=100 * _KB,
    warps_sm=48,
    blocks_sm=24,
)

ARCHITECTURES = {
    row.capability: row for row in (_SM_75, _SM_80, _SM_86, _SM_89, _SM_90, _SM_100, _SM_120)
}
"""All rows by capability, ascending."""

_SAME_CODE = {87: _SM_86, 103: _SM_103, 121: _SM_120}
"""Capabilities without code of their own, and the row of their family whose code they run: one that
is not for a single capability (no letter at the end of `cpu`)."""


_TOO_OLD = (
    "CUDA 13 makes no more code for GPUs before Turing (sm_75): its ptxas does not support them"
)


def row_for(capability: int) -> Arch:
    """The row whose code runs on a capability (10 * major + minor, as in `GPUTarget.arch`).

    Raises UnknownTarget for one that there is no code for.
    """
    row = ARCHITECTURES.get(capability) or _SAME_CODE.get(capability)
    if row is None:
        names = [f"cuda:{c}" for c in ARCHITECTURES]
        reason = _TOO_OLD if capability < min(ARCHITECTURES) else ""
        raise errors.UnknownTarget(f"cuda:{capability}", names, reason)
    return row
