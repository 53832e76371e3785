"""The thread pool on ARM: the LLVM IR that is made of its source for x86-64, linked with musl."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
from tests.qemu.program import MACHINES, missing
from tilewright.backends.cpu.driver.thread_pool_program import pool_program
from tilewright.llvm import compile_ir, cpu_target

DRIVER = Path(__file__).with_name("thread_pool_driver.c")
STRUCTURES = Path(tilewright.__file__).parent / "backends/cpu/driver"
EXPECTED = """counted, 3 workers
interrupted, status 2
stopped, 0 workers
counted, 3 workers
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver with the pool, for Linux on ARM."""
    reason = missing("aarch64")
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("pool")
    obj, path = folder / "pool.o", folder / "driver"
    text = pool_program("aarch64", True).text()
    obj.write_bytes(
        compile_ir(text, cpu_target(MACHINES["aarch64"].target), optimise=False, inline=True)
    )
    target = ("-target", "aarch64-linux-musl", "-static", "-std=gnu23", "-O1", "-fno-sanitize=all")
    command = [sys.executable, "-m", "ziglang", "cc", *target, f"-I{STRUCTURES}"]
    subprocess.run([*command, "-o", str(path), str(DRIVER), str(obj)], check=True)
    return path


@pytest.mark.dev("ziglang")
def test_launches_interrupts_stops_and_reports_on_arm(program: Path) -> None:
    done = subprocess.run(["qemu-aarch64", str(program)], capture_output=True, text=True)
    assert done.stdout == EXPECTED
    assert done.returncode == -signal.SIGSEGV
    assert "SIGSEGV: an access to memory that is not there in crash" in done.stderr
    assert "at address 0x10\n" in done.stderr
    assert "programs 0 to 0 (x fastest) of the grid (1, 1, 1)\n  n = -5\n" in done.stderr
