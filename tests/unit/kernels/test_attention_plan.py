"""Grids, blocks and launch options of attention on Hopper."""

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilewright.kernels import attention_blocks as blocks

forward = importlib.import_module("tilewright.kernels.attention")
plan = importlib.import_module("tilewright.kernels.attention_plan")


@pytest.mark.parametrize(
    ("head", "value", "item_bytes", "tile"),
    [
        (64, 64, 2, (64, 128, 4, 2, 168, 4)), (96, 96, 2, (64, 128, 4, 2)),
        (128, 128, 2, (128, 128, 8, 2)), (192, 128, 2, (128, 128, 8, 2)),
        (256, 256, 2, (128, 64, 8, 2)), (64, 64, 1, (64, 128, 4, 2, 168, 4)),
        (128, 128, 1, (64, 128, 4, 2, 168, 4)), (192, 128, 1, (128, 128, 8, 2)),
        (256, 256, 1, (128, 64, 8, 2)), (512, 512, 2, (64, 32, 8, 2)),
    ],
)  # fmt: skip
def test_tiles_on_hopper_are_those_of_which_three_or_two_programs_fit(
    head: int, value: int, item_bytes: int, tile: tuple[int, ...]
):
    assert tuple(plan.gpu_launch_options(head, item_bytes, 90, value).values()) == tile
    wide = plan.gpu_launch_options(head, item_bytes, 90, value, is_plain=False)
    assert tuple(wide.values()) == tile[:4]


@pytest.mark.parametrize(
    "words", [{"score": blocks.soft_cap}, {"dropout": 0.1}, {"window": (64, -1)}, {}]
)
def test_what_takes_more_registers_keeps_them(
    monkeypatch: pytest.MonkeyPatch, words: dict[str, Any]
):
    monkeypatch.setattr(plan, "current_gpu", lambda: SimpleNamespace(capability=90))
    variant = forward.variant_of("attention", False, 0.0, words)
    sizes = forward.sizes_of(*[np.empty((2, 2048, 64), np.float16)] * 3, variant)
    _, options = plan.planned_launch(sizes, 2, on_cpu=False, variant=variant)
    assert options.get("maxnreg") == (None if words else 168)


@pytest.mark.parametrize(("length", "keys"), [(1, 64), (1024, 64), (1025, 128)])
def test_short_causal_rows_take_blocks_of_fewer_keys(
    monkeypatch: pytest.MonkeyPatch, length: int, keys: int
):
    monkeypatch.setattr(plan, "current_gpu", lambda: SimpleNamespace(capability=90))
    sizes = forward.sizes_of(*[np.empty((2, length, 64), np.float16)] * 3, forward.variant_of(
        "attention", True, 0.0, {}
    ))  # fmt: skip
    options = plan.launch_options(sizes, 2, on_cpu=False, causal=True)
    assert (options["BLOCK_M"], options["BLOCK_N"], options["num_stages"]) == (64, keys, 2)


@pytest.mark.parametrize(
    ("pairs", "length", "group"), [(6, 1024, 2), (3, 1024, 1), (6, 1025, 1), (0, 8, 1)]
)
def test_programs_of_few_keys_take_turns_among_two_heads(
    monkeypatch: pytest.MonkeyPatch, pairs: int, length: int, group: int
):
    monkeypatch.setattr(plan, "current_gpu", lambda: SimpleNamespace(capability=90))
    rows = np.empty((pairs, 1, length, 128), np.float16)
    sizes = forward.sizes_of(rows, rows, rows, forward.variant_of("attention", False, 0.0, {}))
    options = plan.launch_options(sizes, 2, on_cpu=False, causal=False)
    assert options.get("GROUP", 1) == group
    assert np.prod(plan.grid_of(8, pairs, group)[0]) == 8 * pairs
