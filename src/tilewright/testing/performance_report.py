"""`perf_report`: run a benchmark function over sizes and variants; tables, CSV files and plots.

The interface, the file names and the meaning of every option are Triton's:

    @perf_report(
        Benchmark(
            x_names=["n"], x_vals=[2**i for i in range(12, 24)],
            line_arg="provider", line_vals=["tilewright", "numpy"], line_names=["Tilewright",
            "NumPy"], ylabel="GB/s", plot_name="add", args={},
        )
    )
    def bench(n, provider): ...                     # returns one number, or (value, low, high)

    bench.run(print_data=True, save_path="out")     # out/add.csv, out/add.png, out/results.html

The extra `[plot]` installs matplotlib, for plots, and pandas, for `return_df`. They are imported
when `run` starts, so that a missing one is reported before the measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilewright.runtime import Step, step_bar
from tilewright.support.data_class import dataclass
from tilewright.testing.benchmark import Benchmark, Curve
from tilewright.testing.plotting import import_extra, plot
from tilewright.testing.result_page import result_page
from tilewright.testing.result_table import Columns, columns_of, csv_text, table_text

BenchFn = Callable[..., object]
# pandas.DataFrame, which cannot be named without importing pandas.
DataFrame = Any
# A DataFrame, a list of them, or None.
Frames = Any

HTML_NAME = "results.html"


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[BenchFn], Mark]:
    """Decorate a benchmark function with one Benchmark, or a list that is run in order."""
    return lambda fn: Mark(fn, benchmarks)


@dataclass(frozen=True, slots=True)
class Output:
    """Options for the results of a run."""

    show_plots: bool
    print_data: bool
    folder: Path | None
    diff_col: bool
    precision: int
    frames: bool
    """Whether DataFrames are returned."""


class Mark:
    """A benchmark function with the benchmarks to run it on."""

    def __init__(self, fn: BenchFn, benchmarks: Benchmark | Sequence[Benchmark]) -> None:
        self.fn = fn
        self.benchmarks = benchmarks

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str | Path = "",
        return_df: bool = False,
        diff_col: bool = False,
        save_precision: int = 6,
        **kwargs: object,
    ) -> Frames:
        """Measure every point, then show, print and save.

        show_plots: open a window for each plot. print_data: print each table.
        save_path: folder (made if missing) for <plot_name>.csv, <plot_name>.png and results.html.
        return_df: return the DataFrame, or a list of them if perf_report was passed a list.
        diff_col: if there are two lines, add a column `Diff`: the second minus the first.
        save_precision: digits after the point in the CSV file.
        kwargs: passed on to the benchmark function.

        If a benchmark fails, earlier measurements are already on disk.
        """
        single = isinstance(self.benchmarks, Benchmark)
        benchmarks = (
            [self.benchmarks] if isinstance(self.benchmarks, Benchmark) else self.benchmarks
        )
        folder = Path(save_path) if save_path else None
        output = Output(show_plots, print_data, folder, diff_col, save_precision, return_df)
        # Before measuring, which may take minutes: a missing package would lose the results.
        _prepare(output)
        results: list[Columns] = []
        try:
            for benchmark in benchmarks:
                curves = _measure(self.fn, benchmark, kwargs)
                results.append(_emit(benchmark, curves, output))
        finally:
            # also after a failure, to list the plots that exist
            if folder is not None:
                page = result_page(list(zip(benchmarks, results, strict=False)))
                (folder / HTML_NAME).write_text(page, encoding="utf-8")
        if not return_df:
            return None
        pandas = import_extra("pandas", "perf_report")
        frames: list[DataFrame] = [pandas.DataFrame(columns) for columns in results]
        return frames[0] if single else frames


def _prepare(output: Output) -> None:
    """Import the extras that are needed, before the first measurement."""
    if output.frames:
        import_extra("pandas", "a DataFrame of perf_report")
    if output.show_plots or output.folder is not None:
        import_extra("matplotlib", "plotting a benchmark")
    if output.folder is not None:
        output.folder.mkdir(parents=True, exist_ok=True)


def _measure(fn: BenchFn, benchmark: Benchmark, extra: dict[str, object]) -> list[Curve]:
    curves = [Curve(name) for name in benchmark.line_names]
    points = benchmark.points()
    with step_bar(benchmark.plot_name, len(points) * len(curves)) as start:
        for point in points:
            _measure_point(fn, benchmark, point, curves, start, extra)
    return curves


def _measure_point(
    fn: BenchFn,
    benchmark: Benchmark,
    point: tuple[object, ...],
    curves: Sequence[Curve],
    start: Step,
    extra: dict[str, object],
) -> None:
    x_args = dict(zip(benchmark.x_names, point, strict=True))
    for curve, line in zip(curves, benchmark.line_vals, strict=True):
        start(f"{curve.name} {', '.join(f'{name}={x}' for name, x in x_args.items())}")
        curve.append(fn(**x_args, **{benchmark.line_arg: line}, **benchmark.args, **extra))


def _emit(benchmark: Benchmark, curves: Sequence[Curve], output: Output) -> Columns:
    """Plot, print and save one benchmark; returns its table."""
    png = output.folder / f"{benchmark.plot_name}.png" if output.folder else None
    if benchmark.plot_name and (output.show_plots or png):
        plot(benchmark, curves, output.show_plots, png)
    columns = columns_of(benchmark, curves, output.diff_col)
    if output.print_data:
        print(f"{benchmark.plot_name}:")
        print(table_text(columns))
    if output.folder is not None:
        path = output.folder / f"{benchmark.plot_name}.csv"
        path.write_text(csv_text(columns, output.precision), encoding="utf-8")
    return columns
