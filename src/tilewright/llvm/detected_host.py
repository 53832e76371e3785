"""LLVM's detection of this machine, cached on disk for processes that do not import LLVM.

Linux describes the CPU in a file; LLVM's result is cached under a hash of that description. On
other systems LLVM detects the CPU in each process.
"""

import hashlib
from functools import cache
from typing import Any, NamedTuple

from tilewright.support import import_late, operating_system
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.disk_cache import Documents

_CPU_FILE = "/proc/cpuinfo"
_HEAD_BYTES = 8192
"""Enough for the first CPU; the file has an entry for each."""
_CHANGING = ("processor", "cpu MHz", "bogomips", "BogoMIPS", "apicid", "initial apicid", "core id")
"""Fields of the description that change over time."""


class DetectedHost(NamedTuple):
    """cpu: LLVM's name; features: comma-separated `+name` / `-name` list, empty where LLVM cannot
    detect them (older macOS); triple: of this process."""

    cpu: str
    features: str
    triple: str


_DOCUMENTS = Documents("native")


@cache
def detected_host(llvm_version: str) -> DetectedHost:
    """The detection by that version of llvmlite."""
    description = _described()
    if description is None:
        return _detect()
    digest = hashlib.sha256(f"{llvm_version}\n{description}".encode()).hexdigest()
    name = f"host-{digest[:32]}"
    kept = _DOCUMENTS.read(name)
    if kept is not None and kept.keys() == {*DetectedHost._fields}:
        return DetectedHost(**kept)
    found = _detect()
    _DOCUMENTS.write(name, found._asdict())
    return found


def _detect() -> DetectedHost:
    # imported late: a kernel from the disk cache needs no LLVM
    library: Any = import_late("tilewright.llvm.library_calls")
    features: str = library.filled_text("GetHostCPUFeatures")
    listed = sorted(features.split(","), key=_name)
    cpu, triple = map(library.filled_text, ("GetHostCPUName", "GetProcessTriple"))
    return DetectedHost(cpu, ",".join(filter(None, listed)), triple)


def _name(feature: str) -> str:
    return feature[1:]


def _described() -> str | None:
    """The system's description of the first CPU; None where it gives none."""
    if not operating_system.IS_LINUX:
        return None
    try:
        with open(_CPU_FILE, "rb", buffering=0) as file:
            first = file.read(_HEAD_BYTES).decode(errors="replace").split("\n\n")[0]
    except synchronous(OSError):
        return None
    return "\n".join(line for line in first.splitlines() if not line.startswith(_CHANGING))
