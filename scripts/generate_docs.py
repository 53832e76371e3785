"""Write what documents take from code and from each other: ops, settings, tile IR, records.

    python scripts/generate_docs.py            # rewrite
    python scripts/generate_docs.py --check    # fail if anything is out of date

A generated section is between `<!-- generated: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import argparse
import re
import runpy
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import tour_excerpts
from opref import op_reference

import tilewright.language as tl
from tilewright.tools.env_command import settings_markdown

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
SETTINGS = ROOT / "docs/settings.md"
IR_PAGE = ROOT / "docs/ir/README.md"
OP_PAGE = ROOT / "docs/ir/ops.md"
LIBDEVICE = ROOT / "docs/libdevice.md"
ADRS = ROOT / "docs/adr"
ADR_INDEX = ADRS / "README.md"
_ADR_HEAD = """# Decision records

One decision each, with its question, reasons and figures. A new record copies
[0000-template.md](0000-template.md); numbers are not reused.

| | decision | status |
|---|---|---|
"""
_SECTION = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def readme_tile_ir() -> str:
    """The `ttir` of the kernel that the README opens with, as it prints when the README is run."""
    first = _PYTHON.search(README.read_text("utf-8"))
    assert first is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "readme.py"
        path.write_text(first[1], "utf-8")
        kernel = runpy.run_path(str(path))["kernel"]
    return f"```text\n{kernel.asm['ttir'].strip()}\n```"


def libdevice_errors() -> str:
    """The bounds that library functions declare."""
    library = tl.extra.libdevice
    stubs = {name: getattr(library, name) for name in sorted(library.__all__)}
    declared = {name: tl.library_functions.LIBRARY.get(stub) for name, stub in stubs.items()}
    rows = [f"| {n} | {f.ulp[0]} | {f.ulp[1]} |" for n, f in declared.items() if f and f.ulp]
    return "\n".join(["| function | fp32 | fp64 |", "|---|---|---|", *rows])


SECTIONS: dict[str, Callable[[], str]] = {
    "libdevice-errors": libdevice_errors,
    "readme-ttir": readme_tile_ir,
    "settings": settings_markdown,
    **tour_excerpts.SECTIONS,
}


def adr_index() -> str:
    """The table of all decision records: number, title, status."""
    rows: list[str] = []
    for path in sorted(ADRS.glob("[0-9]*.md")):
        title, _, status = path.read_text("utf-8").split("\n", 3)[:3]
        number, _, words = title.removeprefix("# ").partition(": ")
        if number != "0000":
            rows.append(
                f"| [{number}]({path.name}) | {words} | {status.removeprefix('Status: ')} |"
            )
    return _ADR_HEAD + "\n".join(rows) + "\n"


def filled(text: str) -> str:
    """A document with its generated sections made anew."""
    return _SECTION.sub(lambda m: f"{m[1]}{SECTIONS[m[2]]()}\n{m[3]}", text)


def documents() -> dict[Path, str]:
    """Each generated document with the text that it should have."""
    pages = (SETTINGS, IR_PAGE, LIBDEVICE, tour_excerpts.PAGE)
    filled_in = {path: filled(path.read_text("utf-8")) for path in pages}
    return {**filled_in, OP_PAGE: op_reference(), ADR_INDEX: adr_index()}


def main() -> int:
    """Rewrite, or check; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail if out of date")
    check: bool = parser.parse_args().check
    stale = [
        path
        for path, text in documents().items()
        if not path.exists() or path.read_text("utf-8") != text
    ]
    for path in stale:
        print(f"{path.relative_to(ROOT)}: {'out of date' if check else 'rewritten'}")
    if check:
        return 1 if stale else 0
    for path, text in documents().items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
