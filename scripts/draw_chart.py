"""Draw the README's chart from the committed results: `docs/images/speed.svg`.

    python scripts/draw_chart.py            # needs matplotlib, of the extra `plot`

A row is a group of cases of one results table: the geometric mean of the speed relative to a
library, and the range of all cases. Dates and commits of the tables are in the caption.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
CHART = ROOT / "docs" / "images" / "speed.svg"


@dataclass(frozen=True)
class Group:
    """Cases of a table by the beginnings of their names, and a word that these contain."""

    label: str
    table: str
    cases: tuple[str, ...]
    word: str = ""


NORMS = ("softmax", "layer norm", "rms norm")
GROUPS = (
    Group("fp16, bf16 matmul / cuBLAS", "hopper-matmul-h200", ("fp16", "bf16")),
    Group("attention / cuDNN", "hopper-attention-h200", ("forward",)),
    Group("softmax / Triton", "gpu-h200", ("softmax",)),
    Group("liger-kernel / Triton", "liger-h200", ("",)),
    Group("torch.compile / Inductor with Triton", "torch-compile-h200", ("",)),
    Group("fp32 matmul / torch", "cpu-xeon-amx", ("matmul",), "fp32"),
    Group("fp32 softmax, norms / torch", "cpu-xeon-amx", NORMS, "fp32"),
    Group("fp32 matmul / torch", "cpu-zen5", ("matmul",), "fp32"),
    Group("fp32 softmax, norms / torch", "cpu-zen5", NORMS, "fp32"),
)
MACHINES = {"h200": "NVIDIA H200", "amx": "Xeon with AMX", "zen5": "Zen 5"}
_OF_COMPILATION = ("package of", "first launch")


def ratios(group: Group) -> list[float]:
    """Our speed relative to the baseline, in each case of a group."""
    return [
        float(row["ratio"])
        for row in rows(group.table)
        if row["ratio"]
        and row["case"].startswith(group.cases)
        and group.word in row["case"]
        and not row["case"].startswith(_OF_COMPILATION)
    ]


def rows(table: str) -> Iterator[dict[str, str]]:
    """The rows of a results table."""
    with (RESULTS / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def caption() -> str:
    """Date and commit of each table, newest row of each."""
    tables = dict.fromkeys(group.table for group in GROUPS)
    newest = {table: max((row["date"], row["commit"]) for row in rows(table)) for table in tables}
    return "; ".join(f"{table} {date} {commit[:8]}" for table, (date, commit) in newest.items())


def main() -> None:
    """Write the chart."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "tilewright", "font.size": 9})
    from matplotlib import pyplot

    plot: Any = pyplot  # its types are partly unknown
    figure, axes = plot.subplots(figsize=(8, 3.6), layout="constrained")
    for place, group in enumerate(reversed(GROUPS)):
        found = ratios(group)
        mean = statistics.geometric_mean(found)
        axes.barh(place, mean, color="#4477aa" if mean >= 1 else "#cc6677", height=0.6)
        axes.plot([min(found), max(found)], [place, place], color="black", linewidth=1)
        axes.text(0.03, place, f"{mean:.2f}", va="center", color="white", weight="bold")
    machines = [MACHINES[group.table.rpartition("-")[2]] for group in reversed(GROUPS)]
    labels = [group.label for group in reversed(GROUPS)]
    names = [f"{label}  ({machine})" for label, machine in zip(labels, machines, strict=True)]
    axes.set_yticks(range(len(GROUPS)), names)
    axes.axvline(1, color="black", linewidth=0.8, linestyle="--")
    axes.set_xlim(0, 3)
    axes.set_xlabel("speed relative to the library: geometric mean, least to greatest case")
    axes.spines[["top", "right"]].set_visible(False)
    figure.text(0.01, -0.04, caption(), fontsize=5, color="gray")
    CHART.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(CHART, metadata={"Date": None}, bbox_inches="tight")


if __name__ == "__main__":
    main()
