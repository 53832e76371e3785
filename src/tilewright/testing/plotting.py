"""Plots of benchmarks with matplotlib, which is imported only here and only on use."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tilewright.runtime import NotAvailableError
from tilewright.testing.benchmark import Benchmark, Curve

BAND_OPACITY = 0.15
GRID_OPACITY = 0.3
MARKED_POINTS = 32
"""The most points of a curve that are marked: more would hide it."""

# matplotlib's Figure and Axes, which cannot be named without importing it.
Figure = Any
Axes = Any


def import_extra(module: str, purpose: str) -> ModuleType:
    """Import a module of the `[plot]` extra. Raises NotAvailableError with the command to install
    it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # Another module is missing in the extra itself: raise that error.
        if error.name != module.partition(".")[0]:
            raise
        raise NotAvailableError(
            purpose,
            f"{error.name} is not installed",
            "pip install 'tilewright[plot]'",
        ) from error


def plot(benchmark: Benchmark, curves: Sequence[Curve], show: bool, path: Path | None) -> None:
    """Draw the curves; write a PNG to `path` and open a window if `show`."""
    figure = _shown_figure() if show else _saved_figure()
    draw(figure.subplots(), benchmark, curves)
    if path is not None:
        figure.savefig(path)
    if show:
        _show(figure)


def _saved_figure() -> Figure:
    """A figure outside pyplot: it draws with Agg, needs no display and changes no global state."""
    return import_extra("matplotlib.figure", "drawing a benchmark").Figure()


def _shown_figure() -> Figure:
    return import_extra("matplotlib.pyplot", "showing a benchmark").figure()


def _show(figure: Figure) -> None:
    pyplot = importlib.import_module("matplotlib.pyplot")
    # Agg draws into memory only; show() would silently do nothing.
    if importlib.import_module("matplotlib").get_backend().lower() == "agg":
        warnings.warn(
            "there is no display to show the plot on; save_path writes it to a file", stacklevel=5
        )
    else:
        pyplot.show()
    pyplot.close(figure)


def draw(axes: Axes, benchmark: Benchmark, curves: Sequence[Curve]) -> None:
    """Draw every curve over the first x name, with a band for its ranges."""
    x = [point[0] for point in benchmark.points()]
    marker = "o" if len(x) <= MARKED_POINTS else None
    for index, curve in enumerate(curves):
        color, line = benchmark.styles[index][:2] if benchmark.styles else (None, None)
        (drawn,) = axes.plot(
            x, curve.values, label=curve.name, color=color, linestyle=line, marker=marker,
            markersize=4,
        )  # fmt: skip
        _draw_band(axes, x, curve, drawn.get_color())
    axes.legend()
    axes.grid(alpha=GRID_OPACITY)
    axes.set_title(benchmark.plot_name)
    axes.set_xlabel(benchmark.xlabel or benchmark.x_names[0])
    axes.set_ylabel(benchmark.ylabel)
    axes.set_xscale("log" if benchmark.x_log else "linear")
    axes.set_yscale("log" if benchmark.y_log else "linear")


def _draw_band(axes: Axes, x: Sequence[object], curve: Curve, color: str) -> None:
    if not any(curve.ranges):
        return
    # A NaN leaves a hole in the band where a point has no range.
    gap = (float("nan"), float("nan"))
    low, high = zip(*(span or gap for span in curve.ranges), strict=True)
    axes.fill_between(x, low, high, alpha=BAND_OPACITY, color=color)
