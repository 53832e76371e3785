"""The register-blocked matrix micro-kernel, as LLVM IR text: C[M, N] += A[M, K] @ B[K, N]

All sizes and row strides are compile-time constants; the operands are row-major scratch buffers.
One description serves every vector unit (`register_blocking.py`); `blocked_loops.py`, which only
kernels with products import, emits them (`assembled_matmul.py` some of them in assembly):

    for each panel of 32 columns                     # its slice of B stays in the L1 cache
        for each panel of 8 rows
            accumulators[8][2] = 0                   # 16 of AVX-512's 32 registers, 16 fp32 each
            for k in range(K)                        # unrolled twice
                b0, b1 = B[k, columns]
                for i in 8 rows:                     # one broadcast feeds two multiply-adds
                    accumulators[i] += splat(A[row + i, k]) * (b0, b1)
            C[panel] += accumulators                 # C is read and written once a call

Choices, and what was measured for them (fp32, 128x128x64 in hot scratch, one core of a
Zen 5 with 512-bit units, whose peak is 262 GFLOP/s at 4.1 GHz; see `benchmarks.cpu.microkernel`):

* Panels of 8x2, 12x2, 14x2 and 6x4 vectors all come within 2 % of the peak: a core that does two
  loads and two multiply-adds a cycle has time for the ten loads of sixteen multiply-adds. A power
  of two divides the usual tiles, so one panel body is enough where 14 rows need two: half the text
  and half the compile time. It also leaves registers spare: 14x2 needs 31 of 32 and spills at some
  effort levels of the code generator (93 GFLOP/s). With 16 registers 6x2 is best (AVX2: 128
  GFLOP/s of 131; 4x2 has too few independent sums and reaches 112).
* Row-major operands. A or B packed into panel order, or A transposed: within 1 % alone and 2 % in
  a whole 1024^3 product, and the copy into scratch would become irregular.
* C is added at the end, not loaded first: no load stands before the first multiply-add, and the
  sum over K is rounded in blocks. Prefetching C costs 1-5 %.
* Columns outside, rows inside. The other order differs by less than 1 %.
"""

from .register_blocking import (
    AVX2,
    AVX512,
    CACHE_LINE,
    GENERIC,
    KEY_NUMBERS,
    NEON,
    PANEL_ROWS,
    TILE_CONFIGURATION,
    TILE_ROW_BYTES,
    TILE_ROWS,
    DotSpec,
    Strides,
    VectorUnit,
    are_whole_panels,
    kept_bytes,
    memory_depth,
    memory_step,
    packs_columns,
    preferred_strides,
    vector_unit,
)

__all__ = [
    "AVX2",
    "AVX512",
    "CACHE_LINE",
    "GENERIC",
    "KEY_NUMBERS",
    "NEON",
    "PANEL_ROWS",
    "TILE_CONFIGURATION",
    "TILE_ROWS",
    "TILE_ROW_BYTES",
    "DotSpec",
    "Strides",
    "VectorUnit",
    "are_whole_panels",
    "kept_bytes",
    "memory_depth",
    "memory_step",
    "packs_columns",
    "preferred_strides",
    "vector_unit",
]
