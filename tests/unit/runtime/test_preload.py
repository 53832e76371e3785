"""`preload`: variants that are compiled from their description, for launches to come."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.runtime.kernels import new_value
from tilewright.runtime import jit
from tilewright.support import errors, kernel_hooks


def test_preload() -> None:
    value = new_value()
    data = {
        "name": f"{value.fn.__module__}.{value.fn.__qualname__}",
        "backend": "cpu",
        "signature": {"out": "*fp32", "number": "i32"},
        "constexprs": {},
        "attrs": [[[0], [["tt.divisibility", 16]]]],
        "options": {"num_warps": 2},
    }
    kernel = value.preload(json.dumps(data))
    assert kernel.metadata.num_warps == 2
    out = np.zeros(1, "f")
    kernel[(1,)](out, 7)
    assert out[0] == 7
    data["name"] = f"{__name__}.other"
    with pytest.raises(
        errors.OtherSpecialization, match=r"is of .*test_preload.other, not of .*value"
    ):
        value.preload(json.dumps(data))


@jit
def cast_and_scale(x, n, element: tl.constexpr, scales: tl.constexpr, *, flag: tl.constexpr):
    at = tl.arange(0, 16)
    value = tl.load(x + at).to(element) * scales[1]
    tl.store(x + at, tl.where(at < n, value, 0))


@pytest.mark.parametrize("n", [1, 7, 16, 48])
def test_a_preloaded_variant_is_what_a_launch_finds(n: int) -> None:
    told: list[dict[str, Any]] = []

    def note(**given: Any) -> None:
        told.append(given["compile"])

    def launch(x: Any) -> Any:
        return cast_and_scale[(1,)](x, n, tl.float16, (2, 3), flag=None, num_warps=2)

    x = np.ones(16, np.float32)
    made = cast_and_scale.device_caches[0][0]
    made.clear()
    cast_and_scale.hash = None  # forget the variants of other launches
    kernel_hooks.jit_cache = note
    try:
        first = launch(x)
        assert [told[0]["key"]] == list(made)
        made.clear()
        cast_and_scale.hash = None
        preloaded = cast_and_scale.preload(told[0]["specialization_data"])
        assert preloaded.hash == first.hash and list(made) == [told[0]["key"]]
        assert launch(x) is preloaded
        assert len(told) == 1
    finally:
        kernel_hooks.jit_cache = None
    assert x.tolist() == [9.0] * min(n, 16) + [0.0] * (16 - min(n, 16))
