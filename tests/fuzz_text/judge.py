"""What becomes of a fuzzed text: how far it gets, or the defect that it finds.

A text may be refused by any TilewrightError but that of a compiler bug. Everything else that is
raised is a defect, as is tile IR that prints, reads and prints again differently.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fuzz_text.c_mutations import c_text
from tests.fuzz_text.smaller import smaller
from tests.fuzz_text.tile_mutations import tile_text
from tilewright.backends import GPUTarget, load_ops
from tilewright.c import CSource
from tilewright.compiler import IRSource, compile
from tilewright.frontend.semantics import FrontendOptions
from tilewright.ir import Module, parse_module, print_module, report
from tilewright.support import settings
from tilewright.support.errors import InternalCompilerError, TilewrightError
from tilewright.transforms import SHARED

REFUSED, PARSED, VALID, PASSED, COMPILED = "refused", "parsed", "valid", "passed", "compiled"
STAGES = (REFUSED, PARSED, VALID, PASSED, COMPILED)
"""How far a text got. parsed: it is a sentence; valid: it means something; passed: the passes that
all back ends share have run; compiled: a sample, to machine code of this CPU and to PTX."""

GPU = GPUTarget("cuda", 90, 32)
load_ops()  # a case depends on all ops that there are, whatever ran before
SECONDS = 20.0
"""For making a text small."""


class Defect(Exception):
    """What is found is no designed error."""


def judge_tile(text: str, compiled: bool) -> str:
    """How far a text of tile IR gets."""
    try:
        module = parse_module(text, locate=True)
    except TilewrightError:
        return REFUSED
    printed = print_module(module)
    if print_module(parse_module(printed)) != printed:
        raise Defect("print, parse and print again differ")
    if report(module) is not None or len(module.functions) != 1:
        return PARSED
    if report(module, SHARED.legal_before) is not None:
        # With layouts: what only later passes are given.
        return _compiled(printed) if compiled else VALID
    return _through_passes(module, printed, compiled)


def judge_c(text: str, defines: dict[str, object], compiled: bool) -> str:
    """How far a source in Triton-C gets."""
    try:
        source = CSource(text, defines)
    except TilewrightError as problem:
        _check_design(problem)
        return REFUSED
    try:
        module = source.lower(FrontendOptions())
    except TilewrightError as problem:
        _check_design(problem)
        if problem.loc is None:
            raise Defect(f"an error without a place: {problem}") from problem
        return PARSED
    problems = report(module)
    if problems is not None:
        raise Defect(f"the front end makes invalid tile IR:\n{problems}")
    return _through_passes(module, print_module(module), compiled)


def _check_design(problem: TilewrightError) -> None:
    if isinstance(problem, InternalCompilerError):
        raise Defect(str(problem)) from problem
    if "Traceback" in str(problem):
        raise Defect(f"a traceback in a message: {problem}") from problem


def _through_passes(module: Module, text: str, compiled: bool) -> str:
    try:
        with settings().compilation.scope(verify=True):
            SHARED.run(module)
    except TilewrightError as problem:
        _check_design(problem)
        return VALID
    return _compiled(text) if compiled else PASSED


def _compiled(text: str) -> str:
    """Compile for this CPU, and for a GPU of which no device is needed."""
    with tempfile.TemporaryDirectory() as folder, settings().cache.scope(dir=Path(folder)):
        file = Path(folder) / "fuzzed.tile"
        file.write_text(text, encoding="utf-8")
        reached = [_compiled_for(file, *target) for target in ((None, "asm"), (GPU, "ptx"))]
    return COMPILED if all(reached) else PASSED


def _compiled_for(file: Path, target: GPUTarget | None, artifact: str) -> bool:
    try:
        with settings().cache.scope(always_compile=True):
            _ = compile(IRSource(file), target).asm[artifact]
    except TilewrightError as problem:
        _check_design(problem)
        return False
    return True


@dataclass(frozen=True)
class Case:
    """A text. judge: how far this text gets, or a smaller one."""

    text: str
    judge: Callable[[str], str]


def tile_case(seed: str, compiled: bool) -> Case:
    """A text of tile IR."""
    return Case(tile_text(Random(seed)), lambda text: judge_tile(text, compiled))


def c_case(seed: str, compiled: bool) -> Case:
    """A source in Triton-C; its macros are in its first line, as a comment."""
    made = c_text(Random(seed))

    def judge(text: str) -> str:
        return judge_c(text, made.defines, compiled)

    return Case(f"// {made.defines}\n{made.text}", judge)


CASES = {"tile": tile_case, "c": c_case}


def reached(case: Case) -> str:
    """The stage that a case gets to. Errors: Defect, with the text cut down to what shows it."""
    try:
        return case.judge(case.text)
    except Exception as problem:
        what = _words(problem)
        text = smaller(case.text, lambda t: _fails_alike(case, t, what), SECONDS)
        raise Defect(f"{what}\n\n{text}") from problem


def _words(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"


def _fails_alike(case: Case, text: str, what: str) -> bool:
    try:
        case.judge(text)
    except Exception as problem:
        return _words(problem)[:60] == what[:60]
    return False
