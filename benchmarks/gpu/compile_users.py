"""Compile users' kernels by the compiler of this environment: a child of `compiled_users.py`.

    python -m benchmarks.gpu.compile_users tilewright|triton ARCH FAMILY

Writes one line of JSON for each case: its name and its figures, or an error. Triton takes
Tilewright's name, so that the kernels' files are imported as they are.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

IS_TRITON = sys.argv[1:2] == ["triton"]
if IS_TRITON:
    import triton  # pyright: ignore[reportMissingImports] -- in an environment of its own

    sys.modules["tilewright"] = triton
    for part in ("language", "language.extra", "language.extra.libdevice"):
        sys.modules[f"tilewright.{part}"] = import_module(f"triton.{part}")
else:
    import tilewright as triton

GPUTarget = import_module(f"{triton.__name__}.backends.compiler").GPUTarget
ASTSource = import_module(f"{triton.__name__}.compiler").ASTSource

from tests.corpus.machine_code import figures_of_text  # noqa: E402 -- after the names
from tests.corpus.users import FAMILIES  # noqa: E402
from tests.corpus.users.case import Case  # noqa: E402

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion")
_REGISTERS = re.compile(r"Used (\d+) registers")


def main(arch: int, family: str) -> None:
    """Compile each case of a family."""
    for case in FAMILIES[family]:
        print(json.dumps((f"{family}/{case.label}", _figures(case, arch))), flush=True)


def _figures(case: Case, arch: int) -> dict[str, Any]:
    try:
        compiled = _compiled(case, arch)
        cubin, registers = _assembled(compiled, arch) if IS_TRITON else _shipped(compiled)
    except Exception as error:  # noqa: BLE001 -- any refusal is a row of the table
        return {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[-1][:120]}"}
    return {"registers": registers, **asdict(figures_of_text(_disassembled(cubin)))}


def _shipped(compiled: Any) -> tuple[bytes, int]:
    """The machine code that launches, which another limit of registers or other passes may have
    improved."""
    return compiled.asm["cubin"], compiled.metadata.registers


def _compiled(case: Case, arch: int) -> Any:
    words = dict(case.words)
    options = {name: words.pop(name) for name in OPTIONS if name in words}
    if IS_TRITON:
        known = (name for name in words if name in case.kernel.arg_names)
        words = {name: for_cuda(words[name]) for name in known}
    names = list(inspect.signature(case.kernel.fn).parameters)
    signature: dict[str, str] = {}
    constants: dict[str, Any] = words
    facts: dict[tuple[int], list[Any]] = {}
    for at, (name, text) in enumerate(zip(names, case.types.split(), strict=False)):
        text, _, value = text.partition("=")
        kind, _, multiple = text.partition("/")
        signature[name] = "constexpr" if value else kind
        if value:
            constants[name] = int(value)
        elif multiple == "16":
            facts[at,] = [["tt.divisibility", 16]]
        if not IS_TRITON and not value:
            facts[at,] = _our_facts(kind, multiple)
    signature |= dict.fromkeys(words, "constexpr")
    signature = {name: signature[name] for name in names if name in signature}
    by_place = {(names.index(name),): value for name, value in constants.items()}
    source = ASTSource(case.kernel, signature, by_place if IS_TRITON else constants, facts)
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)


def for_cuda(value: Any) -> Any:
    """A libdevice function that Triton's front end would take from CUDA's module by its name."""
    if getattr(value, "__module__", "") != "triton.language.extra.libdevice":
        return value
    return getattr(import_module("triton.language.extra.cuda.libdevice"), value.__name__)


def _our_facts(kind: str, multiple: str) -> list[Any]:
    """The classes of a launch that Triton has not: any multiple, and signs."""
    from tilewright.compiler.sources import NON_NEGATIVE

    sign = [[NON_NEGATIVE, 1]] if kind.startswith("i") else []
    return [*([["tt.divisibility", int(multiple)]] if multiple else []), *sign]


def _assembled(compiled: Any, arch: int) -> tuple[bytes, int]:
    """The machine code by the ptxas that both compilers get, and registers of a thread."""
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = Path(folder, "k.ptx"), Path(folder, "k.cubin")
        text.write_text(str(compiled.asm["ptx"]))
        name = f"sm_{arch}a" if arch >= 90 else f"sm_{arch}"
        ptxas = os.environ["TRITON_PTXAS_PATH"]
        command = [ptxas, "-v", f"--gpu-name={name}", str(text), "-o", str(cubin)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        registers = max(int(number) for number in _REGISTERS.findall(done.stderr))
        return cubin.read_bytes(), registers


def _disassembled(cubin: bytes) -> str:
    tool = os.environ.get("NVDISASM") or shutil.which("nvdisasm")
    if tool is None:
        sys.exit("nvdisasm is not on PATH: pip install nvidia-cuda-nvdisasm, or set NVDISASM")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "k.cubin")
        path.write_bytes(cubin)
        return subprocess.run(
            [tool, "-c", str(path)], check=True, capture_output=True, text=True
        ).stdout


if __name__ == "__main__":
    main(int(sys.argv[2]), sys.argv[3])
