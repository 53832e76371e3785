"""Objects of a remote cache: nothing but what was written, by who has the key, comes back."""

from __future__ import annotations

import random

import pytest

from tilewright.support.remote_cache import BadObject, Signer, signed_objects

MEMBERS = {"metadata": {"name": "k", "shape": [1, 2]}, "texts": ["ttir"]}
BLOCKS = {"ttir": b"func", "obj": b"\x00\xff" * 20, "empty": b""}


@pytest.mark.parametrize("secret", [None, b"shared"])
def test_an_object_comes_back(secret: bytes | None) -> None:
    signer = Signer(secret)
    assert signer.unsealed("a", signer.sealed("a", MEMBERS, BLOCKS)) == (MEMBERS, BLOCKS)


@pytest.mark.parametrize("secret", [None, b"shared"])
def test_each_change_of_one_byte_is_found(secret: bytes | None) -> None:
    signer = Signer(secret)
    good = signer.sealed("a", MEMBERS, BLOCKS)
    signature = len("tilewright object 1\n") + 65
    # line breaks mean nothing, nor does the signature where there is no key
    ignored = {signature - 1, signature + 64}
    ignored |= set() if secret else set(range(signature, signature + 64))
    for place in set(range(len(good))) - ignored:
        bad = bytearray(good)
        bad[place] ^= 1
        with pytest.raises(BadObject):
            signer.unsealed("a", bytes(bad))


def test_cut_and_random_texts_are_bad() -> None:
    signer, chance = Signer(), random.Random(3)
    good = signer.sealed("a", MEMBERS, BLOCKS)
    for length in range(len(good)):
        with pytest.raises(BadObject):
            signer.unsealed("a", good[:length])
    for size in range(200):
        with pytest.raises(BadObject):
            signer.unsealed("a", good[:20] + chance.randbytes(size))


def test_a_key_binds_the_content_to_its_name() -> None:
    signer = Signer(b"shared")
    content = signer.sealed("a", MEMBERS, BLOCKS)
    for name, reader in (("b", signer), ("a", Signer(b"other"))):
        with pytest.raises(BadObject, match="not signed by the shared key"):
            reader.unsealed(name, content)
    with pytest.raises(BadObject, match="not signed"):
        signer.unsealed("a", Signer().sealed("a", MEMBERS, BLOCKS))


def test_objects_are_compressed_and_bombs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    signer = Signer()
    content = signer.sealed("a", {}, {"ttir": b"func " * 10_000})
    assert len(content) < 1000
    monkeypatch.setattr(signed_objects, "LARGEST", 10_000)
    with pytest.raises(BadObject, match="too large"):
        signer.unsealed("a", content)
