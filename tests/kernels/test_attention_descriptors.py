"""Attention by tensor descriptors: what attention by pointers computes, beside float64."""

import importlib
from dataclasses import replace
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
    empty_on,
    operands,
    words_of,
)
from tilewright.kernels.attention_arrays import row_strides

module = importlib.import_module("tilewright.kernels.attention_descriptors")
attention_by_descriptors = module.attention_by_descriptors


@pytest.fixture
def on(device: Device, monkeypatch: pytest.MonkeyPatch) -> Device:
    """The device, on which the function runs."""
    kernel = Launched(device, module.descriptor_attention_kernel)
    monkeypatch.setattr(module, "descriptor_attention_kernel", kernel)
    monkeypatch.setattr(module, "empty", lambda *args: empty_on(device, *args))
    return device


NAMES = ["shared keys", "rows without keys", "other values", "soft cap", "negative scale"]


@pytest.mark.parametrize("name", NAMES)
def test_attention_by_descriptors(on: Device, rng: np.random.Generator, name: str):
    case = CASES[name]
    if on.is_slow:
        if name != "rows without keys":
            pytest.skip("takes long, and differs by functions that attention by pointers has, too")
        case = replace(case, batch=1)
    q, k, v = operands(case, rng, "float32")[:3]
    expected, logs = Exact(case).forward(q, k, v)
    q, k, v = map(on.array, (q, k, v))
    lse = on.empty(q.shape[:-1], np.float32)
    out = attention_by_descriptors(q, k, v, lse=lse, **words_of(case, on))
    assert_close(on, out, expected)
    assert_close(on, lse, logs)


def test_bf16_into_an_array_of_fp32(on: Device, rng: np.random.Generator):
    case = Case(batch=1, heads=(2, 1), lengths=(19, 35), sizes=(32, 32), words={"causal": True})
    q, k, v, grad = operands(case, rng, "bfloat16")
    expected, _ = Exact(case).forward(q, k, v)
    out = on.empty(grad.shape, np.float32)
    found = attention_by_descriptors(*map(on.array, (q, k, v)), causal=True, out=out)
    assert found is out
    assert_close(on, out, expected, "float16")


def test_no_keys(on: Device, rng: np.random.Generator):
    q, k, v, _ = operands(Case(batch=1, lengths=(5, 0)), rng, "float32")
    lse = on.empty(q.shape[:-1], np.float32)
    out = attention_by_descriptors(*map(on.array, (q, k, v)), lse=lse)
    assert out.shape == q.shape and not np.asarray(out).any()
    assert np.all(np.asarray(lse) == -np.inf)


def test_heads_within_rows_and_rows_that_no_copy_engine_reads(on: Device, rng: np.random.Generator):
    """As projections give them; of three heads of 5 numbers each row begins anywhere."""
    rows = rng.normal(size=(1, 21, 3, 3, 16)).astype(np.float32)[..., :5]
    case = Case(heads=(3, 3), words={"causal": True})
    expected, _ = Exact(case).forward(*rows.transpose(2, 0, 3, 1, 4))
    q, k, v = on.array(rows).transpose(2, 0, 3, 1, 4)
    assert_close(on, attention_by_descriptors(q, k, v, causal=True), expected)


def test_what_is_multiplied_comes_by_the_copy_engine(rng: np.random.Generator):
    """As by pointers: from a producer on Hopper; the last block of each head is not whole."""
    on, case = EmulatedNvidia(seed=5), Case(batch=1, lengths=(50, 140), sizes=(64, 64))
    q, k, v, _ = operands(case, rng, "float16")
    expected, _ = Exact(case).forward(q, k, v)
    arrays, out = [on.array(x) for x in (q, k, v)], on.array(np.zeros_like(q))
    of_q, of_k = row_strides(q), row_strides(k)
    compiled = on.run(
        module.descriptor_attention_kernel, (1, 2), *arrays, out, None, *of_q, *of_k, *of_k, *of_q,
        0, 0, 2, 50, 140, 0.125, 0, (), BLOCK_M=64, BLOCK_N=128, num_warps=4, num_stages=2,
        HEAD=64, VALUE=64, SHARED=1, LEFT=-1, RIGHT=-1, AT_END=False, SCORE=None, DROPOUT=0.0,
        GROUP=1,
    )  # fmt: skip
    code = str(compiled.asm["ttgir"])
    assert "nvidia.roles" in code and "nvidia.wgmma " in code and "nvidia.bulk_copy " in code
    assert "mem.load" not in code and "nvidia.async_copy" not in code
    assert_close(on, out, expected, "float16")


@pytest.mark.parametrize(
    ("shapes", "words", "message"),
    [
        (((2, 8, 16), (2, 8, 16), (2, 9, 16)), {}, "mismatched shapes"),
        (((3, 8, 16), (2, 8, 16), (2, 8, 16)), {}, "3 heads of queries are not a multiple of 2"),
        (((8, 16),) * 3, {}, "3 or 4 dims"),
        (((2, 8, 16),) * 3, {"window": (-2, 0)}, "cannot be negative"),
        (((2, 8, 16),) * 3, {"scales": (1.0, 1.0, 1.0)}, "no starts, no scales, and no fp8"),
    ],
)
def test_operands_that_do_not_fit(shapes: Any, words: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        attention_by_descriptors(*[np.zeros(shape, np.float32) for shape in shapes], **words)


def test_arrays_and_words_that_it_does_not_take():
    x = np.zeros((2, 8, 16), np.float32)
    with pytest.raises(ValueError, match="must be contiguous"):
        attention_by_descriptors(*[x.swapaxes(-1, -2)] * 3)
    with pytest.raises(ValueError, match="no fp8"):
        attention_by_descriptors(*[x.astype("float8_e5m2")] * 3)
    with pytest.raises(TypeError, match=r"by_descriptors\(\) has no argument 'windw'; .*'window'"):
        attention_by_descriptors(x, x, x, windw=(1, 1))
