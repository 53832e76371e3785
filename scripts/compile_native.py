"""Compiles the C sources to the LLVM IR that is checked in beside them.

    python scripts/compile_native.py            writes the headers and the LLVM IR
    python scripts/compile_native.py --check    reports files that differ from what would be written

The compiler is the clang of `ziglang`, pinned in the extra `dev`, because its LLVM is llvmlite's.
The script keeps the part of its output that every target has in common: no triple, no data layout,
no features, and no metadata. `tests/unit/native` compares what clang makes for other targets.
"""

import argparse
import ctypes
import inspect
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tilewright.backends.cpu.driver.cache_flush import CACHE_FLUSH
from tilewright.backends.cpu.driver.sampler import SAMPLER
from tilewright.backends.cpu.driver.thread_pool_program import pool_program
from tilewright.backends.nvidia.driver.launch_structures import LAUNCH, LAUNCH_HALF
from tilewright.native import NativeProgram
from tilewright.runtime.launch.native_dispatch_structures import DISPATCH
from tilewright.triton_alias.shared_libraries import Launch

ROOT = Path(__file__).resolve().parent.parent
INCLUDES = ROOT / "src/tilewright/native"
TARGET = "x86_64-linux-gnu"
FLAGS = (
    "-std=c23 -O2 -g0 -ffreestanding -fPIC -fsigned-char -Wall -Wextra -Wno-unused-parameter"
    " -Wno-unused-command-line-argument -Werror"
    " -fno-vectorize -fno-slp-vectorize -fno-unroll-loops -fno-strict-aliasing -fwrapv"
    " -fno-stack-protector -fno-sanitize=all"
    " -fno-unwind-tables -fno-asynchronous-unwind-tables -emit-llvm -S"
).split()

UNWINDING_FLAGS = ("-fexceptions", "-funwind-tables")
"""Flags of programs through which exceptions of C++ are thrown."""

PROGRAMS = (
    CACHE_FLUSH,
    SAMPLER,
    pool_program("x86_64"),
    LAUNCH,
    LAUNCH_HALF,
    DISPATCH,
    Launch("kernel", (), (), 0, 0, False).program(),
    NativeProgram(ROOT / "tests/qemu/runner.c", ["run"]),
)
UNWINDING = ("library_launcher.c",)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile the C sources to LLVM IR.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    stale = 0
    for program in PROGRAMS:
        for path, text in outputs(program):
            if path.exists() and path.read_text("utf-8") == text:
                continue
            stale += 1
            print(("differs: " if check else "wrote ") + path.relative_to(ROOT).as_posix())
            if not check:
                path.write_text(text, "utf-8")
    return int(check and stale > 0)


def outputs(program: NativeProgram) -> Iterator[tuple[Path, str]]:
    """The generated files of a program: its header, which must be written first, and its IR."""
    if program.structures:
        header_path = program.source.with_name(f"{program.source.stem}_structures.h")
        yield header_path, header(program)
    yield program.ir, compile_source(program.source)


def compile_source(source: Path, target: str = TARGET, *flags: str) -> str:
    """The LLVM IR of a C file as it is checked in; CalledProcessError if clang refuses the file."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "output.ll")
        command = [sys.executable, "-m", "ziglang", "cc", "-target", target, *FLAGS]
        command += [*(UNWINDING_FLAGS if source.name in UNWINDING else ()), *flags]
        caches = {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
        subprocess.run(
            [*command, f"-I{INCLUDES}", "-o", str(output), str(source)],
            check=True,
            env={**os.environ, **caches},
        )
        return common_ir(output.read_text("utf-8"), source.name)


_HINT = (
    r"noundef|nonnull|readonly|readnone|writeonly|returned|noalias|nocallback|nofree|nosync"
    r"|mustprogress|norecurse|willreturn|captures\([^)]*\)|initializes\(\(\d+, \d+\)\)"
    r"|range\([^()]*\)|dereferenceable(?:_or_null)?\(\d+\)|memory\([^)]*\)"
    r"|dso_local|local_unnamed_addr|unnamed_addr"
)
"""Attributes that only an optimiser reads."""


def common_ir(text: str, name: str) -> str:
    """The parts of clang's output that every target has in common and a code generator needs."""
    lines = text.splitlines()
    kept = (line for line in lines if not re.match(r"[;!]|source_filename|target ", line))
    body = "\n".join(kept)
    body = re.sub(r"^(?:  |declare )[^\n]*@llvm\.lifetime\.[^\n]*\n", "", body, flags=re.M)
    body = re.sub(r" +; preds = [^\n]*", "", body)
    body = re.sub(r",? ![\w.]+(?: !\d+)?(?=,|$)", "", body, flags=re.M)  # uses of metadata
    body = _inlined_attributes(body)
    body = re.sub(r'^((?:define|declare|@[\w.]+ = |  )[^\n"]*)', _without_hints, body, flags=re.M)
    body = re.sub(r"\n{2,}", "\n\n", body).strip()
    return f"; Generated from {name} by scripts/compile_native.py.\n\n{body}\n"


