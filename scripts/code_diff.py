"""Compare the code that two revisions generate, and judge commits that claim to change none.

    python scripts/code_diff.py BASE                     # BASE against the working tree
    python scripts/code_diff.py BASE HEAD --show ptx     # two revisions, and one stage's diffs
    python scripts/code_diff.py BASE --kernels softmax   # a part of the corpus
    python scripts/code_diff.py BASE --tests tests/kernels tests/unit/backends
    python scripts/code_diff.py --claims --sample 8      # the newest commits with the trailer

Both sides compile the kernel corpus (`tests/corpus`) for every NVIDIA architecture and for this
machine's CPU, or, with `--tests`, every kernel that these tests compile. A row of the report is a
stage or a counter of the assembled code that differs: registers, spills, shared memory, and each
SASS instruction where nvdisasm is installed. LLVM IR, PTX, CPU assembly and counters decide; tile
IR (`ttir`, `ttgir`) and kernels that only one side has are reported, in parentheses. Line tables,
debug sections and paths are not compared. The exit status is 1 if anything that counts differs, or
if the sides have no kernel in common.

A commit message with the trailer `Generated-code: unchanged` claims an empty report against its
parent. `--claims` finds the newest unbroken row of such commits and compares its two ends. Where
the base does not compile, the first commit of the row that does is the base.

Each side runs its own sources in processes of its own, a revision in a worktree that is removed
afterwards; all use this interpreter's packages, and none the disk cache.
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
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
if not __package__:
    sys.path.insert(0, str(ROOT))
from scripts.code_text import COUNTED, STAGES, strip  # noqa: E402
from scripts.commit_claims import newest_claims  # noqa: E402

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
    def counts(self) -> bool:
        """Whether generated code of a kernel that both sides have differs, not tile IR alone."""
        both = bool(self.before and self.after)
        return both and (self.stage == COUNTERS or self.stage in COUNTED)

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
    """All differences, in the order of kernels and stages; a missing kernel has no texts."""
    keys = sorted({*base, *head}, key=lambda key: (key[0], _rank(key[1])))
    pairs = ((key, base.get(key, ()), head.get(key, ())) for key in keys)
    return [Difference(k, stage, b, h) for (k, stage), b, h in pairs if sorted(b) != sorted(h)]


def _rank(stage: str) -> int:
    return STAGES.index(stage) if stage in STAGES else len(STAGES)


# --- one part of one side: run in a process of its own, with its own sources ----------------------


@dataclass(frozen=True)
class Part:
    """The variants that one process compiles.

    kernels: their names, all if there is none; sample: one variant of `sample` is compiled, those
    whose hash has the remainder `slot`; index, count: each count-th of these from `index` on is
    this process's
    """

    index: int
    count: int
    kernels: Sequence[str]
    sample: int
    slot: int

    def arguments(self, folder: Path) -> list[str]:
        """The command line by which a process learns its part."""
        named = ["--kernels", *self.kernels] if self.kernels else []
        part = f"{self.index}/{self.count}/{self.slot}"
        return ["--dump", str(folder), "--part", part, "--sample", str(self.sample), *named]

    def variants(self, corpus: Mapping[str, Sequence[Any]]) -> list[tuple[str, Any]]:
        """The kernels' names and variants. Other cases of a revision do not change the choice."""
        names = self.kernels or list(corpus)
        every = [(name, variant) for name in names for variant in corpus[name]]
        return [case for case in every if self._is_sampled(*case)][self.index :: self.count]

    def _is_sampled(self, name: str, variant: Any) -> bool:
        key = f"{name} {variant.capability} {variant.label}"
        return zlib.crc32(key.encode()) % self.sample == self.slot


def dump_corpus(folder: Path, part: Part) -> None:
    """Compile the corpus of the checkout in the current folder; write a file for each kernel."""
    sys.path.insert(0, str(Path.cwd()))
    # Names of that checkout, which may be another than this file's: imported when they are needed.
    import importlib  # noqa: PLC0415

    tilewright: Any = importlib.import_module("tilewright")
    figures: Any = importlib.import_module("tests.corpus.figures")
    corpus: Any = importlib.import_module("tests.corpus.variants").CORPUS
    gpu_target: Any = importlib.import_module("tilewright.backends").GPUTarget
    cpu = tilewright.backends.backend_named("cpu").target()
    compiled: set[tuple[str, Any]] = set()
    for name, variant in track(part.variants(corpus), "compiling", console=Console(stderr=True)):
        source = figures.source_of(variant)
        gpu = gpu_target("cuda", variant.capability, 32)
        kernel = tilewright.compile(source, gpu, variant.options)
        kept = _texts(kernel) | {COUNTERS: _counters(kernel)}
        _write(folder, f"{name} sm_{variant.capability} {variant.label}", kept)
        if (
            variant.types,
            variant.words,
        ) not in compiled:  # one for all GPUs
            compiled.add((variant.types, variant.words))
            _write(folder, f"{name} cpu {variant.label}", _texts(tilewright.compile(source, cpu)))


