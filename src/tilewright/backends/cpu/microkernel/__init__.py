"""The register-blocked matrix micro-kernel, as LLVM IR text: C[M, N] += A[M, K] @ B[K, N]

All sizes and row strides are compile-time constants; the operands are row-major scratch buffers.
One description serves every vector unit (`register_blocking.py`); `blocked_loops.py`, which is
imported only for kernels with dots, emits them (`assembled_matmul.py` emits some in assembly):

    for each panel of 32 columns                     # its slice of B stays in the L1 cache
        for each panel of 8 rows
            accumulators[8][2] = 0                   # 16 of AVX-512's 32 registers, 16 fp32 each
            for k in range(K)                        # unrolled twice
                b0, b1 = B[k, columns]
                for i in 8 rows:                     # one broadcast feeds two multiply-adds
                    accumulators[i] += splat(A[row + i, k]) * (b0, b1)
            C[panel] += accumulators                 # C is read and written once a call

The choices (figures in ADR 0033):

* Panels of 8x2 vectors, a power of two: it divides the usual tiles, so one panel body is enough
    where 14 rows need two, with half the text and half the compile time. It leaves registers spare,
    where 14x2 needs 31 of 32 and may spill. With 16 registers 6x2 is best, since 4x2 has too few
    independent accumulators.
* Row-major operands. Packing A or B into panel order, or transposing A, gains nothing, and the copy
    into scratch would become irregular.
* C is added at the end, not loaded first: no load precedes the first multiply-add, and the
    reduction over K is rounded in blocks. C is not prefetched.
* Columns outside, rows inside; the other order is as fast.
"""

# pyright: reportUnusedImport=false

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
    panel_shape,
    preferred_strides,
    vector_unit,
)