_KEPT = ("nounwind", "noreturn", "uwtable(sync)")
"""Attributes of functions that matter to a code generator."""


def _inlined_attributes(body: str) -> str:
    """Attributes written where functions are defined, instead of groups behind them."""
    groups = dict(re.findall(r"^attributes #(\d+) = \{(.*)\}$", body, re.M))
    body = re.sub(r"^attributes .*\n?", "", body, flags=re.M)

    def kept(match: re.Match[str]) -> str:
        words = groups[match[2]].split() if match[1].startswith("define") else ()
        return " ".join([match[1], *(word for word in _KEPT if word in words)])

    return re.sub(r"^([^\n\"]*) #(\d+)(?=$| \{$)", kept, body, flags=re.M)


def _without_hints(match: re.Match[str]) -> str:
    return re.sub(rf" (?:{_HINT})(?=[ ,)]|$)", "", match[1]).replace("tail call", "call")


def header(program: NativeProgram) -> str:
    """The structures and constants of a program in C."""
    source = program.source.name
    lines = [
        f"// Structures and constants that {source} shares with Python; written by",
        "// scripts/compile_native.py from the classes of ctypes.",
        "// clang-format off",
        "#pragma once",
        "",
        "#include <stdint.h>",
    ]
    if program.constants:
        members = [f"    {name} = {value}," for name, value in program.constants.items()]
        lines += ["", "enum {", *members, "};"]
    for structure in program.structures:
        lines += ["", *_structure(structure)]
    return "\n".join(lines) + "\n"


def _structure(structure: type[ctypes.Structure]) -> list[str]:
    comments = _field_comments(structure)
    doc = inspect.getdoc(structure) or ""
    lines = [f"// {line}".rstrip() for line in doc.splitlines()]
    lines.append("typedef struct {")
    fields = {name: f"{_declaration(type_, name)};" for name, type_, *_ in structure._fields_}
    width = max(map(len, fields.values()))
    for name, declared in fields.items():
        comment = f" // {comments[name]}" if name in comments else ""
        lines.append(f"    {declared:{width}}{comment}".rstrip())
    size = ctypes.sizeof(structure)
    name = structure.__name__
    return [*lines, f"}} {name};", f"static_assert(sizeof({name}) == {size});"]


def _field_comments(structure: type[ctypes.Structure]) -> Mapping[str, str]:
    """Comments behind the fields in the source of a structure."""
    source = inspect.getsource(structure)
    return dict(re.findall(r'^ +\("(\w+)", .*\),  # (.*)$', source, re.M))


def _declaration(type_: Any, name: str) -> str:
    if issubclass(type_, ctypes.Structure):
        return f"{type_.__name__} {name}"
    if issubclass(type_, ctypes.Array):
        return f"{_declaration(type_._type_, name)}[{type_._length_}]"
    if type_ is ctypes.c_char:
        return f"char {name}"
    if type_ is ctypes.c_char_p:
        return f"const char *{name}"
    if type_ is ctypes.c_void_p or hasattr(type_, "contents"):
        return f"void *{name}"
    sign = "" if type_(-1).value == -1 else "u"
    return f"{sign}int{8 * ctypes.sizeof(type_)}_t {name}"


if __name__ == "__main__":
    sys.exit(main())
