"""Recording of launches as specs: `kernel.record()`, and the setting TILEWRIGHT_RECORD.

with matmul.record("matmul.toml") as recording:     # the launches of one kernel in a block
    serve(requests)
recording.specs

TILEWRIGHT_RECORD=all.toml python serve.py          # each new variant of every kernel
"""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path
from typing import Any, Self

from tilewright.aot.spec import KernelSpec
from tilewright.aot.spec_file import spec_header, spec_text, write_spec
from tilewright.runtime import BoundCall, JITFunction
from tilewright.support import ForkLock, TilewrightWarning, errors


class Recording:
    """The variants that a kernel launches in a block, in the order of their first launches.

    path: a spec file that is written at the end of the block. Launches in the block are made from
    Python.
    """

    def __init__(self, kernel: JITFunction, path: str | Path | None) -> None:
        self._kernel = kernel
        self._path = path
        self._found: dict[tuple[object, ...], KernelSpec] = {}

    @property
    def specs(self) -> list[KernelSpec]:
        """The variants so far, each once."""
        return list(self._found.values())

    def __enter__(self) -> Self:
        self._kernel.add_pre_run_hook(self._note)
        return self

    def __exit__(self, *_error: object) -> None:
        """Write the file, if there is one. Errors: OSError, InvalidSpec."""
        self._kernel.pre_run_hooks.remove(self._note)
        if self._path is not None:
            write_spec(self._path, self.specs)

    def _note(self, *args: object, **keywords: Any) -> None:
        call = self._kernel.bind(*args, **keywords)
        if call.key not in self._found:
            self._found[call.key] = KernelSpec.of_call(self._kernel, call)


_written: set[tuple[Path, str]] = set()
_lock = ForkLock()


def record_variant(path: Path, kernel: JITFunction, call: BoundCall) -> None:
    """Append the variant of a launch to a spec file, once in a process.

    Several processes may append to one file. A variant that has no text is left out, with a
    warning.
    """
    try:
        text = spec_text(KernelSpec.of_call(kernel, call))
    except (errors.InvalidSpec, errors.InvalidArgumentText) as problem:
        warnings.warn(f"not recorded: {problem.message}", TilewrightWarning, stacklevel=2)
        return
    with _lock:
        if (path, text) in _written:
            return
        _written.add((path, text))
    _create(path)
    # one write of a file that is opened for appending: tables of two processes do not mix
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, f"\n{text}".encode())
    finally:
        os.close(descriptor)


def _create(path: Path) -> None:
    """Make a file with the header, unless there is one. It appears with the header at once."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        new = Path(folder, "new")
        new.write_text(spec_header(), encoding="utf-8")
        try:
            os.link(new, path)
        except FileExistsError:
            pass  # another process was first
