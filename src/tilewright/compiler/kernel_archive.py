"""Compiled kernels as a file: exported from the disk cache of one machine, imported into another's.

    kernels.tar
      kernels/<key>      an object of a remote cache (`remote_kernels`), sealed or signed as there

Nothing is unpacked to a path of the archive, and nothing is unpickled.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from tilewright.backends import GPUTarget, backend_named
from tilewright.compiler.compile import kernel_hash
from tilewright.compiler.kernel_store import Entry, Store
from tilewright.compiler.remote_kernels import (
    KERNELS,
    localized,
    sealed_kernel,
    shared_key,
    unsealed_kernel,
)
from tilewright.support import TilewrightError
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass
from tilewright.support.remote_cache import LARGEST, BadObject, Signer

_MEMBER = re.compile(rf"{KERNELS}([0-9a-f]{{64}})")
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Imported:
    """A member of an archive. refused: the reason; None if the kernel is in the disk cache"""

    name: str
    refused: str | None


def export_kernels(store: Store, file: Path, signer: Signer, kernel: str | None = None) -> int:
    """Write the kernels of a disk cache that this version of the package can use to a tar file.

    kernel: only those of this name. Equal caches give equal files. Returns the number of kernels.
    Errors: OSError.
    """
    count = 0
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as archive:
        for key, entry in sorted(_usable(store, kernel), key=lambda item: item[0]):
            content = sealed_kernel(signer, key, entry)
            member = tarfile.TarInfo(KERNELS + key)
            member.size, member.mode = len(content), _MODE
            archive.addfile(member, io.BytesIO(content))
            count += 1
    return count


def _usable(store: Store, kernel: str | None) -> Iterator[tuple[str, Entry]]:
    for place in store.folder.glob("[!.]*"):
        entry = store.read(place.name)
        if entry is None or (kernel is not None and entry.metadata.get("name") != kernel):
            continue
        keys = _keys(entry)
        # another digest: compiled by an older version of the package, or by other tools
        if keys is not None and keys[0] == place.name:
            yield keys[1], entry


def _keys(entry: Entry) -> tuple[str, str] | None:
    """The names of a kernel in this disk cache, and on all machines; None if it has none."""
    inputs, target = entry.metadata.get("inputs"), _target(entry)
    if type(inputs) is not str or target is None:
        return None
    try:
        backend = backend_named(target.backend)
        return kernel_hash(inputs, backend, target), shared_key(inputs, backend, target)
    except synchronous(TilewrightError):  # a backend that is not installed
        return None


def _target(entry: Entry) -> GPUTarget | None:
    fields: Any = entry.metadata.get("target")
    try:
        return GPUTarget(**fields)
    except TypeError:
        return None


def import_kernels(store: Store, file: Path, signer: Signer) -> list[Imported]:
    """Add the kernels of an archive to a disk cache; refused are those that are damaged, not
    signed by the shared key, or compiled by other tools or for another CPU.

    Errors: OSError, tarfile.TarError.
    """
    done: list[Imported] = []
    with tarfile.open(file, "r:") as archive:
        for member in archive:
            found = _MEMBER.fullmatch(member.name)
            if found is None or not member.isreg() or member.size > LARGEST:
                done.append(Imported(member.name, "it is not a kernel"))
                continue
            content = cast("io.BufferedReader", archive.extractfile(member)).read()
            done.append(_imported(store, signer, found[1], content))
    return done


def _imported(store: Store, signer: Signer, key: str, content: bytes) -> Imported:
    try:
        entry = unsealed_kernel(signer, key, content)
    except BadObject as problem:
        return Imported(key, str(problem))
    name = f"{entry.metadata.get('name', 'a kernel')} ({key[:8]})"
    keys = _keys(entry)
    if keys is None or keys[1] != key:
        return Imported(name, _mismatch(entry))
    stored = store.write(keys[0], localized(entry, keys[0]))
    return Imported(name, None if stored else "the disk cache cannot be written")


def _mismatch(entry: Entry) -> str:
    target = _target(entry)
    try:
        own = None if target is None else backend_named(target.backend).tool_versions(target)
    except synchronous(TilewrightError) as problem:
        return f"no backend serves it here: {problem}"
    made_by = entry.metadata.get("made_by")
    if own == made_by:
        return "other sources of tilewright compiled it"
    return f"it was compiled by {made_by}, here is {own}"
