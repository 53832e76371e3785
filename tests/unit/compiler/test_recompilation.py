"""`Backend.recompilation`: a second compilation, of which the better kernel is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.compiler.kernels import ADD, add
from tilewright.backends import GPUTarget, Metadata, StageContext, backend_named
from tilewright.backends.manifest import Recompilation
from tilewright.compiler import ASTSource
from tilewright.compiler.compile import compile_source, options_of
from tilewright.support import errors, settings


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Iterator[None]:
    with settings().cache.scope(dir=tmp_path / "cache"):
        yield


def compiled(costs: dict[str, float], fails: bool = False):
    """A kernel of the CPU whose last stage records a cost by the attempt, and the attempts."""
    cpu, attempts = backend_named("cpu"), list[str]()
    *others, last = cpu.stages

    def run(artifact: object, context: StageContext):
        attempt = str(context.metadata.get("attempt", "first"))
        attempts.append(attempt)
        if fails and attempt == "second":
            raise errors.OutOfResources(2, 1, "shared memory")
        context.metadata["cost"] = costs[attempt]
        return last.run(artifact, context)

    def plan(metadata: Metadata) -> Metadata | None:
        return {"attempt": "second"} if metadata["cost"] else None

    again = Recompilation(plan, lambda metadata: metadata["cost"])
    backend = replace(cpu, stages=(*others, replace(last, run=run)), recompilation=again)
    source = ASTSource(add, ADD, {"BLOCK": 64})
    kernel = compile_source(source, backend, GPUTarget("cpu", "", 1), options_of(backend, {}))
    return kernel, attempts


@pytest.mark.parametrize(
    ("first", "second", "fails", "attempts", "cost"),
    [
        (0, 0, False, ["first"], 0),
        (3, 1, False, ["first", "second"], 1),
        (3, 3, False, ["first", "second"], 3),
        (3, 5, False, ["first", "second"], 3),
        (3, 0, True, ["first", "second"], 3),
    ],
    ids=["good", "better", "equal", "worse", "error"],
)
def test_the_better_kernel_is_kept(
    first: float, second: float, fails: bool, attempts: list[str], cost: float
) -> None:
    kernel, made = compiled({"first": first, "second": second}, fails)
    assert made == attempts
    assert kernel.metadata.cost == cost
    assert hasattr(kernel.metadata, "attempt") == (cost == second and cost != first)
    assert {"ttir", "llir", "obj"} <= set(kernel.asm)


def test_the_verdict_is_cached() -> None:
    compiled({"first": 3, "second": 1})
    kernel, made = compiled({"first": 3, "second": 1})
    assert made == []
    assert kernel.metadata.attempt == "second"
