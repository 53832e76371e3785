"""Debuggers stop inside a kernel and see real values: pdb fed through stdin, in a process."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tilewright import eager

PACKAGES = str(Path(eager.__file__).parents[2])
ENVIRONMENT = os.environ | {"PYTHONPATH": PACKAGES, "PYTHONBREAKPOINT": ""}

KERNEL = """
import numpy as np
import tilewright.language as tl
from tilewright.eager import run_kernel
from tilewright.language import device_function


@device_function
def double(v):
    {inner}
    return v * 2


@device_function
def kernel(x, out, n):
    i = tl.arange(0, 4)
    v = tl.load(x + i, mask=i < n, other=-1.0)
    {outer}
    w = double(v)
    tl.store(out + i, w)


x, out = np.array([1.5, 2.5, 3.5, 4.5], np.float32), np.zeros(4, np.float32)
run_kernel(kernel, (1,), dict(x=x, out=out, n=3))
print("result", out.tolist())
"""


def debug(tmp_path, commands, inner="pass", outer="pass", **files):
    """Output of the script while a debugger reads `commands`."""
    script = tmp_path / "script.py"
    script.write_text(KERNEL.format(inner=inner, outer=outer))
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, str(script)],
        input="\n".join(commands) + "\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


STOPS = ["breakpoint()", "import pdb; pdb.set_trace()"]


@pytest.mark.parametrize("stop", STOPS)
def test_values_steps_and_the_source_line(tmp_path, stop):
    step = ["n", "n"] if sys.version_info >= (3, 13) else ["n"]  # before or behind `stop`
    commands = ["p v", "p n", "p tl.sum(v)", "p v[:, None].shape", *step, "p w", "list", "c"]
    output = debug(tmp_path, commands, outer=stop)
    assert "tensor([ 1.5  2.5  3.5 -1. ], f32, shape=(4,))" in output
    assert "tensor(3, i32)" in output
    assert "tensor(6.5, f32)" in output  # operations work at the prompt
    assert "tensor([ 3.  5.  7. -2.], f32, shape=(4,))" in output
    assert "w = double(v)" in output and "script.py" in output
    assert "result [3.0, 5.0, 7.0, -2.0]" in output


def test_variables_can_be_changed(tmp_path):
    output = debug(tmp_path, ["!v = v + 10", "c"], outer="breakpoint()")
    assert "result [23.0, 25.0, 27.0, 18.0]" in output


def test_inside_a_called_function_and_up_to_its_caller(tmp_path):
    output = debug(tmp_path, ["p v", "where", "p str(v.dtype)", "c"], inner="breakpoint()")
    assert "tensor([ 1.5  2.5  3.5 -1. ], f32, shape=(4,))" in output
    assert "kernel()" in output and "double()" in output and "fp32" in output


def test_any_debugger_that_is_imported_inside_the_kernel(tmp_path):
    fake = """
        import pdb
        import sys

        def set_trace():
            pdb.Pdb(nosigint=True).set_trace(sys._getframe(1))
    """
    stop = "from fakedb import set_trace; set_trace()"
    output = debug(tmp_path, ["p v", "c"], outer=stop, fakedb=fake)
    assert "tensor([ 1.5  2.5  3.5 -1. ], f32, shape=(4,))" in output


def test_print_shows_real_values(tmp_path):
    output = debug(tmp_path, [], outer="print('v is', v, f'{n}')")
    assert "v is tensor([ 1.5  2.5  3.5 -1. ], f32, shape=(4,)) tensor(3, i32)" in output


def test_breakpoints_by_line_under_pdb(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(KERNEL.format(inner="pass", outer="pass"))
    line = next(
        i for i, text in enumerate(script.read_text().splitlines(), 1) if "w = double(v)" in text
    )
    done = subprocess.run(
        [sys.executable, "-m", "pdb", str(script)],
        input=f"b {line}\nc\np v\nn\np w\nc\nq\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
    )
    assert "tensor([ 1.5  2.5  3.5 -1. ], f32, shape=(4,))" in done.stdout
    assert "tensor([ 3.  5.  7. -2.], f32, shape=(4,))" in done.stdout
