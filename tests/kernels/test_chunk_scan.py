"""The chunk scan of a state space model (Dao and Gu, "Mamba-2", 2024): a causal product whose first
operand is scaled by rows and columns, added to the product with the state before."""

from typing import Any

import numpy as np
import pytest

from tests.corpus.users.linear_attention import chunk_scan
from tests.kernels.devices import Array, Device
from tilewright import cdiv


def scanned(device: Device, rng: np.random.Generator, chunk: int, blocks: Any, **words: Any) -> Any:
    """What a launch leaves, and what it should; blocks: M, N, K, S."""
    head, size = 64, 16
    m, n, k, s = blocks
    scores, x = rng.normal(size=(chunk, chunk)), rng.normal(size=(chunk, head))
    c, state = rng.normal(size=(chunk, size)), rng.normal(size=(head, size))
    scores, x, c, state = (v.astype(np.float16) for v in (scores, x, c, state))
    decay = (-0.05 * np.arange(chunk)).astype(np.float32)
    step = rng.random(chunk).astype(np.float32)
    out = device.empty((chunk, head), np.float32)
    arrays = [device.array(v) for v in (scores, x, decay, step, c, state)]
    grid = (cdiv(chunk, m), cdiv(head, n))
    device.run(
        chunk_scan, grid, *arrays, out, chunk, head, size, M=m, N=n, K=k, S=s, **words
    )  # fmt: skip
    exact: list[Array] = [v.astype(np.float64) for v in (scores, x, decay, step, c, state)]
    scores, x, decay, step, c, state = exact
    weights = np.tril(scores * np.exp(np.minimum(decay[:, None] - decay, 0)) * step)
    return out, weights @ x + np.exp(decay)[:, None] * (c @ state.T)


@pytest.mark.parametrize("warps, stages", [(4, 2), (4, 3), (8, 4)])
@pytest.mark.parametrize("chunk", [128, 200])
@pytest.mark.parametrize("blocks", [(128, 64, 64, 16), (64, 32, 32, 16)], ids=str)
def test_chunk_scans(
    device: Device, rng: np.random.Generator, blocks: Any, chunk: int, warps: int, stages: int
) -> None:
    out, expected = scanned(device, rng, chunk, blocks, num_warps=warps, num_stages=stages)
    np.testing.assert_allclose(out, expected, atol=4e-3 * np.abs(expected).max())
