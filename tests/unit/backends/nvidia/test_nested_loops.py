"""Passes go through loops in loops in loops a few times for each, not for each way to get there."""

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends.nvidia.layouts.infer_layouts import LayoutInference
from tilewright.backends.nvidia.passes.insert_shared_barriers import _Ordering

pytestmark = needs_ptxas

HEADER = """
import tilewright.language as tl
from tilewright import jit

@jit
def kernel(x, out, n):
    i = tl.arange(0, 32)
    acc = tl.load(x + i)
    old = acc * 2
    square = tl.load(x + i[:, None] * 32 + i[None, :])
    other = square * 2
"""

BODIES = {
    "elementwise": "acc += 1.0",
    "exchange": "acc = acc + tl.sum(acc, 0)",
    "product": "square = tl.dot(square, square) + tl.sum(other, 1)[:, None]",
    "window": "old, acc = acc, old + acc\nsquare, other = tl.dot(square, other), square",
}


def nested(folder: Path, depth: int, body: str) -> Any:
    """A kernel with loops in each other, and a body in the innermost one."""
    lines = [HEADER.strip("\n")]
    for level in range(depth):
        lines.append("    " * (level + 1) + f"for k{level} in range(n):")
    lines += ["    " * (depth + 1) + line for line in body.split("\n")]
    lines.append("    tl.store(out + i, acc + old + tl.sum(square + other, 0))")
    file = folder / f"nested_{depth}.py"
    file.write_text("\n".join(lines))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often blocks were gone through, by pass."""
    counts = Counter[str]()

    def counted(owner: Any, name: str) -> None:
        kept = getattr(owner, name)

        def method(*args: Any) -> Any:
            counts[owner.__name__] += 1
            return kept(*args)

        monkeypatch.setattr(owner, name, method)

    counted(LayoutInference, "_assign_block")
    counted(_Ordering, "block")
    return counts


@pytest.mark.parametrize("kind", BODIES)
def test_nested_loops_take_time_as_their_number(
    tmp_path: Path, visits: Counter[str], kind: str
) -> None:
    totals: list[Counter[str]] = []
    for depth in (10, 20):
        visits.clear()
        compiled(nested(tmp_path, depth, BODIES[kind]), "*fp32 *fp32 i32")
        totals.append(visits.copy())
    small, large = totals
    for name in large:
        assert large[name] <= 3 * small[name], name
        assert large[name] < 1000, name
    assert visits["LayoutInference"] > 20
