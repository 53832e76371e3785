"""TW1xx: mistakes in a kernel, found while it is compiled."""

from collections.abc import Iterable
from dataclasses import field
from math import prod
from typing import ClassVar

from tilewright.support.data_class import dataclass
from tilewright.support.diagnostics import SourceLines, SourceLoc
from tilewright.support.errors.user_error import TilewrightError, did_you_mean, listed, shown_value


@dataclass(eq=False, init=False)
class CompilationError(TilewrightError):
    """Base of the mistakes that are found while a kernel is compiled.

    By itself it is Triton's: src: text of the function; node: of the syntax tree, with `lineno` and
    `col_offset`; error_message: what is wrong.
    """

    code = "TW100"
    template = "{given_message}"
    of_language_function: ClassVar[bool] = False
    """Whether a language function raises it of its arguments, rather than an operator or syntax."""

    src: str | None = field(default=None, kw_only=True, repr=False)
    node: object = field(default=None, kw_only=True, repr=False)
    given_message: str | None = field(default=None, kw_only=True, repr=False)

    def __init__(
        self,
        src: str | None = None,
        node: object = None,
        error_message: str | None = None,
        *,
        loc: SourceLoc | None = None,
        notes: tuple[str, ...] = (),
        sources: SourceLines | None = None,
        advice: str | None = None,
    ) -> None:
        super().__init__(loc=loc, notes=notes, sources=sources, advice=advice)
        self.src, self.node, self.given_message = src, node, error_message or ""

    def triton_lines(self) -> list[str]:
        """As of the base class; of one made by Triton's constructor the place in its text."""
        line = getattr(self.node, "lineno", None)
        if line is None:
            return super().triton_lines()
        column = getattr(self.node, "col_offset", 0)
        text = (self.src or "").splitlines()[:line]
        mark = [" " * column + "^"] if text else ["<source unavailable>"]
        return [f"  Triton: at {line}:{column}:", *text, *mark]


@dataclass(eq=False)
class UnsupportedLanguageConstruct(CompilationError):
    """A part of Python (or C) that kernels do not have.

    `construct` names it as users do ("a generator expression"); `instead` says what to write.
    """

    code = "TW101"
    template = "{construct} is not supported in a kernel"
    triton_template = "unsupported AST node type: {construct}"
    hint_template = "{instead}"

    construct: str
    instead: str = ""


@dataclass(eq=False)
class BeyondTriton(CompilationError):
    """A part of this language that Triton lacks, in a kernel with `strict_triton=True`."""

    code = "TW127"
    template = "{construct} is not in Triton's language, which strict_triton=True asks for"
    hint_template = "leave strict_triton out, or write it as Triton does"

    construct: str


@dataclass(eq=False)
class CompileTimeAssertionFailure(CompilationError):
    """A `static_assert` whose condition is false."""

    code = "TW102"
    template = "static assertion failed: {detail}"
    hint_template = "constexpr parameters decide it: launch with other values"

    detail: str


@dataclass(eq=False)
class UndefinedName(CompilationError, NameError):
    """A name that is neither a local variable nor a global of the kernel's module."""

    code = "TW103"
    template = "name '{undefined}' is not defined"
    triton_template = "{undefined} is not defined"

    undefined: str
    candidates: Iterable[str] = ()

    @property
    def hint(self) -> str | None:
        """The closest known names."""
        return did_you_mean(self.undefined, self.candidates)


@dataclass(eq=False)
class NotConstexpr(CompilationError):
    """A run-time value where the compiler must know the value.

    `what` is the place ("the 'end' argument of arange"), `found` the value's type.
    """

    code = "TW104"
    of_language_function = True
    template = "{what} must be known at compile time, but is a run-time value of type {found}"
    triton_template = "{what} must be of type tl.constexpr"
    hint_template = "pass it as a parameter annotated 'tl.constexpr', or use a literal"

    what: str
    found: object


@dataclass(eq=False)
class RecursionNotSupported(CompilationError, RecursionError):
    """A kernel function that calls itself, perhaps through others, and would do so for ever."""

    code = "TW105"
    template = "'{function}' calls itself: {chain}"
    hint_template = "calls are inlined, so recursion never ends; write a loop"

    function: str
    chain: str


