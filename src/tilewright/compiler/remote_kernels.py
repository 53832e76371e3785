"""Kernels of a remote cache: pulled into the disk cache, or compiled once for all machines.

Files of the disk cache are named by the times of this machine's files, objects of a remote cache by
contents: `shared_key` is equal wherever the same sources, tools and CPU features compile a kernel.
An object also states what it was compiled from, so it can be imported without its kernel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, cast

from tilewright.backends import Backend, GPUTarget, backend_named
from tilewright.compiler.compile import Compilation
from tilewright.compiler.compiled_kernel import CompiledKernel
from tilewright.compiler.kernel_store import Entry, package_content
from tilewright.support import CacheSettings, timed
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.remote_cache import (
    BadObject,
    Lease,
    RemoteTier,
    Signer,
    Storage,
    Unsealed,
    shared_tier,
)

KERNELS = "kernels/"
"""The folder of kernels among the objects of a remote cache."""
_LOCAL = ("hash", "made_by")
"""Metadata that are not part of an object, or only of it."""


def shared_key(inputs: str, backend: Backend, target: GPUTarget) -> str:
    """The name of a kernel on all machines. inputs: see `Compilation`"""
    parts = (inputs, backend.tool_versions(target), package_content(backend.name))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def sealed_kernel(signer: Signer, key: str, entry: Entry) -> bytes:
    """A kernel as an object."""
    metadata = {name: value for name, value in entry.metadata.items() if name not in _LOCAL}
    target = GPUTarget(**entry.metadata["target"])
    metadata["made_by"] = backend_named(target.backend).tool_versions(target)
    texts = [name for name, content in entry.artifacts.items() if isinstance(content, str)]
    blocks = {
        name: content.encode() if isinstance(content, str) else content
        for name, content in entry.artifacts.items()
    }
    return signer.sealed(KERNELS + key, {"metadata": metadata, "texts": texts}, blocks)


def unsealed_kernel(signer: Signer, key: str, content: bytes) -> Entry:
    """The kernel in an object, without its local metadata. Errors: BadObject."""
    return _entry(signer.unsealed(KERNELS + key, content))


def _entry(found: Unsealed) -> Entry:
    metadata, texts = found.members.get("metadata"), found.members.get("texts")
    if type(metadata) is not dict or type(texts) is not list:
        raise BadObject("it is not a kernel")
    try:
        artifacts: Mapping[str, str | bytes] = {
            name: content.decode() if name in texts else content
            for name, content in found.blocks.items()
        }
    except UnicodeDecodeError:
        raise BadObject("a text is not UTF-8") from None
    return Entry(cast("dict[str, Any]", metadata), artifacts)


def localized(entry: Entry, digest: str) -> Entry:
    """The kernel of an object as an entry of the disk cache named `digest`."""
    own = {name: value for name, value in entry.metadata.items() if name not in _LOCAL}
    return Entry({**own, "hash": digest}, entry.artifacts)


def pulled_or_compiled(
    work: Compilation, cache: CacheSettings
) -> tuple[CompiledKernel | None, CompiledKernel]:
    """The kernel of the remote cache, or None; and the kernel to use."""
    tier = shared_tier(cache)
    assert tier is not None
    key = shared_key(work.inputs, work.backend, work.target)
    with timed("remote cache"):
        outcome = tier.obtain(KERNELS + key, key)
    if isinstance(outcome, bytes):
        pulled = _pulled(work, tier, key, outcome)
        if pulled is not None:
            return pulled, pulled
    lease = outcome if isinstance(outcome, Lease) else None
    return None, _compiled_for_all(work, tier, key, lease)


def _pulled(work: Compilation, tier: RemoteTier, key: str, content: bytes) -> CompiledKernel | None:
    try:
        entry = localized(unsealed_kernel(tier.signer, key, content), work.digest)
        work.store.write(work.digest, entry)
        return work.from_entry(entry)
    except synchronous(BadObject) as problem:
        tier.warn(f"an object of the remote cache {tier.url} is refused: {problem}")
        return None


def _compiled_for_all(
    work: Compilation, tier: RemoteTier, key: str, lease: Lease | None
) -> CompiledKernel:
    published = False

    def publish(entry: Entry) -> None:
        nonlocal published
        published = True
        size = sum(map(len, entry.artifacts.values()))
        tier.later(lambda storage: _put(storage, tier, key, entry), size)

    try:
        return work.compiled(publish=publish)
    finally:
        if lease is not None:
            tier.release(lease, published)


def _put(storage: Storage, tier: RemoteTier, key: str, entry: Entry) -> None:
    storage.put(KERNELS + key, sealed_kernel(tier.signer, key, entry))
