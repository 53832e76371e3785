"""Every script of `examples/` runs and says what it promises."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
from tests import with_small_caches

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str, typed: str = "") -> str:
    """What a script prints, given what is typed at its prompts."""
    package = str(Path(tilewright.__file__).parents[1])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, with_small_caches.__file__, str(EXAMPLES / name), *arguments],
        input=typed, text=True, capture_output=True, check=False,
        env=os.environ | {"PYTHONPATH": path, "MPLBACKEND": "agg"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def difference_in(text: str) -> float:
    found = re.search(r"difference(?: from \w+)?:? ([-+.\de]+)", text)
    assert found is not None, text
    return float(found[1].rstrip(","))


def test_vector_add():
    text = run("vector_add.py")
    assert difference_in(text) == 0
    assert "mem.store" in text and "{aligned = 16}" in text


def test_softmax(tmp_path: Path):
    text = run("softmax.py", str(tmp_path))
    assert difference_in(text) < 1e-6
    assert (tmp_path / "softmax.png").exists() and "4096" in text


def test_matmul():
    first = run("matmul.py", "96")
    assert difference_in(first) < 1e-3 and "GFLOP/s" in first
    chosen = re.search(r"best of 4: (.*)", first)
    again = re.search(r"best of 4: (.*)", run("matmul.py", "96"))
    assert chosen is not None and again is not None and chosen[1] == again[1]


def test_debug_with_breakpoint():
    text = run("debug_with_breakpoint.py", typed="p row\np x\np tl.sum(weights, 0)\nc\n")
    assert "nothing to divide by in row tensor(2, i32)" in text
    assert "tensor([0. 0. 0. 0. 0. 0. 0. 0.], f32" in text
    assert "tensor(0., f32)" in text
    assert re.search(r"row sums: \[ ?1\.\s+1\.\s+nan\s+1\.", text)


@pytest.mark.parametrize("length", ["100"])
def test_attention(length: str):
    lines = run("attention.py", length).splitlines()
    assert [line.split(":")[0] for line in lines] == ["full", "causal"]
    assert all(difference_in(line) < 1e-5 for line in lines)


def test_every_example_is_tested():
    tested = Path(__file__).read_text()
    for script in EXAMPLES.glob("*.py"):
        assert f'"{script.name}"' in tested