@dataclass(eq=False)
class SourceNotAvailable(CompilationError, OSError):
    """A kernel whose source text cannot be found, as for functions typed at the prompt."""

    code = "TW106"
    template = "the source of '{function}' is not available: {reason}"

    function: str
    reason: str
    is_file: bool = False
    """Whether it is a file that cannot be read; else a function whose text Python does not know."""

    @property
    def hint(self) -> str | None:
        """Where Python keeps the text of a function."""
        return None if self.is_file else "define the kernel in a file or a notebook cell"

    def __str__(self) -> str:
        """As for any error; `OSError` would print its errno."""
        return TilewrightError.__str__(self)


@dataclass(eq=False)
class UnsupportedGlobal(CompilationError):
    """A global variable of a type that kernels cannot use."""

    code = "TW107"
    template = "global '{variable}' is a {found}, which a kernel cannot use"
    triton_template = "Cannot access global variable {variable} from within @jit'ed function"
    hint_template = (
        "kernels see functions, modules, dtypes, numbers, strings, tuples, lists, dictionaries and "
        "constexpr globals"
    )

    variable: str
    found: str


@dataclass(eq=False)
class UnusedResult(CompilationError):
    """A call as a statement of a function that only has a result."""

    code = "TW128"
    template = "the result of {function} is not used: {reason}"
    triton_template = "The result of {function} is not being used. {reason}"

    function: str
    reason: str


@dataclass(eq=False)
class UnknownAttribute(CompilationError, AttributeError):
    """An attribute or method that the object does not have. `owner` names it: "a tile", "tl"."""

    code = "TW108"
    template = "{owner} has no attribute '{attribute}'"

    owner: str
    attribute: str
    candidates: Iterable[str] = ()

    @property
    def hint(self) -> str | None:
        """The closest known attributes."""
        return did_you_mean(self.attribute, self.candidates)


@dataclass(eq=False)
class InconsistentType(CompilationError):
    """A variable that changes its type in a branch or from one loop iteration to the next."""

    code = "TW109"
    template = "'{variable}' is {before} before the {construct} and {after} after it"
    triton_template = (
        "Loop-carried variable {variable} has initial type {before} "
        "but is re-assigned to {after} in loop"
    )
    hint_template = "give it one shape and dtype, for example with .to(...) or tl.full(...)"

    variable: str
    construct: str
    before: object
    after: object


@dataclass(eq=False)
class ShapeMismatch(CompilationError, ValueError):
    """Two tiles whose shapes do not fit the operation between them."""

    code = "TW110"
    template = "cannot {operation} tiles of shapes {left} and {right}{because}"

    operation: str
    """A verb: "add", "dot", "broadcast"."""
    left: tuple[int, ...]
    right: tuple[int, ...]
    reason: str = ""
    """Which numbers do not fit, where that is not plain: "K is 32 and 16"."""

    @property
    def triton_words(self) -> str | None:
        """The first extents that do not fit, where shapes broadcast."""
        pairs = enumerate(zip(self.left, self.right, strict=False))
        different = [(i, a, b) for i, (a, b) in pairs if a != b and 1 not in (a, b)]
        if self.reason or not different:
            return None
        index, left, right = different[0]
        what = "Cannot make_shape_compatible: incompatible dimensions at index"
        return f"{what} {index}: {left} and {right}"

    @property
    def because(self) -> str:
        """The reason as the end of the sentence."""
        return f": {self.reason}" if self.reason else ""

    @property
    def hint(self) -> str | None:
        """How shapes broadcast, where they would."""
        broadcasts = "tile shapes broadcast from the right, and sizes must be equal or 1"
        return None if self.reason else broadcasts


@dataclass(eq=False)
class AccessMismatch(ShapeMismatch):
    """A value or mask (left) that does not fit the pointers that it is used with (right)."""

    code = "TW124"
    template = "cannot {operation} of shape {left} through pointers of shape {right}"

    @property
    def hint(self) -> str | None:
        """How it would fit."""
        return "it must broadcast to the shape of the pointers: sizes must be equal or 1"


@dataclass(eq=False)
class ReshapeMismatch(ShapeMismatch):
    """A tile that has more or fewer elements than the shape that it is to have."""

    code = "TW125"
    template = "cannot {operation} a tile of shape {left} to {right}: {numbers}"

    @property
    def numbers(self) -> str:
        """How many elements there are, and how many the new shape has."""
        if min(self.right, default=0) < 0:
            return "extents are not inferred, give each of them"
        return f"it has {prod(self.left)} elements, not {prod(self.right)}"

    @property
    def hint(self) -> str | None:
        """None: the numbers say it."""
        return None


