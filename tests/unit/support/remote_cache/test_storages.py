"""Every storage: objects by name, exclusive creation, groups."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.support.remote_cache.storages import DictStorage
from tilewright.support.remote_cache import Storage, open_storage, shown_url


def redis_double() -> Storage:
    """`RedisStorage` on a server in this process."""
    fakeredis: Any = pytest.importorskip("fakeredis")
    storage: Any = open_storage("redis://nobody.invalid:1/0")
    storage._server = fakeredis.FakeRedis()
    return storage


@pytest.fixture(params=["dict", "file", "memory", "redis"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    if request.param == "dict":
        yield DictStorage()
    elif request.param == "file":
        yield open_storage(f"file://{tmp_path}/not/there")
    elif request.param == "memory":
        pytest.importorskip("fsspec")
        yield open_storage(f"memory:/{tmp_path}")
    else:
        pytest.importorskip("redis")
        yield redis_double()


def test_an_object_is_written_and_replaced(storage: Storage) -> None:
    assert storage.get("kernels/a") is None
    storage.put("kernels/a", b"one")
    storage.put("kernels/a", b"two")
    assert (storage.get("kernels/a"), storage.get("kernels/b")) == (b"two", None)


def test_one_of_many_creates_an_object(storage: Storage) -> None:
    contents = [str(number).encode() for number in range(8)]
    won: list[bytes] = []
    threads = [
        threading.Thread(target=lambda c=content: storage.create("leases/a.0", c) and won.append(c))
        for content in contents
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [storage.get("leases/a.0")] == won
    assert not storage.create("leases/a.0", b"late")
    storage.put("leases/a.0", b"replaced")
    assert storage.get("leases/a.0") == b"replaced"


def test_a_group_has_the_members_that_were_put(storage: Storage) -> None:
    assert storage.members("timings/k") == {}
    storage.put_member("timings/k", "b", b"2")
    storage.put_member("timings/k", "a", b"1")
    storage.put_member("timings/k", "b", b"3")
    storage.put_member("timings/other", "c", b"4")
    assert storage.members("timings/k") == {"a": b"1", "b": b"3"}


def test_a_shown_url_has_no_secrets() -> None:
    assert shown_url("redis://me:secret@host:1/0?token=2") == "redis://host:1/0"
    assert shown_url("file:///nfs/a@b") == "file:///nfs/a@b"
