"""Ways to damage the files of the disk cache, directed and at random."""

import hashlib
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewright.support.disk_cache import sealed, unsealed

Damage = Callable[[Path], object]


def rewritten(change: Callable[[bytes], bytes]) -> Damage:
    """Change what the file holds."""
    return lambda file: file.write_bytes(change(file.read_bytes()))


def replaced(make: Callable[[Path], object]) -> Damage:
    """Put something else in place of the file."""

    def damage(file: Path) -> None:
        file.unlink()
        make(file)

    return damage


def link_to_a_copy(file: Path) -> None:
    copy = file.parent.parent.parent / "copy"
    shutil.copy(file, copy)
    file.unlink()
    file.symlink_to(copy)


def swap_with_another(file: Path) -> None:
    others = sorted(path for path in file.parent.iterdir() if path != file)
    if others:
        mine, other = file.read_bytes(), others[0].read_bytes()
        file.write_bytes(other)
        others[0].write_bytes(mine)
    else:
        file.write_bytes(b"another")


TO_A_FILE: dict[str, Damage] = {
    "missing": Path.unlink,
    "empty": rewritten(lambda text: b""),
    "without its first byte": rewritten(lambda text: text[1:]),
    "without its last byte": rewritten(lambda text: text[:-1]),
    "half": rewritten(lambda text: text[: len(text) // 2]),
    "one byte more": rewritten(lambda text: text + b"\n"),
    "twice": rewritten(lambda text: text * 2),
    "first bit": rewritten(lambda text: bytes([text[0] ^ 1]) + text[1:]),
    "last bit": rewritten(lambda text: text[:-1] + bytes([text[-1] ^ 1])),
    "zeros": rewritten(lambda text: bytes(len(text))),
    "backwards": rewritten(lambda text: text[::-1]),
    "half zeros": rewritten(lambda text: text[: len(text) // 2] + bytes(-(-len(text) // 2))),
    "another file": swap_with_another,
    "a link": link_to_a_copy,
    "a link to nothing": replaced(lambda file: file.symlink_to("nowhere")),
    "a link to itself": replaced(lambda file: file.symlink_to(file.name)),
    "a device": replaced(lambda file: file.symlink_to("/dev/zero")),
    "a folder": replaced(Path.mkdir),
    "a pipe": replaced(os.mkfifo),
    "others may write": lambda file: file.chmod(0o666),
}


def resealed(change: Callable[[dict[str, Any]], object]) -> Damage:
    """Change what the index says, under a checksum that is right."""

    def damage(index: Path) -> None:
        members = unsealed(index.read_bytes())
        change(members)
        index.write_bytes(sealed(members))

    return damage


def renamed_artifact(name: str) -> Damage:
    def change(members: dict[str, Any]) -> None:
        first = next(iter(members["artifacts"]))
        members["artifacts"][name] = members["artifacts"].pop(first)

    return resealed(change)


def raw(rest: bytes) -> Damage:
    """Any text under a checksum that is right."""
    text = b'{"sha256": "' + hashlib.sha256(rest).hexdigest().encode() + b'", ' + rest
    return rewritten(lambda _: text)


TO_AN_INDEX: dict[str, Damage] = {
    "another key": resealed(lambda m: m.update(key="0" * 64)),
    "another hash": resealed(lambda m: m["metadata"].update(hash="0" * 64)),
    "no key": resealed(lambda m: m.pop("key")),
    "no metadata": resealed(lambda m: m.pop("metadata")),
    "no artifacts": resealed(lambda m: m.pop("artifacts")),
    "metadata of another kind": resealed(lambda m: m.update(metadata=[1, 2])),
    "artifacts of another kind": resealed(lambda m: m.update(artifacts=7)),
    "an artifact of another kind": resealed(lambda m: m["artifacts"].update(obj=None)),
    "a name that leads out": renamed_artifact("../../kernel"),
    "a name with a folder": renamed_artifact("a/b"),
    "an empty name": renamed_artifact(""),
    "a name that ends a string": renamed_artifact("obj\0"),
    "a negative size": resealed(lambda m: m["artifacts"].update(obj=["binary", -1, "0" * 64])),
    "a nesting": raw(b'"x": ' + b"[" * 200_000),
    "a long number": raw(b'"x": ' + b"1" * 9000 + b"}"),
    "no JSON": raw(b"nonsense"),
}


def random_damage(chance: random.Random) -> Damage:
    """Bits, blocks or the length."""

    def change(text: bytes) -> bytes:
        changed = bytearray(text)
        kind = chance.choice(["bit", "byte", "block", "cut", "insert", "move"])
        at = chance.randrange(max(1, len(changed)))
        size = chance.randint(1, 64)
        if kind == "bit":
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == "byte":
            changed[at] = (changed[at] + chance.randint(1, 255)) % 256
        elif kind == "block":
            changed[at : at + size] = chance.randbytes(size)
        elif kind == "cut":
            del changed[at : at + size]
        elif kind == "insert":
            changed[at:at] = chance.randbytes(size)
        else:
            block = changed[at : at + size]
            del changed[at : at + size]
            at = chance.randrange(len(changed) + 1)
            changed[at:at] = block
        return bytes(changed)

    return rewritten(change)
