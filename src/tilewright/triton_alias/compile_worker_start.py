"""Preparation of the process from which Inductor forks its compile workers.

Inductor forks all workers at once and gives kernels to any idle one, mostly one that has compiled
none. Without preparation, each would import the compiler (200 modules) and Inductor's tuning with
its first kernel. Workers share inherited pages until they write to them, so each also compiles a
kernel before it waits for others: a worker's second kernel takes a third of the time of its first.
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
"""An architecture on which all passes run: workers must not use the GPU, for they are forked."""


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
    """Compile a kernel for the devices of this build of PyTorch, and drop it."""
    with suppress(ImportError):  # the place is PyTorch's own affair
        import_late("torch._inductor.runtime.triton_heuristics")
    version = getattr(sys.modules.get("torch"), "version", None)
    has_cuda = getattr(version, "cuda", None) is not None
    target = _LIKE_ANY_GPU if has_cuda else backend_named("cpu").target()
    types = {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    rehearsal = partial(rehearse, ASTSource(sums_of_functions, types, {"BLOCK": 1024}), target)
    rehearsal()
    operating_system.at_fork(after_in_child=rehearsal)
