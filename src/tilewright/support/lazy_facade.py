"""Packages whose names are imported at their first use (PEP 562).

    # ir/__init__.py                      # ir/__init__.pyi
    \"\"\"Tile IR.\"\"\"                       from tilewright.ir.core import Block, Module
    load_at_first_use(globals())          from tilewright.ir.parser import parse_module

The stub is what type checkers read, and the one list of what the package offers and where (SPEC 1
of the Scientific Python projects does the same). `from tilewright.ir import Module` imports
`ir.core` alone; a module that says `from tilewright import ir`, and `ir.parse_module` where it is
needed, imports the parser when it gets there.

A name must not be that of a submodule, which Python makes an attribute of the package.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from tilewright.support.fork_locks import import_late

_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
_IMPORT = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)
_NAME = re.compile(r"(\w+)(?: as (\w+))?\s*(?:,|$)")


def load_at_first_use(package: dict[str, Any]) -> None:
    """Give a package, by its globals, the names that its `__init__.pyi` imports."""
    stub = Path(package["__file__"]).with_suffix(".pyi").read_text(encoding="utf-8")
    own = package["__name__"]
    places = {name: (module, there) for name, module, there in _imports(own, stub)}

    def load(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        module, there = places[name]
        import_now = import_module if _within_import() else import_late
        whole = import_now(f"{own}.{there}" if module == own else module)
        package[name] = found = whole if module == own else getattr(whole, there)
        return found

    package["__getattr__"] = load
    package["__dir__"] = lambda: sorted({*package, *places})
    package["__all__"] = list(places)


def _within_import() -> bool:
    """Whether the body of a module requests a name, during its import.

    The thread that started the import handles forks. To wait for them here, with the locks of
    modules held, could last for ever.
    """
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT_SYSTEM:
            return True
        frame = frame.f_back
    return False


def _imports(package: str, stub: str) -> Iterator[tuple[str, str, str]]:
    """(name here, module, name there) for each import of a stub."""
    for module, several, one in _IMPORT.findall(stub):
        full = f"{package}{module}" if module.startswith(".") else module
        for there, here in _NAME.findall((several or one).split("#")[0]):
            yield here or there, full, there
