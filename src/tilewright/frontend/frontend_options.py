"""Options of a compilation that front ends read."""

from __future__ import annotations

from tilewright.language import TRITON_MAX_TENSOR_NUMEL
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class FrontendOptions:
    """Options that change the tile IR of a kernel; part of the cache key.

    capability: of the GPU, 10 * major + minor; 0 where PTX cannot be assembled; warps: of a
    program, 0 where one thread runs it; f32_default_precision: how `dot` may round fp32 operands
    by default; max_tile_numel: most elements of one tile; strict_triton: refuse extensions of
    Triton's language; triton_limits: refuse tiles, dots and dtypes that Triton refuses in every
    kernel for this GPU; ieee_rounding: quotients and roots are correctly rounded; int64_offsets:
    program ids, ranges and integer arguments are int64.
    """

    backend: str = "cpu"
    capability: int = 0
    warps: int = 0
    f32_default_precision: str = "ieee"
    debug: bool = False
    sanitize_overflow: bool = True
    max_tile_numel: int = TRITON_MAX_TENSOR_NUMEL
    strict_triton: bool = False
    triton_limits: bool = False
    ieee_rounding: bool = False
    int64_offsets: bool = False
