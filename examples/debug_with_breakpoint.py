"""Stop inside a kernel: in the interpreter it is the Python function that it looks like.

    python examples/debug_with_breakpoint.py

At the prompt try `p row`, `p x`, `p tl.sum(weights, 0)`, `n` for the next line, `c` to go on.
TILEWRIGHT_INTERPRET=1 makes every kernel of a program run like this one;
TILEWRIGHT_INTERPRET_PID=3,0,0 runs one program instance only.
"""

import numpy as np

import tilewright
import tilewright.language as tl


@tilewright.jit(interpret=True)
def normalize_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """Each row divided by its sum; row 2 sums to nothing."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0)
    weights = tl.abs(x)
    total = tl.sum(weights, axis=0)
    if total == 0:
        print("nothing to divide by in row", row)
        breakpoint()
    tl.store(out_ptr + row * columns + offsets, weights / total, mask=mask)


def main() -> None:
    """Run four rows, one of them bad."""
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    x[2] = 0
    out = np.zeros_like(x)
    with np.errstate(invalid="ignore"):
        normalize_kernel[(4,)](x, out, 5, BLOCK=8)
    print("row sums:", out.sum(axis=1))


if __name__ == "__main__":
    main()
