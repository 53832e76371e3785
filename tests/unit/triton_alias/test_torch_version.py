"""Inductor of another PyTorch is refused at its first question."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from tests.unit.triton_alias.alias_fixture import triton_alias
from tilewright.compiler import package_version
from tilewright.support import errors
from tilewright.triton_alias import register_cpp_wrapper


@pytest.mark.parametrize("version", ["2.9.1", "2.12.0+cpu", "2.14.0a0+git1", "3.0"])
def test_versions_that_were_never_tested_are_refused(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__=version))
    with triton_alias() as triton, pytest.raises(errors.UnsupportedTorch) as caught:
        triton.compiler.compiler.triton_key()
    assert str(caught.value).startswith(
        f"torch.compile is not supported of PyTorch {version}, only of 2.13 [TW223]\n  hint: "
    )
    with pytest.raises(errors.UnsupportedTorch):
        register_cpp_wrapper()


@pytest.mark.parametrize("version", ["2.13.0", "2.13.1+cu130"])
def test_the_key_is_that_of_the_compiler(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__=version))
    with triton_alias() as triton:
        assert triton.runtime.cache.triton_key() == package_version()
