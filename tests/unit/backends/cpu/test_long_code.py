"""Long straight-line code is divided into blocks, wherever its parts end."""

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.backends.cpu import long_code


@tilewright.jit
def stores(out, n, COUNT: tl.constexpr):
    i = tl.arange(0, 8)
    for k in tl.static_range(COUNT):
        tl.store(out + 8 * k + i, n + k)


@pytest.mark.parametrize(("lines", "count"), [(1, 3), (20, 40), (500, 41)])
def test_code_may_be_divided_right_before_its_end(
    lines: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_code, "LONG", lines)
    out = np.zeros(8 * count, np.int32)
    with tilewright.settings().cache.scope(always_compile=True):
        stores[(1,)](out, 5, COUNT=count)
    assert out.tolist() == [5 + k for k in range(count) for _ in range(8)]
