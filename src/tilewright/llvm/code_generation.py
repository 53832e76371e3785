"""Code generation by LLVM: parse, verify, optimise and emit IR text.

Kernels arrive vectorised, with invariant code hoisted, so LLVM's vectorisers and unrolling are
always off, and the passes are chosen by their cost (docs/adr/0040-first-compile-cost.md): SROA,
instcombine, simplifycfg and value numbering.

The time of value numbering grows faster than the square of a function's length, so long functions
go without it, and without scheduling after register allocation. LLVM also aborts by an assertion
where value numbering has visited a value 100 times, as in about 100 loops in sequence, so such
functions go without it as well.

Microkernels of matrix multiplication, which are marked `noinline`, are emitted in their final form:
on x86-64 no pass runs on them before code generation.

On x86-64, whose addresses take an index, the code generator's loop strength reduction is disabled:
with the work that it causes in later passes it takes a third of code generation. Value numbering is
disabled too, since `Code` repeats nothing within a block. The code is as fast without either.
"""

import re
from dataclasses import replace
from functools import cache
from typing import TypeVar

from tilewright.llvm.code_targets import TargetSpec
from tilewright.llvm.llvm_lock import LLVM_LOCK
from tilewright.llvm.parsed_module import Function, ParsedModule
from tilewright.llvm.pass_managers import FunctionPasses, ModulePasses, PassBuilder
from tilewright.llvm.target_machines import (
    TargetMachine,
    data_layout,
    set_option,
    target_machine,
)
from tilewright.support.asynchronous_exceptions import synchronous

LONG_FUNCTION = 8000
"""Lines of IR from which passes of superlinear time are left out; only generated kernels are that
long."""

MANY_JOINS = 64
"""Number of blocks with phis from which a function is not value numbered. LLVM fails at about 100
in a chain, and no kernel of the corpus has as many."""

# A label followed by a phi: phis come first in a block.
_JOIN = re.compile(r":\n *%\S+ = phi ")