@dataclass(eq=False)
class DTypeMismatch(CompilationError, TypeError):
    """Operands whose dtypes the operation does not take."""

    code = "TW111"
    template = "cannot {operation} {left} and {right}"
    hint_template = "convert one side with .to(...)"

    operation: str
    left: object
    right: object

    @property
    def triton_words(self) -> str:
        """About the signs of integers, where they alone differ; else about the types."""
        left, right = str(self.left), str(self.right)
        if self.operation == "dot":
            return f"Both operands must be same dtype. Got {left} and {right}"
        integers = {left.removeprefix("u")[:3], right.removeprefix("u")[:3]} == {"int"}
        divides = self.operation.startswith(("divide", "take the remainder"))
        if integers and divides and left.startswith("u") != right.startswith("u"):
            why = "because they have different signedness"
            return f"Cannot use /, #, or % with {left} and {right} {why}"
        return f"invalid operands of type {left} and {right}"


@dataclass(eq=False)
class InvalidValue(CompilationError, ValueError):
    """An argument of a language function that is outside what it takes."""

    code = "TW112"
    of_language_function = True
    template = "{function}: '{argument}' must be {expected}, found {found}"

    function: str
    argument: str
    expected: str
    found: object


@dataclass(eq=False)
class InvalidOperation(CompilationError, TypeError):
    """An operation that the operands do not have. Reads "cannot <operation>: <reason>"."""

    code = "TW113"
    template = "cannot {operation}: {reason}"
    hint_template = "{instead}"

    operation: str
    reason: str
    instead: str = ""
    operands: tuple[str, ...] = ()
    """The types of the operands of an operator."""

    @property
    def triton_words(self) -> str | None:
        """About the types of the operands."""
        if not self.operands:
            return super().triton_words
        return f"invalid operands of type {' and '.join(self.operands)}"


@dataclass(eq=False)
class BlockTooLarge(CompilationError, ValueError):
    """A tile with more elements than the language allows."""

    code = "TW114"
    of_language_function = True
    template = "a tile of shape {shape} has {elements} elements; the limit is {limit}"
    triton_template = "numel ({elements}) exceeds triton maximum tensor numel ({limit})"
    hint_template = "use smaller blocks and a larger grid, or a loop"

    shape: tuple[int, ...]
    elements: int
    limit: int


@dataclass(eq=False)
class NonPowerOfTwo(CompilationError, ValueError):
    """A tile size that is no power of two, or not even positive."""

    code = "TW115"
    of_language_function = True
    template = "{what} must be {expected}, found {found}"
    triton_template = "{what} must be a power of 2"

    what: str
    found: int

    @property
    def expected(self) -> str:
        """Any positive extent will do, but where powers of two are asked for."""
        return "positive" if self.found < 1 else "a power of two"

    @property
    def hint(self) -> str | None:
        """The next power of two, for sizes that have one."""
        if self.found < 1:
            return None
        size = 1 << (self.found - 1).bit_length()
        return f"use {size} and mask the elements past {self.found}"


@dataclass(eq=False)
class ArgumentCount(CompilationError, TypeError):
    """Too many positional arguments, in a launch or in a call inside a kernel."""

    code = "TW116"
    template = "{function}() takes {expected} {arguments}, found {found}"

    function: str
    expected: object
    """A number, or words such as "2 to 4"."""
    found: int

    @property
    def arguments(self) -> str:
        """The word behind the number."""
        return "argument" if str(self.expected) == "1" else "arguments"


@dataclass(eq=False)
class MissingArgument(CompilationError, TypeError):
    """A call that leaves out parameters without defaults."""

    code = "TW117"
    template = "{function}() misses a value for {names}"
    hint_template = "give it by position or by name, or a default where the function is defined"

    function: str
    missing: tuple[str, ...]

    @property
    def names(self) -> str:
        """The missing parameters, as printed."""
        return listed(self.missing)


@dataclass(eq=False)
class UnknownArgument(CompilationError, TypeError, KeyError):
    """A keyword that neither the function nor the launch knows."""

    code = "TW118"
    template = "{function}() has no parameter '{argument}'"
    triton_template = "Keyword argument {argument} was specified but unrecognised"

    function: str
    argument: str
    candidates: Iterable[str] = ()

    @property
    def hint(self) -> str | None:
        """The closest parameters, else all of them."""
        names = list(self.candidates)
        return did_you_mean(self.argument, names) or f"it has {listed(names)}"


