"""Programs in C: their LLVM IR is up to date, serves every target, and fits the structures."""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding

import tilewright
from scripts import budgets, compile_native
from tilewright.backends.cpu.driver.thread_pool_program import pool_program
from tilewright.native import NativeProgram
from tilewright.triton_alias.shared_libraries import Launch

SOURCES = Path(tilewright.__file__).parent
PROGRAMS = {program.source.stem: program for program in compile_native.PROGRAMS}
VARIANTS = {
    **PROGRAMS,
    "library": Launch(
        "kernel", ("ptr<f32>", "i1", "f16", "f64"), (0, 1, 3, 5), 0, 1, True
    ).program(),
    **{f"pool on {arch}": pool_program(arch, True) for arch in ("x86_64", "aarch64", "riscv64")},
    "pool on macOS": pool_program("arm64", False),
}

needs_clang = pytest.mark.dev("ziglang")


@pytest.mark.parametrize("name", VARIANTS)
def test_llvm_parses_and_verifies_each_program(name: str) -> None:
    program = VARIANTS[name]
    module = binding.parse_assembly(program.text(), binding.create_context())
    module.verify()
    assert {function.name for function in module.functions} >= set(program.exports)


@pytest.mark.parametrize("name", VARIANTS)
def test_each_definition_takes_the_place_of_a_declaration(name: str) -> None:
    program = VARIANTS[name]
    ir, text = program.ir.read_text("utf-8"), program.text()
    for defined, definition in program.definitions.items():
        assert re.search(rf"^(declare .*)?@{defined}\b(?! = internal)", ir, re.MULTILINE)
        assert text.count(definition) == 1
    assert " = external constant" not in text  # only Python has those


def test_each_file_of_c_and_llvm_ir_belongs_to_a_program() -> None:
    packaged = [p for p in PROGRAMS.values() if p.source.is_relative_to(SOURCES)]
    runtime = SOURCES / "aot" / "bundle" / "bundle_runtime.c"  # text of bundles
    assert {*SOURCES.rglob("*.c")} - {runtime} == {program.source for program in packaged}
    assert set(SOURCES.rglob("*.ll")) == {program.ir for program in packaged}


@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if program.structures])
def test_headers_are_those_of_the_structures(name: str) -> None:
    path = PROGRAMS[name].source.with_name(f"{name}_structures.h")
    written = compile_native.header(PROGRAMS[name])
    assert path.read_text("utf-8") == written, "run scripts/compile_native.py"


@needs_clang
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_ir_is_what_clang_makes_of_the_source(name: str) -> None:
    program = PROGRAMS[name]
    made = compile_native.compile_source(program.source)
    assert program.ir.read_text("utf-8") == made, "run scripts/compile_native.py"


@needs_clang
@pytest.mark.parametrize(
    "target", ["aarch64-linux-gnu", "aarch64-macos", "x86_64-macos", "x86_64-windows-gnu"]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_other_targets_have_the_same_ir(name: str, target: str) -> None:
    """Before any pass, which may weigh costs of the target."""
    source = PROGRAMS[name].source
    assert _unoptimised(source, target) == _unoptimised(source, compile_native.TARGET)


def _unoptimised(source: Path, target: str) -> str:
    """Without alignments of variables, and the extension of bools that not every target needs."""
    ir = compile_native.compile_source(source, target, "-Xclang", "-disable-llvm-passes")
    return re.sub(r"align \d+| zeroext", "", ir)


@needs_clang
def test_ir_that_depends_on_the_target_is_found(tmp_path: Path) -> None:
    source = tmp_path / "size.c"
    source.write_text("long f(long x) { return x; }\n", "utf-8")
    assert _unoptimised(source, "x86_64-windows-gnu") != _unoptimised(source, compile_native.TARGET)


@needs_clang
@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if program.structures])
def test_fields_are_where_ctypes_has_them(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    lines = [
        f'#include "{program.source.with_name(f"{name}_structures.h")}"',
        "#include <stddef.h>",
    ]
    for structure in program.structures:
        for field, *_ in structure._fields_:
            offset = getattr(structure, field).offset
            lines.append(f"static_assert(offsetof({structure.__name__}, {field}) == {offset});")
    source = tmp_path / "offsets.c"
    source.write_text("\n".join(lines), "utf-8")
    assert "define" not in compile_native.compile_source(source)


class Wrong(ctypes.Structure):
    """A structure that C lays out in another way."""

    _pack_ = 1
    _fields_ = (("byte", ctypes.c_int8), ("word", ctypes.c_int64))


@needs_clang
def test_a_structure_that_c_lays_out_otherwise_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    header = compile_native.header(NativeProgram(source, (), [Wrong]))
    source.write_text(header, "utf-8")
    with pytest.raises(subprocess.CalledProcessError):
        compile_native.compile_source(source)


def test_header_has_the_comments_of_the_fields() -> None:
    (pool,) = (p for name, p in PROGRAMS.items() if name == "thread_pool")
    header = compile_native.header(pool)
    assert re.search(r"^    uint64_t thread; +// pthread_self\(\)$", header, re.MULTILINE)
    assert "    STATUS_WAITED = 4," in header


@pytest.mark.dev("clang_format")
def test_c_is_formatted() -> None:
    files = [*SOURCES.rglob("*.c"), *SOURCES.rglob("*.h")]
    run = "import clang_format; clang_format.clang_format()"
    style = f"--style=file:{compile_native.ROOT / '.clang-format'}"  # the sources may be installed
    command = [sys.executable, "-c", run, style, "--dry-run", "-Werror", *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_comment_is_above_each_function_that_is_not_short() -> None:
    for path in (*SOURCES.rglob("*.c"), *SOURCES.rglob("*.h")):
        text = path.read_text("utf-8")
        for match in budgets.C_FUNCTION.finditer(text):
            above = text[: match.start()].rstrip("\n").rpartition("\n")[2]
            short = match[0].count("\n") < 10
            assert short or above.startswith("//"), f"{path.name}: {match[1]}"
