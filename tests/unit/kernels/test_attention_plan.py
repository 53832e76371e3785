"""Grids and options of attention."""

from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.kernels import attention_plan as plan
from tilewright.kernels.attention_arrays import sizes_of, variant_of


@pytest.mark.parametrize(
    ("pairs", "length", "group"), [(6, 1024, 2), (3, 1024, 1), (6, 1025, 1), (0, 8, 1)]
)
def test_programs_of_few_keys_take_turns_among_two_heads(
    monkeypatch: pytest.MonkeyPatch, pairs: int, length: int, group: int
):
    monkeypatch.setattr(plan, "current_gpu", lambda: SimpleNamespace(capability=90))
    rows = np.empty((pairs, 1, length, 128), np.float16)
    sizes = sizes_of(rows, rows, rows, variant_of("attention", False, 0.0, {}))
    options = plan.launch_options(sizes, 2, on_cpu=False, causal=False)
    assert options.get("GROUP", 1) == group
    assert np.prod(plan.grid_of(8, pairs, group)[0]) == 8 * pairs
