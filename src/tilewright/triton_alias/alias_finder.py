"""The finder of `import triton`, and the modules that it creates."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, ClassVar, cast

from tilewright.support import attribute_late, errors, import_late, user_boundary
from tilewright.triton_alias.module_table import MODULES, ROOT, TRITON_VERSION, Row, refusal

_PACKAGE = Path(__file__).parent.parent


class AliasModule(ModuleType):
    """A module of Triton: each attribute is looked up by the table, then stored.

    A submodule takes precedence over a name: `triton.runtime.jit` is the module, which has `jit`.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, f"Tilewright's names where {name} has them.")
        # A package, so that `from it import name` calls the finder for missing names, whose error
        # gives the reason; without a folder, so that no other finder searches ours.
        self.__path__ = []
        if name == ROOT:
            self.__file__ = str(_PACKAGE / "__init__.py")
            self.__version__ = TRITON_VERSION

    def __getattr__(self, name: str) -> Any:
        below = f"{self.__name__}.{name}"
        if below in MODULES:
            return importlib.import_module(below)
        row = MODULES[self.__name__]
        found = self._find(row, name)
        if found is _MISSING and row.instance:
            # not stored: `triton.runtime.driver.active` changes by `set_active`
            return getattr(attribute_late(row.instance), name)
        if found is _MISSING:
            reason = f"module '{self.__name__}' has no attribute '{name}'"
            raise AttributeError(reason, name=name, obj=self)
        setattr(self, name, found)
        return found

    @staticmethod
    def _find(row: Row, name: str) -> object:
        if name in row.names:
            module, _, attribute = row.names[name].partition(":")
            found = import_late(module)
            return getattr(found, attribute, _MISSING) if attribute else found
        for whole in row.whole:
            module = import_late(whole)
            # a private name only if it is requested by itself: the others are not for users
            found = getattr(module, name, _MISSING) if _offers(module, name) else _MISSING
            if found is not _MISSING:
                return found
        return _MISSING

    @property
    def __all__(self) -> list[str]:
        """The names of `from module import *`: all but submodules."""
        return [name for name in self._names() if f"{self.__name__}.{name}" not in MODULES]

    def _names(self) -> list[str]:
        row = MODULES[self.__name__]
        whole = [name for module in row.whole for name in _public(import_late(module))]
        below = [
            module.rpartition(".")[2]
            for module in MODULES
            if module.rpartition(".")[0] == self.__name__
        ]
        return sorted({*row.names, *whole, *below})

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *self._names()})


_MISSING = object()


def _public(module: ModuleType) -> Sequence[str]:
    own = [name for name in dir(module) if not name.startswith("_")]
    return cast("Sequence[str]", getattr(module, "__all__", own))


def _offers(module: ModuleType, name: str) -> bool:
    """Whether a name is public, or a private one that users import."""
    private = name.startswith("_") and not name.startswith("__")
    return name in _public(module) or (private and name in vars(module))


class AliasLoader(Loader):
    """Loader of the modules, which have no code to run."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of a spec: one of this package under another name, or one whose attributes are
        resolved when they are read."""
        itself = MODULES[spec.name].itself
        if not itself:
            return AliasModule(spec.name)
        module = import_late(itself)
        self._own_specs[itself] = module.__spec__
        return module

    def get_code(self, fullname: str) -> CodeType | None:
        """The code of a command, for `python -m`."""
        row = MODULES[fullname]
        spec = importlib.util.find_spec(row.itself) if row.is_command else None
        loader: Any = spec.loader if spec is not None else None
        return None if loader is None else loader.get_code(row.itself)

    def exec_module(self, module: ModuleType) -> None:
        """Restore the spec of a module of this package, which the import system has replaced."""
        own = self._own_specs.pop(module.__name__, None)
        if own is not None:
            module.__spec__ = own

    _own_specs: ClassVar[dict[str, ModuleSpec | None]] = {}


class TritonDistribution(Distribution):
    """The metadata of the distribution triton."""

    def read_text(self, filename: str) -> str | None:
        """The metadata, the only file."""
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {ROOT}\nVersion: {TRITON_VERSION}\n"

    def locate_file(self, path: Any) -> Path:
        """A path in this package."""
        return _PACKAGE / str(path)


class AliasFinder(MetaPathFinder):
    """Finder of `triton` and its submodules; first on the path, before other finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of the table. Raises MissingInTriton for other modules of triton in
        imports; returns None to callers that only query a spec, as any finder does."""
        if fullname in MODULES:
            is_package = not MODULES[fullname].is_command
            return ModuleSpec(fullname, AliasLoader(), origin="tilewright", is_package=is_package)
        if fullname.startswith(ROOT + ".") and not _is_query():
            raise refusal(fullname)
        return None

    @staticmethod
    def find_distributions(
        context: DistributionFinder.Context | None = None,
    ) -> Iterator[Distribution]:
        """The distribution triton, if it or all distributions are requested."""
        if context is not None and context.name in (None, ROOT):
            yield TritonDistribution()


def _is_query() -> bool:
    """Whether the finder's caller, beyond Python's import system, is `importlib.util.find_spec`."""
    frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_globals.get("__name__") == "importlib._bootstrap":
        frame = frame.f_back
    return frame is not None and frame.f_code is importlib.util.find_spec.__code__


def as_triton() -> ModuleType:
    """Make `import triton`, and every submodule of it, import Tilewright; return the module.

    Errors also show Triton's location and words, and have causes as Triton's.
    Errors: TritonIsImported if the other triton has been imported already.
    """
    with user_boundary:
        imported = sys.modules.get(ROOT)
        if imported is not None and not isinstance(imported, AliasModule):
            version = getattr(imported, "__version__", "of unknown version")
            place = getattr(imported, "__file__", None) or "nowhere"
            raise errors.TritonIsImported(str(version), str(place))
        if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
            sys.meta_path.insert(0, AliasFinder())
        errors.triton_words.shown = True
        return importlib.import_module(ROOT)
