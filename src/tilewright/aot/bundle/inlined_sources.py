"""C sources with their own headers in them, so that they are one file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tilewright import backends, native

_INCLUDE = re.compile(r'^#include "([\w/]+\.h)"\n', re.MULTILINE)
_EXPORTED = re.compile(r"^(?=\w+ \*?tw_\w+\()", re.MULTILINE)
_ATTRIBUTE = re.compile(r"\[\[gnu::(format\([^)]*\))\]\]")


def thread_pool_sources() -> str:
    """The house's thread pool (backends/cpu/driver/thread_pool.c) without Python's header.

    Its functions are static, since a program may link several bundles. Attributes are written as
    GCC's, which compilers of C99 accept.
    """
    folder = Path(backends.__file__ or "").with_name("cpu") / "driver"
    text = inlined(folder / "thread_pool.c", [Path(native.__file__ or "").parent], ("cpython.h",))
    return _ATTRIBUTE.sub(r"__attribute__((\1))", _EXPORTED.sub("static ", text))


def inlined(source: Path, folders: Sequence[Path] = (), left_out: Sequence[str] = ()) -> str:
    """A source with each of its headers at the first `#include` of it.

    folders: with headers, besides that of the source; left_out: headers that are not included
    """
    seen = {*left_out}

    def text_of(path: Path) -> str:
        text = path.read_text("utf-8").replace("#pragma once\n", "")
        return _INCLUDE.sub(lambda match: header(match[1]), text)

    def header(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        found = next(f / name for f in (source.parent, *folders) if (f / name).exists())
        return text_of(found)

    return text_of(source)
