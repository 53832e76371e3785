"""Long straight-line code is split into blocks, wherever its parts end."""

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.backends.cpu.lower import split_blocks


@tilewright.jit
def stores(out, n, COUNT: tl.constexpr):
    i = tl.arange(0, 8)
    for k in tl.static_range(COUNT):
        tl.store(out + 8 * k + i, n + k)


@pytest.mark.parametrize("first", [10, 20, 30])
def test_code_may_be_divided_right_before_its_end(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the number of lines that the last store ends on."""
    for lines in range(first, first + 10):
        monkeypatch.setattr(split_blocks, "LONG", lines)
        out = np.zeros(8 * 4, np.int32)
        with tilewright.settings().cache.scope(always_compile=True):
            tilewright.jit(stores.fn)[(1,)](out, 5, COUNT=4)
        assert out.tolist() == [5 + k for k in range(4) for _ in range(8)]
