"""Keep a run of a benchmark as one CSV row per case, in place of the machine's earlier run.

    python -m benchmarks.keep_results RUN.json [RUN.json ...] --suite cpu --machine zen5

writes `results/cpu-zen5.csv`. The JSON of a run has every sample; a row has what a reader compares:
the baseline's time, ours, their ratio within rounds with its 95 % interval, and the ratios of other
contestants. Only the newest run of a suite on a machine is kept; the history has the others.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

RESULTS = Path(__file__).with_name("results")
FIELDS: tuple[str, ...] = (
    "date", "commit", "case", "baseline", "baseline_ms", "tilewright_ms", "ratio", "low95",
    "high95", "others",
)  # fmt: skip
OURS = "tilewright"

Row = dict[str, object]
Json = Mapping[str, Any]


def rows_of(record: Json) -> Iterator[Row]:
    """The rows of a run, or of each run in a file of several."""
    for run in record.get("runs", [record]):
        head = {"date": str(run.get("date", ""))[:10], "commit": run.get("commit") or ""}
        for row in _rows_of_run(run):
            yield head | row


def _rows_of_run(run: Json) -> Iterator[Row]:
    for case in (*run.get("cases", ()), *(run.get("figures") or ())):
        yield _interleaved(case) if "contestants" in case else _flat(case)
    for case in run.get("rows", ()):
        yield _flat(case)
    for cost in run.get("costs", ()):
        yield {"case": cost["name"], "others": _figures(dict(cost) | {"name": None})}
    for name, kernel in run.get("kernels", {}).items():
        yield _compile_time(name, kernel)
    for scaled in run.get("scaling", ()):
        yield {"case": f"scaling {scaled['name']}", "others": _figures(scaled["milliseconds"])}
    if isinstance(run.get("first_launch_ms"), Mapping):
        yield from _first_launches(run["first_launch_ms"])


def _first_launches(milliseconds: Json) -> Iterator[Row]:
    """A row for each kernel: milliseconds in fresh processes by the side, or in any form."""
    processes, theirs = milliseconds.get(OURS), milliseconds.get("triton")
    if not (isinstance(processes, list) and isinstance(theirs, list)):
        for name, launch in milliseconds.items():
            yield {"case": f"first launch {name}", "others": _figures(launch)}
        return
    for name in sorted(processes[0]):
        mine, other = (median(one[name] for one in side) for side in (processes, theirs))
        yield {
            "case": f"first launch {name}", "baseline": "triton", "baseline_ms": _number(other),
            "tilewright_ms": _number(mine), "ratio": _number(other / mine),
        }  # fmt: skip


def _interleaved(case: Json) -> Row:
    """A case of harness.py: contestants in one run, ratios within rounds."""
    contestants, baseline = case["contestants"], case["baseline"]
    ours = contestants.get(OURS) or next(iter(contestants.values()))
    ratio = ours.get("ratio") or {}
    others = {
        name: other["ratio"]["median"]
        for name, other in contestants.items()
        if name not in (OURS, baseline) and "ratio" in other
    }
    mode = f" [{case['mode']}, {case['threads']} threads]" if "mode" in case else ""
    return {
        "case": case["name"] + mode,
        "baseline": baseline,
        "baseline_ms": _number(contestants.get(baseline, {}).get("ms", {}).get("median")),
        "tilewright_ms": _number(ours["ms"]["median"]),
        "ratio": _number(ratio.get("median")),
        "low95": _number(ratio.get("low95")),
        "high95": _number(ratio.get("high95")),
        "others": _figures(others),
    }


def _compile_time(name: str, kernel: Json) -> Row:
    ratio = kernel["ratio"]
    ours, theirs = (kernel["ms"][side]["total"] for side in (OURS, "triton"))
    return {
        "case": name, "baseline": "triton", "baseline_ms": _number(theirs),
        "tilewright_ms": _number(ours), "ratio": _number(ratio["median"]),
        "low95": _number(ratio["low95"]), "high95": _number(ratio["high95"]),
    }  # fmt: skip


def _flat(case: Json) -> Row:
    """A row of a benchmark with a form of its own: its name, its ratio, its numbers."""
    name = " ".join(str(case[k]) for k in ("name", "case", "state", "direction") if k in case)
    times, known = case.get("ms"), {"name", "case", "state", "direction", "speed", "ratio", "times"}
    ratio = case.get("speed", case.get("ratio"))
    row: Row = {"case": name, "ratio": _number(ratio) if isinstance(ratio, float) else ""}
    if isinstance(times, Mapping) and OURS in times:
        baseline = next(side for side in times if side != OURS)
        row |= {"baseline": baseline, "baseline_ms": _number(times[baseline])}
        row |= {"tilewright_ms": _number(times[OURS])}
        return row | {key: _number(case[key]) for key in ("low95", "high95") if key in case}
    if "times" in case:  # torch.compile: microseconds a call, ours and Inductor's
        ours, theirs = (side["call"] / 1000 for side in case["times"])
        row |= {"baseline": "inductor", "baseline_ms": _number(theirs)}
        row |= {"tilewright_ms": _number(ours)}
    rest = {key: value for key, value in case.items() if key not in known}
    return row | {"others": _figures(rest)}


def _figures(values: object) -> str:
    """`name value; ...` of what is a number, or has numbers in it."""
    if not isinstance(values, Mapping):
        return ""
    parts = (f"{name} {text}" for name, value in values.items() if (text := _figure(value)))
    return "; ".join(parts)


def _figure(value: object) -> str:
    if isinstance(value, Mapping):
        inner = _figures(value)
        return f"({inner})" if inner else ""
    if isinstance(value, bool | list) or value is None:
        return ""
    return _number(value) if isinstance(value, int | float) else str(value)[:60]


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else ""


def write(path: Path, rows: Sequence[Row]) -> None:
    """The table, whole or not at all."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    with partial.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, FIELDS, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    partial.replace(path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the runs, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN.json")
    parser.add_argument("--suite", required=True, help="such as cpu, hopper-matmul, torch-compile")
    parser.add_argument("--machine", required=True, help="such as h200, zen5")
    chosen = parser.parse_args(arguments)
    rows = [row for run in chosen.runs for row in rows_of(json.loads(run.read_text("utf-8")))]
    if not rows:
        parser.error("there is no case in these files")
    path = RESULTS / f"{chosen.suite}-{chosen.machine}.csv"
    write(path, rows)
    print(f"{path}: {len(rows)} cases")


if __name__ == "__main__":
    main()
