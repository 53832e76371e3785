"""Scripts that a command runs: their errors show their own frames, as `python FILE` does."""

import re
import subprocess
import sys

import pytest

KERNEL = """
import sys
import numpy as np
import tilewright
import tilewright.language as tl

@tilewright.jit
def wrong(x, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), tl.arange(0, 2 * B))

def launch():
    wrong[(1,)](np.zeros(64, "f"), B=32)

def fail():
    raise ValueError("own")

{"launch": launch, "fail": fail, "exit": lambda: sys.exit(3)}[sys.argv[1]]()
"""


def run(tmp_path, *arguments, python=()):
    script = tmp_path / "script.py"
    script.write_text(KERNEL)
    return subprocess.run(
        [sys.executable, *python, str(script), *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(("what", "status"), [("launch", 1), ("fail", 1), ("exit", 3)])
def test_errors_are_those_of_python(tmp_path, what, status):
    ours = run(tmp_path, what, python=("-m", "tilewright", "run-script"))
    plain = run(tmp_path, what)
    assert ours.returncode == plain.returncode == status
    # `import triton` adds Triton's own words to a message
    assert re.sub(r"  Triton: .*\n", "", ours.stderr) == plain.stderr


def test_the_line_that_launched_a_wrong_kernel_is_shown(tmp_path):
    shown = run(tmp_path, "launch", python=("-m", "tilewright", "run-script")).stderr
    assert re.findall(r"File .*script.py\", line (\d+)", shown) == ["17", "12"]
    assert "runpy" not in shown
    assert "tilewright/tools" not in shown
