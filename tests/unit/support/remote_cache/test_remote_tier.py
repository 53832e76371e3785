"""The remote tier: failures cost half a second once, writes happen in the background."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import pytest

from tests.unit.support.remote_cache.storages import DictStorage, failing, sleeping
from tilewright.support import TilewrightWarning, errors
from tilewright.support.remote_cache import Lease, RemoteTier, Signer, remote_tier

LIMIT = 0.5
"""Seconds that a remote that fails may add."""


def tier_on(storage: DictStorage, trusted: bool = True) -> RemoteTier:
    return RemoteTier("memory://test", Signer(), trusted, lambda url: storage)


@pytest.mark.parametrize(
    ("before", "reason"),
    [(sleeping(5.0), "does not answer in 0.4 s"), (failing, "connection refused")],
    ids=["slow", "down"],
)
def test_a_failing_remote_costs_half_a_second_in_all(
    before: Callable[[str, str], None], reason: str
) -> None:
    tier = tier_on(DictStorage(before))
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for number in range(50):
            assert tier.obtain(f"kernels/{number}", str(number)) is None
            tier.later(lambda storage: storage.put("kernels/x", b"content"))
    assert time.perf_counter() - start < LIMIT
    texts = [str(warning.message) for warning in told if "compiled here" in str(warning.message)]
    assert len(texts) == 1 and reason in texts[0]


def test_failures_of_opening_count_too() -> None:
    def refuse(url: str) -> DictStorage:
        raise ImportError("no module named redis")

    tier = RemoteTier("redis://host", Signer(), True, refuse)
    start = time.perf_counter()
    with pytest.warns(TilewrightWarning, match="no module named redis"):
        for _ in range(20):
            assert tier.obtain("kernels/a", "a") is None
    assert time.perf_counter() - start < LIMIT


def test_a_missing_package_is_named_with_its_remedy() -> None:
    def refuse(url: str) -> DictStorage:
        raise errors.ToolMissing("redis", "this Python's packages", "pip install redis")

    tier = RemoteTier("redis://host", Signer(), True, refuse)
    with pytest.warns(
        TilewrightWarning, match="'redis' was not found; .*; hint: pip install redis;"
    ):
        for _ in range(20):
            tier.obtain("kernels/a", "a")


def test_a_remote_that_recovers_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_tier, "_RETRY_SECONDS", 0.0)
    storage = DictStorage(failing)
    storage.objects["kernels/a"] = b"content"
    tier = tier_on(storage)
    with pytest.warns(TilewrightWarning, match="connection refused"):
        while tier.obtain("kernels/a", "a") is None and not tier._is_down():
            pass
    storage.before = lambda kind, name: None
    end = time.monotonic() + 60
    while (found := tier.obtain("kernels/a", "a")) is None and time.monotonic() < end:
        time.sleep(0.001)
    assert found == b"content"


def test_a_writer_that_fails_does_not_stop_reads() -> None:
    def read_only(kind: str, name: str) -> None:
        if kind == "put":
            raise PermissionError(13, "read-only")

    storage = DictStorage(read_only)
    storage.objects["kernels/a"] = b"content"
    tier = tier_on(storage)
    with pytest.warns(TilewrightWarning, match="cannot write to the remote cache"):
        for _ in range(20):
            tier.later(lambda storage: storage.put("kernels/b", b"content"))
        assert tier.flush(60)
    assert tier.obtain("kernels/a", "a") == b"content"


def test_writes_do_not_wait() -> None:
    storage = DictStorage(sleeping(0.2))
    tier = tier_on(storage)
    start = time.perf_counter()
    tier.later(lambda storage: storage.put("kernels/a", b"content"), 7)
    assert time.perf_counter() - start < 0.1
    assert tier.flush(60)
    assert storage.objects == {"kernels/a": b"content"}


def test_the_lease_is_released_after_the_object_is_written() -> None:
    storage = DictStorage()
    tier = tier_on(storage)
    lease = tier.obtain("kernels/a", "a")
    assert isinstance(lease, Lease)
    assert storage.objects["leases/a.0"].startswith(b"working")
    tier.later(lambda storage: storage.put("kernels/a", b"content"))
    tier.release(lease, published=True)
    assert tier.flush(60)
    assert list(storage.objects) == ["leases/a.0", "kernels/a"]
    assert storage.objects["leases/a.0"].startswith(b"done")


def test_a_held_lease_changes_while_its_holder_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_tier, "BEAT_SECONDS", 0.01)
    storage = DictStorage()
    tier = tier_on(storage)
    assert isinstance(tier.obtain("kernels/a", "a"), Lease)
    first, end = storage.objects["leases/a.0"], time.monotonic() + 60
    while storage.objects["leases/a.0"] == first and time.monotonic() < end:
        time.sleep(0.005)
    assert storage.objects["leases/a.0"] != first


def test_a_lease_whose_release_is_dropped_changes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote that is down at the release, and later up: other clients see the lease expire."""
    monkeypatch.setattr(remote_tier, "BEAT_SECONDS", 0.005)
    storage = DictStorage()
    tier = tier_on(storage)
    lease = tier.obtain("kernels/a", "a")
    assert isinstance(lease, Lease)
    storage.before = failing
    with pytest.warns(TilewrightWarning, match="connection refused"):
        while not tier._is_down():
            tier.obtain("kernels/b", "b")
    tier.release(lease, published=True)
    storage.before = lambda kind, name: None
    time.sleep(0.02)  # a change that had started
    last = storage.objects["leases/a.0"]
    time.sleep(0.1)
    assert storage.objects["leases/a.0"] == last


def test_without_new_threads_kernels_are_compiled_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in functions of `atexit`: from Python 3.12 on, no thread starts there."""

    def refuse(self: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(remote_tier.Thread, "start", refuse)
    tier = tier_on(DictStorage())
    assert tier.obtain("kernels/a", "a") is None
    assert not tier.later(lambda storage: storage.put("kernels/a", b"content"))
    assert tier.flush()


def test_without_trust_nothing_is_read() -> None:
    reads: list[str] = []
    tier = tier_on(DictStorage(lambda kind, name: reads.append(kind)), trusted=False)
    with pytest.warns(TilewrightWarning, match="TILEWRIGHT_REMOTE_CACHE_TRUST=1"):
        assert tier.obtain("kernels/a", "a") is None
    assert reads == []


EXIT = """
import sys, time
from tests.unit.support.remote_cache.storages import DictStorage, sleeping
from tilewright.support.remote_cache import RemoteTier, Signer, open_storage
folder, delay = sys.argv[1], float(sys.argv[2])
class Slow:
    def __init__(self, storage): self.storage = storage
    def put(self, name, content):
        time.sleep(delay)
        self.storage.put(name, content)
tier = RemoteTier(folder, Signer(), True, lambda url: Slow(open_storage(url)))
for number in range(4):
    tier.later(lambda storage, number=number: storage.put(f"kernels/{number}", b"content"))
print(time.monotonic())
"""


@pytest.mark.parametrize(("delay", "count"), [(0.1, 4), (30.0, 0)])
def test_the_end_of_a_process_waits_for_a_remote_that_works(tmp_path, delay, count) -> None:
    url = f"file://{tmp_path}"
    done = subprocess.run(
        [sys.executable, "-c", EXIT, url, str(delay)], capture_output=True, text=True, check=True
    )
    waited = time.monotonic() - float(done.stdout)
    assert len(list(tmp_path.glob("kernels/*"))) == count
    assert waited < 20
