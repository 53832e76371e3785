"""`tilewright cache`: list, remove, export and import the compiled kernels on disk."""

from __future__ import annotations

import argparse
import json
import tarfile
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from tilewright.backends import GPUTarget
from tilewright.compiler import export_kernels, import_kernels, shared_store
from tilewright.support import CacheSettings, settings
from tilewright.support.asynchronous_exceptions import suppress
from tilewright.support.data_class import dataclass
from tilewright.support.disk_cache import clear
from tilewright.support.remote_cache import Signer, shared_secret
from tilewright.tools.command_failure import CommandFailed
from tilewright.tools.command_output import add_json, fit, print_json, print_table

ACTIONS = ("path", "list", "clear", "export", "import")
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class CachedKernel:
    """One kernel in the cache. constants: its compile-time arguments; target: `cpu` or `sm_90`;
    size: bytes of its files; used: when it was last read or written."""

    name: str
    target: str
    parameters: str
    constants: str
    key: str
    size: int
    used: datetime


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("action", choices=ACTIONS, metavar="|".join(ACTIONS))
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE.tar", help="archive to export to or import from"
    )
    parser.add_argument("--kernel", metavar="NAME", help="export only kernels of this name")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    cache = settings().cache
    folder = cache.dir
    if chosen.action == "path":
        _print_result(chosen, {"path": folder}, str(folder))
    elif chosen.action == "clear":
        count, size = clear(folder)
        text = f"deleted {count} kernels and {size / _MEGABYTE:.1f} MB"
        _print_result(chosen, {"kernels": count, "bytes": size}, text)
    elif chosen.action == "export":
        _export(chosen, cache)
    elif chosen.action == "import":
        return _import(chosen, cache)
    else:
        rows = sorted(
            cached_kernels(shared_store(cache).folder), key=lambda row: row.used, reverse=True
        )
        if chosen.json:
            print_json([asdict(row) for row in rows])
        elif not rows:
            print(f"no kernels are in {folder}; compilations write them")
        else:
            print_table(_table(rows))
    return 0


def _export(chosen: argparse.Namespace, cache: CacheSettings) -> None:
    file = _file(chosen)
    count = export_kernels(shared_store(cache), file, _signer(cache), chosen.kernel)
    text = f"exported {count} kernels to {file}, {file.stat().st_size / _MEGABYTE:.1f} MB"
    _print_result(chosen, {"kernels": count, "file": file}, text)


def _import(chosen: argparse.Namespace, cache: CacheSettings) -> int:
    file = _file(chosen)
    try:
        done = import_kernels(shared_store(cache), file, _signer(cache))
    except tarfile.TarError as problem:
        raise CommandFailed(f"{file} is not an archive of kernels: {problem}") from None
    refused = [one for one in done if one.refused is not None]
    lines = [fit(f"refused {one.name}: {one.refused}") for one in refused]
    text = "\n".join([f"imported {len(done) - len(refused)} kernels from {file}", *lines])
    _print_result(chosen, [asdict(one) for one in done], text)
    return 1 if refused else 0


def _signer(cache: CacheSettings) -> Signer:
    try:
        return Signer(shared_secret(cache))
    except ValueError as problem:
        raise CommandFailed(f"TILEWRIGHT_REMOTE_CACHE_KEY names no key: {problem}") from None


def _file(chosen: argparse.Namespace) -> Path:
    if chosen.file is None:
        raise CommandFailed(f"name the file: tilewright cache {chosen.action} FILE.tar")
    return chosen.file


def _print_result(chosen: argparse.Namespace, value: object, text: str) -> None:
    if chosen.json:
        print_json(value)
    else:
        print(text)


def cached_kernels(folder: Path) -> Iterator[CachedKernel]:
    """The kernels in a folder of the store; unreadable entries are skipped."""
    for index in sorted(folder.glob("[!.]*/kernel.json")):
        # Another process may delete the entry at any moment.
        with suppress(OSError, ValueError, KeyError):
            metadata: dict[str, Any] = json.loads(index.read_text(encoding="utf-8"))["metadata"]
            entry = index.parent
            used = datetime.fromtimestamp(entry.stat().st_mtime)
            constants = metadata.get("constants", {}).items()
            yield CachedKernel(
                metadata["name"],
                GPUTarget(**metadata["target"]).label if "target" in metadata else "",
                ", ".join(metadata["parameters"]),
                ", ".join(f"{name}={text}" for name, text in constants),
                entry.name,
                _size(entry),
                used,
            )


def _table(rows: list[CachedKernel]) -> Table:
    table = Table()
    table.add_column("kernel", overflow="fold", max_width=28)
    table.add_column("for", no_wrap=True)
    table.add_column("parameters", overflow="ellipsis", no_wrap=True, ratio=1)
    table.add_column("constants", overflow="fold", min_width=9, max_width=24)
    table.add_column("key", no_wrap=True)
    table.add_column("kB", justify="right")
    table.add_column("last used", no_wrap=True)
    for row in rows:
        used = f"{row.used:%Y-%m-%d %H:%M}"
        texts = map(escape, (row.name, row.target, row.parameters, row.constants))
        table.add_row(*texts, row.key[:8], f"{row.size / 1024:.0f}", used)
    total = sum(row.size for row in rows) / _MEGABYTE
    table.caption = f"{len(rows)} kernels, {total:.1f} MB"
    return table


def _size(folder: Path) -> int:
    """Bytes of all files below a folder; 0 where there is none."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total
