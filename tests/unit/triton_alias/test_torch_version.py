"""Inductor of another PyTorch is refused at its first question."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.unit.triton_alias.alias_fixture import triton_alias
from tilewright.compiler import package_version
from tilewright.support import errors
from tilewright.triton_alias import register_with_inductor


@pytest.mark.parametrize("version", ["2.9.1", "2.10.0+cpu", "2.14.0a0+git1", "3.0"])
def test_versions_that_were_never_tested_are_refused(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__=version))
    with triton_alias() as triton, pytest.raises(errors.UnsupportedTorch) as caught:
        triton.compiler.compiler.triton_key()
    supported = "only for 2.11, 2.12, 2.13 [TW223]"
    text = f"torch.compile is not supported for PyTorch {version}, {supported}"
    assert str(caught.value).startswith(f"{text}\n  hint: ")
    with pytest.raises(errors.UnsupportedTorch):
        register_with_inductor()


def test_hooks_that_another_version_may_lack_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.11.0"))
    with pytest.raises(errors.UnsupportedTorch, match=r"2\.11\.0, only for 2\.13 "):
        register_with_inductor()


@pytest.mark.parametrize("version", ["2.11.0+cu130", "2.13.0", "2.13.1+cu130"])
def test_the_key_is_that_of_the_compiler(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__=version))
    with triton_alias() as triton:
        assert triton.runtime.cache.triton_key() == package_version()


_QUESTION = """
import sys, types
import tilewright
triton = tilewright.as_triton()
import triton.compiler.compiler
torch = types.SimpleNamespace(__version__="2.13.0", version=types.SimpleNamespace(cuda={cuda!r}))
sys.modules["torch"] = torch
sys.modules["__main__"].__file__ = {file!r}
triton.compiler.compiler.triton_key()
print(*(name for name in ("cpu", "nvidia") if f"tilewright.backends.{{name}}.lower" in sys.modules))
"""


@pytest.mark.parametrize(
    ("file", "cuda", "expected"),
    [
        ("/x/torch/_inductor/compile_worker/__main__.py", None, "cpu"),
        ("/x/torch/_inductor/compile_worker/__main__.py", "13.0", "nvidia"),
        ("/x/train.py", "13.0", ""),
    ],
)
def test_compile_workers_are_forked_with_the_compiler_imported(
    file: str, cuda: str | None, expected: str
) -> None:
    program = _QUESTION.format(file=file, cuda=cuda)
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == expected
