"""Programs of a multiprocessor at a time, as NVIDIA's occupancy calculator has them."""

import pytest

from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.explain.occupancy import resources_of


@pytest.mark.parametrize(
    ("capability", "warps", "registers", "shared", "programs", "limit"),
    [
        (90, 4, 32, 0, 16, "warps"),  # 16 x 4 warps are all 64; so many registers, too
        (90, 4, 33, 0, 12, "registers"),  # 40 registers are given
        (90, 4, 128, 0, 4, "registers"),
        (90, 4, 32, 100 * 1024, 2, "shared memory"),
        (90, 4, 32, 227 * 1024, 1, "shared memory"),
        (90, 1, 16, 0, 32, "programs"),
        (80, 8, 64, 48 * 1024, 3, "shared memory"),
        (86, 8, 32, 0, 6, "warps"),
        (75, 4, 64, 64 * 1024, 1, "shared memory"),
        (75, 8, 255, 0, 1, "registers"),
    ],
)
def test_what_allows_no_more_programs(
    capability: int, warps: int, registers: int, shared: int, programs: int, limit: str
) -> None:
    resources = resources_of(row_for(capability), warps, registers, 0, shared)
    assert (resources.programs, resources.limit) == (programs, limit)


def test_occupancy_is_a_part_of_all_warps() -> None:
    assert resources_of(row_for(90), 4, 128, 0, 0).occupancy == 0.25
