"""Gradients of attention where those of scores are kept, of some heads at a time."""

import importlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.kernels.devices import Device, EmulatedNvidia
from tests.kernels.test_attention import (
    CASES,
    Case,
    Exact,
    Launched,
    assert_close,
    backward,
    forward,
    operands,
)
from tests.kernels.test_attention import on as on  # a fixture
from tilewright.kernels.attention_arrays import Sizes

changes = importlib.import_module("tilewright.kernels.attention_score_gradients")


@pytest.mark.parametrize("name", ["shared keys", "causal from the end", "window"])
def test_gradients(
    on: Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, name: str
):
    """Of one head of keys at a time, in blocks of 16."""
    case = replace(CASES[name], batch=1 if on.is_slow else 2)

    def kept(like: Any, sizes: Sizes, *_: object) -> Any:
        of_head = sizes.shared * 64 * (-(-sizes.q_length // 16) * 16)
        # the fixture has programs for 64 keys
        plan = changes.partition_heads(sizes, 64, (16, 16, 4, 2), of_head)
        assert plan.heads == 1 and len(plan.parts) == case.batch * case.heads[1]
        return plan, on.empty(plan.shape, like.dtype)

    monkeypatch.setattr(backward, "allocate_gradients", kept)
    product = Launched(on, changes.queries_product_kernel, small=False)
    monkeypatch.setattr(changes, "queries_product_kernel", product)
    q, k, v, grad = operands(case, rng, "float32")
    expected = Exact(case).backward(grad, q, k, v)
    q, k, v, grad = map(on.array, (q, k, v, grad))
    lse = on.empty(q.shape[:-1], np.float32)
    out = forward.attention(q, k, v, lse=lse, **case.words)
    found = backward.attention_backward(grad, q, k, v, out, lse, **case.words)
    for one, gradient in zip(found, expected, strict=True):
        assert_close(on, one, gradient)


def test_on_hopper(rng: np.random.Generator):
    """No barrier stands in the loop that stores them; the last blocks are not whole."""
    on, size, length = EmulatedNvidia(seed=3), 64, 150
    exact = Exact(Case(heads=(1, 1)))
    q, k, v, grad = rng.normal(size=(4, 1, 1, length, size)).astype("float16")
    expected = exact.backward(grad.astype(np.float64), q, k, v)
    out, lse = exact.forward(q, k, v)
    products = (out * grad).sum(-1).astype(np.float32)
    arrays = [on.array(x) for x in (q, k, v, grad, lse.astype(np.float32), products)]
    dq, dk, dv = (on.array(np.zeros_like(q)) for _ in "qkv")
    kept = on.empty((1, 256, 256), np.float16)
    rows = (length * size, length * size, size)
    words = {"LEFT": -1, "RIGHT": -1, "AT_END": False, "HEAD": size, "SHARED": 1, "GROUP": 1,
             "num_warps": 8, "num_stages": 2}  # fmt: skip
    compiled = on.run(
        backward.keys_gradient_kernel, (2, 1), *arrays, dk, dv, None, None, *rows * 6, length,
        length, 1, length, length, size**-0.5, 0, (), kept, 256 * 256, 256, 0, BLOCK_M=64,
        BLOCK_N=128, VALUE=size, SCORE=None, SLOPE=None, DROPOUT=0.0, ROUND=128, **words,
    )  # fmt: skip
    consumers, _, producer = str(compiled.asm["ttgir"]).partition("nvidia.bulk_copy")
    loop = consumers[consumers.index("nvidia.wgmma ") :]
    loop = loop[: loop.index("mbarrier_arrive")]
    assert producer and "mem.store" in loop and "mem.barrier" not in loop
    on.run(
        changes.queries_product_kernel, (2, 1), kept, arrays[1], dq, 256 * 256, 256, 0, *rows * 2,
        1, length, length, size**-0.5, BLOCK_M=128, BLOCK_N=64, **words,
    )  # fmt: skip
    for found, gradient in zip((dq, dk, dv), expected, strict=True):
        assert_close(on, found, gradient, "float16")


SIZES = Sizes(batch=3, heads=10, shared=2, q_length=1000, k_length=500, head=128, value=128)


def test_heads_at_a_time():
    """Two heads of queries with 512 x 1024 each share a head of keys."""
    plan = changes.partition_heads(SIZES, 128, (256, 64, 8, 4), 7 << 20)
    assert plan.parts == ((0, 5), (5, 5), (10, 5)) and plan.shape == (10, 512, 1024)
    assert changes.partition_heads(SIZES, 128, (256, 64, 8, 4), (1 << 20) - 1) is None
    assert (
        changes.partition_heads(replace(SIZES, k_length=0), 128, (256, 64, 8, 4), 1 << 30) is None
    )


def test_where_they_are_kept(monkeypatch: pytest.MonkeyPatch):
    """On Hopper, of heads of 128 in 16 bits, if there is so much memory."""

    class OutOfMemoryError(Exception):
        pass

    def full(*_: object) -> Any:
        raise OutOfMemoryError

    def kept(hides_later: bool = False, bits: int = 16, **words: int) -> Any:
        rows = SimpleNamespace(is_cpu=False, itemsize=bits // 8)
        sizes = replace(SIZES, **{"batch": 4, "heads": 16, "shared": 1} | words)
        return changes.allocate_gradients(rows, sizes, 128, hides_later)

    monkeypatch.setattr(changes, "current_gpu", lambda: SimpleNamespace(capability=90))
    monkeypatch.setattr(changes, "empty", lambda _, shape: SimpleNamespace(shape=shape))
    plan, array = kept(q_length=4096, k_length=4096)
    assert array.shape == plan.shape == (32, 4096, 4096) and plan.parts == ((0, 32), (32, 32))
    assert 2 * np.prod(plan.shape) <= changes.MOST_BYTES
    assert kept(True, q_length=4096, k_length=4096) and kept(True) and kept()
    assert kept(bits=32) is None and kept(head=64, value=64) is None and kept(shared=2) is None
    # a head of 65,536 is more than is kept; of the longest causal programs few would run
    assert kept(q_length=65536, k_length=65536) is None
    assert kept(True, q_length=16384, k_length=16384) is None
    assert kept(q_length=16384, k_length=16384)
    monkeypatch.setattr(changes, "empty", full)
    assert kept() is None
    monkeypatch.setattr(changes, "current_gpu", lambda: SimpleNamespace(capability=80))
    assert kept() is None
