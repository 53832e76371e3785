"""Settings come from an assignment, else the environment, else the default."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from tilewright.support import Settings, errors, settings
from tilewright.support.settings_table import Group, _platform_cache, setting_rows  # pyright: ignore[reportPrivateUsage]

SHARED = {("CUDA_HOME", "CUDA_PATH")}
"""Variables that belong to the tool that they locate."""


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    for row in setting_rows():
        for variable in row.variables:
            monkeypatch.delenv(variable, raising=False)


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    now = settings()
    assert now.interpreter.enabled is False
    assert now.interpreter.program_id is None
    assert now.compilation.verify is False
    assert now.cpu.threads == 0
    assert now.cache.dir == Path("/somewhere/tilewright")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"XDG_CACHE_HOME": "/x", "HOME": "/home/me"}, "/x/tilewright"),
        ({"HOME": "/home/me"}, "/home/me/.cache/tilewright"),
        ({"XDG_CACHE_HOME": "", "HOME": "/home/me"}, "/home/me/.cache/tilewright"),
        ({"TILEWRIGHT_CACHE_DIR": "~/kept", "HOME": "/home/me"}, "/home/me/kept"),
        ({"TRITON_CACHE_DIR": "~", "HOME": "/home/me"}, "/home/me"),
        ({}, None),
        ({"TILEWRIGHT_CACHE_DIR": "~/kept"}, None),
    ],
)
def test_folder_of_the_cache(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str | None
) -> None:
    """Without HOME it is what the system knows of the user."""
    for variable in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    pwd = pytest.importorskip("pwd")
    home = pwd.getpwuid(os.getuid()).pw_dir
    own = f"{home}/kept" if environment else f"{home}/.cache/tilewright"
    assert settings().cache.dir == Path(expected or own)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number that nobody has."""

    def unknown(user: int) -> object:
        raise KeyError(user)

    for variable in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(variable, raising=False)
    pwd = pytest.importorskip("pwd")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    _platform_cache.cache_clear()
    folder = settings().cache.dir
    _platform_cache.cache_clear()
    assert folder == Path(tempfile.gettempdir()) / f"tilewright-{os.getuid()}"
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "~/kept")
    with pytest.raises(errors.BadSetting, match="TILEWRIGHT_CACHE_DIR"):
        _ = settings().cache.dir


def test_a_home_folder_that_is_unknown_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DUMP_DIR", "~nobody-of-this-name/dumps")
    with pytest.raises(errors.BadSetting, match="a folder"):
        _ = settings().compilation.dump_dir


def test_environment_is_read_at_each_access(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_INTERPRET", "1")
    assert settings().interpreter.enabled is True
    monkeypatch.setenv("TILEWRIGHT_INTERPRET", "off")
    assert settings().interpreter.enabled is False
    monkeypatch.setenv("TILEWRIGHT_INTERPRET", "")
    assert settings().interpreter.enabled is False


def test_triton_spelling_is_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert settings().interpreter.enabled is True
    monkeypatch.setenv("TILEWRIGHT_INTERPRET", "0")
    assert settings().interpreter.enabled is False


@pytest.mark.parametrize(
    ("text", "ids"), [("3", (3, 0, 0)), ("3,0,0", (3, 0, 0)), ("1, 2", (1, 2, 0))]
)
def test_program_id(monkeypatch: pytest.MonkeyPatch, text: str, ids: tuple[int, ...]) -> None:
    monkeypatch.setenv("TILEWRIGHT_INTERPRET_PID", text)
    assert settings().interpreter.program_id == ids


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("TILEWRIGHT_INTERPRET", "maybe"),
        ("TILEWRIGHT_INTERPRET_PID", "1,2,3,4"),
        ("TILEWRIGHT_INTERPRET_PID", "-1"),
        ("TILEWRIGHT_CPU_THREADS", "two"),
        ("TILEWRIGHT_CPU_THREADS", "-2"),
        ("TILEWRIGHT_F32_DEFAULT", "tf16"),
        ("TRITON_OVERRIDE_ARCH", "sm 90"),
        ("TILEWRIGHT_REMOTE_CACHE", "/nfs/cache"),
        ("TILEWRIGHT_REMOTE_CACHE_TRUST", "maybe"),
        ("TILEWRIGHT_REMOTE_CACHE_KEY", "~nobody-of-this-name/key"),
        ("TILEWRIGHT_RECORD", "~nobody-of-this-name/spec.toml"),
        ("TILEWRIGHT_ON_MISS", "wait"),
        ("TILEWRIGHT_TUNING_TABLES", "~nobody-of-this-name/table.json"),
        ("TILEWRIGHT_TUNING_FALLBACK", "last"),
    ],
)
def test_bad_text_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str
) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(errors.BadSetting) as caught:
        setting_rows()
    assert caught.value.message.startswith(f"{variable} must be ")
    assert repr(text) in caught.value.message


