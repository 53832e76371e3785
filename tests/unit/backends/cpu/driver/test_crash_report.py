"""A kernel that crashes the process says which it was, and with what, before the process dies."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no native pool")

ROOT = Path(__file__).parents[5]
PROGRAM = """
import faulthandler, sys
import numpy as np
import tilewright, tilewright.language as tl
{before}
@tilewright.jit
def far(out, offset, scale, small, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + offset + i, i * scale + small)

out = np.zeros(64, np.float32)
far[(4,)](out, 0, 0.5, -3, B=16)
assert out[2] == -2
print("address", hex(out.ctypes.data), flush=True)
{after}
far[({grid},)](out, 1 << 40, 0.5, -3, B=16)
print("still here")
"""


def crash(tmp_path: Path, grid: int = 4, threads: int = 2, before: str = "", after: str = ""):
    script = tmp_path / "far.py"
    script.write_text(PROGRAM.format(grid=grid, before=before, after=after))
    return run(script, TILEWRIGHT_CPU_THREADS=str(threads))


def run(script: Path, **variables: str):
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONFAULTHANDLER": "", **variables,
             "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])},
    )  # fmt: skip


@pytest.mark.parametrize(("grid", "threads"), [(1, 2), (4, 1), (4, 2), (1000, 3)])
def test_kernel_line_and_arguments_are_told(tmp_path: Path, grid: int, threads: int) -> None:
    done = crash(tmp_path, grid, threads)
    assert done.returncode == -signal.SIGSEGV
    address = done.stdout.split()[1]
    assert "still here" not in done.stdout
    report = done.stderr
    assert (
        "tilewright: SIGSEGV: an access to memory that is not there in the kernel 'far'" in report
    )
    assert f"{tmp_path / 'far.py'}:6)" in report
    assert f"of the grid ({grid}, 1, 1)" in report
    for line in (f"out = {address}", f"offset = {1 << 40}", "scale = 0.5", "small = -3"):
        assert f"  {line}\n" in report
    assert "TILEWRIGHT_CHECK=bounds" in report


@pytest.mark.parametrize(
    ("before", "after"), [("faulthandler.enable()", ""), ("", "faulthandler.enable()")]
)
def test_faulthandler_tells_its_part_too(tmp_path: Path, before: str, after: str) -> None:
    # One thread: the reports of two that crash at once are whole, but may be mixed.
    done = crash(tmp_path, threads=1, before=before, after=after)
    assert done.returncode == -signal.SIGSEGV
    assert "in the kernel 'far'" in done.stderr
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert "far.py" in done.stderr.partition("Fatal Python error")[2]


def test_a_crash_elsewhere_names_the_latest_kernels(tmp_path: Path) -> None:
    done = crash(tmp_path, after="import ctypes; ctypes.string_at(8)")
    assert done.returncode == -signal.SIGSEGV
    report = done.stderr
    assert "SIGSEGV, but not in a kernel. The kernels that were launched last:\n" in report
    assert f"\n  the kernel 'far' ({tmp_path / 'far.py'}:6)\n" in report
    assert report.count("the kernel") == 1
    assert "TILEWRIGHT_CHECK=bounds" in report and "TILEWRIGHT_CRASH_REPORTS=0" in report


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS])
def test_signals_that_are_sent_are_not_lost(tmp_path: Path, number: int) -> None:
    fault = "import os; os.kill(os.getpid(), {}); print('survived')"
    done = crash(tmp_path, after=fault.format(int(number)))
    assert done.returncode == -number
    assert "survived" not in done.stdout
    assert "the kernel 'far'" in done.stderr


@pytest.mark.parametrize("first", [True, False])
def test_an_abort_reaches_handlers_of_others(tmp_path: Path, first: bool) -> None:
    enable, abort = "faulthandler.enable()", "import os; os.abort()"
    before, after = (enable, abort) if first else ("", f"{enable}; {abort}")
    done = crash(tmp_path, threads=1, before=before, after=after)
    assert done.returncode == -signal.SIGABRT
    assert "SIGABRT, but not in a kernel" in done.stderr
    assert "Fatal Python error: Aborted" in done.stderr


def test_a_handler_in_c_gets_the_abort_once(tmp_path: Path) -> None:
    before = """
import ctypes, os
@ctypes.CFUNCTYPE(None, ctypes.c_int)
def handler(number):
    os.write(1, b"handled %d" % number)
    os._exit(3)
ctypes.CDLL(None).signal(6, handler)
"""
    done = crash(tmp_path, threads=1, before=before, after="os.abort()")
    assert done.returncode == 3
    assert done.stdout.count("handled 6") == 1
    assert done.stderr.count("tilewright: SIGABRT") == 1


def test_a_setting_turns_the_reports_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CRASH_REPORTS", "0")
    done = crash(tmp_path)
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr == ""
    done = crash(tmp_path, after="import os; os.abort()")
    assert done.returncode == -signal.SIGABRT
    assert done.stderr == ""


FORGOTTEN_MASK = """
import ctypes, itertools
import numpy as np
import tilewright, tilewright.language as tl
@tilewright.jit
def forgets(out, B: tl.constexpr):
    tl.store(out + tl.arange(0, B), 1.5)

class Array:
    def __init__(self, address):
        self.__array_interface__ = dict(
            data=(address, False), shape=(1000,), typestr="<f4", version=3)

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
places = sorted(libc.malloc(4000) for _ in range(20))
# the chunk after it is ours too, so nothing but the allocator uses what is overwritten
place = next(p for p, after in itertools.pairwise(places) if after - p == 4016)
forgets[(1,)](np.asarray(Array(place)), B=1024)
libc.free(place)
print("survived")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of glibc's allocator")
def test_a_forgotten_mask_is_named_where_the_allocator_notices(tmp_path: Path) -> None:
    script = tmp_path / "mask.py"
    script.write_text(FORGOTTEN_MASK)
    done = run(script)
    assert done.returncode == -signal.SIGABRT
    assert "survived" not in done.stdout
    assert "tilewright: SIGABRT, but not in a kernel." in done.stderr
    assert f"the kernel 'forgets' ({script}:5)" in done.stderr
    assert "TILEWRIGHT_CHECK=bounds" in done.stderr
    checked = run(script, TILEWRIGHT_CHECK="bounds")
    assert checked.returncode == 1
    assert "element 1000 of argument 'out', which has 1000 elements" in checked.stderr


def test_the_latest_four_kernels_are_named_newest_first(tmp_path: Path) -> None:
    kernels = "".join(
        f"@tilewright.jit\ndef k{i}(out):\n    tl.store(out, {i})\n" for i in range(6)
    )
    launches = "; ".join(f"k{i}[(1,)](x)" for i in (0, 1, 2, 3, 4, 5, 5, 2))
    script = tmp_path / "many.py"
    script.write_text(
        "import numpy as np, tilewright, tilewright.language as tl, os\n"
        f"{kernels}x = np.zeros(1, 'f')\n{launches}\nos.abort()\n"
    )
    done = run(script)
    named = [line.split("'")[1] for line in done.stderr.splitlines() if "the kernel '" in line]
    assert named == ["k2", "k5", "k4", "k3"]
