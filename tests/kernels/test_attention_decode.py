"""Attention of one query for each sequence, over keys in rows and in pages, beside float64."""

import importlib
from typing import Any

import numpy as np
import pytest

from tests.kernels.devices import Device

module = importlib.import_module("tilewright.kernels.attention_decode")

LENGTHS = [200, 0, 77, 64]
HEADS, SIZE = 6, 32


@pytest.fixture
def on(device: Device, monkeypatch: pytest.MonkeyPatch) -> Device:
    """The device, on which the function of the module runs."""

    class Launched:
        def __init__(self, kernel: Any) -> None:
            self.kernel = kernel

        def __getitem__(self, grid: Any) -> Any:
            return lambda *args, **words: device.run(self.kernel, grid, *args, **words)

    for name in ("decode_kernel", "join_kernel"):
        monkeypatch.setattr(module, name, Launched(getattr(module, name)))

    def empty(like: Any, shape: Any, dtype: Any = None) -> Any:
        return device.empty(shape, dtype or like.dtype)

    monkeypatch.setattr(module, "empty", empty)
    monkeypatch.setattr(module, "is_on_cpu", lambda array: False)
    return device


def exact(q: Any, k: Any, v: Any) -> Any:
    """Of queries (heads, size) over keys and values (rows, heads of keys, size)."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, len(q) // x.shape[1], 1) for x in (k, v))
    scores = np.einsum("hd,lhd->hl", q, k) * SIZE**-0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e30))
    total = weights.sum(-1, keepdims=True)
    return np.einsum("hl,lhd->hd", weights / np.where(total == 0, 1, total), v)


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("shared", [1, 3])
@pytest.mark.parametrize("page", [0, 16, 128], ids=["rows", "small pages", "large pages"])
def test_decoding(
    on: Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, page: int, shared: int,
    splits: int,
):  # fmt: skip
    monkeypatch.setattr(module, "_splits", lambda *args: splits)
    lengths, of_keys = LENGTHS[: on.pick(3, 4)], HEADS // shared
    batch, of_page = len(lengths), page or 16
    count = -(-max(lengths) // of_page)
    q = rng.normal(size=(batch, HEADS, SIZE)).astype(np.float16)
    pages = rng.permutation(count * batch).reshape(batch, count).astype(np.int32)
    rows = rng.normal(size=(2, count * batch, of_page, of_keys, SIZE)).astype(np.float16)
    k, v = rows[:, pages].reshape(2, batch, count * of_page, of_keys, SIZE)
    given = [on.array(x) for x in (rows if page else (k.swapaxes(1, 2), v.swapaxes(1, 2)))]
    table = on.array(pages) if page else None
    out = module.attention_decode(on.array(q), *given, on.array(np.array(lengths, np.int32)), table)
    for i, length in enumerate(lengths):
        expected = exact(q[i], k[i, :length], v[i, :length])
        np.testing.assert_allclose(out[i], expected, rtol=1e-2, atol=1e-2)


def test_heads_that_do_not_fit():
    q, k = np.zeros((1, 3, 16), np.float32), np.zeros((1, 2, 8, 16), np.float32)
    with pytest.raises(ValueError, match="mismatched shapes"):
        module.attention_decode(q, k, k, np.array([8], np.int32))