class LlvmError(Exception):
    """LLVM rejected text or an object that this compiler emitted: a bug of the compiler.

    `detail` is LLVM's own message; `ir` the rejected text, empty where there is none.
    """

    def __init__(self, detail: str, ir: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.ir = ir


def compile_ir(
    text: str, target: TargetSpec, *, optimise: bool = True, inline: bool = False
) -> bytes:
    """Compile the module `text` to an object file for `target`.

    optimise: whether passes run on it; inline: first inline the functions that are marked
    `alwaysinline`. Raises LlvmError for text that LLVM's parser or verifier rejects. Errors of code
    generation (an instruction that the target lacks, bad inline assembly) end the process: LLVM
    offers no way to catch them.
    """
    module = optimised(text, target, optimise, inline)
    with LLVM_LOCK:
        return _code_generator(_affordable(text, target)).emit_object(module)


def emit_assembly(text: str, target: TargetSpec, *, optimise: bool = True) -> str:
    """Compile the module `text` to assembly text; errors as in `compile_ir`."""
    module = optimised(text, target, optimise)
    with LLVM_LOCK:
        return _code_generator(_affordable(text, target)).emit_assembly(module)


def _is_lean(target: TargetSpec) -> bool:
    """Whether value numbering and strength reduction of loops are left out."""
    return target.triple.startswith("x86_64")


_reduces_strength = True
"""LLVM's current setting, which is global to the process."""


def _code_generator(target: TargetSpec) -> TargetMachine:
    """LLVM's code generator, configured for the target, under LLVM's lock."""
    global _reduces_strength
    wanted = not _is_lean(target)
    if wanted != _reduces_strength:
        set_option(f"--disable-lsr={str(not wanted).lower()}")
        _reduces_strength = wanted
    return target_machine(target)


def optimised(
    text: str, target: TargetSpec, optimise: bool = True, inline: bool = False
) -> ParsedModule:
    """The module of a text after passes, as in `compile_ir`."""
    module = _parsed(text)
    # Set here, so that the text needs no target.
    module.set_target(target_machine(target).triple, data_layout(target))
    if inline:
        _inline_passes().run(module, _builder(target))
    unnumbered = _is_lean(target) or is_long(text) or _has_many_joins(text)
    if optimise and unnumbered:
        _run_without_numbering(module, target)
    elif optimise:
        _passes(numbering=True).run(module, _builder(target))
    return module


def _affordable(text: str, target: TargetSpec) -> TargetSpec:
    """The target, with less effort of the code generator for long functions."""
    return replace(target, effort=1) if target.effort > 1 and is_long(text) else target


def is_long(text: str) -> bool:
    """Whether a function of a module is too long for passes of superlinear time."""
    # By function, since passes run per function.
    return any(part.count("\n") > LONG_FUNCTION for part in text.split("\ndefine "))


def leave_out_passes(*names: str) -> None:
    """Disable passes of LLVM's code generators in this process, by their names in LLVM.

    They cannot be enabled again, so later code would differ: only for processes that compile
    nothing else.
    """
    set_option(f"--opt-disable={','.join(names)}")


def _has_many_joins(text: str) -> bool:
    """Whether value numbering may give up on a function."""
    return any(len(_JOIN.findall(part)) > MANY_JOINS for part in text.split("\ndefine "))


def _parsed(text: str) -> ParsedModule:
    """A verified module in a separate context, which is freed with it."""
    try:
        module = ParsedModule(text)
        module.verify()
    except synchronous(RuntimeError) as error:
        raise LlvmError(str(error), text) from None
    return module


class _Builder:
    """A pass builder for a target.

    llvmlite 0.50 frees neither builders nor managers of passes (1.5 and 2.5 KB), so they are
    shared. Each run leaves callbacks in its builder, which later runs call as well (0.5 us each);
    hence `runs`.
    """

    def __init__(self, target: TargetSpec) -> None:
        self.passes = PassBuilder(target_machine(target))
        self.runs = 0


# Bounds the memory lost per run, and the callbacks of a builder (16 us).
_MAX_RUNS = 32
_builders: dict[TargetSpec, _Builder] = {}


def _builder(target: TargetSpec) -> PassBuilder:
    """A builder for one run; a new one replaces it after `_MAX_RUNS`."""
    with LLVM_LOCK:
        builder = _builders.get(target)
        if builder is None or builder.runs >= _MAX_RUNS:
            builder = _builders[target] = _Builder(target)
        builder.runs += 1
        return builder.passes


@cache
def _inline_passes() -> ModulePasses:
    manager = ModulePasses()
    manager.add("AlwaysInliner")
    return manager


def _run_without_numbering(module: ParsedModule, target: TargetSpec) -> None:
    """The passes without value numbering, whose time is quadratic in a function's length.

    Functions that are marked `noinline`, the microkernels, are emitted in their final form: no pass
    runs on them.
    """
    functions = [function for function in module.functions if not function.is_declaration]
    others = [function for function in functions if not _is_as_written(function)]
    if len(others) == len(functions):
        _passes(numbering=False).run(module, _builder(target))
        return
    for function in others:
        _function_passes().run(function, _builder(target))


def _is_as_written(function: Function) -> bool:
    return any("noinline" in attributes for attributes in function.attributes)


@cache
def _passes(numbering: bool) -> ModulePasses:
    return _with_passes(ModulePasses(), numbering)


@cache
def _function_passes() -> FunctionPasses:
    return _with_passes(FunctionPasses(), numbering=False)


_Manager = TypeVar("_Manager", ModulePasses, FunctionPasses)


def _with_passes(manager: _Manager, numbering: bool) -> _Manager:
    manager.add("SROA", "InstCombine", "SimplifyCFG", *(["NewGVN"] if numbering else []))
    return manager
