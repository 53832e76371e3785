"""Matrix multiplication with block sizes chosen by measuring, and a leaky ReLU for free.

    python examples/matmul.py [size]

The choice for a size is kept on disk: the second run does not measure again.
"""

import sys

import numpy as np

import tilewright
from tilewright import testing
from tilewright.kernels.matmul import matmul_kernel
from tilewright.kernels.matmul_arrays import PLAIN

CONFIGS = [
    tilewright.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 4})
    for m, n, k in ((64, 128, 64), (128, 128, 64), (128, 256, 64), (128, 256, 128))
]

tuned = tilewright.autotune(configs=CONFIGS, key=["M", "N", "K"])(matmul_kernel)


def matmul(a: np.ndarray, b: np.ndarray, slope: float = 0.01) -> np.ndarray:
    """leaky_relu(a @ b), in any layout of the operands."""
    (m, k), n = a.shape, b.shape[1]
    c = np.empty((m, n), np.float32)
    strides = [step // array.itemsize for array in (a, b, c) for step in array.strides]
    tuned[
        lambda meta: (tilewright.cdiv(m, meta["BLOCK_M"]) * tilewright.cdiv(n, meta["BLOCK_N"]),)
    ](a, b, c, m, n, k, *strides, slope, **{**PLAIN, "ACTIVATION": "leaky_relu"})
    return c


def main() -> None:
    """Multiply, check, say what was chosen and how fast it is."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    a, b = np.random.default_rng(0).normal(size=(2, size, size)).astype(np.float32)
    c = matmul(a, b.T)
    exact = a.astype(np.float64) @ b.T
    difference = np.abs(c - np.where(exact >= 0, exact, exact * 0.01)).max()
    print(f"largest difference from float64: {difference:.1e}")
    print(f"best of {len(CONFIGS)}: {tuned.best_config}")
    for name, run in (("Tilewright", lambda: matmul(a, b.T)), ("NumPy", lambda: a @ b.T)):
        ms = testing.do_bench(run, warmup=10, rep=50)
        assert isinstance(ms, float)
        print(f"{name}: {2e-6 * size**3 / ms:.0f} GFLOP/s")


if __name__ == "__main__":
    main()
