"""The first argument of every implementation: emitter, options, caller of device functions."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol

from tilewright.frontend.frontend_options import FrontendOptions
from tilewright.ir import (
    MAX_REGIONS,
    ArithmeticBuilder,
    Block,
    Builder,
    Emitter,
    Op,
    Rewriter,
    Value,
)
from tilewright.ir.types import Type
from tilewright.language import DeviceFunction, tensor
from tilewright.ops import YieldOp
from tilewright.support import caller_outside, show_warnings
from tilewright.support.diagnostics import Diagnostic, Severity, SourceLoc, render
from tilewright.support.errors import (
    BeyondTriton,
    CompilationError,
    NestedTooDeeply,
)


def refuse_extension(options: FrontendOptions, construct: str, loc: SourceLoc | None) -> None:
    """Under `strict_triton`, refuse an extension of Triton's language. Errors: BeyondTriton."""
    if options.strict_triton:
        raise BeyondTriton(construct, loc=loc)


def warn_once(message: str, loc: SourceLoc | None, hint: str) -> None:
    """Warn at a location: once for a line, unless Python's filters differ."""
    shown = render(Diagnostic(Severity.WARNING, message, loc, hint=hint))
    # The interpreter has no location: the kernel itself is the caller there.
    file, line = caller_outside() if loc is None else (loc.file, loc.line)
    show_warnings([(shown, file, line)])


class FunctionCaller(Protocol):
    """How a front end inlines a function that is written in the language."""

    def call(
        self, ctx: Context, fn: DeviceFunction, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """The result of `fn`, its ops emitted through `ctx`."""
        ...


class Context(ArithmeticBuilder):
    """The emitter that ops go to, the options, and the caller of device functions.

    `emitter` is exchanged while a region is built: do not keep a reference to it.
    """

    __slots__ = ("_depth", "emitter", "functions", "options")

    def __init__(
        self, emitter: Emitter, options: FrontendOptions, functions: FunctionCaller
    ) -> None:
        self.emitter = emitter
        self.options = options
        self.functions = functions
        self._depth = 0

    def refuse_extension(self, construct: str) -> None:
        """Under `strict_triton`, refuse an extension of Triton's language. Errors: BeyondTriton."""
        refuse_extension(self.options, construct, self.loc)

    @property
    def loc(self) -> SourceLoc | None:
        """The location in the user's source that is being lowered."""
        return self.emitter.loc

    def value(self, op: Op) -> Value:
        """Emit an op with one result."""
        return self.emitter.value(op)

    def tensor(self, op: Op) -> tensor:
        """Emit an op with one result, seen as a tensor."""
        return tensor(self.emitter.value(op))

    def fail(
        self,
        error: Callable[..., CompilationError],
        *fields: object,
        notes: tuple[str, ...] = (),
        triton: str | None = None,
    ) -> NoReturn:
        """Raise a designed error with its fields in order, at the current location.

        triton: Triton's message, if the class of the error does not have it.
        """
        raise error(*fields, loc=self.emitter.loc, notes=notes, triton=triton)

    @contextmanager
    def into(self, block: Block) -> Generator[Block]:
        """Emit into `block` while the context manager is open; the location carries over.

        Errors: NestedTooDeeply.
        """
        # Later passes recurse over regions; a limit here gives an error with the user's line.
        if self._depth >= MAX_REGIONS:
            self.fail(NestedTooDeeply, "control flow", MAX_REGIONS)
        outer = self.emitter
        self.emitter = Builder(block, loc=outer.loc)
        self._depth += 1
        try:
            yield block
        finally:
            self._depth -= 1
            # The inner emitter may be at a later line.
            outer.loc = self.emitter.loc
            self.emitter = outer

    def region(
        self, arg_types: Sequence[Type], body: Callable[[list[tensor]], Sequence[tensor]]
    ) -> Block:
        """A block that yields the results of `body` for its arguments."""
        block = Block(tuple(arg_types))
        outer = self.emitter
        self.emitter = Builder(block, loc=outer.loc)
        try:
            # Unlike `into`, the location is not carried back: the region is one operand of its op.
            results = body([tensor(arg) for arg in block.args])
            self.emitter.emit(YieldOp(tuple(result.handle for result in results)))
        finally:
            self.emitter = outer
        return block


def erase_ops(block: Block) -> None:
    """Erase the ops of a block that no op owns, so that their operands lose these uses."""
    # Backwards: an op can be erased once its results have no uses.
    for op in reversed(block):
        Rewriter.drop(op)
