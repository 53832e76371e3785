"""Archives of kernels: imported ones are not compiled again; wrong and damaged ones are refused."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.compiler.kernels import ADD, add
from tilewright.backends import Backend, GPUTarget, backend_named
from tilewright.backends.nvidia.assemble.ptxas import find_ptxas
from tilewright.compiler import ASTSource, CompiledKernel, compile
from tilewright.support import StageText, errors, recording, settings
from tilewright.support.event_stream import ListRecorder
from tilewright.tools.cli import main

CPU = backend_named("cpu").target()


def compiled(folder: Path, target: GPUTarget = CPU, block: int = 32) -> tuple[CompiledKernel, bool]:
    """A kernel with the disk cache in a folder, and whether it was compiled."""
    with settings().cache.scope(dir=folder), recording(events := ListRecorder()):
        kernel = compile(ASTSource(add, ADD, {"BLOCK": block}), target=target)
        kernel.asm["ttir"]
    return kernel, bool(events.of(StageText))


def run(folder: Path, *words: str) -> int:
    with settings().cache.scope(dir=folder):
        return main(["cache", *words])


def test_an_imported_kernel_is_not_compiled(tmp_path: Path, capsys) -> None:
    first, _ = compiled(tmp_path / "a")
    compiled(tmp_path / "a", block=64)
    assert run(tmp_path / "a", "export", str(tmp_path / "k.tar")) == 0
    assert "exported 2 kernels" in capsys.readouterr().out
    assert run(tmp_path / "b", "import", str(tmp_path / "k.tar")) == 0
    assert "imported 2 kernels" in capsys.readouterr().out
    second, again = compiled(tmp_path / "b")
    assert not again
    assert second.asm["obj"] == first.asm["obj"]


def test_cubins_are_in_the_archive(tmp_path: Path) -> None:
    try:
        find_ptxas()
    except errors.ToolMissing:
        pytest.skip("needs ptxas")
    target = GPUTarget("cuda", 90, 32)
    first, _ = compiled(tmp_path / "a", target)
    assert run(tmp_path / "a", "export", str(tmp_path / "k.tar")) == 0
    assert run(tmp_path / "b", "import", str(tmp_path / "k.tar")) == 0
    second, again = compiled(tmp_path / "b", target)
    assert not again
    assert second.asm["cubin"] == first.asm["cubin"]


def test_equal_caches_give_equal_archives(tmp_path: Path) -> None:
    for name in "ab":
        compiled(tmp_path / name)
        run(tmp_path / name, "export", str(tmp_path / f"{name}.tar"))
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_only_kernels_of_a_name_are_exported(tmp_path: Path, capsys) -> None:
    compiled(tmp_path / "a")
    run(tmp_path / "a", "export", str(tmp_path / "k.tar"), "--kernel", "other")
    assert "exported 0 kernels" in capsys.readouterr().out


def changed(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


def repacked(file: Path, change: Callable[[bytes], bytes], name: str | None = None) -> None:
    """Rewrite the only member of an archive."""
    with tarfile.open(file) as archive:
        (member,) = archive.getmembers()
        reader = archive.extractfile(member)
        assert reader is not None
        content = change(reader.read())
    member.size, member.name = len(content), name or member.name
    with tarfile.open(file, "w") as archive:
        archive.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (None, "its checksum differs"),
        ("kernels/" + "0" * 64, "its checksum differs"),
        ("../../kernel", "it is not a kernel"),
        ("/tmp/kernel", "it is not a kernel"),
    ],
)
def test_damaged_members_are_refused(tmp_path: Path, capsys, name, reason) -> None:
    compiled(tmp_path / "a")
    run(tmp_path / "a", "export", str(tmp_path / "k.tar"))
    repacked(tmp_path / "k.tar", changed, name)
    capsys.readouterr()
    assert run(tmp_path / "b", "import", str(tmp_path / "k.tar")) == 1
    assert reason in capsys.readouterr().out
    assert compiled(tmp_path / "b")[1]


def test_kernels_for_another_cpu_are_refused(
    tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(tmp_path / "a")
    run(tmp_path / "a", "export", str(tmp_path / "k.tar"))
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr(Backend, "tool_versions", lambda backend, target: "another CPU")
    assert run(tmp_path / "b", "import", str(tmp_path / "k.tar")) == 1
    assert "it was compiled by llvmlite" in capsys.readouterr().out


def test_a_key_signs_archives(tmp_path: Path, capsys) -> None:
    (tmp_path / "key").write_bytes(b"secret")
    compiled(tmp_path / "a")
    run(tmp_path / "a", "export", str(tmp_path / "plain.tar"))
    with settings().cache.scope(remote_key=tmp_path / "key"):
        run(tmp_path / "a", "export", str(tmp_path / "signed.tar"))
        assert run(tmp_path / "b", "import", str(tmp_path / "plain.tar")) == 1
        assert "not signed by the shared key" in capsys.readouterr().out
        assert run(tmp_path / "b", "import", str(tmp_path / "signed.tar")) == 0


@pytest.mark.parametrize("words", [["export"], ["import"]])
def test_a_missing_file_is_named(tmp_path: Path, capsys, words) -> None:
    assert run(tmp_path, *words) == 1
    assert f"name the file: tilewright cache {words[0]} FILE.tar" in capsys.readouterr().err
    if words == ["import"]:
        (tmp_path / "k.tar").write_bytes(b"no archive")
        assert run(tmp_path, "import", str(tmp_path / "k.tar")) == 1
        assert "is not an archive of kernels" in capsys.readouterr().err
        assert run(tmp_path, "import", str(tmp_path / "none.tar")) == 1
        assert "No such file" in capsys.readouterr().err
