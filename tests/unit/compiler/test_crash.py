"""A bug in the compiler: the error says so, and names a file that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.compiler.kernels import ADD, add
from tilewright.backends import Backend, Stage, StageContext, backend_named
from tilewright.compiler import ASTSource, compile_source, options_of
from tilewright.frontend import python
from tilewright.ir import Module, parse_module
from tilewright.support import errors, settings


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    with settings().cache.scope(dir=tmp_path):
        yield tmp_path


def with_stage(run) -> Backend:
    """The CPU backend with another second stage."""
    cpu = backend_named("cpu")
    first, second, *rest = cpu.stages
    return replace(cpu, stages=(first, Stage(second.extension, run, second.parse), *rest))


def compile_with(backend: Backend) -> None:
    source = ASTSource(add, ADD, {"BLOCK": 16})
    compile_source(source, backend, backend.target(), options_of(backend, {}))


def test_an_assertion_becomes_a_bug_with_a_file(cache: Path) -> None:
    def broken(module: Module, context: StageContext) -> str:
        raise AssertionError("a tile without a layout")

    with pytest.raises(errors.InternalCompilerError) as caught:
        compile_with(with_stage(broken))
    error = caught.value
    assert error.message == "the compiler has a bug: AssertionError: a tile without a layout"
    assert error.reproducer is not None
    path = Path(error.reproducer)
    assert path.name == "kernel.tile"
    assert path.is_relative_to(cache)
    assert str(path) in (error.hint or "")
    text = path.read_text()
    assert "// pipeline: ttir -> llir -> obj for" in text
    assert "// stages done: ttir" in text
    assert "// AssertionError: a tile without a layout" in text
    assert parse_module(text).kernel.name == "add"


def test_a_bug_in_the_front_end_shows_the_python_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> Module:
        raise ZeroDivisionError

    monkeypatch.setattr(python, "lower_kernel", broken)
    with pytest.raises(errors.InternalCompilerError, match="bug: ZeroDivisionError") as caught:
        compile_with(backend_named("cpu"))
    path = Path(caught.value.reproducer or "")
    assert path.name == "kernel.py"
    assert "def add(x, y, out, n, BLOCK" in path.read_text()


def test_designed_errors_and_lack_of_memory_pass() -> None:
    def resources(module: Module, context: StageContext) -> str:
        raise errors.OutOfResources(2, 1, "shared memory")

    def memory(module: Module, context: StageContext) -> str:
        raise MemoryError

    with pytest.raises(errors.OutOfResources):
        compile_with(with_stage(resources))
    with pytest.raises(MemoryError):
        compile_with(with_stage(memory))


def test_without_a_place_for_the_file_the_bug_is_still_told(cache: Path) -> None:
    (cache / "crashes").write_text("a file where the folder should be")

    def broken(module: Module, context: StageContext) -> str:
        raise KeyError("x")

    with pytest.raises(errors.InternalCompilerError, match="KeyError: 'x'") as caught:
        compile_with(with_stage(broken))
    assert caught.value.reproducer is None
