"""Link object files into a shared library by the system's linker.

Objects of this process are linked by `object_loader`; files that other programs load are linked by
the C++ compiler's driver, which knows the formats and libraries of its system.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tilewright.llvm.code_generation import compile_ir
from tilewright.llvm.code_targets import host_target
from tilewright.llvm.float_conversions import conversions_ir
from tilewright.llvm.object_loader import CONVERSION_SYMBOLS
from tilewright.support import environment_text, errors

_DRIVERS = ("c++", "g++", "clang++", "cc", "gcc", "clang")


def link_shared_library(objects: Sequence[bytes]) -> bytes:
    """Link a shared library that exports the symbols of object files for this machine.

    Errors: ToolMissing without a C or C++ compiler (one of the usual names, or that in CXX),
    NotInLibrary with the linker's message.
    """
    parts = list(objects)
    if any(name.encode() in obj for obj in parts for name in CONVERSION_SYMBOLS):
        parts.append(compile_ir(conversions_ir(), host_target()))
    driver = _driver()
    with TemporaryDirectory(prefix="tilewright-") as folder:
        files = [Path(folder) / f"{number}.o" for number in range(len(parts))]
        for file, part in zip(files, parts, strict=True):
            file.write_bytes(part)
        library = Path(folder) / "linked.so"
        command = [driver, "-shared", "-o", str(library), *map(str, files), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not library.exists():
            said = done.stderr.strip() or f"status {done.returncode}"
            raise errors.NotInLibrary(f"{driver} does not link it: {said}")
        return library.read_bytes()


def _driver() -> str:
    """The path of the compiler that links."""
    named = environment_text("CXX")
    names = _DRIVERS if named is None else (named,)
    for name in names:
        found = shutil.which(name)
        if found is not None:
            return found
    instead = "install one, g++ for instance: PyTorch needs it, too, for the code around kernels"
    raise errors.ToolMissing("C++ compiler", f"PATH for {', '.join(names)}", instead)
