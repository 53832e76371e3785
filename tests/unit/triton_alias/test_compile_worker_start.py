"""What the process has done that Inductor forks its compile workers from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PROGRAM = """
import json, os, sys
import torch
torch.version.cuda = '13.0'
import tilewright
tilewright.as_triton()
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from tilewright.triton_alias.compile_worker_start import prepare, sums_of_functions
prepare()
imported = set(sys.modules)
reading, writing = os.pipe()
if os.fork() == 0:
    types = {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = triton.compiler.ASTSource(sums_of_functions, types, {"BLOCK": 2048})
    target = GPUTarget("cuda", 90, 32)
    made = triton.compile(source, target=target).asm
    import torch._inductor.runtime.triton_heuristics
    said = {"made": sorted(made), "imported": sorted(set(sys.modules) - imported)}
    os.write(writing, json.dumps(said).encode())
    os._exit(0)
os.close(writing)
print(os.read(reading, 1 << 16).decode())
"""


def test_workers_import_nothing_at_their_first_kernel(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "TILEWRIGHT_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-c", PROGRAM]
    said = json.loads(subprocess.check_output(command, env=environment, text=True))
    assert "cubin" in said["made"]
    assert said["imported"] == []
