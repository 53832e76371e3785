"""The support matrix of `docs/support.md`: which op takes which dtype, in each execution.

    python -m tests.kernels.support_matrix            # rewrite the table
    python -m tests.kernels.support_matrix tl.sin     # rewrite some rows

Each cell is measured: the probe runs in the interpreter, on the CPU and on the emulated GPU, where
it has to give one result, and is assembled for three architectures.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import tilewright
from tests.corpus.assembler import pinned_ptxas
from tests.kernels.run_example import ARCHITECTURES, EXECUTIONS, emulate
from tests.kernels.support_probes import DTYPES, PROBES, Probe, program

PAGE = Path(__file__).resolve().parents[2] / "docs/support.md"
START, END = "<!-- generated: support -->\n", "<!-- end -->"
_NUMPY = {
    "int1": np.bool_, "bfloat16": ml_dtypes.bfloat16, "float8e4nv": ml_dtypes.float8_e4m3fn,
    "float8e5": ml_dtypes.float8_e5m2,
}  # fmt: skip
RELATIVE = 0.02
"""Differences of results: other tests check their accuracy."""


def row(probe: Probe, folder: Path) -> list[str]:
    """The cells of a probe, by dtype."""
    return [cell(measure(probe, dtype, folder)) for dtype in DTYPES]


def cell(codes: dict[str, str]) -> str:
    """The text for the error code of each execution, "" where the op is supported.

    "yes", the codes of an error everywhere, or the executions that lack the op.
    """
    missing = [name for name in EXECUTIONS if codes[name]]
    if not missing:
        return "yes"
    everywhere = len(missing) == len(EXECUTIONS)
    return "/".join(sorted(set(codes.values()))) if everywhere else "not " + ", ".join(missing)


def measure(probe: Probe, dtype: str, folder: Path) -> dict[str, str]:
    """The error code of a probe in each execution, or "". AssertionError if results differ."""
    file = folder / "probe.py"
    file.write_text(program(probe, dtype), "utf-8")
    kernel = runpy.run_path(str(file))["probe"]
    interpreted: Any = tilewright.jit(kernel.fn, interpret=True)
    launches: dict[str, Callable[..., Any]] = {
        "interpreter": interpreted[(1,)],
        "cpu": kernel[(1,)],
        "emulated": lambda *args: emulate(kernel[(1,)], "emulated:0", args, {}),
    }
    codes: dict[str, str] = {}
    results: list[np.ndarray[Any, Any]] = []
    for name, launch in launches.items():
        out = np.zeros(512, np.float32)
        codes[name] = _code_of(launch, *_inputs(dtype), out)
        results += [] if codes[name] else [out]
    for other in results[1:]:
        assert np.allclose(results[0], other, RELATIVE, RELATIVE, equal_nan=True), probe.name
    pointer = f"*{DTYPES[dtype]}"
    source = tilewright.ASTSource(kernel, {"x": pointer, "y": pointer, "out": "*fp32"})
    assembled = {name: _code_of(_assemble, source, name, folder) for name in ARCHITECTURES}
    return {**codes, **assembled}


def _inputs(dtype: str) -> list[np.ndarray[Any, Any]]:
    """256 numbers from 1 to 16, which all dtypes but int1 hold, and their reverse."""
    numbers = np.arange(256) % 16 + 1
    kind: Any = _NUMPY.get(dtype, dtype)
    return [numbers.astype(kind), numbers[::-1].astype(kind)]


def _code_of(launch: Callable[..., Any], *args: Any) -> str:
    """The code of the error that a call ends with, if any."""
    try:
        launch(*args)
    except tilewright.TilewrightError as error:
        return error.code
    return ""


def _assemble(source: Any, architecture: str, folder: Path) -> None:
    target = tilewright.GPUTarget("cuda", ARCHITECTURES[architecture], 32)
    ptx = folder / "probe.ptx"
    ptx.write_text(tilewright.compile(source, target=target).asm["ptx"])
    command = [pinned_ptxas(), f"-arch={architecture}", "-O0", ptx, "-o", folder / "probe.cubin"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def line(probe: Probe, cells: list[str]) -> str:
    """A line of the table."""
    return f"| {probe.name} | {' | '.join(cells)} |"


def rows_of_page() -> dict[str, str]:
    """The lines of the page's table, by the name of their op."""
    table = PAGE.read_text("utf-8").partition(START)[2].partition(END)[0]
    return {
        found[1]: found[0] for found in re.finditer(r"^\| ([t`]\S+) \| .*$", table, re.MULTILINE)
    }


def main(names: list[str]) -> None:
    """Rewrite the table, or the rows of some ops."""
    rows = rows_of_page()
    with tempfile.TemporaryDirectory() as folder:
        for probe in PROBES:
            if not names or probe.name in names:
                rows[probe.name] = line(probe, row(probe, Path(folder)))
                print(rows[probe.name], flush=True)
    head = ["| op | " + " | ".join(DTYPES.values()) + " |", "|---" * (len(DTYPES) + 1) + "|"]
    before, _, rest = PAGE.read_text("utf-8").partition(START)
    table = [*head, *(rows[probe.name] for probe in PROBES if probe.name in rows)]
    PAGE.write_text(before + START + "\n".join(table) + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main(sys.argv[1:])
