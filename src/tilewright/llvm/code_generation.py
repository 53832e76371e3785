"""From LLVM IR text to machine code: parse, verify, optimise, emit.

Kernels arrive already vectorised, with invariant code hoisted, so LLVM's vectorisers and unrolling
are always off, and the pipeline is chosen by what it costs. Measured on an element-wise kernel of
571 lines (Zen 5): parsing 1.2 ms, verifying 0.4, code generation 10 to 12, and before it

    level 0   0.0 ms   nothing
    level 1   2.4 ms   SROA, instcombine, simplifycfg, value numbering; the default
    level 2   8.5 ms   LLVM's O1 function simplification: adds invariant motion, loop rotation,
                       induction variables, which make code generation slower too
    level 3  16.2 ms   the whole of O3: inlining of functions in the module, the rest as level 2

Value numbering takes time that grows faster than the square of a function's length (160 stores
whose addresses depend on each other: 16 s), so it is left out where one is long; so is scheduling
after register allocation. It also ends the process by an assertion where a value has been looked
at 100 times, as happens in about 100 loops behind each other, so it is left out there too.

Products of blocks of matrices, which are marked `noinline`, are written as they are to be compiled:
on x86-64 nothing runs on them before code generation. Loops of 81 kernels have 35,056 instructions
for 35,111, with as many spills, and the passes take 2 ms of a product for 6.

On x86-64, whose addresses take an index, strength reduction of loops is left out, a pass of the
code generator: it and what it leaves to later passes are a third of code generation (add 7.3 and
6.0 ms, softmax 16 and 11, a product of matrices 47 and 28). So is value numbering (0.4, 0.9 and 3
ms), since `Code` repeats nothing within a block. The code is as fast without either (0.99 to 1.02
on 18 kernels on Zen 5).

On a masked row sum whose invariants are hoisted, all levels run equally fast (10.6 to 11.0 us); one
that reloads its arguments in the loop takes 16 us at level 1 and 13.3 at level 2.
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
from tilewright.support import cached_property
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

__all__ = [
    "CompiledObject",
    "LlvmError",
    "compile_ir",
    "emit_assembly",
    "is_long",
    "leave_out_passes",
]

_DEFAULT_LEVEL = 1

LONG_FUNCTION = 8000
"""Lines of IR from which passes of more than linear time are left out; only generated kernels
are that long."""

MANY_JOINS = 64
"""Blocks with phis from which a function is not value numbered. LLVM fails at about 100 in a chain,
and no kernel of the corpus has as many."""

# A label and a phi right behind it, since phis stand first in a block.
_JOIN = re.compile(r":\n *%\S+ = phi ")


class LlvmError(Exception):
    """LLVM refused text or an object that this compiler made: a bug of the compiler.

    `detail` is LLVM's own message; `ir` the text it is about, empty where there is none.
    """

    def __init__(self, detail: str, ir: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.ir = ir


@dataclass(frozen=True)
class CompiledObject:
    """Machine code of one module, and the text it came from.

    obj:    the object file, for `object_loader.load_object` or a cache
    source: the LLVM IR text as it was given
    """

    obj: bytes
    source: str
    target: TargetSpec
    level: int

    @cached_property
    def llir(self) -> str:
        """The IR after optimisation; computed on first use."""
        return str(_optimised(self.source, self.target, self.level))

    @cached_property
    def asm(self) -> str:
        """The assembly text (PTX for NVIDIA targets); computed on first use."""
        return emit_assembly(self.source, self.target, self.level)


def compile_ir(
    text: str, target: TargetSpec, level: int = _DEFAULT_LEVEL, *, inline: bool = False
) -> CompiledObject:
    """Compile the module `text` to an object file for `target`.

    level: 0-3, see the head of this module; inline: first inline the functions that are marked
    `alwaysinline`, which levels 0 to 2 do not. Raises LlvmError for text that LLVM's parser or
    verifier refuses. What only code generation finds out (an instruction that the target does
    not have, bad inline assembly) ends the process: LLVM offers no way to catch it.
    """
    module = _optimised(text, target, level, inline)
    with LLVM_LOCK:
        machine = _code_generator(_affordable(text, target))
        return CompiledObject(machine.emit_object(module), text, target, level)


def emit_assembly(text: str, target: TargetSpec, level: int = _DEFAULT_LEVEL) -> str:
    """Compile the module `text` to assembly text; errors as in `compile_ir`."""
    module = _optimised(text, target, level)
    with LLVM_LOCK:
        return _code_generator(_affordable(text, target)).emit_assembly(module)


def _is_lean(target: TargetSpec) -> bool:
    """Whether value numbering and strength reduction of loops are left out."""
    return target.triple.startswith("x86_64")


_reduces_strength = True
"""As LLVM is set now, for the whole process."""


def _code_generator(target: TargetSpec) -> TargetMachine:
    """LLVM's code generator, as it is to be set for the target; under LLVM's lock."""
    global _reduces_strength
    wanted = not _is_lean(target)
    if wanted != _reduces_strength:
        set_option(f"--disable-lsr={str(not wanted).lower()}")
        _reduces_strength = wanted
    return target_machine(target)


def _optimised(text: str, target: TargetSpec, level: int, inline: bool = False) -> ParsedModule:
    module = _parsed(text)
    # Set here, so that texts need no target.
    module.set_target(target_machine(target).triple, data_layout(target))
    if inline:
        _inline_passes().run(module, _builder(target, speed=1))
    unnumbered = _is_lean(target) or is_long(text) or _has_many_joins(text)
    quick = _run_quick_without_numbering if unnumbered else _run_quick
    run = quick if level == 1 else _PIPELINES[level]
    run(module, target)
    return module


def _affordable(text: str, target: TargetSpec) -> TargetSpec:
    """The target, with less effort of the code generator where a function is long."""
    return replace(target, effort=1) if target.effort > 1 and is_long(text) else target


def is_long(text: str) -> bool:
    """Whether a function of a module has so much code that not every pass can be afforded."""
    # By function, as passes run.
    return any(part.count("\n") > LONG_FUNCTION for part in text.split("\ndefine "))


def leave_out_passes(*names: str) -> None:
    """Run passes of LLVM's code generators no more in this process, by their names in LLVM.

    There is no way back, so code would depend on what was compiled before: for processes that
    compile nothing else.
    """
    set_option(f"--opt-disable={','.join(names)}")


def _has_many_joins(text: str) -> bool:
    """Whether value numbering may give up on a function."""
    return any(len(_JOIN.findall(part)) > MANY_JOINS for part in text.split("\ndefine "))


def _parsed(text: str) -> ParsedModule:
    """A verified module in a context of its own, which dies with it."""
    try:
        module = ParsedModule(text)
        module.verify()
    except synchronous(RuntimeError) as error:
        raise LlvmError(str(error), text) from None
    return module


class _Builder:
    """A pass builder for a target.

    llvmlite 0.50 frees neither builders nor managers of passes (1.5 and 2.5 KB), so they are
    shared. But each run leaves callbacks with its builder, which later runs call too (0.5 us each);
    hence `runs`.
    """

    def __init__(self, target: TargetSpec, speed: int) -> None:
        self.passes = PassBuilder(target_machine(target), speed)
        self.runs = 0


# Bounds both: the memory lost for each run, and the callbacks of one (16 us).
_MAX_RUNS = 32
_builders: dict[tuple[TargetSpec, int], _Builder] = {}


def _builder(target: TargetSpec, speed: int) -> PassBuilder:
    """A builder for one run; a new one replaces it after `_MAX_RUNS`."""
    with LLVM_LOCK:
        builder = _builders.get((target, speed))
        if builder is None or builder.runs >= _MAX_RUNS:
            builder = _builders[target, speed] = _Builder(target, speed)
        builder.runs += 1
        return builder.passes


@cache
def _inline_passes() -> ModulePasses:
    manager = ModulePasses()
    manager.add("AlwaysInliner")
    return manager


def _run_nothing(module: ParsedModule, target: TargetSpec) -> None:
    """Level 0."""


def _run_quick(module: ParsedModule, target: TargetSpec) -> None:
    """Level 1."""
    _quick_passes(numbering=True).run(module, _builder(target, speed=1))


def _run_quick_without_numbering(module: ParsedModule, target: TargetSpec) -> None:
    """Level 1 without the pass that takes the square of a function's length.

    Functions that are marked `noinline`, products of blocks, are left as they are: they are written
    as they are to be compiled.
    """
    functions = [function for function in module.functions if not function.is_declaration]
    others = [function for function in functions if not _is_as_written(function)]
    if len(others) == len(functions):
        _quick_passes(numbering=False).run(module, _builder(target, speed=1))
        return
    for function in others:
        _quick_function_passes().run(function, _builder(target, speed=1))


def _is_as_written(function: Function) -> bool:
    return any("noinline" in attributes for attributes in function.attributes)


@cache
def _quick_passes(numbering: bool) -> ModulePasses:
    return _with_quick_passes(ModulePasses(), numbering)


@cache
def _quick_function_passes() -> FunctionPasses:
    return _with_quick_passes(FunctionPasses(), numbering=False)


_Manager = TypeVar("_Manager", ModulePasses, FunctionPasses)


def _with_quick_passes(manager: _Manager, numbering: bool) -> _Manager:
    manager.add("SROA", "InstCombine", "SimplifyCFG", *(["NewGVN"] if numbering else []))
    return manager


def _run_simplification(module: ParsedModule, target: TargetSpec) -> None:
    """Level 2."""
    builder = _builder(target, speed=1)
    manager = builder.simplification()
    for function in module.functions:
        if not function.is_declaration:
            manager.run(function, builder)


def _run_everything(module: ParsedModule, target: TargetSpec) -> None:
    """Level 3."""
    builder = _builder(target, speed=3)
    builder.whole_pipeline().run(module, builder)


_PIPELINES = (_run_nothing, _run_quick, _run_simplification, _run_everything)
