"""Imports among the benchmarks: rooms are independent, on shared modules, without a cycle."""

import grimp
import pytest

ROOMS = {"cpu", "gpu", "torch", "compile_time"}
SHARED = {"harness", "checks", "event_clock", "worker_process", "keep_results", "serving"}
LAYERS = (ROOMS, {"compared_rows"}, SHARED, {"triton_twins"}, {"kernels"})


@pytest.fixture
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("benchmarks", cache_dir=None)


def broken_rules(graph: grimp.ImportGraph) -> list[object]:
    """Imports upwards or from room to room, and those that close a cycle."""
    wrong = graph.find_illegal_dependencies_for_layers(LAYERS, containers={"benchmarks"})
    packages = ["benchmarks", *(f"benchmarks.{room}" for room in ROOMS)]
    return [*wrong, *(link for p in packages for link in graph.nominate_cycle_breakers(p))]


def test_rooms_are_independent_and_without_cycles(graph: grimp.ImportGraph) -> None:
    assert set().union(*LAYERS) == {
        child.removeprefix("benchmarks.") for child in graph.find_children("benchmarks")
    }
    assert not broken_rules(graph)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("cpu.cases", "gpu.matmul"),
        ("harness", "cpu.cases"),
        ("gpu.first_launches", "gpu.attention"),
    ],
)
def test_a_planted_import_is_found(graph: grimp.ImportGraph, importer: str, imported: str) -> None:
    graph.add_import(importer=f"benchmarks.{importer}", imported=f"benchmarks.{imported}")
    assert broken_rules(graph)
