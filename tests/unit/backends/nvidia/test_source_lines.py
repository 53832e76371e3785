"""Line information: directives in PTX, tables in cubins, and code that does not change by them."""

import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.figures import source_of
from tests.corpus.variants import CORPUS, Variant
from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import settings
from tilewright.backends import GPUTarget
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.assemble.call_chains import add_call_chains
from tilewright.backends.nvidia.assemble.nvptx_legality import unlisted
from tilewright.backends.nvidia.driver.cuda_driver import driver
from tilewright.compiler import CompiledKernel

HERE = str(Path(__file__))


@tilewright.jit
def halved(x):
    return x * 0.5


@tilewright.jit
def smooth(x, y):
    z = halved(x + y)
    return halved(z)


@tilewright.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, smooth(x, y), mask=i < n)


@dataclass(frozen=True)
class Directive:
    """A `.loc`. line: its text in this file; function: that was inlined, "" in the kernel; caller:
    text of the line of the call."""

    line: str
    function: str = ""
    caller: str = ""


_LOC = re.compile(
    r"^\t\.loc\t(\d+) (\d+) \d+(?:, function_name (\S+), inlined_at (\d+) (\d+) \d+)?$", re.M
)


def directives(ptx: str) -> list[Directive]:
    """Those of a PTX module, neighbours that are equal once."""
    files = dict(re.findall(r'^\t\.file\t(\d+) "([^"]*)"', ptx, re.M))
    labels = re.findall(r"^(\S+):\n\t\.b8 ([\d, ]+), 0$", ptx, re.M)
    names = {label: bytes(map(int, data.split(", "))).decode() for label, data in labels}
    found: list[Directive] = []
    for file, line, name, call_file, call_line in _LOC.findall(ptx):
        text = linecache.getline(files[file], int(line)).strip()
        caller = linecache.getline(files[call_file], int(call_line)).strip() if name else ""
        directive = Directive(text, names.get(name, ""), caller)
        if directive not in found[-1:]:
            found.append(directive)
    return found


def test_directives_name_the_lines_of_the_source_and_the_calls_of_helpers() -> None:
    ptx = compiled(kernel, "*fp32/16 *fp32/16 *fp32/16 i32", BLOCK=128).asm["ptx"]
    call = "tl.store(out_ptr + i, smooth(x, y), mask=i < n)"
    assert directives(ptx) == [
        Directive("def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):"),
        Directive("i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"),
        Directive("x = tl.load(x_ptr + i, mask=i < n)"),
        Directive("y = tl.load(y_ptr + i, mask=i < n)"),
        Directive(call),
        Directive("z = halved(x + y)", "smooth", call),
        Directive("return x * 0.5", "halved", "z = halved(x + y)"),
        Directive("return halved(z)", "smooth", call),
        Directive("return x * 0.5", "halved", "return halved(z)"),
        Directive(call),
    ]


def test_the_target_stays_without_debug() -> None:
    ptx = compiled(kernel, "*fp32 *fp32 *fp32 i32", BLOCK=128).asm["ptx"]
    assert re.findall(r"^\.target .*$", ptx, re.M) == [".target sm_90a"]


SHIPPED = [("add", "fp32"), ("softmax", "fp32 1024"), ("matmul", "fp16"), ("attention", "fp16 64")]


def shipped(kernel: str, label: str) -> Variant:
    found = (v for v in CORPUS[kernel] if v.capability == 90 and v.label.startswith(label))
    return next(found)


def made(variant: Variant) -> CompiledKernel:
    target = GPUTarget("cuda", variant.capability, 32)
    return tilewright.compile(source_of(variant), target, variant.options)


@pytest.fixture(params=SHIPPED, ids=lambda pair: pair[0])
def variant(request: pytest.FixtureRequest) -> Iterator[Variant]:
    yield shipped(*request.param)


