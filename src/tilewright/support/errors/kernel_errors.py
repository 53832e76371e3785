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

    The class itself has the constructor of Triton's. src: text of the function; node: a node of the
    syntax tree, with `lineno` and `col_offset`; error_message: the problem
    """

    code = "TW100"
    template = "{given_message}"
    of_language_function: ClassVar[bool] = False
    """Whether arguments of a language function raise it, rather than an operator or syntax."""

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
        """The lines of the base class, or the place in `src` if Triton's constructor was used."""
        line = getattr(self.node, "lineno", None)
        if line is None:
            return super().triton_lines()
        column = getattr(self.node, "col_offset", 0)
        text = (self.src or "").splitlines()[:line]
        mark = [" " * column + "^"] if text else ["<source unavailable>"]
        return [f"  Triton: at {line}:{column}:", *text, *mark]


@dataclass(eq=False)
class UnsupportedLanguageConstruct(CompilationError):
    """A construct of Python (or C) that kernels do not support.

    construct: its name in users' words ("a generator expression"); instead: a replacement
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
    template = "{construct} is not in Triton's language, which strict_triton=True requires"
    hint_template = "remove strict_triton, or use a construct of Triton"

    construct: str


@dataclass(eq=False)
class CompileTimeAssertionFailure(CompilationError):
    """A `static_assert` whose condition is false."""

    code = "TW102"
    template = "static assertion failed: {detail}"
    hint_template = "it depends on constexpr parameters: launch with other values"

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
    """A run-time value where a compile-time constant is required.

    what: the place ("the 'end' argument of arange"); found: the value's type
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
    """A kernel function that calls itself, directly or through others, without end."""

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
    """Whether the source is a file that cannot be read, rather than a function without text."""

    @property
    def hint(self) -> str | None:
        """The place in which to define a function so that Python keeps its text."""
        return None if self.is_file else "define the kernel in a file or a notebook cell"

    def __str__(self) -> str:
        """The text of any error; `OSError` would print its errno."""
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
    """A call whose only effect is its result, used as a statement."""

    code = "TW128"
    template = "the result of {function} is not used: {reason}"
    triton_template = "The result of {function} is not being used. {reason}"

    function: str
    reason: str


@dataclass(eq=False)
class UnknownAttribute(CompilationError, AttributeError):
    """An attribute or method that the object lacks. owner: the object: "a tile", "tl"."""

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
    """A variable whose type differs between branches or loop iterations."""

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
    """The sizes that do not fit, where the shapes do not show them: "K is 32 and 16"."""

    @property
    def triton_words(self) -> str | None:
        """The first extents that do not match, for shapes that broadcast."""
        pairs = enumerate(zip(self.left, self.right, strict=False))
        different = [(i, a, b) for i, (a, b) in pairs if a != b and 1 not in (a, b)]
        if self.reason or not different:
            return None
        index, left, right = different[0]
        what = "Cannot make_shape_compatible: incompatible dimensions at index"
        return f"{what} {index}: {left} and {right}"

    @property
    def because(self) -> str:
        """The reason as a clause of the message."""
        return f": {self.reason}" if self.reason else ""

    @property
    def hint(self) -> str | None:
        """The rule of broadcasting, unless the reason is given."""
        broadcasts = "tile shapes broadcast from the right, and sizes must be equal or 1"
        return None if self.reason else broadcasts


@dataclass(eq=False)
class AccessMismatch(ShapeMismatch):
    """A value or mask (left) that does not fit the pointers of its access (right)."""

    code = "TW124"
    template = "cannot {operation} of shape {left} through pointers of shape {right}"

    @property
    def hint(self) -> str | None:
        """The shapes that fit."""
        return "it must broadcast to the shape of the pointers: sizes must be equal or 1"


@dataclass(eq=False)
class ReshapeMismatch(ShapeMismatch):
    """A tile with more or fewer elements than its new shape."""

    code = "TW125"
    template = "cannot {operation} a tile of shape {left} to {right}: {numbers}"

    @property
    def numbers(self) -> str:
        """The number of elements, and that of the new shape."""
        if min(self.right, default=0) < 0:
            return "-1 is not supported; pass every dimension"
        return f"it has {prod(self.left)} elements, not {prod(self.right)}"

    @property
    def hint(self) -> str | None:
        """None: the numbers suffice."""
        return None


@dataclass(eq=False)
class DTypeMismatch(CompilationError, TypeError):
    """Operands of dtypes that the operation does not accept."""

    code = "TW111"
    template = "cannot {operation} {left} and {right}"
    hint_template = "convert one side with .to(...)"

    operation: str
    left: object
    right: object

    @property
    def triton_words(self) -> str:
        """The signedness of integers if nothing else differs, otherwise the types."""
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
    """An argument outside the range of a language function."""

    code = "TW112"
    of_language_function = True
    template = "{function}: '{argument}' must be {expected}, found {found}"

    function: str
    argument: str
    expected: str
    found: object


