"""Compares the generated code of two revisions: what a change does to kernels, or that it does not.

    python scripts/code_diff.py BASE                     # BASE against the working tree
    python scripts/code_diff.py BASE HEAD --show ptx     # two revisions; and the diffs of one stage
    python scripts/code_diff.py BASE --tests tests/kernels tests/unit/backends

Both sides compile the kernel corpus (`tests/corpus`) for every NVIDIA architecture and for this
machine's CPU, or, with `--tests`, every kernel that these tests compile. A row of the report is a
stage (ttir, ttgir, llir, ptx, asm) or a counter of the assembled code (registers, spills, shared
memory, and each instruction of the SASS where nvdisasm is installed) that differs. The exit status
is 1 if anything does, so a change that calls itself refactoring shows an empty report.

Each side runs its own sources in a process of its own, the base in a worktree that is removed
afterwards; both use this interpreter's packages and no disk cache.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
TEXTS = ("ttir", "ttgir", "llir", "ptx", "asm")
"""Stages that are compared as text, in the order of compilation."""

COUNTERS = "counters"
"""Of the assembled code, as a stage of its own: one `name value` a line."""

METADATA = ("registers", "spills", "shared")

Key = tuple[str, str]
Code = Mapping[Key, Sequence[str]]
"""(kernel, stage) -> its texts; several where kernels of one name are compiled several times."""


@dataclass(frozen=True)
class Difference:
    """A stage of a kernel that is not the same on both sides."""

    kernel: str
    stage: str
    before: Sequence[str]
    after: Sequence[str]

    @property
    def lines(self) -> tuple[int, int]:
        """Lines that were removed, and added."""
        marks = Counter(line[:1] for line in self.unified() if line[:3] not in ("---", "+++"))
        return marks["-"], marks["+"]

    def unified(self) -> list[str]:
        """The difference as a patch; of several texts, those that only one side has."""
        before, after = Counter(self.before), Counter(self.after)
        removed, added = _lines(before - after), _lines(after - before)
        return list(difflib.unified_diff(removed, added, "base", "head", lineterm="", n=2))


def _lines(texts: Counter[str]) -> list[str]:
    return "\n".join(sorted(texts.elements())).splitlines()


def compare(base: Code, head: Code) -> list[Difference]:
    """What differs, in the order of kernels and stages; a missing kernel has no texts."""
    keys = sorted({*base, *head}, key=lambda key: (key[0], _rank(key[1])))
    pairs = ((key, base.get(key, ()), head.get(key, ())) for key in keys)
    return [Difference(k, stage, b, h) for (k, stage), b, h in pairs if sorted(b) != sorted(h)]


def _rank(stage: str) -> int:
    return TEXTS.index(stage) if stage in TEXTS else len(TEXTS)


# --- one side: run in a process of its own, with its own sources ----------------------------------


def dump_corpus(folder: Path) -> None:
    """Compile the corpus of the checkout in the current folder, and write a file for each stage."""
    sys.path.insert(0, str(Path.cwd()))
    # Names of that checkout, which may be another than this file's: looked up when they are needed.
    import importlib  # noqa: PLC0415

    tilewright: Any = importlib.import_module("tilewright")
    figures: Any = importlib.import_module("tests.corpus.figures")
    corpus: Any = importlib.import_module("tests.corpus.variants").CORPUS
    target: Any = importlib.import_module("tilewright.backends").GPUTarget
    variants = [(name, variant) for name, rows in corpus.items() for variant in rows]
    for name, variant in track(variants, "compiling", console=Console(stderr=True)):
        source = figures.source_of(variant)
        gpu = tilewright.compile(source, target("cuda", variant.capability, 32), variant.options)
        kept = _texts(gpu) | {COUNTERS: _counters(gpu)}
        _write(folder, f"{name} sm_{variant.capability} {variant.label}", kept)
        cpu = tilewright.compile(source, tilewright.backends.backend_named("cpu").target())
        blocks = " ".join(f"{key}={value}" for key, value in variant.constants.items())
        _write(folder, f"{name} cpu {variant.label} {blocks}", _texts(cpu))


def _texts(kernel: Any) -> dict[str, str]:
    return {stage: str(kernel.asm[stage]) for stage in TEXTS if stage in kernel.asm}


def _counters(kernel: Any) -> str:
    """Registers, spills, shared memory, and how often each SASS instruction stands in the code."""
    rows = [f"{name} {getattr(kernel.metadata, name)}" for name in METADATA]
    try:
        sass = str(kernel.asm["sass"])
    except Exception:  # no nvdisasm: an optional tool
        return "\n".join(rows)
    found = Counter(re.findall(r"^\s+/\*\w+\*/\s+(?:@!?U?P\w+ )?([\w.]+)", sass, re.MULTILINE))
    return "\n".join([*rows, *(f"{name} {count}" for name, count in sorted(found.items()))])


def _write(folder: Path, kernel: str, stages: Mapping[str, str]) -> None:
    """A file that `read` understands; one for each kernel."""
    number = len(list(folder.iterdir()))
    text = json.dumps({"kernel": kernel, "stages": stages})
    (folder / f"{number:06}.json").write_text(text, encoding="utf-8")


def read(folder: Path) -> Code:
    """What `dump_corpus` has written, or the compiler itself into its dump folder."""
    code: dict[Key, list[str]] = {}
    for file in sorted(folder.rglob("*.json")):
        if file.name == "kernel.json":
            continue
        kept = cast("dict[str, Any]", json.loads(file.read_text(encoding="utf-8")))
        for stage, text in kept["stages"].items():
            code.setdefault((kept["kernel"], stage), []).append(text)
    for stage in TEXTS:
        for file in sorted(folder.rglob(f"*.{stage}")):
            code.setdefault((file.stem, stage), []).append(file.read_text(encoding="utf-8"))
    return code


# --- both sides -----------------------------------------------------------------------------------


@contextmanager
def checkout(revision: str | None) -> Generator[Path]:
    """A folder that holds a revision; None is the working tree."""
    if revision is None:
        yield ROOT
        return
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "tree")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", place, revision], check=True)
        try:
            yield Path(place)
        finally:
            subprocess.run([*git, "remove", "--force", place], check=True)


def code_of(revision: str | None, tests: Sequence[str], folder: Path) -> Code:
    """Compile one side into an empty folder."""
    with checkout(revision) as place:
        environment = {
            **os.environ, "PYTHONPATH": str(place / "src"), "TILEWRIGHT_ALWAYS_COMPILE": "1",
            "TILEWRIGHT_CACHE_DIR": str(folder / "cache"),
        }  # fmt: skip
        command = [sys.executable, __file__, "--dump", str(folder)]
        if tests:
            environment["TILEWRIGHT_DUMP_DIR"] = str(folder)
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(command, cwd=place, env=environment, check=False)
        if done.returncode and not tests:
            raise SystemExit(f"the corpus of {revision or 'the working tree'} does not compile")
    return read(folder)


def report(differences: Sequence[Difference], kernels: int) -> Table:
    """One row for each stage that differs."""
    table = Table(title=f"{len(differences)} stages differ in {kernels} kernels")
    for name in ("kernel", "stage", "removed", "added"):
        table.add_column(name, justify="right" if name in ("removed", "added") else "left")
    for difference in differences:
        removed, added = difference.lines
        table.add_row(difference.kernel, difference.stage, str(removed), str(added))
    return table


def arguments_of(texts: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", nargs="?", help="a revision")
    parser.add_argument("head", nargs="?", help="a revision; the working tree if it is not named")
    parser.add_argument("--show", metavar="STAGE", help="print the diffs of this stage, or of all")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="tests to run")
    parser.add_argument("--dump", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(texts)
    if chosen.base is None and chosen.dump is None:
        parser.error("name the revision to compare with")
    return chosen


def main(texts: Sequence[str] | None = None) -> int:
    """The exit status: 1 if any code differs."""
    chosen = arguments_of(texts)
    if chosen.dump is not None:
        dump_corpus(chosen.dump)
        return 0
    sides: list[Code] = []
    for revision in (chosen.base, chosen.head):
        with tempfile.TemporaryDirectory() as folder:
            sides.append(code_of(revision, chosen.tests, Path(folder)))
    differences = compare(*sides)
    Console().print(report(differences, len({kernel for side in sides for kernel, _ in side})))
    for difference in differences:
        if chosen.show in (difference.stage, "all"):
            print(f"\n=== {difference.kernel} {difference.stage}", *difference.unified(), sep="\n")
    return 1 if differences else 0


if __name__ == "__main__":
    raise SystemExit(main())
