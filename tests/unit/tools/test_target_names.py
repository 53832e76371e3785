"""Targets by name."""

import pytest

from tilewright.backends import GPUTarget
from tilewright.tools.command_failure import CommandFailed
from tilewright.tools.target_names import target_named


@pytest.mark.parametrize("name", ["sm_90", "sm90", "sm_90a", "cuda:90"])
def test_nvidia_architectures(name):
    assert target_named(name) == GPUTarget("cuda", 90, 32)


def test_this_cpu():
    target = target_named("cpu")
    assert (target.backend, target.warp_size) == ("cpu", 1)


@pytest.mark.parametrize("name", ["abacus", "", "sm_", "sm_90x"])
def test_others(name):
    with pytest.raises(CommandFailed, match="no backend serves"):
        target_named(name)
