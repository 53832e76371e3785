"""Runs an example of the reference: interpreted, compiled for the CPU, emulated, or assembled for
NVIDIA GPUs.
"""

from __future__ import annotations

import importlib
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scripts.reference_examples import Example
from tests.corpus.assembler import pinned_ptxas
from tests.guarded_devices import OnGpu, address, moved
from tilewright import GPUTarget
from tilewright import compile as compile_source
from tilewright.runtime import JITFunction

ARCHITECTURES = {"sm_80": 80, "sm_90a": 90, "sm_120a": 120}
EMULATED = {"emulated": "emulated:0", "emulated_ampere": "emulated_ampere:0"}
EXECUTIONS = ("interpreter", "cpu", "emulated", *ARCHITECTURES)
PROCESS_WIDE = {"as_triton", "register_clock", "TilewrightWarning"}
"""Examples that change the process that runs them."""


def run_example(example: Example, execution: str, folder: Path) -> None:
    """Run an example, which prints its output. For an architecture, its kernels are compiled and
    assembled as well.
    """
    file = folder / "example.py"
    file.write_text(example.program, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_INTERPRET", "1" if execution == "interpreter" else "0")
        # A text that is printed while a kernel is compiled must not be missing.
        patch.setenv("TILEWRIGHT_CACHE_DIR", str(folder / "cache"))
        if example.name in PROCESS_WIDE:
            done = subprocess.run([sys.executable, file], capture_output=True, text=True)
            print(done.stdout, end="")
            assert done.returncode == 0, done.stderr
            return
        with _launched_on(execution, folder):
            runpy.run_path(str(file), run_name="__main__")


@contextmanager
def _launched_on(execution: str, folder: Path) -> Iterator[None]:
    """A block in which launches of kernels go to an execution."""
    if execution in ("interpreter", "cpu"):
        yield
        return
    original = JITFunction.__getitem__

    def launcher(kernel: Any, grid: Any) -> Any:
        usual: Any = original(kernel, grid)

        def launch(*args: Any, **keywords: Any) -> Any:
            if execution in EMULATED:
                return emulate(usual, EMULATED[execution], args, keywords)
            compiled = usual(*args, **keywords)
            _assemble(compiled.src, execution, keywords, folder)
            return compiled

        return launch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JITFunction, "__getitem__", launcher)
        yield


def emulate(launch: Any, device: str, args: Any, keywords: Any) -> Any:
    """Launch a kernel on the emulated GPU, on the arrays where they are."""
    ranges: list[tuple[int, int]] = []

    def described(array: Any) -> OnGpu:
        ranges.append((address(array), address(array) + array.nbytes))
        return OnGpu(address(array), array.dtype, device)

    there = moved(args, described)
    with importlib.import_module("tests.emulator").accessible(ranges):
        return launch(*there, **keywords)


def _assemble(source: Any, architecture: str, keywords: Any, folder: Path) -> None:
    """Compile a kernel for an architecture, and assemble it."""
    target = GPUTarget("cuda", ARCHITECTURES[architecture], 32)
    options = {name: keywords[name] for name in ("debug",) if name in keywords}
    ptx = folder / "kernel.ptx"
    ptx.write_text(compile_source(source, target=target, options=options).asm["ptx"])
    command = [pinned_ptxas(), f"-arch={architecture}", ptx, "-o", folder / "kernel.cubin"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
