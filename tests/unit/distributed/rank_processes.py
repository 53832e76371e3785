"""Ranks as processes: a function of a test module, run by each of them with a `FolderGroup`."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[3]

_START = """
import sys
import numpy as np
import tilewright
import tilewright.language as tl
from tilewright.distributed import FolderGroup, Signals, barrier, peers, signal, wait, zeros
rank, world = int(sys.argv[1]), int(sys.argv[2])
group = FolderGroup(sys.argv[3], rank, world, {timeout})
"""


def run_ranks(
    folder: Path, body: str, world: int, timeout: float = 60, start: int | None = None
) -> list[str]:
    """What each rank prints; errors are printed by their text. start: ranks that are started"""
    program = folder / "ranks.py"
    attempt = f"try:\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
    handler = "except tilewright.TilewrightError as error:\n    print(error)\n"
    program.write_text(_START.format(timeout=timeout) + attempt + handler)
    path = os.pathsep.join([str(ROOT), str(ROOT / "examples" / "distributed"), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "TILEWRIGHT_CPU_THREADS": "2"}
    running = [
        subprocess.Popen(
            [sys.executable, str(program), str(rank), str(world), str(folder / "group")],
            stdout=subprocess.PIPE, text=True, env=environment,
        )
        for rank in range(world if start is None else start)
    ]  # fmt: skip
    return [process.communicate()[0] for process in running]
