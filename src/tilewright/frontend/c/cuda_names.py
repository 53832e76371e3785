"""Names of CUDA that Triton-C lacks, and their replacements."""

from __future__ import annotations

import re

_TILES = "a kernel is one thread, on tiles: int i[32] = get_program_id(0) * 32 + 0 ... 32"
_SHARED = "declare a tile, float x[16, 8]: the compiler uses shared memory where it has to"
_BARRIER = "leave it out: the compiler orders accesses; debug_barrier() is for global memory"

_REPLACEMENTS = {
    "threadIdx": _TILES,
    "blockDim": f"write the extent of the tile; {_TILES}",
    "blockIdx": "write get_program_id(0), (1), (2) for blockIdx.x, .y, .z",
    "gridDim": "write get_num_programs(0), (1), (2) for gridDim.x, .y, .z",
    "warpSize": "the compiler spreads tiles over warps; num_warps is an option of the launch",
    "__shared__": _SHARED,
    "__constant__": "declare the parameter const: const float *p",
    "__syncthreads": _BARRIER,
    "__syncwarp": _BARRIER,
    "__threadfence": _BARRIER,
    "__launch_bounds__": "num_warps is an option of the launch",
    "__host__": "functions of a source run in kernels only",
    "__forceinline__": "leave it out: all functions are inlined",
    "__noinline__": "leave it out: all functions are inlined",
    "__ldg": 'write *p, or load(p, cache_modifier = ".cg")',
    "dim3": "the grid is given where the kernel is launched",
}

_KINDS = (
    (r"__(shfl|reduce|ballot|any|all|match)_?\w*sync",
     "reduce along an axis, x[:, +], or use gather"),
    (r"(char|uchar|short|ushort|int|uint|long|ulong|half|float|double|bf16_)(2|3|4|8|16)",
     "accesses are vectorized by the compiler: write the type of one element"),
    (r"atomic(Add|Sub|Max|Min|And|Or|Xor|Exch|CAS)",
     "atomics are atomic_add, _max, _min, _and, _or, _xor, _xchg and _cas"),
    (r"(__half|__nv_bfloat16|nv_bfloat16|__nv_fp8_\w+)",
     "the types are half, bfloat16, fp8e4m3, fp8e5m2"),
)  # fmt: skip


def replacement_of(word: str) -> str | None:
    """The replacement of a name of CUDA; None for other names."""
    replacement = _REPLACEMENTS.get(word)
    return replacement or next((text for form, text in _KINDS if re.fullmatch(form, word)), None)
