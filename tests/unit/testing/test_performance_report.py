"""`perf_report`: what the function is called with, the tables, and every file that is written."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.testing import Benchmark, Mark, NotAvailableError, perf_report

pytestmark = pytest.mark.dev("matplotlib", "pandas")

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"

ADD = Benchmark(
    x_names=["n"],
    x_vals=[8, 16],
    line_arg="provider",
    line_vals=["ours", "theirs"],
    line_names=["Ours", "Theirs"],
    plot_name="add",
    args={"scale": 0.5},
    ylabel="GB/s",
)


def speed(n: int, provider: str, scale: float) -> float:
    return n * scale * (3 if provider == "ours" else 1)


def test_decorator_wraps_the_function() -> None:
    mark = perf_report(ADD)(speed)
    assert isinstance(mark, Mark)
    assert mark.fn is speed


def test_frame_has_one_row_a_point_and_one_column_a_line() -> None:
    frame = perf_report(ADD)(speed).run(return_df=True)
    assert frame.to_dict("list") == {"n": [8, 16], "Ours": [12.0, 24.0], "Theirs": [4.0, 8.0]}


def test_nothing_is_returned_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert perf_report(ADD)(speed).run() is None
    assert capsys.readouterr() == ("", "")


def test_print_data_prints_name_and_table(capsys: pytest.CaptureFixture[str]) -> None:
    perf_report(ADD)(speed).run(print_data=True)
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "add:",
        " n  Ours  Theirs",
        " 8  12.0     4.0",
        "16  24.0     8.0",
    ]
    assert printed.err == ""  # no progress bar where stderr is no terminal


def test_files_are_written_into_a_new_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    perf_report(ADD)(speed).run(save_path=str(folder))
    assert sorted(path.name for path in folder.iterdir()) == ["add.csv", "add.png", "results.html"]
    assert (folder / "add.csv").read_text().splitlines() == [
        "n,Ours,Theirs",
        "8,12.000000,4.000000",
        "16,24.000000,8.000000",
    ]
    assert (folder / "add.png").read_bytes().startswith(PNG_SIGNATURE)
    page = (folder / "results.html").read_text()
    assert '<h2>add <span class="unit">GB/s</span></h2>' in page
    assert '<img src="add.png" alt="add">' in page
    assert "<tr><td>16</td><td>24.0</td><td>8.0</td></tr>" in page
    assert "http" not in page


def test_save_precision_and_diff_column(tmp_path: Path) -> None:
    perf_report(ADD)(speed).run(save_path=tmp_path, diff_col=True, save_precision=1)
    assert (tmp_path / "add.csv").read_text().splitlines() == [
        "n,Ours,Theirs,Diff",
        "8,12.0,4.0,-8.0",
        "16,24.0,8.0,-16.0",
    ]


def test_a_list_of_benchmarks_gives_a_list_of_frames(tmp_path: Path) -> None:
    both = [ADD, replace(ADD, plot_name="<again>", x_vals=[32])]
    frames = perf_report(both)(speed).run(return_df=True, save_path=tmp_path)
    assert [list(frame["n"]) for frame in frames] == [[8, 16], [32]]
    assert '<img src="&lt;again&gt;.png"' in (tmp_path / "results.html").read_text()
    assert (tmp_path / "<again>.png").exists()


def test_a_list_of_one_still_gives_a_list() -> None:
    frames = perf_report([ADD])(speed).run(return_df=True)
    assert len(frames) == 1


def test_several_x_names_take_tuples_or_one_value_for_all() -> None:
    benchmark = Benchmark(["m", "n"], [(1, 2), [3, 4], 5], "provider", [0], ["L"], "plot", {})
    called: list[tuple[int, int]] = []

    def fn(m: int, n: int, provider: int) -> float:
        called.append((m, n))
        return 1.0

    frame = perf_report(benchmark)(fn).run(return_df=True)
    assert called == [(1, 2), (3, 4), (5, 5)]
    assert list(frame.columns) == ["m", "n", "L"]


def test_keyword_arguments_of_run_reach_the_function() -> None:
    frame = perf_report(replace(ADD, args={}))(speed).run(return_df=True, scale=1.0)
    assert list(frame["Theirs"]) == [8.0, 16.0]


def test_x_values_may_come_from_an_iterator_and_from_numpy() -> None:
    benchmark = replace(ADD, x_vals=iter(np.array([8, 16])))
    assert list(perf_report(benchmark)(speed).run(return_df=True)["n"]) == [8, 16]


def test_what_was_measured_before_a_failure_is_kept(tmp_path: Path) -> None:
    def fails_at_32(n: int, provider: str, scale: float) -> float:
        if n == 32:
            raise RuntimeError("out of memory")
        return 1.0

    both = [ADD, replace(ADD, plot_name="large", x_vals=[32])]
    with pytest.raises(RuntimeError, match="out of memory"):
        perf_report(both)(fails_at_32).run(save_path=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "add.csv",
        "add.png",
        "results.html",
    ]
    assert "large" not in (tmp_path / "results.html").read_text()


@pytest.mark.parametrize("result", [(1.0, 2.0), (), (None, 1.0, 2.0)])
def test_a_wrong_number_of_results_is_explained(result: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"returns one number or \(value, low, high\)"):
        perf_report(ADD)(lambda **_: result).run()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"line_names": ["Ours"]}, "1 line_names for 2 line_vals"),
        ({"styles": [("red", "-")]}, "1 styles for 2 line_vals"),
        ({"x_vals": [(1, 2)]}, r"x_vals holds \(1, 2\), but there are 1 x_names"),
        ({"line_names": ["Ours", "n"]}, "repeat a name: n, Ours, n"),
    ],
)
def test_a_wrong_description_is_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"Benchmark 'add': .*{problem}"):
        replace(ADD, **change)


@pytest.mark.parametrize(
    ("missing", "options"),
    [
        ("pandas", {"return_df": True}),
        ("matplotlib", {"save_path": "out"}),
        ("matplotlib", {"show_plots": True}),
    ],
)
def test_a_missing_extra_is_reported_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str, options: dict[str, Any]
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.chdir(tmp_path)

    def must_not_run(**_: object) -> float:
        raise AssertionError("measured before the check")

    with pytest.raises(NotAvailableError, match=rf"{missing} is not installed(.|\n)*\[plot\]"):
        perf_report(ADD)(must_not_run).run(**options)
    assert list(tmp_path.iterdir()) == []


def test_matplotlib_is_not_needed_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert perf_report(ADD)(speed).run(return_df=True) is not None


def test_pandas_is_needed_for_frames_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    perf_report(ADD)(speed).run(print_data=True, save_path=tmp_path)
    assert "16  24.0     8.0" in capsys.readouterr().out
    assert (tmp_path / "add.csv").read_text().startswith("n,Ours,Theirs\n8,12.000000,")
    with pytest.raises(NotAvailableError, match="pandas is not installed"):
        perf_report(ADD)(speed).run(return_df=True)


def test_files_are_those_of_pandas(tmp_path: Path) -> None:
    """Names with commas, missing values and texts as x values are written as pandas does."""
    values = iter([1.5, float("nan"), 2.0, 3.25])
    benchmark = Benchmark(["n"], ["a,b", 'c"d'], "p", [0, 1], ["A,1", "B"], "odd", {})
    frame = perf_report(benchmark)(lambda n, p: next(values)).run(
        return_df=True, save_path=tmp_path, save_precision=2
    )
    expected = frame.to_csv(float_format="%.2f", index=False)
    assert (tmp_path / "odd.csv").read_text() == expected


def test_without_a_display_show_plots_warns_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    before = plt.get_fignums()
    with pytest.warns(UserWarning, match="no display to show the plot on") as caught:
        perf_report(ADD)(speed).run(show_plots=True, save_path=tmp_path)
    assert [warning.filename for warning in caught] == [__file__]
    assert (tmp_path / "add.png").exists()
    assert plt.get_fignums() == before


def test_saving_leaves_the_users_backend_alone(tmp_path: Path) -> None:
    import matplotlib

    rc: Any = matplotlib.rcParams
    before = dict.__getitem__(rc, "backend")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        perf_report(ADD)(speed).run(save_path=tmp_path)
    assert dict.__getitem__(rc, "backend") == before
