"""Line tables in the key of compiled kernels, and in machine code of the CPU."""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tilewright.backends import backend_named
from tilewright.compiler import ASTSource, CompiledKernel, compile
from tilewright.llvm.elf_linker import laid_out
from tilewright.support import settings

SOURCE = """
import tilewright
import tilewright.language as tl

@tilewright.jit
def double(x):
    return x + x

@tilewright.jit
def kernel(x_ptr):
    tl.store(x_ptr, double(tl.load(x_ptr)))
"""


PRODUCT = """
import tilewright
import tilewright.language as tl

@tilewright.jit
def double(x):
    return x + x

@tilewright.jit
def kernel(x_ptr):
    i = tl.arange(0, 32)
    p = x_ptr + i[:, None] * 32 + i[None, :]
    acc = tl.zeros((32, 32), tl.float32)
    for k in range(4):
        acc = tl.dot(double(tl.load(p)), tl.load(p), acc)
        p += 1024
    tl.store(x_ptr + i, tl.sum(tl.exp(acc), axis=1))
"""


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Iterator[None]:
    with settings().cache.scope(dir=tmp_path / "cache"):
        yield


Compile = Callable[[str, str], CompiledKernel]


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    """Compiles the kernel of a file with this name and text for the CPU."""

    def compile_file(name: str, text: str) -> CompiledKernel:
        path = tmp_path / name
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module: ModuleType = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        source = ASTSource(module.kernel, {"x_ptr": "*fp32"})
        return compile(source, backend_named("cpu").target())

    return compile_file


LOWER = SOURCE.replace("\n@", "\n\n@", 1)
"""All a line further down."""
KERNEL = "\n@tilewright.jit\ndef kernel"
LOWER_KERNEL = SOURCE.replace(KERNEL, "\n" + KERNEL)


@pytest.mark.parametrize("moved", [LOWER, LOWER_KERNEL])
def test_a_kernel_that_moved_is_another_one_since_its_line_table_is(
    compiled: Compile, moved: str
) -> None:
    assert compiled("one.py", SOURCE).hash != compiled("two.py", moved).hash


def test_without_line_tables_its_place_makes_no_difference(compiled: Compile) -> None:
    with settings().compilation.scope(line_info=False):
        assert compiled("one.py", SOURCE).hash == compiled("two.py", LOWER).hash


def test_the_name_of_the_file_makes_no_difference(compiled: Compile) -> None:
    assert compiled("one.py", SOURCE).hash == compiled("two.py", SOURCE).hash


def test_objects_of_the_cpu_have_line_tables_if_the_setting_wants_them(compiled: Compile) -> None:
    having = compiled("one.py", SOURCE)
    assert 'DISubprogram(name: "double"' in having.asm["llir"]
    assert b"one.py" in having.asm["obj"]
    with settings().compilation.scope(line_info=False):
        lacking = compiled("one.py", SOURCE)
    assert "!dbg" not in lacking.asm["llir"]
    assert b"one.py" not in lacking.asm["obj"]


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="links objects of x86-64"
)
def test_code_of_the_cpu_is_the_same_without_line_tables(compiled: Compile) -> None:
    def image() -> bytes | None:
        linked = laid_out(compiled("one.py", PRODUCT).asm["obj"], ["kernel"], lambda name: 0x1000)
        return None if linked is None else linked.at(0x10000)

    having = image()
    with settings().compilation.scope(line_info=False):
        assert having is not None and having == image()
