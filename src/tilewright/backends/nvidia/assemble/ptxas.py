"""Find and run ptxas, NVIDIA's assembler, and parse its report."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tilewright.support import environment_with, errors, settings
from tilewright.support.data_class import dataclass

_TIMEOUT_SECONDS = 600
_LARGE_PAGES = "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=33554432"
"""For ptxas, which spends a tenth of its time on page faults: 99 ms of processor time become 89 for
a matmul. Older versions of glibc ignore it."""
_EXCERPT_LINES = 2  # of PTX shown before and after one that was refused
_EXCERPT_COUNT = 3  # messages, and excerpts, that an error shows


@dataclass(frozen=True, slots=True)
class Report:
    """The report of ptxas or the driver's compiler on one kernel.

    registers: of a thread; stack, spill_stores, spill_loads: bytes of local memory of a thread (the
    driver counts spills in `stack` alone);
    shared: bytes of static shared memory; barriers: named barriers in use;
    warnings: performance warnings (codes C75xx), such as a wgmma that is serialized
    """

    registers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0
    barriers: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assembled:
    """Machine code of a kernel, the report, and the text that the report was read from."""

    cubin: bytes
    report: Report
    log: str


def assemble(ptx: str, cpu: str, kernel: str, *, maxnreg: int | None = None) -> Assembled:
    """Assemble a module with ptxas.

    cpu: as in `Arch.cpu`; kernel: the function that the report is about; maxnreg: limit of
    registers per thread.
    Raises ToolMissing, and PTXASError with the lines of PTX that were refused.
    """
    flags = [f"-arch={cpu}", "-v", f"-O{LESS_OPTIMIZED if is_long(ptx) else 3}"]
    if maxnreg is not None:
        flags.append(f"-maxrregcount={maxnreg}")
    if has_lines(ptx):
        flags.append("-lineinfo")
    program = find_ptxas()
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        command = [str(program), *flags, str(source), "-o", str(cubin)]
        log = _run(command, kernel, ptx)
        return Assembled(cubin.read_bytes(), parse_report(log, kernel), log)


LESS_OPTIMIZED = 1
"""The level for long code."""

_LONG = 30_000
"""Statements of PTX beyond which ptxas optimizes less. Where it gives up at -O3, it falls back to
32 registers and spills the rest: a sort of 64 elements in a thread, of 46,000 statements, takes
15.5 s and spills 47 KB; at -O1 6.7 s and 17 KB (ptxas 13.0)."""


def is_long(ptx: str) -> bool:
    """Whether a module is too long for full optimization."""
    return ptx.count(";") > _LONG


def has_lines(ptx: str) -> bool:
    """Whether a module has source lines."""
    return "\t.loc\t" in ptx


def _run(command: list[str], kernel: str, ptx: str) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
            env=environment_with(GLIBC_TUNABLES=_LARGE_PAGES),
        )
    except subprocess.TimeoutExpired:
        raise errors.PTXASError(f"{kernel}: no end after {_TIMEOUT_SECONDS} s") from None
    if done.returncode != 0:
        log = done.stderr or f"ended with status {done.returncode}"
        raise explain_failure(log, kernel, ptx)
    return done.stderr


# --- reports --------------------------------------------------------------------------------------

_STACK = re.compile(r"(\d+) (?:bytes )?stack")
_STORES = re.compile(r"(\d+) bytes spill stores")
_LOADS = re.compile(r"(\d+) bytes spill loads")
_USED = re.compile(r"[Uu]sed (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+) bytes smem")
_WARNING = re.compile(r"^.*(?:\(C75\d\d\)|serialized).*$", re.MULTILINE)
_SECTION = re.compile(r"(?:Compiling entry function|Function properties for) '?([\w$.]+)'?")


def parse_report(log: str, kernel: str) -> Report:
    """The report on `kernel` in the output of `ptxas -v`, or in the log of the driver."""
    text = "\n".join(_lines_about(log, kernel))
    return Report(
        registers=_number(_USED, text),
        stack=_number(_STACK, text),
        spill_stores=_number(_STORES, text),
        spill_loads=_number(_LOADS, text),
        shared=_number(_SHARED, text),
        barriers=_number(_BARRIERS, text),
        warnings=tuple(line.strip() for line in _WARNING.findall(log)),
    )


def _number(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match[1]) if match else 0


def _lines_about(log: str, kernel: str) -> Iterator[str]:
    """Lines from a heading that names `kernel` to the next heading."""
    inside = False
    for line in log.splitlines():
        heading = _SECTION.search(line)
        if heading:
            inside = heading[1] == kernel
        if inside:
            yield line


_LINE_NUMBER = re.compile(r"(?:line (\d+)|:(\d+)[:)]).*?(?:error|fatal|Fatal)")


def explain_failure(log: str, kernel: str, ptx: str) -> errors.PTXASError:
    """The error for a failed assembly: its messages, and the lines of PTX around each."""
    reported = dict.fromkeys(
        line.split(": ", 1)[-1].strip()
        for line in log.splitlines()
        if "error" in line or "fatal" in line.lower()
    )
    messages = [m for m in reported if "aborted due to errors" not in m] or [log.strip()]
    numbers = dict.fromkeys(int(a or b) for a, b in _LINE_NUMBER.findall(log))
    lines = ptx.splitlines()
    notes = [_excerpt(lines, line) for line in list(numbers)[:_EXCERPT_COUNT]]
    return errors.PTXASError(
        f"{kernel}: {messages[0]}", notes=(*messages[1:_EXCERPT_COUNT], *filter(None, notes))
    )


def _excerpt(lines: list[str], line: int) -> str:
    """Line number `line` (from 1) with its neighbours, marked."""
    if not 1 <= line <= len(lines):
        return ""
    first, last = max(1, line - _EXCERPT_LINES), min(len(lines), line + _EXCERPT_LINES)
    numbered = [
        f"  {'->' if number == line else '  '} {number:5d} | {lines[number - 1].rstrip()}"
        for number in range(first, last + 1)
    ]
    return "\n".join([f"PTX line {line}:", *numbered])


# --- finding the tools ----------------------------------------------------------------------------


def find_ptxas() -> Path:
    """The assembler: the setting `cuda.ptxas_path`, PATH, the CUDA toolkit, wheels.

    Raises ToolMissing with the searched places.
    """
    chosen = settings().cuda.ptxas_path
    if chosen is not None:
        if chosen.is_file():
            return chosen
        raise errors.ToolMissing("ptxas", f"the setting cuda.ptxas_path, {chosen}")
    path = _find("ptxas")
    if path is None:
        raise errors.ToolMissing("ptxas", _SEARCHED, "install it: pip install nvidia-cuda-nvcc")
    return path


_RELEASES = {87: (12, 8), 88: (12, 9)}
"""The CUDA release that brought a version of PTX (PTX ISA, release notes)."""


def has_ptxas(ptx: int) -> bool:
    """Whether there is an assembler that reads a version of PTX, 10 * major + minor."""
    try:
        release = version(find_ptxas())
    except errors.ToolMissing:
        return False
    numbers = [int(part) for part in re.findall(r"\d+", release)[:2]]
    return tuple(numbers) >= _RELEASES[ptx]


def ptxas_stamp() -> str:
    """A text that identifies the assembler, without running it."""
    try:
        found = find_ptxas().stat()
    except errors.ToolMissing:
        return "no ptxas"
    return f"ptxas {found.st_size} {found.st_mtime_ns}"


def find_tool(name: str) -> Path:
    """Find another program of the CUDA toolkit, in the same places as ptxas. Raises ToolMissing."""
    path = _find(name)
    if path is None:
        raise errors.ToolMissing(name, _SEARCHED, "install NVIDIA's CUDA toolkit")
    return path


def find_disassembler() -> Path:
    """nvdisasm. Raises ToolMissing."""
    return find_tool("nvdisasm")


_SEARCHED = "PATH, CUDA_HOME, /usr/local/cuda and the installed wheels of NVIDIA and Triton"


def _find(tool: str) -> Path | None:
    on_path = shutil.which(tool)
    if on_path:
        return Path(on_path)
    home = settings().cuda.home
    toolkits = [home] if home else []
    folders = [Path(k, "bin") for k in (*toolkits, Path("/usr/local/cuda"))]
    folders += _wheel_folders() + _triton_folders()
    for folder in folders:
        for name in (tool, f"{tool}.exe"):
            if Path(folder, name).is_file():
                return Path(folder, name)
    return None


def _wheel_folders() -> list[Path]:
    """nvidia/cuda_nvcc/bin (CUDA 12), nvidia/cu13/bin (CUDA 13) ... in site-packages."""
    spec = importlib.util.find_spec("nvidia")
    roots = (spec.submodule_search_locations if spec else None) or []
    return [folder for root in roots for folder in sorted(Path(root).glob("*/bin"), reverse=True)]


def _triton_folders() -> list[Path]:
    """The tools in the wheel of Triton, which torch requires; no module of it is imported."""
    try:
        wheel = importlib.metadata.distribution("triton")
    except importlib.metadata.PackageNotFoundError:
        return []
    return [Path(str(wheel.locate_file("triton/backends/nvidia/bin")))]


def version(program: Path) -> str:
    """The release of ptxas, such as 13.0.88; part of the key of compiled kernels."""
    # the time is part of the key of `_version`'s cache: an assembler may be updated in place
    return _version(program, program.stat().st_mtime_ns)


@functools.cache
def _version(program: Path, changed: int) -> str:
    done = subprocess.run(
        [str(program), "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    match = re.search(r"V(\d[\d.]*)", done.stdout)
    return match[1] if match else "unknown"


def sass(cubin: bytes, lines: bool = False) -> str:
    """The machine code of a cubin as text, by nvdisasm. Raises ToolMissing without it.

    lines: with comments that name the source lines
    """
    program = find_disassembler()
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        done = subprocess.run(
            [str(program), "-c", *(["--print-line-info-inline"] if lines else []), str(path)],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    if done.returncode != 0:
        raise errors.PTXASError(f"nvdisasm: {done.stderr.strip()}")
    return done.stdout
