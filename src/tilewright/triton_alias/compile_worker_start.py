"""Makes ready the process that Inductor's compile workers are forked from.

Inductor forks all workers at once, and hands kernels to whichever is idle: mostly to one that has
compiled none. Without this each would import the compiler with its first kernel (200 modules), and
Inductor's own part of tuning. A worker shares what it inherits until it writes there, so each also
compiles that kernel itself before it waits for others. First kernels of workers took 0.1 s of a
processor, and the second 0.03.
"""

from __future__ import annotations

import sys
from functools import cache, partial

import tilewright.language as tl
from tilewright.backends import GPUTarget, backend_named
from tilewright.compiler import ASTSource, rehearse
from tilewright.runtime.jit import jit
from tilewright.support import import_late, operating_system
from tilewright.support.asynchronous_exceptions import suppress
from tilewright.triton_alias import compiled_files as compiled_files  # which workers call
from tilewright.triton_alias import knobs as knobs  # which Inductor reads for each kernel

_LIKE_ANY_GPU = GPUTarget("cuda", 90, 32)
"""Workers are not to touch the GPU, or they could not be forked: any that has all passes."""


@jit
def sums_of_functions(
    x: tl.tensor, out: tl.tensor, n: tl.tensor, BLOCK: tl.constexpr
) -> None:  # what most generated kernels use
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        mask = start + columns < n
        value = tl.load(x + row * n + start + columns, mask, other=0.0)
        term = tl.extra.libdevice.exp(value) + tl.sin(value) + tl.math.erf(value)
        total += tl.where(mask, term / 3.0, 0.0)
    tl.store(out + row, tl.sum(total, 0))


@cache
def prepare() -> None:
    """Compile a kernel for what PyTorch was built for, and forget it."""
    with suppress(ImportError):  # the place is PyTorch's own affair
        import_late("torch._inductor.runtime.triton_heuristics")
    version = getattr(sys.modules.get("torch"), "version", None)
    has_cuda = getattr(version, "cuda", None) is not None
    target = _LIKE_ANY_GPU if has_cuda else backend_named("cpu").target()
    types = {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    rehearsal = partial(rehearse, ASTSource(sums_of_functions, types, {"BLOCK": 1024}), target)
    rehearsal()
    operating_system.at_fork(after_in_child=rehearsal)
