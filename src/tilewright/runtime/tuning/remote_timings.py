"""Timings in the remote cache: a group for each choice, with a member for each process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.support import settings
from tilewright.support.remote_cache import BadObject, RemoteTier, Unavailable, shared_tier


def _tier() -> RemoteTier:
    tier = shared_tier(settings().cache)
    assert tier is not None
    return tier


def read(name: str) -> list[dict[str, Any]]:
    """The members of all processes that have published timings of a choice."""
    tier, group = _tier(), f"timings/{name}"
    if not tier.trusted:
        return []
    try:
        found = tier.call(lambda storage: storage.members(group))
    except Unavailable:
        return []
    read: list[dict[str, Any]] = []
    for member, content in sorted(found.items()):
        try:
            read.append(tier.signer.unsealed(f"{group}/{member}", content).members)
        except BadObject as problem:
            tier.warn(f"timings in the remote cache {tier.url} are refused: {problem}")
    return read


def publish(name: str, writer: str, members: Mapping[str, Any]) -> None:
    """Write the timings of this process in the background."""
    tier, group = _tier(), f"timings/{name}"
    content = tier.signer.sealed(f"{group}/{writer}", members, {})
    tier.later(lambda storage: storage.put_member(group, writer, content), len(content))
