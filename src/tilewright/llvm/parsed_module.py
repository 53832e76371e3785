"""Modules of LLVM IR in memory."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.llvm.library_calls import Reference, call, filled_text, optional_text, text_at


class Function:
    """A function of a module, which the caller must keep alive.

    attributes: of the function, its result and its parameters, as LLVM prints them
    """

    def __init__(self, pointer: int) -> None:
        self._as_parameter_ = pointer

    @property
    def is_declaration(self) -> bool:
        """Whether it has no body."""
        return bool(call("IsDeclaration", self))

    @property
    def attributes(self) -> list[str]:
        """See the class."""
        found = Reference(call("FunctionAttributesIter", self), "DisposeAttributeListIter")
        return [text_at(pointer) for pointer in _each("AttributeListIterNext", found)]


class ParsedModule(Reference):
    """A module in a separate context, which is freed with it. RuntimeError for text that LLVM's
    parser rejects."""

    def __init__(self, text: str) -> None:
        context = Reference(call("ContextCreate"), "ContextDispose")
        pointer, problem = optional_text("ParseAssembly", context, text.encode())
        if problem:
            raise RuntimeError(f"LLVM IR parsing error\n{problem}")
        super().__init__(pointer, "DisposeModule", context)

    def __str__(self) -> str:
        return filled_text("PrintModuleToString", self)

    def verify(self) -> None:
        """Raise RuntimeError if LLVM's verifier rejects the module."""
        failed, problem = optional_text("VerifyModule", self)
        if failed:
            raise RuntimeError(problem)

    def set_target(self, triple: str, data_layout: str) -> None:
        """Set the target triple and data layout, for passes and code generators."""
        call("SetTarget", self, triple.encode())
        call("SetDataLayout", self, data_layout.encode())

    @property
    def functions(self) -> list[Function]:
        """All functions, including declarations."""
        found = Reference(call("ModuleFunctionsIter", self), "DisposeFunctionsIter")
        return [Function(pointer) for pointer in _each("FunctionsIterNext", found)]


def _each(following: str, iterator: Reference) -> Iterator[int]:
    while (pointer := call(following, iterator)) is not None:
        yield pointer
