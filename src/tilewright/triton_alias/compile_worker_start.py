"""Makes ready the process that Inductor's compile workers are forked from.

Inductor forks all workers at once, and hands kernels to whichever is idle: mostly to one that has
compiled none. Without this each would import the compiler with its first kernel (200 modules).
"""

from __future__ import annotations

import sys

import tilewright.language as tl
from tilewright.backends import GPUTarget, backend_named
from tilewright.compiler import ASTSource, rehearse
from tilewright.runtime.jit import jit

_LIKE_ANY_GPU = GPUTarget("cuda", 90, 32)
"""Workers are not to touch the GPU, or they could not be forked: any that has all passes."""


@jit
def sums_of_exponentials(
    x: tl.tensor, out: tl.tensor, n: tl.tensor, BLOCK: tl.constexpr
) -> None:  # what most generated kernels use
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        mask = start + columns < n
        value = tl.load(x + row * n + start + columns, mask, other=0.0)
        total += tl.where(mask, tl.exp(value) / 3.0, 0.0)
    tl.store(out + row, tl.sum(total, 0))


def prepare() -> None:
    """Compile a kernel for what PyTorch was built for, and forget it."""
    version = getattr(sys.modules.get("torch"), "version", None)
    has_cuda = getattr(version, "cuda", None) is not None
    target = _LIKE_ANY_GPU if has_cuda else backend_named("cpu").target()
    types = {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    rehearse(ASTSource(sums_of_exponentials, types, {"BLOCK": 1024}), target)
