"""Commits whose messages claim, by a trailer, that they change no generated code."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["TRAILER", "Claims", "newest_claims"]

TRAILER = "Generated-code"
UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Claims:
    """An unbroken row of commits with the trailer.

    base: the parent of the first; commits: these commits, the oldest first
    """

    base: str
    commits: Sequence[str]

    @property
    def head(self) -> str:
        """The last commit."""
        return self.commits[-1]


def newest_claims(repository: Path, revision: str = "HEAD") -> Claims | None:
    """The newest unbroken row of commits with the trailer, along first parents; None without one.

    Raises CalledProcessError where there is no history, as in an archive.
    """
    form = f"%H %P%x00%(trailers:key={TRAILER},valueonly)%x01"
    command = ["git", "-C", str(repository), "log", "--first-parent", f"--format={form}", revision]
    log = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return _first_row([_parse(entry) for entry in log.split("\x01") if entry.strip()])


def _parse(entry: str) -> tuple[str, str, bool]:
    """A commit, its first parent ("" for a root), and whether it claims to change nothing."""
    names, _, value = entry.strip().partition("\x00")
    commit, _, parents = names.partition(" ")
    return commit, parents.partition(" ")[0], value.strip().lower() == UNCHANGED


def _first_row(log: Sequence[tuple[str, str, bool]]) -> Claims | None:
    base, commits = "", list[str]()
    for commit, parent, claims in log:
        if claims and parent:
            base = parent
            commits.append(commit)
        elif commits:
            break
    return Claims(base, commits[::-1]) if commits else None
