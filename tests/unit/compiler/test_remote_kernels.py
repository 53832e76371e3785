"""Kernels of a remote cache: compiled once, pulled by others, refused where they do not fit."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.compiler.kernels import ADD, add
from tilewright.backends import backend_named
from tilewright.compiler import ASTSource, CompiledKernel, compile, remote_kernels
from tilewright.support import StageText, TilewrightWarning, recording, settings
from tilewright.support.event_stream import ListRecorder
from tilewright.support.remote_cache import shared_tier

CPU = backend_named("cpu").target()


class Machine:
    """A machine with a disk cache of its own, and the remote cache in `remote`."""

    def __init__(self, root: Path, remote: str, **trust: object) -> None:
        self.root, self.remote = root, remote
        self.trust = trust or {"remote_trust": True}

    @contextmanager
    def settings(self) -> Iterator[None]:
        with settings().cache.scope(dir=self.root, remote=self.remote, **self.trust):
            yield

    def compile(self, block: int = 32) -> tuple[CompiledKernel, bool]:
        """A kernel, and whether it was compiled."""
        with self.settings(), recording(events := ListRecorder()):
            kernel = compile(ASTSource(add, ADD, {"BLOCK": block}), target=CPU)
            tier = shared_tier(settings().cache)
            assert tier is not None
            tier.flush(60)
        return kernel, bool(events.of(StageText))


@pytest.fixture
def machines(tmp_path: Path) -> list[Machine]:
    return [Machine(tmp_path / name, f"file://{tmp_path}/remote") for name in "abc"]


def objects(tmp_path: Path, folder: str = "kernels") -> list[Path]:
    return sorted((tmp_path / "remote" / folder).glob("*"))


def test_one_machine_compiles_and_the_others_pull(machines: list[Machine]) -> None:
    first, compiled = machines[0].compile()
    assert compiled
    for machine in machines[1:]:
        kernel, compiled = machine.compile()
        assert not compiled
        assert kernel.asm["obj"] == first.asm["obj"]
        assert kernel.metadata == first.metadata
        with settings().cache.scope(dir=machine.root):  # now in its disk cache
            assert not machine.compile()[1]


def test_file_systems_of_fsspec_share(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    url = f"memory:/{tmp_path}"
    assert Machine(tmp_path / "a", url).compile()[1]
    assert not Machine(tmp_path / "b", url).compile()[1]


def test_redis_servers_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    redis = pytest.importorskip("redis")
    fakeredis = pytest.importorskip("fakeredis")
    server = fakeredis.FakeServer()
    monkeypatch.setattr(
        redis.Redis, "from_url", lambda url, **words: fakeredis.FakeRedis(server=server)
    )
    url = f"redis://{tmp_path.name}:1/0"
    assert Machine(tmp_path / "a", url).compile()[1]
    assert not Machine(tmp_path / "b", url).compile()[1]


def test_a_package_that_is_missing_costs_nothing_but_a_warning(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "a", f"nosuchscheme://{tmp_path.name}/x")
    with pytest.warns(TilewrightWarning, match="kernels are compiled here"):
        for block in range(12):
            machine.compile(16 << block)


def test_a_damaged_object_is_refused_compiled_and_replaced(
    machines: list[Machine], tmp_path: Path
) -> None:
    machines[0].compile()
    (entry,) = objects(tmp_path)
    good = entry.read_bytes()
    entry.write_bytes(good[:-1])
    start = time.perf_counter()
    with pytest.warns(TilewrightWarning, match="refused: its checksum differs"):
        assert machines[1].compile()[1]
    assert time.perf_counter() - start < 60
    assert not machines[2].compile()[1]


def test_a_kernel_under_another_name_is_refused_by_its_signature(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"secret\n")
    key: dict[str, object] = {"remote_key": tmp_path / "key"}
    machine, other, third = (
        Machine(tmp_path / n, f"file://{tmp_path}/remote", **key) for n in "abc"
    )
    machine.compile(32)
    machine.compile(64)
    first, second = objects(tmp_path)
    assert not other.compile(32)[1]
    first.write_bytes(second.read_bytes())
    with pytest.warns(TilewrightWarning, match="not signed by the shared key"):
        assert sorted([third.compile(32)[1], third.compile(64)[1]]) == [False, True]


def test_an_unsigned_kernel_is_refused_where_there_is_a_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"secret")
    url = f"file://{tmp_path}/remote"
    assert Machine(tmp_path / "a", url).compile()[1]
    signed = Machine(tmp_path / "b", url, remote_key=tmp_path / "key")
    with pytest.warns(TilewrightWarning, match="not signed by the shared key"):
        assert signed.compile()[1]


def test_without_trust_kernels_are_published_but_not_run(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/remote"
    plain = [Machine(tmp_path / name, url, remote_trust=False) for name in "ab"]
    with pytest.warns(TilewrightWarning, match="nothing is read from the remote cache"):
        assert plain[0].compile()[1]
    assert plain[1].compile()[1]
    assert not Machine(tmp_path / "c", url).compile()[1]


def test_a_key_that_cannot_be_read_means_no_trust(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/remote"
    machine = Machine(tmp_path / "a", url, remote_trust=True, remote_key=tmp_path / "missing")
    with pytest.warns(TilewrightWarning) as told:
        assert machine.compile()[1]
    assert any("key of the remote cache cannot be used" in str(w.message) for w in told)


def test_another_cpu_has_another_key() -> None:
    backend = backend_named("cpu")
    target = type(CPU)("cpu", "aarch64", 1)
    keys = {remote_kernels.shared_key("inputs", backend, one) for one in (CPU, target)}
    assert len(keys) == 2


def test_a_failing_compilation_frees_the_others(tmp_path: Path, machines: list[Machine]) -> None:
    from tilewright.compiler.compile import Compilation

    class Broken(Exception):
        pass

    def fail(self: object) -> None:
        raise Broken

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compilation, "run", fail)
        with pytest.raises(Broken):
            machines[0].compile()
    with machines[0].settings():
        tier = shared_tier(settings().cache)
        assert tier is not None and tier.flush(60)
    (lease,) = objects(tmp_path, "leases")
    assert lease.read_bytes().startswith(b"failed")
    assert machines[1].compile()[1]


def test_machines_with_other_times_of_files_share(
    machines: list[Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = machines[0].compile()
    monkeypatch.setattr(
        sys.modules["tilewright.compiler.compile"], "package_version", lambda b: "x"
    )
    second, compiled = machines[1].compile()
    assert not compiled and second.hash != first.hash


def test_processes_that_start_cold_compile_each_variant_once(tmp_path: Path) -> None:
    assert run_machines(tmp_path, 4, blocks=3) == 3


PROGRAM = """
import sys
from tests.unit.compiler.kernels import ADD, add
from tilewright.backends import backend_named
from tilewright.compiler import ASTSource, compile
from tilewright.support import StageText, recording
from tilewright.support.event_stream import ListRecorder
print("ready", flush=True)
sys.stdin.readline()
count = 0
for number in range(int(sys.argv[1])):
    with recording(events := ListRecorder()):
        compile(ASTSource(add, ADD, {"BLOCK": 32 << number}), target=backend_named("cpu").target())
    count += bool(events.of(StageText))
print(count)
"""


def run_machines(tmp_path: Path, count: int, blocks: int) -> int:
    """Compile `blocks` variants on `count` machines at once; the number of compilations."""
    from tilewright.support import environment_with

    started: list[subprocess.Popen[str]] = []
    for number in range(count):
        environment = environment_with() | {
            "TILEWRIGHT_CACHE_DIR": str(tmp_path / str(number)),
            "TILEWRIGHT_REMOTE_CACHE": f"file://{tmp_path}/remote",
            "TILEWRIGHT_REMOTE_CACHE_TRUST": "1",
        }
        command = [sys.executable, "-c", PROGRAM, str(blocks)]
        pipes = subprocess.PIPE
        started.append(
            subprocess.Popen(command, env=environment, stdin=pipes, stdout=pipes, text=True)
        )
    for process in started:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return sum(int(process.communicate()[0]) for process in started)