def test_assignment_beats_environment_until_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    group = settings().compilation
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
    group.verify = False
    try:
        assert group.verify is False
    finally:
        group.reset("verify")
    assert group.verify is True


def test_scope_restores_also_what_was_assigned_inside() -> None:
    group = settings().compilation
    with pytest.raises(ZeroDivisionError), group.scope(debug=True):
        assert group.debug is True
        group.verify = True
        _ = 1 // 0
    assert group.debug is False
    assert group.verify is False
    with pytest.raises(AttributeError, match="verfy"), group.scope(verfy=False):
        pass


def test_cache_key_holds_exactly_what_changes_code() -> None:
    before = settings().cache_key()
    with settings().compilation.scope(verify=False), settings().cpu.scope(threads=3):
        assert settings().cache_key() == before
    with settings().compilation.scope(f32_default="tf32"):
        assert settings().cache_key() != before


def test_every_setting_is_documented_and_has_an_own_variable() -> None:
    rows = setting_rows()
    assert len(rows) >= 12
    for row in rows:
        assert row.doc.endswith(".")
        assert row.variables[0].startswith("TILEWRIGHT_") or row.variables in SHARED
    names = [variable for row in rows for variable in row.variables]
    assert len(names) == len(set(names))


def test_groups_are_all_of_the_settings() -> None:
    now = settings()
    assert isinstance(now, Settings)
    assert all(isinstance(group, Group) for _, group in now.groups())


FOLDERS = {
    "TILEWRIGHT_CACHE_DIR": lambda: settings().cache.dir,
    "TRITON_CACHE_DIR": lambda: settings().cache.dir,
    "TILEWRIGHT_DUMP_DIR": lambda: settings().compilation.dump_dir,
    "TILEWRIGHT_OVERRIDE_DIR": lambda: settings().compilation.override_dir,
    "TILEWRIGHT_REMOTE_CACHE_KEY": lambda: settings().cache.remote_key,
    "TILEWRIGHT_RECORD": lambda: settings().cache.record,
    "TILEWRIGHT_TUNING_TABLES": lambda: next(iter(settings().autotuning.tables), None),
}


@pytest.mark.parametrize("variable", FOLDERS)
def test_a_relative_folder_does_not_follow_the_working_folder(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in FOLDERS:
        monkeypatch.delenv(name, raising=False)
    FOLDERS[variable]()
    (tmp_path / "later").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, "kept/here")
    assert FOLDERS[variable]() == tmp_path / "kept" / "here"
    monkeypatch.chdir("later")
    assert FOLDERS[variable]() == tmp_path / "kept" / "here"
    monkeypatch.setenv(variable, "there")
    assert FOLDERS[variable]() == tmp_path / "later" / "there"


def test_an_assigned_relative_folder_does_not_follow_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with settings().cache.scope(dir=Path("kept")):
        monkeypatch.chdir("/")
        assert settings().cache.dir == tmp_path / "kept"
