"""`tilewright as-triton`: install a package `triton` that imports Tilewright.

tilewright as-triton install                     # beside tilewright's other packages
tilewright as-triton install --target FOLDER     # for PYTHONPATH=FOLDER, before a real Triton
tilewright as-triton status | uninstall
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
from pathlib import Path

from tilewright.triton_alias import FoundTriton, install, installed, uninstall

ACTIONS = ("install", "uninstall", "status")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("action", choices=ACTIONS, metavar="|".join(ACTIONS))
    parser.add_argument(
        "--target",
        metavar="FOLDER",
        type=Path,
        help="a folder for PYTHONPATH instead of this Python's packages",
    )


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    folder = chosen.target or Path(sysconfig.get_path("purelib"))
    if chosen.action == "install":
        install(folder)
        print(f"`import triton` is Tilewright now, by a package in {folder}")
    elif chosen.action == "uninstall":
        done = "removed the" if uninstall(folder) else "there is no"
        print(f"{done} package triton of Tilewright's in {folder}")
    else:
        _print_status([folder] if chosen.target else [Path(place) for place in sys.path])
    return 0


def _print_status(folders: list[Path]) -> None:
    found = installed(folders)
    for each in found:
        print(f"triton {each.version} in {each.folder}: {_whose(each)}")
    if not found:
        print("no package triton is installed")


def _whose(found: FoundTriton) -> str:
    return "Tilewright" if found.is_ours else "another Triton"
