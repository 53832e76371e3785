"""Expand casts without instructions on NVIDIA GPUs.

    %w = arith.cast %z : tile<64xf32>                 (%z: tile<64xf8e5m2>)

on an architecture without fp8 conversions becomes

    %0 = arith.bitcast %z : tile<64xu8>
    %1 = arith.cast %0 : tile<64xu16>
    %2 = arith.constant {value = 8} : tile<64xu16>
    %3 = arith.shl %1, %2 : tile<64xu16>
    %4 = arith.bitcast %3 : tile<64xf16>
    %w = arith.cast %4 : tile<64xf32>

Other casts become several that are instructions: f64 to f16 goes through f32, rounded to odd. So
canonicalization, which merges casts, must not run after this pass.
"""

from __future__ import annotations

from functools import partial

from tilewright.backends.nvidia.arch import Arch, row_for
from tilewright.ir import Builder, Function, Op, Pass, Value
from tilewright.ir.types import DType, bf16, element_of, f8e4m3, f8e5m2, f16
from tilewright.ops import CastOp
from tilewright.support.data_class import dataclass
from tilewright.transforms.expand import expand, expand_cast, is_native_cast


def illegal_cast(op: Op, arch: Arch) -> str | None:
    """The error of a cast without an instruction on an architecture; None for legal casts."""
    assert isinstance(op, CastOp)
    is_native = is_native_cast(op, _native_floats(arch)) or _truncates_bf16(op, arch)
    return None if is_native else f"casts from {op.x.type} to {op.type} are expanded"


@dataclass(frozen=True)
class LegalizeCasts(Pass, name="nvidia-legalize-casts"):
    """Leave only casts that are instructions. capability: of the architecture."""

    capability: int = 90

    def run(self, function: Function) -> bool:
        return expand(function, {CastOp: partial(_expand_cast, arch=row_for(self.capability))})


def _expand_cast(op: Op, builder: Builder, arch: Arch) -> Value | None:
    assert isinstance(op, CastOp)
    if _truncates_bf16(op, arch):
        return None
    return expand_cast(op, builder, native=_native_floats(arch))


def _truncates_bf16(op: CastOp, arch: Arch) -> bool:
    """Whether a cast is the instruction from bf16 to integers, which excludes bytes."""
    source, target = element_of(op.x.type), element_of(op.type)
    integer = isinstance(target, DType) and target.is_integer and target.bits > 8
    return arch.bf16_arithmetic and source is bf16 and integer


def _native_floats(arch: Arch) -> frozenset[DType]:
    """The floats below 32 bits with conversion instructions from and to f32."""
    return frozenset((f16, bf16, f8e4m3, f8e5m2) if arch.fp8_conversion else (f16, bf16))
