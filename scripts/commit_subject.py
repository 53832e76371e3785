"""Check the subject of a commit: `area: imperative`, at most 72 characters (a commit-msg hook).

python scripts/commit_subject.py MESSAGE_FILE
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

MOST = 72
_SUBJECT = re.compile(r"[a-z0-9_./, -]+: [a-z]\S*( \S+)*")
_MADE_BY_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ")


def problem_of(subject: str) -> str | None:
    """The problem of a subject, or None."""
    if subject.startswith(_MADE_BY_GIT):
        return None
    if len(subject) > MOST:
        return f"{len(subject)} characters, {MOST} at most: move reasons and figures to the body"
    if not _SUBJECT.fullmatch(subject) or subject.endswith("."):
        return "not `area: imperative`, as in `layout: reject swizzles wider than a row`"
    return None


def main(arguments: list[str]) -> int:
    """Print the problem of the message in a file; the exit status is 1 if there is one."""
    subject = Path(arguments[0]).read_text("utf-8").partition("\n")[0]
    problem = problem_of(subject)
    if problem:
        print(f"commit subject: {problem}\n    {subject}")
    return 1 if problem else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
