"""Machine code of users' kernels versus Triton's: both compiled here, without a GPU.

    python -m benchmarks.gpu compiled-users [--triton PYTHON] [--arch 80 90] [--keep] [FAMILY ...]

PYTHON is that of an environment with Triton 3.6; without it, kept figures of sm_80, sm_90 and
sm_120 are read. Both compilers get the same kernels (`tests/corpus/users`), launch facts and ptxas,
which is that of the wheel of the extra `test`.
`nvdisasm` comes from PATH or `NVDISASM`. `--keep` writes Triton's figures to
`tests/golden/users/triton/sm_ARCH.csv`; they do not change until a kernel does. A table shows the
cases in which our figure of a column is more than `--above` times Triton's. Families are compiled
by `--processes` processes at once. `PTXAS` names another ptxas of the same version.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.corpus.assembler import pinned_ptxas
from tests.corpus.machine_code import CodeFigures
from tests.corpus.users import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "tests/golden/users/triton"
COLUMNS = ("registers", *(field.name for field in fields(CodeFigures)))

Figures = Mapping[str, Any]


def main(arguments: list[str]) -> int:
    """Compile, compare, and keep Triton's figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="all by default")
    parser.add_argument("--triton", type=Path, help="a Python with Triton 3.6")
    parser.add_argument("--arch", type=int, nargs="+", default=[80, 90])
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--above", type=float, default=1.1)
    chosen = parser.parse_args(arguments)
    for arch in chosen.arch:
        ours = _compiled("tilewright", Path(sys.executable), arch, chosen)
        kept = KEPT / f"sm_{arch}.csv"
        theirs = _compiled("triton", chosen.triton, arch, chosen) if chosen.triton else _read(kept)
        _show(ours, theirs, arch, chosen.above)
        if chosen.keep:
            _write(kept, theirs)
    return 0


def _compiled(side: str, python: Path, arch: int, chosen: argparse.Namespace) -> dict[str, Figures]:
    """Figures, or an error, of each case by one compiler, in the order of the families."""
    ptxas = os.environ.get("PTXAS") or str(pinned_ptxas())
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            (str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))
        ),
        "TRITON_PTXAS_PATH": ptxas,
        "TILEWRIGHT_PTXAS_PATH": ptxas,
    }
    families = chosen.families or list(FAMILIES)

    def compile_family(family: str) -> list[tuple[str, Figures]]:
        command = [python, "-m", "benchmarks.gpu.compile_users", side, str(arch), family]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE
        )
        return [tuple(json.loads(line)) for line in done.stdout.splitlines()]

    found: list[tuple[str, Figures]] = []
    with ThreadPoolExecutor(chosen.processes) as pool:
        title = f"{side}, sm_{arch}"
        for rows in track(pool.map(compile_family, families), title, total=len(families)):
            found += rows
    return dict(found)


def _inherited() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def _show(
    ours: Mapping[str, Figures], theirs: Mapping[str, Figures], arch: int, above: float
) -> None:
    shown = ("registers", "instructions", "per_unit", "shared", "barriers", "spills", "flight")
    table = Table(title=f"sm_{arch}: ours / Triton's", row_styles=("", "dim"))
    for column in ("case", *shown):
        table.add_column(column, justify="left" if column == "case" else "right")
    worse = 0
    for name, figures in ours.items():
        other = theirs.get(name, {"error": "not compiled"})
        errors = [found["error"] for found in (figures, other) if "error" in found]
        if errors:
            table.add_row(name, *errors)
            continue
        if _is_worse(figures, other, above):
            worse += 1
            table.add_row(name, *(f"{figures[column]:g} / {other[column]:g}" for column in shown))
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    print(f"sm_{arch}: {worse} of {len(ours)} have more of something than {above} x Triton's")


def _is_worse(ours: Figures, theirs: Figures, above: float) -> bool:
    """By instructions for a unit of work, or by spills, exchanges or barriers where it has none."""
    more = ours["per_unit"] > above * theirs["per_unit"]
    return more or any(
        ours[column] > 0 == theirs[column] for column in ("spills", "loop_shared", "loop_barriers")
    )


def _read(path: Path) -> dict[str, Figures]:
    """Kept figures; a case that Triton refused has none."""
    with path.open(newline="", encoding="utf-8") as file:
        return {row["case"]: _figures(row) for row in csv.DictReader(file)}


def _figures(row: Mapping[str, str]) -> Figures:
    numbers = {column: float(row[column]) for column in COLUMNS if row[column]}
    return numbers or {"error": "refused"}


def _write(path: Path, figures: Mapping[str, Figures]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("case", *COLUMNS))
        for name, found in figures.items():
            writer.writerow((name, *(found.get(column, "") for column in COLUMNS)))
