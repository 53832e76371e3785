"""`triton.knobs`: what was assigned, else the environment, else the default; and the settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.triton_alias.alias_fixture import triton_alias
from tilewright.runtime import launch_enter, launch_hooks
from tilewright.support import HookChain, errors, kernel_hooks, settings
from tilewright.triton_alias import knobs

SHARED: list[tuple[Any, str, Any, str, Any]] = [
    (knobs.runtime, "debug", False, "TRITON_DEBUG", True),
    (knobs.runtime, "interpret", False, "TRITON_INTERPRET", True),
    (knobs.runtime, "override_arch", None, "TRITON_OVERRIDE_ARCH", "sm80"),
    (knobs.language, "fp32_default", None, "TRITON_F32_DEFAULT", "ieee"),
    (knobs.language, "default_fp_fusion", True, "TRITON_DEFAULT_FP_FUSION", False),
    (knobs.compilation, "always_compile", False, "TRITON_ALWAYS_COMPILE", True),
    (knobs.compilation, "disable_line_info", False, "TRITON_DISABLE_LINE_INFO", True),
    (knobs.autotuning, "print", False, "TRITON_PRINT_AUTOTUNING", True),
    (knobs.autotuning, "cache", True, "TRITON_CACHE_AUTOTUNING", False),
    (knobs.cache, "dump_dir", f"{Path.home()}/.triton/dump", "TRITON_DUMP_DIR", "/tmp/dumps"),
    (knobs.cache, "home_dir", f"{Path.home()}/", "TRITON_HOME", "/tmp/home"),
    (knobs.amd, "use_buffer_ops", True, "AMDGCN_USE_BUFFER_OPS", False),
    (knobs.build, "cc", None, "CC", "clang"),
]


def text_of(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


@pytest.mark.parametrize(("group", "name", "default", "variable", "other"), SHARED)
def test_a_knob_is_assigned_or_in_the_environment_or_its_default(
    monkeypatch: pytest.MonkeyPatch, group: Any, name: str, default: Any, variable: str, other: Any
) -> None:
    for prefix in ("TRITON", "TILEWRIGHT"):
        monkeypatch.delenv(variable.replace("TRITON", prefix), raising=False)
    monkeypatch.delenv("TILEWRIGHT_LINE_INFO", raising=False)
    with group.scope():
        assert getattr(group, name) == default
        monkeypatch.setenv(variable, text_of(other))
        assert text_of(getattr(group, name)) == text_of(other)
        setattr(group, name, default)
        assert getattr(group, name) == default
        # for processes that are started from now on
        assert os.environ.get(variable) == (None if default is None else text_of(default))
        monkeypatch.setenv(variable, text_of(other))
        assert getattr(group, name) == default  # what was assigned counts
        setattr(group, name, knobs.env)
        assert text_of(getattr(group, name)) == text_of(other)
    assert variable not in os.environ
    assert getattr(group, name) == default


def test_a_knob_is_a_setting_of_this_package() -> None:
    with knobs.runtime.scope():
        knobs.runtime.debug = True
        assert settings().compilation.debug
        assert knobs.runtime.knobs["debug"] is True
    assert not settings().compilation.debug
    with settings().autotuning.scope(print=True):
        assert knobs.autotuning.print is True


def test_a_scope_restores_assignments_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "gcc")
    with knobs.build.scope():
        knobs.build.cc = "clang"
        assert (knobs.build.copy().cc, os.environ["CC"]) == ("clang", "clang")
        assert knobs.build.reset().cc == "clang"  # as the environment says now
    assert (knobs.build.cc, os.environ["CC"]) == ("gcc", "gcc")


def test_a_scope_restores_hooks() -> None:
    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = print
        assert kernel_hooks.jit_cache is print
    assert knobs.runtime.jit_cache_hook is kernel_hooks.jit_cache is None


def test_a_flag_that_is_none_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_PROTON_DISABLE", "maybe")
    with pytest.raises(errors.BadSetting, match="TRITON_PROTON_DISABLE must be 0 or 1"):
        _ = knobs.proton.disable


def test_hooks_around_launches_are_the_runtime_s() -> None:
    calls: list[str] = []

    def first(metadata: object) -> None:
        calls.append("first")

    def second(metadata: object) -> None:
        calls.append("second")

    assert knobs.runtime.launch_enter_hook is launch_enter
    chain = knobs.runtime.launch_exit_hook
    chain.add(first)
    chain.add(second)
    chain(None)
    assert (calls, chain.calls) == (["second", "first"], [first, second])
    knobs.runtime.launch_exit_hook = None
    assert launch_hooks.launch_exit == []
    knobs.runtime.launch_exit_hook = first
    assert launch_hooks.launch_exit == [first]
    chain.remove(first)
    assert not HookChain()


def test_every_group_lists_its_knobs() -> None:
    groups = "build cache compilation autotuning runtime language nvidia amd proton redis".split()
    listed = {name: sorted(getattr(knobs, name).knob_descriptors) for name in groups}
    assert all(listed.values())
    assert listed["language"] == ["default_fp_fusion", "force_disable_fp_fusion", "fp32_default"]


NOT_SETTINGS = {"home_dir", "dump_ir", "override"}
"""Knobs that settings look at in the environment."""
OF_THE_ALIAS = {
    "manager_class", "remote_manager_class", "key_format", "host", "port",  # of cache managers
    "cuobjdump", "nvdisasm",  # of triton.tools.disasm
}  # fmt: skip
"""Knobs that modules of `triton_alias` look at."""


def test_a_knob_works_or_says_why_not() -> None:
    groups = "build cache compilation autotuning runtime language nvidia amd proton redis".split()
    silent = {
        name
        for group in groups
        for name, knob in getattr(knobs, group).knob_descriptors.items()
        if not isinstance(knob, knobs.Shared) and not knob.no_effect_since
    }
    assert silent == NOT_SETTINGS | OF_THE_ALIAS
    with knobs.amd.scope():
        knobs.amd.use_async_copy = True  # it is kept, and does nothing
        assert knobs.amd.use_async_copy is True
    with knobs.language.scope():
        knobs.language.force_disable_fp_fusion = True
        assert settings().compilation.fp_fusion is False


class own_knobs(knobs.base_knobs):
    text = knobs.env_str("OWN_TEXT", "a text")
    flag = knobs.env_bool("OWN_FLAG", True)
    number = knobs.env_int("OWN_NUMBER", 3)
    maybe = knobs.env_opt_str("OWN_MAYBE")
    maybe_flag = knobs.env_opt_bool("OWN_MAYBE_FLAG")
    computed = knobs.env_str_callable_default("OWN_COMPUTED", lambda: "computed")
    kind = knobs.env_class("OWN_KIND", "Mapping")


DEFAULTS = {
    "text": "a text", "flag": True, "number": 3, "maybe": None, "maybe_flag": None,
    "computed": "computed", "kind": None,
}  # fmt: skip


def test_programs_have_groups_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs, "propagate_env", False)
    group = own_knobs()
    assert group.knobs == DEFAULTS
    group.flag, group.maybe_flag = False, True
    copied = group.copy()
    copied.text = "another"
    assert group.knobs == {**DEFAULTS, "flag": False, "maybe_flag": True}
    assert copied.knobs == {**group.knobs, "text": "another"}
    assert copied.reset().knobs == DEFAULTS
    assert group.flag is False
    for name, text in {"NUMBER": "7", "MAYBE_FLAG": "0", "KIND": "collections:OrderedDict"}.items():
        monkeypatch.setenv(f"OWN_{name}", text)
    # OrderedDict is derived from dict, not from a class called Mapping
    with pytest.raises(errors.BadSetting, match="OWN_KIND must be MODULE:CLASS of a class derived"):
        _ = copied.kind
    monkeypatch.setenv("OWN_KIND", "collections.abc:MutableMapping")
    assert (copied.number, copied.maybe_flag, copied.kind.__name__) == (7, False, "MutableMapping")
    monkeypatch.setenv("OWN_NUMBER", "many")
    with pytest.raises(errors.BadSetting, match="OWN_NUMBER must be an integer"):
        _ = copied.number


def test_assignments_reach_the_environment_unless_that_is_switched_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CC", raising=False)
    with knobs.build.scope():
        knobs.build.cc = "clang"
        assert os.environ["CC"] == "clang"
        monkeypatch.setattr(knobs, "propagate_env", False)
        knobs.build.cc = "gcc"
        knobs.setenv("CC", "tcc")
        assert (knobs.build.cc, os.environ["CC"]) == ("gcc", "clang")
    assert (knobs.toenv(True), knobs.toenv(3), knobs.toenv(None)) == (("1",), ("3",), (None,))
    assert knobs.toenv(Path()) is None


def test_a_group_is_in_effect_while_it_is_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs, "propagate_env", False)
    first = knobs.runtime
    with first.scope():
        first.debug = True
        second = first.copy().reset()
        second.debug, second.jit_cache_hook = False, print
        assert first.debug is settings().compilation.debug is True
        assert (second.debug, second.jit_cache_hook) == (False, print)
        assert kernel_hooks.jit_cache is None
        monkeypatch.setattr(knobs, "runtime", second)
        assert second.debug is settings().compilation.debug is False
        assert (first.debug, first.jit_cache_hook) == (True, None)
        assert kernel_hooks.jit_cache is print
        third = second.copy()
        assert (third.debug, third.jit_cache_hook) == (False, print)
        assert kernel_hooks.jit_cache is print and not settings().compilation.debug
        monkeypatch.undo()
        assert knobs.runtime is first
        assert first.debug is settings().compilation.debug is True
        assert (second.debug, second.jit_cache_hook) == (False, print)
        assert kernel_hooks.jit_cache is None
    assert not settings().compilation.debug


def test_the_module_is_triton_s() -> None:
    spec = knobs.__spec__
    with triton_alias() as triton:
        assert triton.knobs is knobs
        groups = [name for name, at in vars(knobs).items() if isinstance(at, knobs.base_knobs)]
        assert groups == [
            "build", "redis", "cache", "compilation", "autotuning", "runtime", "language",
            "nvidia", "amd", "proton",
        ]  # fmt: skip
    assert knobs.__spec__ is spec is not None and spec.name == knobs.__name__
    assert Path(str(knobs.__file__)).is_file()


def test_tools_of_cuda_are_found_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "cuobjdump"
    tool.write_text("#!/bin/sh\necho Cuda compilation tools, release 12.9, V12.9.86\n")
    monkeypatch.setenv("TRITON_CUOBJDUMP_PATH", str(tool))
    with pytest.raises(errors.ToolMissing, match="cuobjdump"):
        _ = knobs.nvidia.cuobjdump  # it may not be run
    tool.chmod(0o700)
    assert knobs.nvidia.cuobjdump == knobs.NvidiaTool(str(tool), "12.9")
    monkeypatch.delenv("TRITON_CUOBJDUMP_PATH")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert knobs.nvidia.cuobjdump.path == str(tool)
    with knobs.build.scope():
        knobs.build.cudart_path = "/cuda"
        assert knobs.build.backend_dirs == {"/cuda"}


def test_triton_s_home_holds_cache_dumps_and_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("TILEWRIGHT_CACHE_DIR", "TRITON_CACHE_DIR", "TRITON_DUMP_DIR"):
        monkeypatch.delenv(variable, raising=False)
    assert settings().compilation.dump_dir is None
    assert knobs.cache.dir == str(Path.home() / ".triton" / "cache") != str(settings().cache.dir)
    monkeypatch.setenv("TRITON_HOME", "/somewhere")
    assert knobs.cache.dump_dir == "/somewhere/.triton/dump"
    assert knobs.cache.dir == "/somewhere/.triton/cache"
    assert settings().compilation.dump_dir is None
    with knobs.compilation.scope():
        knobs.compilation.dump_ir = True
        knobs.compilation.override = True
        assert settings().compilation.dump_dir == Path("/somewhere/.triton/dump")
        assert settings().compilation.override_dir == Path("/somewhere/.triton/override")
    assert settings().compilation.override_dir is None
    monkeypatch.setenv("TRITON_CACHE_DIR", "/elsewhere")
    assert knobs.cache.dir == "/elsewhere"


def test_the_version_of_ptxas_has_two_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "ptxas"
    tool.write_text("#!/bin/sh\necho Cuda compilation tools, release 13.0, V13.0.88\n")
    tool.chmod(0o700)
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(tool))
    assert knobs.nvidia.ptxas == knobs.NvidiaTool(str(tool), "13.0")
    assert knobs.nvidia.ptxas_blackwell.version == "13.0"
