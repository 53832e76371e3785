"""TW14x: mistakes in kernels in Triton-C."""

from collections.abc import Iterable

from tilewright.support.data_class import dataclass
from tilewright.support.errors.kernel_errors import CompilationError
from tilewright.support.errors.user_error import did_you_mean, listed


@dataclass(eq=False)
class CSyntaxError(CompilationError, SyntaxError):
    """Text that is not Triton-C. instead: a replacement"""

    code = "TW140"
    template = "expected {expected}, found {found}"
    hint_template = "{instead}"

    expected: str
    found: str
    instead: str = ""

    def __str__(self) -> str:
        """The text of any error; `SyntaxError` would print its own fields."""
        return CompilationError.__str__(self)


@dataclass(eq=False)
class PreprocessorError(CompilationError, ValueError):
    """A directive or a use of a macro that the preprocessor rejects."""

    code = "TW141"
    template = "{detail}"
    hint_template = "{instead}"

    detail: str
    instead: str = ""


@dataclass(eq=False)
class MissingDefine(CompilationError, NameError):
    """A name without a definition, in the source, on the command line or by the host."""

    code = "TW142"
    template = "'{undefined}' is neither declared nor defined"
    hint_template = "define it: {undefined}=... among defines, or -D{undefined}=..."

    undefined: str


@dataclass(eq=False)
class KernelNotFound(CompilationError, LookupError):
    """A kernel name that is not in the source."""

    code = "TW143"
    template = "there is no kernel {wanted} in {source}"

    wanted: str
    """The name in quotes, or words."""
    source: str
    candidates: Iterable[str] = ()

    @property
    def hint(self) -> str | None:
        """The closest kernels, or all of them."""
        names = list(self.candidates)
        close = did_you_mean(self.wanted.strip("'"), names)
        return close or (f"it has {listed(names)}" if names else "declare one: __global__ void ...")


@dataclass(eq=False)
class AmbiguousKernel(CompilationError, LookupError):
    """A source with several kernels and no name that chooses one."""

    code = "TW144"
    template = "{source} has several kernels: {names}"
    hint_template = 'name one of them: name="{first}", or --kernel {first}'

    source: str
    candidates: tuple[str, ...]

    @property
    def names(self) -> str:
        """The kernels, as printed."""
        return listed(self.candidates)

    @property
    def first(self) -> str:
        """The first kernel, for the hint."""
        return self.candidates[0]


@dataclass(eq=False)
class NotAssignable(CompilationError, TypeError):
    """A target of an assignment that is neither a variable nor a dereferenced pointer."""

    code = "TW145"
    template = "cannot assign to {what}"
    hint_template = "{instead}"

    what: str
    instead: str = "assign to a variable, or store through a pointer: *p = value"


@dataclass(eq=False)
class ProtectedPointer(CompilationError, TypeError):
    """A store through a pointer to constant data, or a load through a write-only one."""

    code = "TW146"
    template = "cannot {operation} '{pointer}': it is declared {qualifier}"
    hint_template = "remove the qualifier where the parameter is declared"

    operation: str
    """A verb with its preposition: "store through"."""
    pointer: str
    qualifier: str


@dataclass(eq=False)
class EmptyDefine(CompilationError, ValueError):
    """An empty list of values for a macro."""

    code = "TW147"
    template = "the list of values for '{macro}' is empty"
    hint_template = "give at least one value, or leave the macro undefined"

    macro: str
