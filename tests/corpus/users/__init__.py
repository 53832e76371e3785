"""Kernels as users write them, by family: what the corpus watches besides the ready-made kernels.

A family is a file of kernels and its `CASES`. Most kernels are the least text that shows one kind
of access, arithmetic or loop; matmuls and attentions have the forms of tutorials and of public
projects.
"""

from tests.corpus.users import (
    atomics,
    attention,
    casts,
    elementwise,
    functions,
    fused_matmuls,
    gated,
    gathered_matmuls,
    linear_attention,
    matmuls,
    norms,
    paged_attention,
    quantization,
    reductions,
    scans,
    small_matmuls,
)

__all__ = ["FAMILIES"]

FAMILIES = {
    module.__name__.rpartition(".")[2]: module.CASES
    for module in (
        atomics, attention, casts, elementwise, functions, fused_matmuls, gated, gathered_matmuls,
        linear_attention, matmuls, norms, paged_attention, quantization, reductions, scans,
        small_matmuls,
    )
}  # fmt: skip
"""Cases by the name of their family."""
