"""LLVM's passes, and what runs them."""

from __future__ import annotations

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


class ModulePasses(Reference):
    """Passes over a module, none at first.

    Names of passes are those of the library: SROA, InstCombine, SimplifyCFG, NewGVN, AlwaysInliner
    """

    def __init__(self, pointer: int | None = None) -> None:
        made = pointer or call("CreateNewModulePassManager")
        super().__init__(made, "DisposeNewModulePassManger")

    def add(self, *names: str) -> None:
        """Append passes."""
        for name in names:
            call(f"module_Add{name}Pass", self)

    def run(self, module: ParsedModule, builder: PassBuilder) -> None:
        """Run them."""
        call("RunNewModulePassManager", self, module, builder)


class FunctionPasses(Reference):
    """Passes over a function; names as of ModulePasses, without AlwaysInliner."""

    def __init__(self, pointer: int | None = None) -> None:
        made = pointer or call("CreateNewFunctionPassManager")
        super().__init__(made, "DisposeNewFunctionPassManger")

    def add(self, *names: str) -> None:
        """Append passes."""
        for name in names:
            call(f"function_Add{name}Pass", self)

    def run(self, function: Function, builder: PassBuilder) -> None:
        """Run them."""
        call("RunNewFunctionPassManager", self, function, builder)
