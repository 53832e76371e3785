"""Tiles that go to the copy engine: every element once, where the boxes of the engine have it."""

from typing import Any

import numpy as np
import pytest

from tests.emulator.descriptors import swizzled
from tilewright.backends.nvidia.layouts.layout_propagation import default_layout
from tilewright.backends.nvidia.layouts.select_wgmma import wgmma_result_layout
from tilewright.backends.nvidia.layouts.store_panels import PASS_BYTES, StorePanels, store_panels
from tilewright.layout import LANE, WARP, LinearLayout

Array = np.ndarray[Any, Any]
SHAPES = [
    (64, 64), (128, 128), (8, 32), (4, 64), (512, 16), (2, 8, 64), (1024,), (4, 2, 2, 2, 16),
]  # fmt: skip


def fragments(shape: tuple[int, int], warps: int) -> LinearLayout:
    rows = min(warps // 4, shape[0] // 64)
    return wgmma_result_layout((min(shape[1], 256), rows), 16, shape, warps)


def stored(panels: StorePanels, layout: LinearLayout, shape: tuple[int, ...], size: int) -> Array:
    """Elements by number, as all threads write them to their slots and the engine stores them."""
    result = np.full(shape, -1)
    lanes, warps = layout.in_size(LANE), layout.in_size(WARP)
    assert panels.access.kind == "vector"
    threads = list(np.ndindex(len(panels.access.groups), lanes, warps))
    for part in panels.passes:
        memory = np.full(panels.slot_bytes // size, -1)
        for index, lane, warp in threads:
            (at,) = panels.access.address.apply(instruction=index, lane=lane, warp=warp)
            registers = [part.registers[register] for register in panels.access.groups[index]]
            places = [layout.apply(register=r, lane=lane, warp=warp) for r in registers]
            memory[at : at + len(places)] = [np.ravel_multi_index(p, shape) for p in places]
        read_boxes(panels, part.columns, memory, size, result)
    return result


def read_boxes(
    panels: StorePanels, columns: tuple[int, ...], memory: Array, size: int, result: Array
) -> None:
    for number in range(len(columns) * panels.boxes):
        bytes_ = number * panels.box_bytes + np.arange(0, panels.box_bytes, 16, dtype=np.int64)
        at = swizzled(bytes_, panels.swizzle or 16)[:, None] // size + np.arange(16 // size)
        box = memory[at].reshape(panels.box)
        row = number % panels.boxes * panels.box[0] if len(panels.box) > 1 else 0
        column = columns[number // panels.boxes]
        starts = [0] * len(panels.box)
        starts[0], starts[-1] = starts[0] + row, starts[-1] + column
        result[tuple(slice(s, s + n) for s, n in zip(starts, panels.box, strict=True))] = box


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_element_goes_to_its_place(shape: tuple[int, ...], size: int) -> None:
    layout = default_layout(shape, 4)
    panels = store_panels(layout, shape, size, False)
    found = stored(panels, layout, shape, size)
    np.testing.assert_array_equal(found, np.arange(found.size).reshape(shape))


@pytest.mark.parametrize("shape, warps", [((64, 128), 4), ((128, 128), 8), ((64, 128), 8)])
def test_fragments_go_to_their_places(shape: tuple[int, int], warps: int) -> None:
    layout = fragments(shape, warps)
    panels = store_panels(layout, shape, 4, False)
    found = stored(panels, layout, shape, 4)
    np.testing.assert_array_equal(found, np.arange(found.size).reshape(shape))


@pytest.mark.parametrize(
    "shape, warps, size, passes, most, degree",
    [
        ((128, 256), 8, 2, 4, 2 * PASS_BYTES, 1),
        ((128, 128), 8, 2, 2, 2 * PASS_BYTES, 1),
        ((64, 256), 4, 2, 2, 2 * PASS_BYTES, 1),
        ((64, 64), 4, 2, 1, 8192, 1),
        ((128, 256), 8, 4, 8, 2 * PASS_BYTES, 2),
    ],
)
def test_fragments_need_few_bytes_and_no_two_threads_a_bank(
    shape: tuple[int, int], warps: int, size: int, passes: int, most: int, degree: int
) -> None:
    """But those of 32 bits: a thread has two columns of a row, and the swizzle moves four."""
    panels = store_panels(fragments(shape, warps), shape, size, True)
    assert (len(panels.passes), panels.bytes, panels.access.degree) == (passes, most, degree)
