"""The kernel that was imported runs, whatever has become of its file since."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import ast
import importlib.util
import linecache
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tilewright.runtime import jit
from tilewright.support import SourceFile, errors, source_text

HEAD = "import tilewright\nimport tilewright.language as tl\n\n"
ADDING = HEAD + "@tilewright.jit\ndef kernel(out, n):\n    tl.store(out, n + 2)\n"
TIMES = ADDING.replace("n + 2", "n * 1000")

Import = Callable[[str], ModuleType]


@pytest.fixture
def imported(tmp_path: Path) -> Iterator[Import]:
    """Imports a module from a text, under the same file name each time."""
    file, names = tmp_path / "edited.py", []

    def load(text: str) -> ModuleType:
        file.write_text(text)
        importlib.invalidate_caches()
        spec = importlib.util.spec_from_file_location(f"edited_{len(names)}", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        names.append(module.__name__)
        sys.modules[module.__name__] = module
        exec(compile(text, str(file), "exec"), vars(module))
        return module

    yield load
    for name in names:
        del sys.modules[name]


def edit(module: ModuleType, text: str) -> None:
    """Change the module's file, and let everybody know who asks."""
    file = Path(module.kernel.fn.__code__.co_filename)
    file.write_text(text)
    linecache.checkcache(str(file))


def stored(kernel: Any, number: int = 5, interpret: bool = False) -> float:
    out = np.zeros(1)
    (jit(interpret=True)(kernel) if interpret else kernel)[(1,)](out, number)
    return float(out[0])


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize(
    "edited", [TIMES, "# one\n# more\n" + ADDING, "", "def kernel(:\n", ADDING[: len(HEAD) + 20]]
)
def test_a_file_that_is_edited_after_the_import(
    imported: Import, edited: str, interpret: bool
) -> None:
    module = imported(ADDING)
    edit(module, edited)
    assert stored(module.kernel, interpret=interpret) == 7
    assert module.kernel.src == ADDING[ADDING.index("def kernel") :]


def test_a_file_that_is_deleted(imported: Import) -> None:
    module = imported(ADDING)
    Path(module.kernel.fn.__code__.co_filename).unlink()
    linecache.checkcache()
    assert stored(module.kernel) == 7


def test_a_reloaded_file_gives_new_kernels_beside_the_old_ones(imported: Import) -> None:
    old = imported(ADDING)
    new = imported(TIMES)
    assert (stored(new.kernel), stored(old.kernel)) == (5000, 7)
    assert old.kernel.cache_key != new.kernel.cache_key


CALLING = (
    HEAD
    + "@tilewright.jit\ndef helper(x):\n    return x + 2\n\n\n"
    + "@tl.constexpr_function\ndef constant():\n    return 3\n\n\n"
    + "@tilewright.jit\ndef kernel(out, n):\n    tl.store(out, helper(n) * constant())\n"
)


def test_functions_that_a_kernel_calls_are_those_that_were_imported(imported: Import) -> None:
    module = imported(CALLING)
    edit(module, CALLING.replace("x + 2", "x + 7").replace("return 3", "return 4"))
    key = module.kernel.cache_key
    assert stored(module.kernel) == 21
    assert stored(module.kernel, interpret=True) == 21
    edit(module, CALLING)
    assert imported(CALLING).kernel.cache_key == key


# Defines a kernel when `make` is called: long after the import, perhaps.
FACTORY = (
    HEAD
    + "def make(step):\n    @tilewright.jit\n    def kernel(out, n):\n"
    + "        tl.store(out, n + 2 * step)\n\n    return kernel\n\n\nkernel = make(1)\n"
)


@pytest.mark.parametrize(
    "edited", [FACTORY, "# shifted\n" + FACTORY, FACTORY.replace("def make", "X = 1\n\ndef make")]
)
def test_a_kernel_that_is_decorated_after_its_file_has_changed_elsewhere(
    imported: Import, edited: str
) -> None:
    module = imported(FACTORY)
    edit(module, edited)
    late = module.make(10)
    assert (stored(late), stored(module.kernel)) == (25, 7)
    assert stored(late, interpret=True) == 25


