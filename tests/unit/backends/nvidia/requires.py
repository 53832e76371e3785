"""Marks for tests that need NVIDIA's tools."""

import pytest

from tilewright.backends.nvidia.assemble.ptxas import find_ptxas
from tilewright.support import errors


def _has_ptxas() -> bool:
    try:
        find_ptxas()
    except errors.ToolMissing:
        return False
    return True


needs_ptxas = pytest.mark.skipif(not _has_ptxas(), reason="ptxas is not installed")
