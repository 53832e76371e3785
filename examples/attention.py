"""Attention whose matrix of scores never exists: keys and values stream past the queries.

python examples/attention.py [length]
"""

import sys

import numpy as np

from tilewright import kernels, testing


def attention_in_numpy(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool) -> np.ndarray:
    """softmax(q k^T / sqrt(size)) v, with length^2 scores for each head in memory."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(q.shape[-2], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


def main() -> None:
    """Compare both, with and without the causal mask."""
    length = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    q, k, v = np.random.default_rng(0).normal(size=(3, 4, length, 64)).astype(np.float32)
    for causal in (False, True):
        found = kernels.attention(q, k, v, causal=causal)
        exact = attention_in_numpy(q.astype(np.float64), k, v, causal)
        difference = np.abs(found - exact).max()
        ours = testing.do_bench(lambda: kernels.attention(q, k, v, causal=causal), 5, 30)  # noqa: B023
        theirs = testing.do_bench(lambda: attention_in_numpy(q, k, v, causal), 5, 30)  # noqa: B023
        kind = "causal" if causal else "full"
        print(f"{kind}: difference {difference:.1e}, {ours:.1f} ms; NumPy {theirs:.1f} ms")


if __name__ == "__main__":
    main()