@pytest.mark.parametrize(
    ("before", "after"),
    [("n + 2", "n - 2"), ("2 * step", "2.0 * step"), ("n + 2", "n + True"), ("tl.store", "print")],
)
def test_edited_text_never_stands_for_other_code(imported: Import, before: str, after: str) -> None:
    module = imported(FACTORY)
    edit(module, FACTORY.replace(before, after))
    with pytest.raises(errors.SourceNotAvailable, match="has changed since it was imported"):
        stored(module.make(10))
    assert stored(module.kernel) == 7


def test_an_edit_that_the_files_size_and_time_do_not_show(imported: Import) -> None:
    old = imported(ADDING)
    file = old.kernel.fn.__code__.co_filename
    times = os.stat(file)
    text = ADDING.replace("n + 2", "n - 2")
    Path(file).write_text(text)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    namespace: dict[str, Any] = {"__name__": "edited"}
    exec(compile(text, file, "exec"), namespace)
    assert (stored(namespace["kernel"]), stored(old.kernel)) == (3, 7)


def test_methods_closures_and_future_statements_are_recognized(imported: Import) -> None:
    text = (
        "from __future__ import annotations\n" + HEAD
        + "class Holder:\n    @staticmethod\n    @tilewright.jit\n    def kernel(out, n: int):\n"
        + "        twice: tl.tensor = n * 2\n        tl.store(out, twice)\n\n\n"
        + "kernel = Holder.kernel\n"
    )  # fmt: skip
    module = imported(text)
    edit(module, "# more\n" + text)
    assert stored(module.kernel) == 10


def test_code_that_an_import_hook_has_rewritten_is_taken_from_an_old_file(
    imported: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytest's rewriting of assertions is such a hook."""

    def rewritten(source: str, file: str, mode: str) -> Any:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                node.body.insert(
                    0, ast.copy_location(ast.Assert(ast.Name("tl", ast.Load())), node.body[0])
                )
        return compile(ast.fix_missing_locations(tree), file, mode)

    module = imported(ADDING)
    file, namespace = module.kernel.fn.__code__.co_filename, {"__name__": "hooked"}
    exec(rewritten(ADDING, file, "exec"), namespace)
    with pytest.raises(errors.SourceNotAvailable, match="has changed"):
        stored(namespace["kernel"])
    monkeypatch.setattr(source_text, "_STARTED", float("inf"))
    assert stored(namespace["kernel"]) == 7


def test_a_cell_of_a_notebook_that_is_run_again() -> None:
    def cell(text: str, number: int) -> Any:
        file = f"<cell {number}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        namespace: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(text, file, "exec"), namespace)
        return namespace["kernel"]

    first, second = cell(ADDING, 1), cell(TIMES, 2)
    del linecache.cache["<cell 1>"]
    assert (stored(first), stored(second)) == (7, 5000)


WRONG = ADDING.replace("n + 2", "n + missing")


@pytest.mark.parametrize("interpret", [False, True])
def test_errors_show_the_text_that_was_imported(imported: Import, interpret: bool) -> None:
    text = WRONG if not interpret else ADDING.replace("n + 2)", "n + 2, n + 4, 5, 6, 7, 8, 9)")
    module = imported(text)
    edit(module, "# shifted\n" * 3 + text)
    with pytest.raises(errors.TilewrightError) as caught:
        stored(module.kernel, interpret=interpret)
    loc = caught.value.loc
    assert loc is not None and loc.line == 6
    line = text.splitlines()[5]
    assert f"6 | {line}" in str(caught.value)
    assert pickle.loads(pickle.dumps(loc)) == loc
    assert type(pickle.loads(pickle.dumps(SourceFile.of("a.py", [])))) is str


def test_an_import_parses_no_kernel(imported: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = "".join(
        f"\n\n@tilewright.jit\ndef kernel_{i}(out, n):\n    tl.store(out, n + {i})\n"
        for i in range(50)
    )
    parsed: list[str] = []
    parse = ast.parse
    monkeypatch.setattr(ast, "parse", lambda text: parsed.append(text) or parse(text))
    module = imported(HEAD + kernels)
    assert parsed == []
    assert stored(module.kernel_49) == 54
    assert [text for text in parsed if "kernel_4" in text] == [parsed[-1]]