@dataclass(eq=False)
class RepeatedArgument(CompilationError, TypeError):
    """A parameter that is given twice."""

    code = "TW119"
    template = "{function}() is given '{argument}' twice"
    hint_template = "give it by position or by name, not both"

    function: str
    argument: str


@dataclass(eq=False)
class PossiblyUndefined(CompilationError, NameError):
    """A variable that only one side of a branch, or only a loop body, assigns."""

    code = "TW120"
    template = "'{variable}' may be undefined here: it is assigned only inside the {construct}"
    triton_template = "{variable} is not defined"
    hint_template = "assign it before the {construct} too"

    variable: str
    construct: str


@dataclass(eq=False)
class StoreToConst(CompilationError):
    """A store through a parameter annotated `tl.const`."""

    code = "TW121"
    template = "'{pointer}' points to constant memory and cannot be stored to"
    triton_template = "Cannot store to a constant pointer"
    hint_template = "remove the 'tl.const' annotation"

    pointer: str


@dataclass(eq=False)
class LiteralOutOfRange(CompilationError, OverflowError):
    """A literal that the dtype it must take cannot hold."""

    code = "TW122"
    template = "{literal} does not fit {dtype}"
    triton_template = "Scalar {literal} is out of range for type {dtype}"
    hint_template = "convert the other side to a wider dtype with .to(...)"

    literal: object
    dtype: object

    @property
    def triton_words(self) -> str | None:
        """About the type, or that there is none."""
        if self.dtype == "any integer dtype":
            return f"Nonrepresentable integer {shown_value(self.literal)}"
        return super().triton_words


@dataclass(eq=False)
class InconsistentBranches(CompilationError):
    """Something that has one type where a condition holds and another where it does not.

    `what` names it: "'x'", "the conditional expression", "the result of f()".
    """

    code = "TW123"
    template = "{what} is {left} on one path and {right} on the other"
    triton_template = (
        "Mismatched type for {name} between then block ({left}) and else block ({right})"
    )
    hint_template = "give it one shape and dtype, for example with .to(...) or tl.full(...)"

    what: str
    left: object
    right: object

    @property
    def name(self) -> str:
        """The variable, without quotes; of what is none, its name."""
        return self.what.strip("'")


@dataclass(eq=False)
class NestedTooDeeply(CompilationError, RecursionError):
    """Blocks, expressions or calls inside each other, more than the compiler follows."""

    code = "TW126"
    template = "{what} nests too deeply{limit}"
    hint_template = "take it apart: name parts of it, or move them to functions"

    what: str
    most: int | None = None
    """How many levels there may be, where that is a fixed number."""

    @property
    def limit(self) -> str:
        """The limit, as printed."""
        return "" if self.most is None else f": there may be {self.most} levels"


@dataclass(eq=False)
class NotOneFunction(CompilationError, ValueError):
    """Tile IR that is to be compiled or run, with no function or with several."""

    code = "TW131"
    template = "expected tile IR with one function, found {found}"
    hint_template = "a kernel is one function: put each in a text of its own"

    names: tuple[str, ...]

    @property
    def found(self) -> str:
        """The functions that there are, as printed."""
        return listed(self.names[:8]) if self.names else "none"


@dataclass(eq=False)
class TileParameter(CompilationError, TypeError):
    """Tile IR that is to be compiled or run, with a parameter that no launch passes."""

    code = "TW133"
    template = "parameter %{parameter} of the kernel @{kernel} is {type}, a tile"
    hint_template = "pass a pointer, and load the tile: kernels take numbers and pointers"

    kernel: str
    parameter: str
    type: object


@dataclass(eq=False)
class InvalidTileIR(CompilationError, ValueError):
    """Tile IR that can be read, but breaks a rule of its ops."""

    code = "TW132"
    template = "the tile IR is invalid:\n{report}"

    report: str
    """The functions, each message below its op."""


@dataclass(eq=False)
class TileIRSyntaxError(CompilationError, ValueError):
    """Text that is not tile IR."""

    code = "TW130"
    template = "expected {expected}, found {found}"

    expected: str
    found: str
