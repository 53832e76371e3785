"""The public names: `dir()` and `import *` show these, and nothing that only this package uses."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

import tilewright
import tilewright.language as tl
from scripts.site_pages import MODULES, public_names
from tests.unit.triton_alias.alias_fixture import triton_alias

MODULES_OF_LANGUAGE = {"core", "extra", "math", "random", "standard", "target_info"}


@pytest.mark.parametrize("name", MODULES)
def test_dir_shows_the_documented_names(name: str) -> None:
    module = importlib.import_module(name)
    names = set(public_names(name))
    assert set(dir(module)) == names | (set(tl.__all__) if name == "tilewright" else set())


def test_import_star_gives_the_documented_names() -> None:
    names: dict[str, object] = {}
    exec("from tilewright.language import *", names)
    assert names.keys() - {"__builtins__"} == set(public_names("tilewright.language"))


def test_no_public_name_of_the_language_is_an_internal_module() -> None:
    modules = {name for name in tl.__all__ if isinstance(getattr(tl, name), ModuleType)}
    assert modules == MODULES_OF_LANGUAGE


def test_internal_names_are_no_attributes_of_the_package() -> None:
    assert tilewright.arange is tl.arange
    with pytest.raises(AttributeError, match="no attribute 'active_dispatcher'"):
        _ = tilewright.active_dispatcher  # pyright: ignore[reportAttributeAccessIssue]


def test_names_that_only_triton_s_core_has_are_found_there() -> None:
    with triton_alias():
        core = importlib.import_module("triton.language.core")
        assert core.get_int_dtype(32, True) == tl.int32
        assert {"base_value", "builtin", "is_builtin", "tensor_descriptor_type"} <= set(dir(core))


def test_dir_imports_nothing_but_the_language() -> None:
    code = "import sys, tilewright; dir(tilewright); print('tilewright.compiler' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
