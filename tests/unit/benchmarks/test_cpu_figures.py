"""The CPU comparisons: fractions of limits, predictions, the file of runs."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cpu import against_torch
from benchmarks.cpu.machine_limits import SIZES, Limits, Sample
from benchmarks.harness import Case, Timing, Work

PEAK, BYTES = 200.0, SIZES[2]


def limits_of(rate: float) -> Limits:
    limits = Limits((2,))
    for size in SIZES:
        limits.bandwidths["triad", 2, size] = Sample(rate, (rate,))
    limits.peaks["fp32", 2] = Sample(PEAK, (PEAK,))
    return limits


def figure_of(limits: Limits) -> Any:
    """A kernel that moves 1 GB in 20 ms at best, where torch takes 25."""
    timings = {
        "tilewright": Timing("tilewright", 1, (22.0, 20.0)),
        "torch": Timing("torch", 1, (25.0, 25.0)),
    }
    case = Case("add", "torch", timings, Work(1.0, "GB"))

    def limit(of: Limits, threads: int) -> float:
        return of.bandwidth("triad", threads, BYTES)

    return against_torch.Figure(case, "rows", "turns", 2, limit(limits, 2), BYTES, BYTES / 4, limit)


def test_a_figure_is_a_fraction_of_its_limit_and_a_ratio_to_torch(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figure = figure_of(limits_of(100.0))
    assert figure.fraction("tilewright") == pytest.approx(0.5)
    assert figure.as_json()["fractions"] == pytest.approx({"tilewright": 0.5, "torch": 0.4})
    against_torch.show(figure)
    printed = capsys.readouterr().out
    assert "0.50 of limit (torch  0.40)" in printed
    assert "1.19 x torch" in printed
    assert "below torch" not in printed


def test_another_machine_is_predicted_to_reach_the_same_fraction() -> None:
    figure = figure_of(limits_of(100.0))
    run = {"limits": limits_of(30.0).as_json(), "figures": [figure.as_json()]}
    (prediction,) = against_torch.predict([figure], run)
    assert prediction["predicted"] == pytest.approx(15.0)
    assert prediction["measured"] == pytest.approx([50.0])


def test_the_file_keeps_all_runs(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    for number in range(3):
        against_torch.append_run(path, {"number": number})
    assert [run["number"] for run in json.loads(path.read_text())["runs"]] == [0, 1, 2]
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.dev("matplotlib")
def test_the_plot_has_a_roof_for_each_level_and_a_point_for_each_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyplot: Any = import_module("matplotlib.pyplot")
    axes = pyplot.figure().subplots()
    monkeypatch.setattr(pyplot, "subplots", lambda **_: (axes.figure, axes))
    limits = limits_of(100.0)
    against_torch.plot([figure_of(limits)], limits, 2, tmp_path / "roofs.svg")
    assert (tmp_path / "roofs-2-threads.svg").stat().st_size > 1000
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "DRAM, 100 GB/s" in labels
    assert f"fp32, {PEAK:.0f} G/s" in labels
    ((intensity, rate),) = axes.collections[0].get_offsets()
    assert intensity == pytest.approx(0.25)
    assert rate == pytest.approx(BYTES / 4 / 0.02 * 1e-9)