@dataclass(eq=False)
class InvalidOperation(CompilationError, TypeError):
    """An operation that the operands do not support. Reads "cannot <operation>: <reason>"."""

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
        """The types of the operands."""
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
    """A tile size that is not a power of two, or not positive."""

    code = "TW115"
    of_language_function = True
    template = "{what} must be {expected}, found {found}"
    triton_template = "{what} must be a power of 2"

    what: str
    found: int

    @property
    def expected(self) -> str:
        """The rule that the size breaks."""
        return "positive" if self.found < 1 else "a power of two"

    @property
    def hint(self) -> str | None:
        """The next power of two, for positive sizes."""
        if self.found < 1:
            return None
        size = 1 << (self.found - 1).bit_length()
        return f"use {size} and mask the elements past {self.found}"


@dataclass(eq=False)
class ArgumentCount(CompilationError, TypeError):
    """Too many positional arguments, in a launch or in a call inside a kernel."""

    code = "TW116"
    template = "{function}() takes {expected} {arguments}, found {found}"
    hint_template = "{instead}"

    function: str
    expected: object
    """A number, or words such as "2 to 4"."""
    found: int
    instead: str = ""

    @property
    def arguments(self) -> str:
        """The noun after the number."""
        return "argument" if str(self.expected) == "1" else "arguments"


@dataclass(eq=False)
class MissingArgument(CompilationError, TypeError):
    """A call that leaves out parameters without defaults."""

    code = "TW117"
    template = "{function}() missing required {names}"
    hint_template = "pass it by position or by name, or give it a default in the function"

    function: str
    missing: tuple[str, ...]

    @property
    def names(self) -> str:
        """The missing parameters, as printed."""
        return f"argument{'s' * (len(self.missing) > 1)} {listed(self.missing)}"


@dataclass(eq=False)
class UnknownArgument(CompilationError, TypeError, KeyError):
    """A keyword that is no parameter of the function and no launch option."""

    code = "TW118"
    template = "{function}() has no parameter '{argument}'"
    triton_template = "Keyword argument {argument} was specified but unrecognised"

    function: str
    argument: str
    candidates: Iterable[str] = ()

    @property
    def hint(self) -> str | None:
        """The closest parameters, or all of them."""
        names = list(self.candidates)
        return did_you_mean(self.argument, names) or f"it has {listed(names)}"


@dataclass(eq=False)
class RepeatedArgument(CompilationError, TypeError):
    """A parameter that is passed twice."""

    code = "TW119"
    template = "{function}() got multiple values for '{argument}'"
    hint_template = "pass it by position or by name, not both"

    function: str
    argument: str


@dataclass(eq=False)
class PossiblyUndefined(CompilationError, NameError):
    """A variable that only one side of a branch, or only a loop body, assigns."""

    code = "TW120"
    template = "'{variable}' may be undefined here: it is assigned only inside the {construct}"
    triton_template = "{variable} is not defined"
    hint_template = "also assign it before the {construct}"

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
    """A literal outside the range of its dtype."""

    code = "TW122"
    template = "{literal} does not fit {dtype}"
    triton_template = "Scalar {literal} is out of range for type {dtype}"
    hint_template = "convert the other side to a wider dtype with .to(...)"

    literal: object
    dtype: object

    @property
    def triton_words(self) -> str | None:
        """The type, or that no type holds the literal."""
        if self.dtype == "any integer dtype":
            return f"Nonrepresentable integer {shown_value(self.literal)}"
        return super().triton_words


@dataclass(eq=False)
class InconsistentBranches(CompilationError):
    """A value whose type differs between the two paths of a condition.

    what: its name: "'x'", "the conditional expression", "the result of f()"
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
        """The name without quotes."""
        return self.what.strip("'")


@dataclass(eq=False)
class NestedTooDeeply(CompilationError, RecursionError):
    """Blocks, expressions or calls that are nested more deeply than the compiler supports."""

    code = "TW126"
    template = "{what} nests too deeply{limit}"
    hint_template = "split it: assign sub-expressions to variables, or move them to functions"

    what: str
    most: int | None = None
    """The maximum number of levels, if it is fixed."""

    @property
    def limit(self) -> str:
        """The limit, as printed."""
        return "" if self.most is None else f": the limit is {self.most} levels"


@dataclass(eq=False)
class NotOneFunction(CompilationError, ValueError):
    """Tile IR to compile or run with no function or several."""

    code = "TW131"
    template = "expected tile IR with one function, found {found}"
    hint_template = "a kernel is one function: put each function in its own text"

    names: tuple[str, ...]

    @property
    def found(self) -> str:
        """The functions of the text, as printed."""
        return listed(self.names[:8]) if self.names else "none"


@dataclass(eq=False)
class TileParameter(CompilationError, TypeError):
    """Tile IR to compile or run with a parameter that no launch can pass."""

    code = "TW133"
    template = "parameter %{parameter} of the kernel @{kernel} is {type}, a tile"
    hint_template = "pass a pointer, and load the tile: kernels take numbers and pointers"

    kernel: str
    parameter: str
    type: object


@dataclass(eq=False)
class InvalidTileIR(CompilationError, ValueError):
    """Tile IR that parses, but violates a rule of its ops."""

    code = "TW132"
    template = "the tile IR is invalid:\n{report}"

    report: str
    """The text of the functions, with each message below its op."""


@dataclass(eq=False)
class TileIRSyntaxError(CompilationError, ValueError):
    """Text that is not tile IR."""

    code = "TW130"
    template = "expected {expected}, found {found}"

    expected: str
    found: str
