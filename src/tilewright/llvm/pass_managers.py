"""Pass managers of LLVM, and its pass builder."""

from __future__ import annotations

from typing import ClassVar

from tilewright.llvm.library_calls import Reference, call
from tilewright.llvm.parsed_module import Function, ParsedModule


class PassBuilder(Reference):
    """A pass builder, without vectorisers and unroller."""

    def __init__(self, machine: Reference) -> None:
        tuning = Reference(call("CreatePipelineTuningOptions"))
        for what in ("LoopVectorization", "SLPVectorization", "LoopUnrolling"):
            call(f"PTOSet{what}", tuning, False)
        # never freed: the library frees neither builders nor their parts
        super().__init__(call("CreatePassBuilder", machine, tuning), "", machine, tuning)


class _Passes(Reference):
    """A list of passes, initially empty; `_over`: their unit, as in the names of library functions.

    Names of passes are those of the library: SROA, InstCombine, SimplifyCFG, NewGVN, AlwaysInliner
    """

    _over: ClassVar[str]

    def __init__(self) -> None:
        made = call(f"CreateNew{self._over}PassManager")
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
    """Passes over a function, without AlwaysInliner."""

    _over = "Function"
