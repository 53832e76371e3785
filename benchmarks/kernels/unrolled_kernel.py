"""A loop that is unrolled: a kernel of any number of ops, for `benchmarks.compile_time`."""

import tilewright.language as tl
from tilewright import jit


@jit
def unrolled_kernel(x_ptr, y_ptr, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):  # noqa: N803
    """Each step adds 20 ops to the front end's tile IR: a masked load, arithmetic, a choice."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    y = x
    for i in tl.static_range(STEPS):
        t = tl.load(x_ptr + at + i, mask=at + i < n, other=0.0)
        y = y * 0.5 + t
        y = tl.where(y > t, y - t, y + x)
        y = tl.maximum(y, i * 0.25)
    tl.store(y_ptr + at, y, mask=at < n)
