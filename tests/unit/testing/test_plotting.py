"""What is drawn: lines, bands, labels, scales, styles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tilewright.testing import Benchmark
from tilewright.testing.benchmark import Curve
from tilewright.testing.plotting import draw

pytestmark = pytest.mark.dev("matplotlib")

PLOT = Benchmark(
    x_names=["m", "n"],
    x_vals=[(1, 10), (2, 20), (4, 40)],
    line_arg="p",
    line_vals=[0, 1],
    line_names=["A", "B"],
    plot_name="plot",
    args={},
)


def curves() -> list[Curve]:
    banded, plain = Curve("A"), Curve("B")
    for result in [(2.0, 1.0, 3.0), (4.0, None, None), (6.0, 5.0, 8.0)]:
        banded.append(result)
    for result in [1, 2, 3]:
        plain.append(result)
    return [banded, plain]


def drawn(benchmark: Benchmark) -> Any:
    from matplotlib.figure import Figure

    axes: Any = Figure().subplots()
    draw(axes, benchmark, curves())
    return axes


def test_lines_run_over_the_first_x_name() -> None:
    axes = drawn(PLOT)
    assert [line.get_xydata().tolist() for line in axes.lines] == [
        [[1.0, 2.0], [2.0, 4.0], [4.0, 6.0]],
        [[1.0, 1.0], [2.0, 2.0], [4.0, 3.0]],
    ]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["A", "B"]


def test_only_curves_with_ranges_get_a_band_and_gaps_stay_open() -> None:
    (band,) = drawn(PLOT).collections
    assert band.get_alpha() == 0.15
    corners = {tuple(point) for path in band.get_paths() for point in path.vertices.tolist()}
    assert {(1.0, 1.0), (1.0, 3.0), (4.0, 5.0), (4.0, 8.0)} <= corners
    assert not any(x == 2.0 for x, _ in corners)


def test_a_band_has_the_colour_of_its_line() -> None:
    axes = drawn(replace(PLOT, styles=[("red", "--"), ("blue", "-"), ("unused", ":")]))
    assert [(line.get_color(), line.get_linestyle()) for line in axes.lines] == [
        ("red", "--"),
        ("blue", "-"),
    ]
    assert axes.collections[0].get_facecolor()[0].tolist() == [1.0, 0.0, 0.0, 0.15]


def test_labels_and_scales() -> None:
    plain = drawn(PLOT)
    assert (plain.get_xlabel(), plain.get_ylabel()) == ("m", "")
    assert (plain.get_xscale(), plain.get_yscale()) == ("linear", "linear")
    logs = drawn(replace(PLOT, xlabel="size", ylabel="GB/s", x_log=True, y_log=True))
    assert (logs.get_xlabel(), logs.get_ylabel()) == ("size", "GB/s")
    assert (logs.get_xscale(), logs.get_yscale()) == ("log", "log")


def test_a_plot_has_its_name_as_title_and_marks_on_few_points() -> None:
    from matplotlib.figure import Figure

    axes = drawn(PLOT)
    assert axes.get_title() == "plot"
    assert {line.get_marker() for line in axes.lines} == {"o"}
    many = replace(PLOT, x_vals=list(range(100)))
    dense, line = Figure().subplots(), Curve("A", [1.0] * 100, [None] * 100)
    draw(dense, many, [line])
    assert dense.lines[0].get_marker() in {"None", None}
