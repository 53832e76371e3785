"""LLVM's passes, and what runs them."""

from __future__ import annotations

from typing import ClassVar

from tilewright.llvm.library_calls import Reference, call
from tilewright.llvm.parsed_module import Function, ParsedModule

__all__ = ["FunctionPasses", "ModulePasses", "PassBuilder"]


class PassBuilder(Reference):
    """What passes are run by, and LLVM's own pipelines of a level from 0 to 3, without its
    vectorisers and its unroller."""

    def __init__(self, machine: Reference, level: int) -> None:
        tuning = Reference(call("CreatePipelineTuningOptions"))
        for what in ("LoopVectorization", "SLPVectorization", "LoopUnrolling"):
            call(f"PTOSet{what}", tuning, False)
        # never freed: the library frees neither builders nor what they need
        super().__init__(call("CreatePassBuilder", machine, tuning), "", machine, tuning)
        self._level = level

    def whole_pipeline(self) -> ModulePasses:
        """All of the level, for a module."""
        return ModulePasses(call("buildPerModuleDefaultPipeline", self, self._level))

    def simplification(self) -> FunctionPasses:
        """What the level does to simplify a function."""
        return FunctionPasses(call("buildFunctionSimplificationPipeline", self, self._level))


class _Passes(Reference):
    """Passes, none at first; `_over` is what they run over, in names of the library's functions.

    Names of passes are those of the library: SROA, InstCombine, SimplifyCFG, NewGVN, AlwaysInliner
    """

    _over: ClassVar[str]

    def __init__(self, pointer: int | None = None) -> None:
        made = pointer or call(f"CreateNew{self._over}PassManager")
        super().__init__(made, f"DisposeNew{self._over}PassManger")

    def add(self, *names: str) -> None:
        """Append passes."""
        for name in names:
            call(f"{self._over.lower()}_Add{name}Pass", self)

    def run(self, what: Function | ParsedModule, builder: PassBuilder) -> None:
        """Run them."""
        call(f"RunNew{self._over}PassManager", self, what, builder)


class ModulePasses(_Passes):
    """Passes over a module."""

    _over = "Module"


class FunctionPasses(_Passes):
    """Passes over a function, AlwaysInliner not among them."""

    _over = "Function"
