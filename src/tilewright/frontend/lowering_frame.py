"""Lowering of a function in every front end: the session, the frame.

A *frame* is one activation of one function: the kernel, or a call that is being inlined into it.
The *session* is the state that all frames of one kernel share. Each front end derives both for its
language; its handlers are plain functions `handler(frame, node)`, one for each kind of node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from typing import Generic, TypeVar

from tilewright.frontend.semantics.semantic_context import Context
from tilewright.ir import Block
from tilewright.support import SourceLoc, errors
from tilewright.support.data_class import dataclass

Function = TypeVar("Function")
Node = TypeVar("Node")


_DEEPEST_RECURSION = 100
"""Most levels of calls of one function: each is inlined into the one around it."""


@dataclass(slots=True)
class LoweringSession(Generic[Function]):
    """State that all frames of one kernel share.

    stack: the functions being lowered, outermost first; signatures: types and compile-time values
    of their arguments.
    """

    ctx: Context
    stack: list[Function] = field(default_factory=list[Function], init=False)
    signatures: list[object] = field(default_factory=list[object], init=False)

    @contextmanager
    def entered(self, function: Function, signature: object = None) -> Generator[None]:
        """The body of `function` is lowered while the context manager is open."""
        self.stack.append(function)
        self.signatures.append(signature)
        try:
            yield
        finally:
            self.stack.pop()
            self.signatures.pop()

    def refuse_recursion(
        self,
        function: Function,
        name_of: Callable[[Function], str],
        caller: SourceLoc | None,
        signature: object = None,
    ) -> None:
        """Refuse a call like one that is being lowered: inlining it would not terminate.

        Errors: RecursionNotSupported, with the chain of calls.
        """
        if function not in self.stack:
            return
        active = list(zip(self.stack, self.signatures, strict=True))
        # The count is for compile-time arguments that grow without bound.
        if (function, signature) in active or self.stack.count(function) > _DEEPEST_RECURSION:
            calls = [*self.stack[self.stack.index(function) :], function]
            shown = calls if len(calls) < 9 else [*calls[:7], calls[-1]]
            chain = " calls ".join(map(name_of, shown))
            error = errors.RecursionNotSupported(name_of(function), chain, loc=caller)
            if signature is not None:
                error.advice = "calls are inlined: let a compile-time value end it, or write a loop"
            raise error


class LoweringFrame(ABC, Generic[Node]):
    """One function being lowered. caller: the location of its call, None for the kernel."""

    __slots__ = ("caller", "ctx")

    def __init__(self, ctx: Context, caller: SourceLoc | None) -> None:
        self.ctx = ctx
        self.caller = caller

    @abstractmethod
    def loc(self, node: Node) -> SourceLoc:
        """The location of a node in the user's file, with the chain of calls."""

    def at(self, node: Node) -> Context:
        """The context, with `node` as the location of ops and errors from now on."""
        ctx = self.ctx
        ctx.emitter.loc = self.loc(node)
        return ctx

    def into(self, block: Block) -> AbstractContextManager[Block]:
        """Emit into `block` while the context manager is open."""
        return self.ctx.into(block)