def _texts(kernel: Any) -> dict[str, str]:
    return {stage: str(kernel.asm[stage]) for stage in STAGES if stage in kernel.asm}


def _counters(kernel: Any) -> str:
    """Registers, spills, shared memory, and how often each SASS instruction occurs."""
    rows = [f"{name} {getattr(kernel.metadata, name)}" for name in METADATA]
    try:
        sass = str(kernel.asm["sass"])
    except Exception:  # no nvdisasm: an optional tool
        return "\n".join(rows)
    found = Counter(re.findall(r"^\s+/\*\w+\*/\s+(?:@!?U?P\w+ )?([\w.]+)", sass, re.MULTILINE))
    return "\n".join([*rows, *(f"{name} {count}" for name, count in sorted(found.items()))])


def _write(folder: Path, kernel: str, stages: Mapping[str, str]) -> None:
    """A file that `read` understands; one for each kernel."""
    folder.mkdir(exist_ok=True)
    number = len(list(folder.iterdir()))
    text = json.dumps({"kernel": kernel, "stages": stages})
    (folder / f"{number:06}.json").write_text(text, encoding="utf-8")


def read(folder: Path, root: str) -> Code:
    """The texts that `dump_corpus`, or the compiler itself, wrote below a folder, stripped.

    root: the checkout that compiled them
    """
    code: dict[Key, list[str]] = {}

    def keep(kernel: str, stage: str, text: str) -> None:
        texts = code.setdefault((kernel, stage), [])
        text = strip(stage, text, root)
        if text not in texts:  # parts of a side may compile one kernel for the CPU each
            texts.append(text)

    for file in sorted(folder.rglob("[0-9]*.json")):
        kept = cast("dict[str, Any]", json.loads(file.read_text(encoding="utf-8")))
        for stage, text in kept["stages"].items():
            keep(kept["kernel"], stage, text)
    for stage in STAGES:
        for file in sorted(folder.rglob(f"*.{stage}")):
            keep(file.stem, stage, file.read_text(encoding="utf-8"))
    return code


# --- both sides -----------------------------------------------------------------------------------


@contextmanager
def checkout(revision: str | None) -> Generator[Path]:
    """A folder that holds a revision; None is the working tree, a folder is itself."""
    if revision is None or Path(revision).is_dir():
        yield ROOT if revision is None else Path(revision).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "tree")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", place, revision], check=True)
        try:
            yield Path(place)
        finally:
            subprocess.run([*git, "remove", "--force", place], check=True)


class DoesNotCompile(SystemExit):
    """A side whose corpus does not compile."""


@dataclass(frozen=True)
class Request:
    """What both sides compile: a part of the corpus, as in `Part`, or what `tests` compile."""

    kernels: Sequence[str] = ()
    sample: int = 1
    tests: Sequence[str] = ()
    slot: int = 0

    def processes(self, folder: Path) -> list[list[str]]:
        """The arguments of the interpreters that compile one side, half of the processors each."""
        if self.tests:
            return [["-m", "pytest", "-q", "-p", "no:cacheprovider", *self.tests]]
        count = max(1, (os.cpu_count() or 1) // 2)
        parts = [Part(i, count, self.kernels, self.sample, self.slot) for i in range(count)]
        return [[__file__, *part.arguments(folder / f"part{part.index}")] for part in parts]


def code_of(place: Path, request: Request) -> Code:
    """Compile one side, the sources in the folder `place`."""
    with tempfile.TemporaryDirectory() as dumps, tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ, "PYTHONPATH": str(place / "src"), "TILEWRIGHT_ALWAYS_COMPILE": "1",
            "TILEWRIGHT_CACHE_DIR": cache,
        }  # fmt: skip
        if request.tests:
            environment["TILEWRIGHT_DUMP_DIR"] = dumps
        running = [
            subprocess.Popen([sys.executable, *words], cwd=place, env=environment)
            for words in request.processes(Path(dumps))
        ]
        failed = [process for process in running if process.wait()]
        if failed and not request.tests:
            raise DoesNotCompile(f"the corpus of {place} does not compile")
        return read(Path(dumps), str(place))


