"""Libraries of a bundle, by the system's C compiler or that of zig."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tilewright.support import environment_text, errors

FILES = {"so": "lib{}.so", "a": "lib{}.a", "dll": "{}.dll"}
"""Names of libraries by kind."""

_COMPILERS = ("cc", "gcc", "clang")
_MESSAGE_LINES = 8
"""Lines of a compiler's messages in an error."""

_OPTIONS = ("-O2", "-std=gnu11")


def build_library(folder: Path, name: str, kind: str) -> Path:
    """Build a library next to the source of a bundle. kind: "so", "a" or "dll".

    Errors: ToolMissing; InvalidBundle with the compiler's message.
    """
    source, library = folder / f"{name}.c", folder / FILES[kind].format(name)
    if kind == "dll":
        command = [*_zig("a compiler for Windows"), "cc", "-target", "x86_64-windows-gnu"]
        _run(name, [*command, *_OPTIONS, "-shared", str(source), "-o", str(library)])
        for by_product in (".pdb", ".lib"):
            library.with_suffix(by_product).unlink(missing_ok=True)
        return library
    compiler = _compiler()
    if kind == "so":
        # the threads of the pool run code of the library also after a dlclose
        needed = ("-fPIC", "-shared", "-Wl,-z,nodelete", "-lpthread", "-ldl", "-lm")
        _run(name, [*compiler, *_OPTIONS, str(source), "-o", str(library), *needed])
        return library
    obj = folder / f"{name}.o"
    _run(name, [*compiler, *_OPTIONS, "-fPIC", "-c", str(source), "-o", str(obj)])
    library.unlink(missing_ok=True)  # `ar` would add to it
    _run(name, [*_archiver(), "rcsD", str(library), str(obj)])
    obj.unlink()
    return library


def _compiler() -> list[str]:
    named = environment_text("CC")
    for candidate in _COMPILERS if named is None else (named,):
        if shutil.which(candidate):
            return [candidate]
    return [*_zig("a C compiler"), "cc"]


def _archiver() -> list[str]:
    return ["ar"] if shutil.which("ar") else [*_zig("ar"), "ar"]


def _zig(purpose: str) -> list[str]:
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang"]
    if shutil.which("zig"):
        return ["zig"]
    raise errors.ToolMissing(purpose, "PATH, and zig in Python", "pip install ziglang")


def _run(name: str, command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()[:_MESSAGE_LINES]
        said = "\n".join(lines) or f"status {done.returncode}"
        raise errors.InvalidBundle(name, f"{command[0]} fails: {said}")
