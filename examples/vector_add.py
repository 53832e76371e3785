"""The smallest kernel: each program instance adds one block of two vectors.

python examples/vector_add.py
"""

import numpy as np

import tilewright
import tilewright.language as tl


@tilewright.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out[i] = x[i] + y[i]"""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n  # the last block may stick out of the vectors
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def main() -> None:
    """Add a million numbers, compare with NumPy, show what the compiler made of the kernel."""
    n = 1_000_003
    x, y = np.random.default_rng(0).normal(size=(2, n)).astype(np.float32)
    out = np.empty_like(x)
    grid = (tilewright.cdiv(n, 1024),)
    compiled = add_kernel[grid](x, y, out, n, BLOCK=1024)
    print(f"largest difference from NumPy: {np.abs(out - (x + y)).max()}")
    print(compiled.asm["ttir"])


if __name__ == "__main__":
    main()