def differences_of(
    bases: Sequence[str], head: str | None, request: Request
) -> tuple[list[Difference], int]:
    """All differences between the first of `bases` that compiles and `head`, and the number of
    kernels that both have. Errors: DoesNotCompile."""

    def side(revision: str | None) -> Code:
        with checkout(revision) as place:
            return code_of(place, request)

    with ThreadPoolExecutor(1) as pool:
        after = pool.submit(side, head)
        before = _first_that_compiles(side, bases)
    sides = before, after.result()
    kernels, others = ({kernel for kernel, _ in code} for code in sides)
    return compare(*sides), len(kernels & others)


def _first_that_compiles(side: Callable[[str], Code], bases: Sequence[str]) -> Code:
    for base in bases:
        try:
            return side(base)
        except DoesNotCompile:
            print(f"{base} does not compile")
    raise DoesNotCompile(f"of {len(bases)} revisions none compiles")


def slot_of(revision: str | None, sample: int) -> int:
    """The part of a sampled corpus that a revision's hash chooses; 0 outside of a repository.

    Commits have parts in turn, and one commit has always the same.
    """
    command = ["git", "-C", str(ROOT), "rev-parse", "--verify", "-q", revision or "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return int(found or "0", 16) % sample


def report(differences: Sequence[Difference], kernels: int) -> Table:
    """One row for each stage that differs."""
    counted = sum(difference.counts for difference in differences)
    table = Table(title=f"{counted} stages of generated code differ in {kernels} kernels")
    for name in ("kernel", "stage", "removed", "added"):
        table.add_column(name, justify="right" if name in ("removed", "added") else "left")
    for difference in differences:
        removed, added = difference.lines
        stage = difference.stage if difference.counts else f"({difference.stage})"
        table.add_row(difference.kernel, stage, str(removed), str(added))
    return table


def arguments_of(texts: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", nargs="?", help="a revision, or the folder of a checkout")
    parser.add_argument("head", nargs="?", help="the same; default: the working tree")
    parser.add_argument("--show", metavar="STAGE", help="print the diffs of this stage, or of all")
    parser.add_argument("--kernels", nargs="+", default=[], metavar="NAME", help="of the corpus")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="one of N variants only")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="tests to run")
    parser.add_argument("--claims", action="store_true", help="judge commits with the trailer")
    parser.add_argument("--dump", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--part", default="0/1/0", help=argparse.SUPPRESS)
    chosen = parser.parse_args(texts)
    if chosen.base is None and chosen.dump is None and not chosen.claims:
        parser.error("name the revision to compare with")
    return chosen


def main(texts: Sequence[str] | None = None) -> int:
    """The exit status: 1 if any generated code differs."""
    chosen = arguments_of(texts)
    if chosen.dump is not None:
        index, count, slot = map(int, chosen.part.split("/"))
        dump_corpus(chosen.dump, Part(index, count, chosen.kernels, chosen.sample, slot))
        return 0
    bases, head = [chosen.base], chosen.head
    if chosen.claims:
        claims = newest_claims(ROOT)
        if claims is None:
            print("no commit carries the trailer Generated-code: unchanged")
            return 0
        print(
            f"{len(claims.commits)} commits up to {claims.head[:12]} claim to change no "
            "generated code"
        )
        bases, head = [claims.base, *claims.commits[:-1]], claims.head
    slot = slot_of(head, chosen.sample)
    if chosen.sample > 1:
        print(f"slot {slot} of {chosen.sample}, by the hash of the commit")
    request = Request(chosen.kernels, chosen.sample, chosen.tests, slot)
    differences, kernels = differences_of(bases, head, request)
    Console().print(report(differences, kernels))
    for difference in differences:
        if chosen.show in (difference.stage, "all"):
            print(f"\n=== {difference.kernel} {difference.stage}", *difference.unified(), sep="\n")
    return 0 if kernels and not any(difference.counts for difference in differences) else 1


if __name__ == "__main__":
    raise SystemExit(main())