def test_at_least_95_percent_of_the_instructions_have_a_line(variant: Variant) -> None:
    lines, located, total = made(variant).asm["ptx"].splitlines(), False, 0
    with_line = 0
    for line in lines:
        directive = re.match(r"\t\.loc\t\d+ (\d+)", line)
        if directive:
            located = int(directive[1]) > 0
        elif re.match(r"\t(?:@\S+ )?[a-z][\w.:]+.*;$", line):
            total += 1
            with_line += located
    assert total > 20 and with_line >= 0.95 * total, (with_line, total)


def code_of(ptx: str) -> list[str]:
    """The lines that are code; labels that only line tables use are left out."""
    kept = ptx.partition("\t.section\t")[0].splitlines()
    return [x for x in kept if x and not re.match(r"\t\.loc\t|\t\.file|\$L__(tmp|func)\w+:", x)]


def test_code_is_the_same_without_line_information(variant: Variant) -> None:
    having = made(variant)
    with settings().compilation.scope(line_info=False):
        lacking = made(variant)
    assert ".loc" not in lacking.asm["ptx"] and "!dbg" not in lacking.asm["llir"]
    assert code_of(having.asm["ptx"]) == code_of(lacking.asm["ptx"])


@needs_ptxas
def test_cubins_have_line_tables_if_the_setting_wants_them() -> None:
    types = "*fp32/16 *fp32/16 *fp32/16 i32"
    assert b".debug_line" in compiled(kernel, types, BLOCK=128).asm["cubin"]
    with settings().compilation.scope(line_info=False):
        assert b".debug_line" not in compiled(kernel, types, BLOCK=128).asm["cubin"]


@needs_ptxas
@pytest.mark.parametrize("capability", [75, 80, 90, 100, 120])
def test_every_architecture_takes_call_chains(capability: int) -> None:
    made = compiled(kernel, "*fp32 *fp32 *fp32 i32", capability, BLOCK=128)
    assert "inlined_at" in made.asm["ptx"] and b".debug_line" in made.asm["cubin"]


@pytest.mark.gpu
def test_the_compiler_in_the_driver_takes_lines_and_call_chains() -> None:
    capability = driver().device(0).capability
    ptx = compiled(kernel, "*fp32 *fp32 *fp32 i32", capability, BLOCK=128).asm["ptx"]
    made = driver().compile_ptx(ptx, "kernel", 0)
    with settings().compilation.scope(line_info=False):
        plain = compiled(kernel, "*fp32 *fp32 *fp32 i32", capability, BLOCK=128).asm["ptx"]
    without = driver().compile_ptx(plain, "kernel", 0)
    assert "inlined_at" in ptx and b".debug_line" in made.cubin
    assert b".debug_line" not in without.cubin and made.report == without.report


def test_names_in_debug_metadata_are_no_constructs() -> None:
    text = '!7 = !DIFile(filename: "/home/@llvm.exp.f32/i128 fp128/k.py", directory: "")'
    assert unlisted(f"define void @k() {{\nret void\n}}\n{text}\n", row_for(90)) == []


def test_a_file_of_callers_alone_is_added() -> None:
    llir = "\n".join([
        '!1 = !DIFile(filename: "/k.py", directory: "")',
        '!2 = !DIFile(filename: "/h.py", directory: "")',
        '!3 = distinct !DISubprogram(name: "k", scope: !1, file: !1)',
        '!4 = distinct !DISubprogram(name: "h", scope: !2, file: !2)',
        "!5 = distinct !DILocation(line: 3, column: 1, scope: !3)",
        "!6 = distinct !DILocation(line: 9, column: 2, scope: !4, inlinedAt: !5)",
    ])  # fmt: skip
    ptx = '\t.loc\t1 9 2\n\tret;\n\t.file\t1 "/h.py"\n'
    assert add_call_chains(ptx, llir).splitlines() == [
        "\t.loc\t2 3 1",
        "\t.loc\t1 9 2, function_name $L__chain0, inlined_at 2 3 1",
        "\tret;",
        '\t.file\t1 "/h.py"',
        '\t.file\t2 "/k.py"',
        "\t.section\t.debug_str",
        "\t{",
        "$L__chain0:",
        "\t.b8 104, 0",
        "\t}",
    ]
