"""Compile C programs with bundles, and run them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from tilewright.aot import KernelSpec
from tilewright.aot.bundle.build_bundle import Bundle, build_bundle
from tilewright.aot.bundle.planned_variants import planned_variant

WARNINGS = ("-Wall", "-Wextra", "-Werror")


def bundle_of(name: str, specs: Sequence[KernelSpec], *targets: str) -> Bundle:
    """A bundle of specs."""
    return build_bundle(name, [planned_variant(spec) for spec in specs], targets)


def compiler(name: str) -> list[str]:
    """The command of a compiler: one of the system, or "zig cc" of the extra `dev`. Skips the test
    where it is missing."""
    if name == "zig cc" and find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return [found]


def any_compiler() -> list[str]:
    """gcc, clang or zig, the first that there is."""
    found = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))), None)
    return [found] if found else compiler("zig cc")


def compiled(
    folder: Path, program: str, *options: str, bundles: Sequence[str], command: Sequence[str] = ()
) -> Path:
    """A program of bundles in the folder, compiled without a warning."""
    source, path = folder / "program.c", folder / "program"
    source.write_text(program)
    sources = [str(source), *(str(folder / f"{bundle}.c") for bundle in bundles)]
    libraries = ["-lpthread", "-lm", "-ldl"]
    run_checked(
        [*(command or any_compiler()), "-O1", *WARNINGS, *options, f"-I{folder}", *sources]
        + ["-o", str(path), *libraries]
    )
    return path


def run_checked(command: Sequence[str], **variables: str) -> str:
    """The output of a command that succeeds without a word on stderr."""
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **variables}, check=False
    )
    assert done.returncode == 0 and not done.stderr, f"{done.returncode}: {done.stderr}"
    return done.stdout
