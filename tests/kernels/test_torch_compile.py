"""`torch.compile` makes Triton kernels for CPUs, which Tilewright compiles: by `as_triton()` alone.

In another process: torch decides at the first question, and for good, whether there is a Triton.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from typing import Any

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PROGRAM = """
import json
import tilewright
tilewright.as_triton()
import torch
import torch._inductor.config as config
from torch._inductor.utils import run_and_get_code

config.cpu_backend, config.compile_threads = "triton", 1
torch.manual_seed(0)
F = torch.nn.functional
x, y, w = torch.randn(37, 100), torch.randn(37, 100), torch.randn(100)
labels = torch.randint(0, 100, (37,))
CASES = {
    "softmax": (lambda x, y: torch.softmax(torch.sin(x) * y + 1, -1), x, y),
    "layer norm": (lambda x, w: F.layer_norm(x, (100,), w), x, w),
    "cross entropy": (lambda x, labels: F.cross_entropy(x, labels), x, labels),
    "scan": (lambda x: x.cumsum(-1), x),
    "sort": (lambda x: x.sort(-1).values, x),
}


def outcome(function, *inputs):
    torch._dynamo.reset()
    mine, theirs = ([i.clone().requires_grad_(i.is_floating_point()) for i in inputs] for _ in "ab")
    found, sources = run_and_get_code(torch.compile(function), *mine)
    expected = function(*theirs)
    found.sum().backward()
    expected.sum().backward()
    pairs = [(a.grad, b.grad) for a, b in zip(mine, theirs) if a.requires_grad]
    pairs.append((found, expected))
    errors = [((a - b).abs().max() / b.abs().max().clamp(min=1)).item() for a, b in pairs]
    return {
        "error": max(errors),
        "kernels": sum(text.count("@triton.jit") for text in sources),
        "in C++": sum(text.count("cpp_fused") for text in sources),
    }


print(json.dumps({name: outcome(*case) for name, case in CASES.items()}))
"""


@cache
def outcomes() -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    with tempfile.TemporaryDirectory() as folder:  # nothing that an earlier run has compiled
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["softmax", "layer norm", "cross entropy", "scan", "sort"])
def test_compiled_function_is_like_torch_s_and_made_of_triton_kernels(name: str) -> None:
    outcome = outcomes()[name]
    assert outcome["error"] < 1e-5
    assert outcome["kernels"] > 0
    assert outcome["in C++"] == 0
