"""`tilewright build`: kernels of a spec file as C source, for programs without Python.

tilewright build spec.toml -o out/
tilewright build spec.toml -o out/ --target x86-64-v3 --target sm_90 --library so
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from tilewright.support import import_late

_LIBRARIES = ("so", "a", "dll")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("spec", type=Path, metavar="SPEC", help="a file of variants, in TOML")
    parser.add_argument("-o", "--output", type=Path, default=Path("out"), metavar="FOLDER",
                        help="the folder of the files (default: out)")  # fmt: skip
    parser.add_argument("--name", metavar="NAME",
                        help="of the files and in C (default: that of the spec file)")  # fmt: skip
    parser.add_argument("--target", action="append", default=[], metavar="NAME",
                        help="a CPU level such as x86-64-v3, or an architecture such as sm_90; "
                        "may be repeated (default: all)")  # fmt: skip
    parser.add_argument("--library", action="append", default=[], choices=_LIBRARIES,
                        help="also build a library with the system's C compiler, "
                        "or with zig's")  # fmt: skip
    parser.add_argument(
        "--rust", action="store_true", help="also write a Rust crate with the shared library"
    )


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    name: str = chosen.name or re.sub(r"\W", "_", chosen.spec.stem)
    building = import_late("tilewright.aot.bundle.build_bundle")
    bundle = building.build_from_spec(
        name, chosen.spec, chosen.target, windows="dll" in chosen.library
    )
    paths: list[Path] = bundle.write(chosen.output)
    linking = import_late("tilewright.aot.bundle.bundle_library")
    kinds = dict.fromkeys([*chosen.library, *(["so"] if chosen.rust else [])])
    libraries = {kind: linking.build_library(chosen.output, name, kind) for kind in kinds}
    paths += libraries.values()
    if chosen.rust:
        paths += bundle.write_crate(chosen.output, libraries["so"])
    for path in paths:
        print(path)
    return 0
