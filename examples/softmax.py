"""Fused softmax: a row stays on the chip, so memory is read once and written once.

python examples/softmax.py [FOLDER]

With a FOLDER, plots are written there; that needs matplotlib (`pip install 'tilewright[plot]'`).
"""

import sys

import numpy as np

from tilewright import kernels, testing


def numpy_softmax(x: np.ndarray) -> np.ndarray:
    """Each step is a pass over memory of its own."""
    numerator = np.exp(x - x.max(axis=1, keepdims=True))
    return numerator / numerator.sum(axis=1, keepdims=True)


@testing.perf_report(
    testing.Benchmark(
        x_names=["columns"],
        x_vals=[256, 781, 1024, 4096],
        line_arg="provider",
        line_vals=["tilewright", "numpy"],
        line_names=["Tilewright", "NumPy"],
        ylabel="GB/s",
        plot_name="softmax",
        args={"rows": 1024},
    )
)
def bandwidth(rows: int, columns: int, provider: str) -> float:
    """Bytes read and written per second, if every element moved once each way."""
    x = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    out = np.empty_like(x)
    functions = {
        "tilewright": lambda: kernels.softmax(x, out=out),
        "numpy": lambda: numpy_softmax(x),
    }
    ms = testing.do_bench(functions[provider], warmup=5, rep=20)
    assert isinstance(ms, float)
    return 2 * x.nbytes * 1e-6 / ms


def main() -> None:
    """Check one odd size, then measure."""
    x = np.random.default_rng(1).normal(size=(583, 931)).astype(np.float32)
    difference = np.abs(kernels.softmax(x) - numpy_softmax(x.astype(np.float64))).max()
    print(f"largest difference from float64: {difference:.1e}")
    bandwidth.run(print_data=True, save_path=sys.argv[1] if len(sys.argv) > 1 else "")


if __name__ == "__main__":
    main()
