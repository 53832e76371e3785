"""`num_ctas`: a cluster of blocks runs each program, for any grid, and the PTX says so."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.kernels.devices import DEVICES
from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.gpu_tiles import tell_programs
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.support import errors


@pytest.mark.parametrize("num_ctas", [1, 2, 3, 4])
@pytest.mark.parametrize("programs", [0, 1, 7])
def test_each_program_runs_once(programs: int, num_ctas: int) -> None:
    device = DEVICES["emulated"]()
    out = device.array(np.zeros(8, np.int32))
    device.run(tell_programs, (programs,), out, num_ctas=num_ctas)
    assert out.tolist() == [2 * programs * (1 + i) * (i < programs) for i in range(8)]


@needs_ptxas
def test_the_ptx_asks_for_the_cluster() -> None:
    ptx = str(compiled(tell_programs, "*i32", num_ctas=2).asm["ptx"])
    assert re.search(r"\.explicitcluster\s+\.reqnctapercluster 2", ptx)
    assert "%clusterid.x" in ptx
    assert "cluster" not in str(compiled(tell_programs, "*i32").asm["ptx"])


@pytest.mark.parametrize(
    ("capability", "num_ctas", "expected"),
    [
        (80, 2, "must be 1 on sm_80, which has no clusters, found 2"),
        (90, 32, "must be at most 16, found 32"),
    ],
)
def test_clusters_that_there_are_not(capability: int, num_ctas: int, expected: str) -> None:
    with pytest.raises(errors.InvalidOption, match=expected):
        compiled(tell_programs, "*i32", capability, num_ctas=num_ctas)
