"""Documents are true: their code runs, quoted output is current, links lead to files.

All Python blocks of a page run as one program, in order, in a process of their own. A block that
needs more than the package states it after the language: ```` ```python torch ````. The program
must print the blocks of output, ```` ```output ````, in their order. Afterwards the commands of
```` ```console ```` blocks run in the same folder, and must print what follows them there.
"""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests import with_small_caches
from tests.architecture.gates import ROOT, configuration

PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "ARCHITECTURE.md",
        ROOT / "CONTRIBUTING.md",
        # `tests/kernels` runs the reference's examples one by one.
        *(p for p in (ROOT / "docs").rglob("*.md") if not {"generated", "reference"} & {*p.parts}),
        *(ROOT / "src").rglob("*.md"),
    ]
)
UNEXECUTED = {
    "cupy": "needs a GPU; the page runs its kernel on arrays of NumPy",
    "jax": "runs where jax is installed, which no extra does",
    "g++": "needs a C++ compiler; tests/kernels/test_torch_programs.py makes the same calls",
}
"""The needs of Python blocks that CI does not run, and the reason: at most `MOST_UNEXECUTED`."""
MOST_UNEXECUTED = 5
NEEDS = {"torch", "matplotlib", *UNEXECUTED}
MOST_LINES_OF_README = 120
_FENCE = re.compile(r"^(`{3,})(\S*)[ ]*(.*)$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block. line: number of its first line of text, from 1"""

    language: str
    needs: frozenset[str]
    line: int
    text: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    found: list[Block] = []
    fence, language, needs, start, lines = "", "", "", 0, []
    for number, line in enumerate(page.splitlines(), 1):
        match = _FENCE.match(line)
        if not fence and match:
            fence, language, needs = match[1], match[2], match[3]
            start, lines = number + 1, []
        elif fence and line == fence:
            text = "".join(f"{x}\n" for x in lines)
            found.append(Block(language, frozenset(needs.split()), start, text))
            fence = ""
        elif fence:
            lines.append(line)
    assert not fence, f"the block at line {start} is not closed"
    return found


def program(page: list[Block], lacking: frozenset[str]) -> str:
    """The Python program of a page, with the page's line numbers, so that tracebacks name its
    lines.
    """
    lines: list[str] = []
    for block in page:
        if block.language == "python" and not block.needs & lacking:
            lines += [""] * (block.line - 1 - len(lines))
            lines += block.text.splitlines()
    return "\n".join(lines) + "\n"


def lacking_here() -> frozenset[str]:
    """The needs of blocks that this environment lacks."""
    return frozenset(name for name in NEEDS if importlib.util.find_spec(name) is None)


def needed(path: Path) -> frozenset[str]:
    """All needs of a page's blocks beyond the package."""
    return frozenset[str]().union(*(b.needs for b in blocks(path.read_text("utf-8"))))


def runnable(path: Path) -> bool:
    """Whether a page has Python blocks other than doctests (which are run elsewhere)."""
    found = blocks(path.read_text("utf-8"))
    return any(b.language == "python" and ">>>" not in b.text for b in found)


def run_page(path: Path, folder: Path, lacking: frozenset[str]) -> subprocess.CompletedProcess[str]:
    """Run a page's program in `folder`, without the blocks that need any of `lacking`."""
    script = folder / f"{path.stem.replace('-', '_')}_page.py"
    return run_program(program(blocks(path.read_text("utf-8")), lacking), script)


def run_program(text: str, script: Path) -> subprocess.CompletedProcess[str]:
    """Run a program from a file, in the folder of the file."""
    script.write_text(text, "utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])}
    return subprocess.run(
        [sys.executable, with_small_caches.__file__, str(script)],
        cwd=script.parent, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def assert_page_runs(path: Path, folder: Path, lacking: frozenset[str]) -> None:
    """Run a page; it must succeed and print its blocks of output in their order."""
    done = run_page(path, folder, lacking)
    assert done.returncode == 0, done.stderr
    place = 0
    for block in blocks(path.read_text("utf-8")):
        if block.language == "output" and not block.needs & lacking:
            found = done.stdout.find(block.text, place)
            assert found >= 0, f"line {block.line} is not printed; printed is:\n{done.stdout}"
            place = found + len(block.text)


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that the page shows."""
    found: list[tuple[str, str]] = []
    for line in block.text.replace("\\\n", "").splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].strip(), ""))
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def run_command(command: str, folder: Path) -> str:
    """Run a command of a page, with this Python's `tilewright`; its output."""
    name, python = "tilewright ", f"{shlex.quote(sys.executable)} -m tilewright "
    assert command.startswith(name), command
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])}
    done = subprocess.run(
        ["bash", "-c", python + command.removeprefix(name)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def has_commands(path: Path) -> bool:
    """Whether a page has console blocks."""
    return any(block.language == "console" for block in blocks(path.read_text("utf-8")))


@pytest.mark.parametrize(
    "path",
    [p for p in PAGES if runnable(p) or has_commands(p)],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_code_and_commands_run_and_print_the_output_of_the_page(path: Path, tmp_path: Path):
    assert_page_runs(path, tmp_path, lacking_here() | {"torch", "matplotlib", "g++"})
    for block in blocks(path.read_text("utf-8")):
        if block.language == "console":
            for command, output in commands(block):
                assert output in run_command(command, tmp_path), command


@pytest.mark.torch
@pytest.mark.parametrize(
    "path", [p for p in PAGES if "torch" in needed(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_code_that_needs_torch_runs_too(path: Path, tmp_path: Path):
    assert_page_runs(path, tmp_path, lacking_here() | {"g++"})


@pytest.mark.dev("matplotlib")
@pytest.mark.parametrize(
    "path", [p for p in PAGES if "matplotlib" in needed(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_code_that_needs_matplotlib_runs_too(path: Path, tmp_path: Path):
    assert_page_runs(path, tmp_path, lacking_here() - {"matplotlib"} | {"torch"})


GUIDES = [p for p in PAGES if p.parent.name in ("tutorial", "howto")]
INSTALLS = {"torch": "pip install torch", "matplotlib": "[plot]"}
"""The command that installs a need of blocks, as a page has to name it."""


@pytest.mark.parametrize("path", GUIDES, ids=lambda p: p.name)
def test_guides_start_with_their_needs(path: Path):
    title, empty, *rest = path.read_text("utf-8").splitlines()
    assert title.startswith("# ")
    assert not empty
    needs = " ".join(rest[: rest.index("")])
    assert needs.startswith("Needs: "), f"{path.name} does not open with what it needs"
    assert "pip install" in needs
    assert {name for name, text in INSTALLS.items() if text in needs} == needed(path) - {
        *UNEXECUTED
    }


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks_are_marked_with_known_words(path: Path):
    for block in blocks(path.read_text("utf-8")):
        if block.language in ("python", "output"):
            assert block.needs <= NEEDS, f"line {block.line}: {sorted(block.needs - NEEDS)}"


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_python_block_goes_unexecuted_under_another_name(path: Path):
    spelled = {"py", "python3", "pycon", "ipython", "{code}", "{code-block}", "{doctest}"}
    assert [b.line for b in blocks(path.read_text("utf-8")) if b.language in spelled] == []


def test_few_python_blocks_are_unexecuted_each_for_a_reason():
    left_out = [
        need
        for path in PAGES
        for block in blocks(path.read_text("utf-8"))
        for need in block.needs & {*UNEXECUTED}
        if block.language == "python"
    ]
    assert set(left_out) == set(UNEXECUTED)
    assert len(left_out) <= MOST_UNEXECUTED


COMPILED = """
from tilewright.backends import GPUTarget
from tilewright.compiler import ASTSource, compile

types = {"x": "*fp32", "out": "*fp32", "columns": "i32", "stride": "i32", "factor": "fp32"}
source = ASTSource(scale_rows, types | {"BLOCK": "constexpr"}, {"BLOCK": 4}, {})
print("ld.global" in compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"])
"""
"""Compiles the kernel of the page on arrays for a GPU; no device is needed."""


def test_the_kernel_of_blocks_for_gpus_compiles_without_one(tmp_path: Path):
    page = ROOT / "docs/howto/arrays-of-other-libraries.md"
    assert "cupy" in needed(page)
    text = program(blocks(page.read_text("utf-8")), frozenset(NEEDS)) + COMPILED
    assert run_program(text, tmp_path / "arrays.py").stdout.splitlines()[-1] == "True"


def test_blocks_of_doctests_are_run_by_the_test_of_the_essay():
    found = [
        str(path.relative_to(ROOT))
        for path in PAGES
        if any(b.language == "python" and ">>>" in b.text for b in blocks(path.read_text("utf-8")))
    ]
    assert found == ["docs/internals/layouts.md"]  # tests/unit/layout/test_essay.py


_POWERS = re.compile(
    r"(?:extents?|tiles?|blocks?)\b[^.]{0,60}?(?:\b(?:are|be|have)\b|[:|])[^.]{0,20}powers of two",
    re.IGNORECASE,
)


def claims_of_powers(text: str) -> list[str]:
    """Sentences that require powers of two of tiles, which may have any extents."""
    found = [match[0] for match in _POWERS.finditer(text)]
    return [sentence for sentence in found if not re.search(r"\b(?:not|any)\b", sentence)]


def test_no_page_for_users_requires_powers_of_two():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *GUIDES]
    assert {p.name: claims_of_powers(p.read_text("utf-8")) for p in pages} == {
        p.name: [] for p in pages
    }


CHAPTERS = sorted((ROOT / "docs/tutorial").glob("*.md"))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda p: p.name)
def test_each_chapter_ends_with_a_link_to_the_next(chapter: Path):
    following = dict(zip(CHAPTERS, CHAPTERS[1:], strict=False)).get(chapter)
    *_, last = chapter.read_text("utf-8").rstrip().split("\n\n")
    assert chapter.read_text("utf-8").startswith(f"# {int(chapter.name[:2])}. ")
    if following is None:
        assert {"../howto/port-a-triton-kernel.md", "../cheatsheet.md"} <= set(linked(last))
    else:
        assert last.startswith("Next: ")
        assert linked(last) == [following.name]


_BLOCK = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)


def linked(text: str) -> list[str]:
    """The targets of the links of a page, outside of its blocks: `kernel[(1,)](x)` is code."""
    found = _LINK.findall(_BLOCK.sub("", text))
    return [inline or reference for inline, reference in found]


INDEX = ROOT / "docs/index.md"
CLICKS = 3


def reached(clicks: int) -> set[Path]:
    """The pages that this number of links leads to from the index, by the site's sidebar too."""
    listed = [line for b in blocks(INDEX.read_text("utf-8")) for line in b.text.splitlines()]
    sidebar = {
        path
        for line in listed
        if line and line[0] != ":" and not line.startswith("generated")
        for path in (ROOT / "docs").glob(f"{line}.md")
    }
    assert all(path.exists() for path in sidebar)
    found, newest = sidebar | {INDEX}, sidebar
    for _ in range(clicks - 1):
        newest = {
            (page.parent / link.partition("#")[0]).resolve()
            for page in newest
            for link in linked(page.read_text("utf-8"))
            if not re.match(r"[a-z]+:|#", link) and ".md" in link and "generated/" not in link
        } - found
        found |= newest
    return found


def test_every_page_is_reached_from_the_index_by_few_links():
    pages = {path for path in PAGES if ROOT / "docs" in path.parents}
    assert {str(p.relative_to(ROOT)) for p in pages - reached(CLICKS)} == set()
    unlisted = {str(p.relative_to(ROOT)) for p in pages - reached(1) if p.parent.name != "adr"}
    assert unlisted == set()  # add it to a toctree of docs/index.md


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files(path: Path):
    ours = re.compile(configuration()["project"]["urls"]["Homepage"] + "/(?:blob|tree)/main/(.*)")
    for link in linked(path.read_text("utf-8")):
        absolute = ours.fullmatch(link)
        if absolute is not None:
            assert (ROOT / absolute[1].partition("#")[0]).exists(), link
        elif not re.match(r"[a-z]+:|#|generated/", link):  # these pages exist in the site only
            assert path.name != "README.md" or path.parent != ROOT, f"relative on PyPI: {link}"
            assert (path.parent / link.partition("#")[0]).exists(), link


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= MOST_LINES_OF_README


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"])
def test_files_that_pages_name_exist(page: str):
    named = re.findall(
        r"`((?:src|tests|docs|scripts|benchmarks)/[\w./-]+)`", (ROOT / page).read_text()
    )
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_few_files_share_a_name():
    """Only files with the same role in both backends, or in both front ends; `core` is Triton's."""
    source = ROOT / "src" / "tilewright"
    stems = Counter(path.stem for path in source.rglob("*.py") if not path.stem.startswith("__"))
    shared = {stem for stem, count in stems.items() if count > 1}
    parallel = {"backend", "contracts", "ops", "pipeline", "stages"} | {
        path.stem for path in source.glob("frontend/c/**/*.py")
    }
    assert shared <= parallel | {"core"}, shared - parallel


def test_decisions_have_unique_numbers_that_links_use():
    """Also in titles, and in texts with "ADR" and a number."""
    titles = {path: path.read_text()[2:6] for path in (ROOT / "docs/adr").glob("[0-9]*.md")}
    assert all(path.name.startswith(number) for path, number in titles.items())
    assert len(set(titles.values())) == len(titles)
    texts = [path for folder in ("src", "docs", "tests") for path in (ROOT / folder).rglob("*.*")]
    for path in texts:
        if path.suffix in (".py", ".md"):
            named = set(re.findall(r"ADR (\d{4})", path.read_text()))
            assert named <= set(titles.values()), path


def test_the_source_archive_holds_all_that_is_versioned():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    patterns = configuration()["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    places = {file.partition("/")[0] for file in listed.stdout.splitlines()} - {".gitignore"}
    left_out = [p for p in places if not any(fnmatch(p, pattern) for pattern in patterns)]
    assert not left_out


def test_generated_sections_are_current():
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts/generate_docs.py"), "--check"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    message = f"{done.stdout}{done.stderr}run: just docs (python scripts/generate_docs.py)"
    assert done.returncode == 0, message


TOUR = ROOT / "docs/internals/tour.md"
_READ = re.compile(r"`(\w+)`\s+in\s+`(src/[\w/]+\.py)`")


def unknown_places(page: str) -> list[str]:
    """The functions and classes that a page names for reading, and that their files lack."""
    return [
        f"{path}: {name}"
        for name, path in _READ.findall(page)
        if not (ROOT / path).exists()
        or not re.search(rf"^(class|def) {name}\b", (ROOT / path).read_text("utf-8"), re.MULTILINE)
    ]


def test_the_tour_has_at_most_fifteen_stops_which_name_what_to_read():
    _, *stops = TOUR.read_text("utf-8").split("\n### ")
    assert 10 < len(stops) <= 15
    assert [stop.partition("\n")[0] for stop in stops if not _READ.search(stop)] == []
    assert unknown_places(TOUR.read_text("utf-8")) == []


# ---- that these tests can fail -------------------------------------------------------------------


def test_a_failing_block_is_found_at_its_line(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\nx = 1\n```\n\nText.\n\n```python\nassert x == 2\n```\n")
    done = run_page(page, tmp_path, frozenset())
    assert done.returncode == 1
    assert 'page_page.py", line 10' in done.stderr


def test_blocks_that_need_more_are_left_out():
    page = "```python\na\n```\n```python torch\nb\n```\n````text\n```\n````\n"
    found = blocks(page)
    assert [(b.language, b.line) for b in found] == [("python", 2), ("python", 5), ("text", 8)]
    assert program(found, frozenset({"torch"})).split() == ["a"]
    assert program(found, frozenset()).split() == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "Extents of tiles have to be, and have to be powers of two.",
        "Tiles have powers of two as extents, rows need not;",
        "at once. Extents are powers of two, and every product",
        "| block | powers of two, at least 16 bytes in the last dimension |",
    ],
)
def test_a_claim_of_powers_of_two_is_found(text: str):
    assert len(claims_of_powers(text)) == 1
    assert claims_of_powers("Extents need not be powers of two.") == []


def test_links_are_found_outside_of_blocks():
    page = "[a](b.md)\n\n```python\nkernel[(1,)](out)\n```\n\n[c]: d.md\n"
    assert linked(page) == ["b.md", "d.md"]


def test_commands_are_read_with_their_output():
    block = Block("console", frozenset(), 1, "$ tilewright a \\\n    b\none\ntwo\n$ tilewright c\n")
    assert commands(block) == [("tilewright a     b", "one\ntwo\n"), ("tilewright c", "")]


def test_pages_are_reached_by_the_sidebar_or_by_links():
    assert ROOT / "docs/ir/ops.md" in reached(1)
    assert ROOT / "docs/adr/0038-checks-are-ir.md" in reached(2) - reached(1)


def test_pages_are_found():
    names = {path.name for path in PAGES if runnable(path)}
    assert {"README.md", "01-vector-add.md", "add-an-op.md"} <= names


def test_a_function_that_is_not_in_its_file_is_found():
    page = "Read `Cse` in `src/tilewright/transforms/passes/cse.py`, then `Cse`\nin `src/x.py`."
    assert unknown_places(page) == ["src/x.py: Cse"]
    assert unknown_places(page.replace("Cse", "Csf", 1)) == [
        "src/tilewright/transforms/passes/cse.py: Csf", "src/x.py: Cse"
    ]  # fmt: skip
