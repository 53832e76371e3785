"""The finder that answers `import triton`, and the modules that it makes."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, ClassVar, cast

from tilewright.support import attribute_late, errors, import_late, user_boundary
from tilewright.triton_alias.module_table import MODULES, ROOT, TRITON_VERSION, Row, refusal

_PACKAGE = Path(__file__).parent.parent


class AliasModule(ModuleType):
    """A module of Triton: each attribute is looked up where the table says, and then kept.

    A module below comes before a name: `triton.runtime.jit` is the module, which has `jit`.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, f"Tilewright's names where {name} has them.")
        # A package, so that `from it import name` asks the finder for what is missing, whose error
        # says why; and one without a folder, so that no other finder looks into ours.
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
            # not kept: `triton.runtime.driver.active` is another one after `set_active`
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
            # a private name only where it was asked for by itself: nothing else is meant for users
            found = getattr(module, name, _MISSING) if _offers(module, name) else _MISSING
            if found is not _MISSING:
                return found
        return _MISSING

    @property
    def __all__(self) -> list[str]:
        """What `from module import *` imports: all names, without the modules below."""
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
    """Whether a name is meant for users, or a private one that they import all the same."""
    private = name.startswith("_") and not name.startswith("__")
    return name in _public(module) or (private and name in vars(module))


class AliasLoader(Loader):
    """Makes the modules; they have no code to run."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module that a spec describes: that of ours which it is by another name, or one whose
        attributes are found when they are looked up."""
        itself = MODULES[spec.name].itself
        if not itself:
            return AliasModule(spec.name)
        module = import_late(itself)
        self._own_specs[itself] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing; but the import system has given a module of ours the spec of the alias."""
        own = self._own_specs.pop(module.__name__, None)
        if own is not None:
            module.__spec__ = own

    _own_specs: ClassVar[dict[str, ModuleSpec | None]] = {}


class TritonDistribution(Distribution):
    """What `importlib.metadata` says of the distribution triton."""

    def read_text(self, filename: str) -> str | None:
        """The metadata, which is all that it has."""
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {ROOT}\nVersion: {TRITON_VERSION}\n"

    def locate_file(self, path: Any) -> Path:
        """A path below this package."""
        return _PACKAGE / str(path)


class AliasFinder(MetaPathFinder):
    """Finds `triton` and what is below it; first on the path, so that nothing else does."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of the table. Raises MissingInTriton for others below triton,
        where they are imported; who only asks for a spec gets None, as from any finder."""
        if fullname in MODULES:
            spec = ModuleSpec(fullname, AliasLoader(), origin="tilewright", is_package=True)
            return spec
        if fullname.startswith(ROOT + ".") and not _is_only_asked():
            raise refusal(fullname)
        return None

    @staticmethod
    def find_distributions(
        context: DistributionFinder.Context | None = None,
    ) -> Iterator[Distribution]:
        """The distribution triton, where it or all are asked for."""
        if context is not None and context.name in (None, ROOT):
            yield TritonDistribution()


def _is_only_asked() -> bool:
    """Whether the finder's caller, beyond Python's import system, is `importlib.util.find_spec`."""
    frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_globals.get("__name__") == "importlib._bootstrap":
        frame = frame.f_back
    return frame is not None and frame.f_code is importlib.util.find_spec.__code__


def as_triton() -> ModuleType:
    """Make `import triton`, and every module below it, import Tilewright from now on; returns it.

    Errors show, below their own text, Triton's place and words too, and have causes as Triton's.
    Errors: TritonIsImported where the other triton has been imported already.
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
