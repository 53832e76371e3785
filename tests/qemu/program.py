"""Programs of a kernel and the runner, and running one on memory."""

from __future__ import annotations

import functools
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.llvm import TargetCpu, compile_ir, cpu_named, cpu_target

_FOLDER = Path(__file__).parent
_PAGE = 4096


@dataclass(frozen=True)
class Machine:
    """How programs for a CPU (of `tilewright.llvm.CPU_NAMES`) are linked and run.

    binutils: what the names of GNU's assembler and linker begin with; emulator: with its arguments,
    none for this machine's processor
    """

    cpu: str
    binutils: str
    emulator: tuple[str, ...] = ()

    @property
    def target(self) -> TargetCpu:
        """What it is compiled for."""
        cpu = cpu_named(self.cpu)
        assert cpu is not None
        return cpu

    @property
    def tools(self) -> tuple[str, ...]:
        """Programs that are needed."""
        return (f"{self.binutils}as", f"{self.binutils}ld", *self.emulator[:1])


_ARM = "aarch64-linux-gnu-"
MACHINES = {
    "aarch64": Machine("aarch64", _ARM, ("qemu-aarch64",)),
    "aarch64-sve256": Machine(
        "aarch64-sve256",
        _ARM,
        # programs start with vectors of the default length, whatever the CPU could have
        ("qemu-aarch64", "-cpu", "max,sve256=on,sve-default-vector-length=32"),
    ),
    "x86-64-v3": Machine("x86-64-v3", ""),
}
_DEBIAN = {_ARM: "qemu-user and binutils-aarch64-linux-gnu", "": "binutils"}


def missing(name: str) -> str | None:
    """Why programs of a machine cannot be run here; None where they can."""
    machine = MACHINES[name]
    if sys.platform != "linux":
        return "runs programs for Linux"
    lacking = [tool for tool in machine.tools if not shutil.which(tool)]
    if lacking:
        return f"no {', '.join(lacking)} (Debian's packages {_DEBIAN[machine.binutils]})"
    runs = machine.emulator or machine.target.runs_here
    return None if runs else f"this processor is no {machine.cpu}"


@dataclass(frozen=True)
class Piece:
    """Bytes to have at an address of the program."""

    address: int
    data: bytes


@functools.cache
def _runner(cpu: TargetCpu) -> bytes:
    """The runner's object file."""
    return compile_ir((_FOLDER / "runner.ll").read_text(), cpu_target(cpu))


class Program:
    """A kernel's object file, linked with the runner."""

    def __init__(self, machine: Machine, obj: bytes, symbol: str) -> None:
        self._machine = machine
        # removed with this object
        self._folder = tempfile.TemporaryDirectory(prefix="tilewright-foreign-")
        folder = Path(self._folder.name)
        parts = [str(folder / name) for name in ("kernel.o", "runner.o", "calls.o")]
        self._path = str(folder / "program")
        Path(parts[0]).write_bytes(obj)
        Path(parts[1]).write_bytes(_runner(machine.target))
        assemble, link = machine.tools[:2]
        _run_tool(assemble, "-o", parts[2], str(_FOLDER / f"system_calls_{machine.target.arch}.s"))
        _run_tool(link, "-static", f"--defsym=kernel={symbol}", "-o", self._path, *parts)

    def run(self, job: Job) -> list[bytes]:
        """The bytes of the job's pieces after the kernel."""
        command = [*self._machine.emulator, self._path]
        done = subprocess.run(command, input=job.text(), capture_output=True)
        assert done.returncode == 0, f"status {done.returncode}: {done.stderr.decode()}"
        results: list[bytes] = []
        at = 0
        for piece in job.pieces:
            results.append(done.stdout[at : at + len(piece.data)])
            at += len(piece.data)
        return results


def _run_tool(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{command[0]}: {done.stderr}"


_JOB, _RANGE, _GRID = struct.Struct("<7Q"), struct.Struct("<QQ"), struct.Struct("<3I")
_CONTROL, _SCRATCH = 0x4000_0000, 0x5000_0000
"""Where a program has what describes its job, and the kernel's scratch memory. Far from where the
linker and the system put the program, its stack and QEMU."""


@dataclass(frozen=True)
class Job:
    """A launch. slots: the words of the kernel's arguments; scratch: bytes."""

    pieces: Sequence[Piece]
    slots: bytes
    grid: tuple[int, int, int]
    scratch: int

    def text(self) -> bytes:
        """As the runner reads it."""
        words = Piece(_CONTROL, self.slots + _GRID.pack(*self.grid))
        pieces = [*self.pieces, words]
        table = _CONTROL + -(-len(words.data) // _PAGE) * _PAGE
        maps = [_pages(p.address, len(p.data)) for p in pieces]
        maps += [_pages(table, _RANGE.size * len(pieces)), _pages(_SCRATCH, self.scratch + 1)]
        x, y, z = self.grid
        job = _JOB.pack(
            len(maps), table, len(pieces), _CONTROL, _CONTROL + len(self.slots), _SCRATCH, x * y * z
        )
        ranges = [_RANGE.pack(p.address, len(p.data)) for p in pieces]
        return b"".join((job, *(_RANGE.pack(*m) for m in maps), *ranges, *(p.data for p in pieces)))


def _pages(address: int, size: int) -> tuple[int, int]:
    """Address and bytes of the pages that hold a range."""
    first = address // _PAGE * _PAGE
    return first, -(-(address + size - first) // _PAGE) * _PAGE
