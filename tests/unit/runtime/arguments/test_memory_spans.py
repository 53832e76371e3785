"""The memory of arrays."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from tilewright.runtime import reinterpret
from tilewright.runtime.arguments.memory_spans import spans_of

BASE = np.zeros((8, 16), np.int32)
START = BASE.ctypes.data


@pytest.mark.parametrize(
    ("array", "first", "size"),
    [
        (BASE, 0, 512),
        (BASE[2], 128, 64),
        (BASE[:, 3], 12, 7 * 64 + 4),
        (BASE[1:3, 2:4], 72, 64 + 8),
        (BASE[::-1], 0, 512),
        (BASE.T, 0, 512),
        (BASE[3:4, 4:5], 3 * 64 + 16, 4),
        (np.broadcast_to(BASE[0], (9, 16)), 0, 64),
        (reinterpret(BASE, np.float32), 0, 512),
    ],
)
def test_arrays_of_numpy(array: Any, first: int, size: int) -> None:
    assert spans_of([array]) == [(START + first, size)]


def test_a_scalar_array_and_an_empty_one() -> None:
    one = np.zeros((), np.float64)
    assert spans_of([one, BASE[:0], one]) == [(one.ctypes.data, 8)]


def test_parts_that_overlap_or_touch_are_one() -> None:
    assert spans_of([BASE[4:6], BASE[:2], BASE[1:3]]) == [(START, 192), (START + 256, 128)]
    assert spans_of([BASE[2:4], BASE[:2]]) == [(START, 256)]
    assert spans_of([BASE[:8], BASE[2]]) == [(START, 512)]


def test_what_does_not_tell_its_memory() -> None:
    class Opaque:
        def data_ptr(self) -> int:
            return START

    assert spans_of([BASE, Opaque()]) is None
    assert spans_of([]) == []


@pytest.mark.torch
def test_tensors() -> None:
    torch = pytest.importorskip("torch")

    tensor = torch.zeros(4, 8, dtype=torch.float16)
    assert spans_of([tensor[:, 2:4]]) == [(tensor.data_ptr() + 4, 3 * 16 + 4)]
    assert "torch" in sys.modules
