"""Passes, and pipelines that order them.

    @dataclass(frozen=True)
    class Unroll(Pass, name="unroll"):
        limit: int = 8

        def run(self, function: Function) -> bool: ...

    pipeline = Pipeline("cpu", (Step(Unroll(limit=4), "unroll short loops"),))
    pipeline.run(module)

A pass is a frozen dataclass; its fields are its options, and the text of both is `unroll{limit=4}`.
A pipeline is a list of steps, each with a sentence that describes it and the properties of the IR
that it needs, gives and ends (pipeline_order.py); a pipeline in a wrong order raises an error when
it is built. Running it verifies the IR, against the latest contract among the properties, before
the first pass and after the last. With the setting `compilation.verify`, it verifies after each
pass that changes the IR, and checks the properties that the pipeline ensures. Every pass is
reported to the recorder of support/event_stream.py. The text `a,b{x=1}` of a pipeline parses, so
that a failure names the passes that reproduce it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import Field, fields
from time import perf_counter
from typing import Any, ClassVar

from tilewright.ir.core import Function, Module
from tilewright.ir.pass_table import pass_modules
from tilewright.ir.pipeline_order import Declared, Property, require_order
from tilewright.ir.printer import print_function
from tilewright.ir.verifier import Contract, report
from tilewright.support import (
    PassEnded,
    PassStarted,
    Recorder,
    current_recorder,
    import_late,
    settings,
)
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass
from tilewright.support.errors import (
    InternalCompilerError,
    InvalidOption,
    TilewrightError,
    UnknownName,
)

PASSES: dict[str, type[Pass]] = {}
"""Every pass class that has been imported, by name."""

_STEP = re.compile(r"\s*([\w-]+)\s*(?:\{([^{}]*)\})?\s*(?:,|$)")


@dataclass(frozen=True)
class Pass:
    """Base class of passes. A pass with options is a frozen dataclass; each field is an option."""

    name: ClassVar[str] = ""

    def __init_subclass__(cls, name: str = "") -> None:
        if name:
            assert name not in PASSES, f"two passes are called {name}"
            cls.name = name
            PASSES[name] = cls

    def run(self, function: Function) -> bool:
        """Change a function in place; return whether anything changed."""
        raise NotImplementedError(self.name)

    def __str__(self) -> str:
        """`name{option=value}`, with the options that differ from their defaults."""
        given = [(f.name, getattr(self, f.name)) for f in fields(self)]
        defaults = {f.name: f.default for f in fields(self)}
        shown = [f"{n}={_option_text(v)}" for n, v in given if v != defaults[n]]
        return f"{self.name}{{{' '.join(shown)}}}" if shown else self.name


@dataclass(frozen=True, slots=True)
class Step:
    """One entry of a pipeline.

    does: one sentence; needs: properties that must hold before it; gives, ends: properties that
    hold, or may no longer hold, after it
    """

    work: Pass
    does: str = ""
    needs: tuple[Property, ...] = ()
    gives: tuple[Property, ...] = ()
    ends: tuple[Property, ...] = ()

    @property
    def contract(self) -> Contract | None:
        """The ops and types that are legal after it, if it changes them."""
        return _latest_contract(self.gives)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Steps in order.

    given: properties that hold before the first; ensures: properties that hold after the last.
    Raises InternalCompilerError where a step needs a property that does not hold.
    """

    name: str
    steps: tuple[Step, ...]
    given: tuple[Property, ...] = ()
    ensures: tuple[Property, ...] = ()

    def __post_init__(self) -> None:
        require_order(self.name, self.given, map(_declared, self.steps), self.ensures)

    @property
    def legal_before(self) -> Contract | None:
        """The ops and types that are legal before the first step."""
        return _latest_contract(self.given)

    @property
    def legal_after(self) -> Contract | None:
        """The ops and types that are legal after the last step."""
        return _latest_contract(
            (*self.given, *(each for step in self.steps for each in step.gives))
        )

    def __str__(self) -> str:
        """The passes in the syntax of `parse_pipeline`."""
        return ",".join(str(step.work) for step in self.steps)

    def describe(self) -> str:
        """One line for each pass, with its description."""
        width = max((len(str(step.work)) for step in self.steps), default=0)
        lines = [
            f"{i:>3}. {step.work!s:<{width}}  {step.does}".rstrip()
            for i, step in enumerate(self.steps, 1)
        ]
        return "\n".join([f"{self.name}:", *lines])

    def run(self, ir: Function | Module, effective: set[str] | None = None) -> bool:
        """Run all passes on a function, or on each function of a module; return whether any did
        change it.

        effective: gets the names of the passes that change something
        Raises InternalCompilerError if a pass fails or leaves invalid IR.
        """
        functions = (ir,) if isinstance(ir, Function) else tuple(ir.functions.values())
        names = set[str]() if effective is None else effective
        # a list, not a generator: every function must be run
        return any([self._run_on(function, names) for function in functions])

    def _run_on(self, function: Function, effective: set[str]) -> bool:
        after_each = settings().compilation.verify
        recorder = current_recorder()
        changed = unverified = False
        met = self.legal_before
        _require_valid(function, met, "before the first pass", str(self))
        for index, step in enumerate(self.steps):
            changes = self._run_step(step, function, recorder, index)
            changed |= changes
            if changes:
                effective.add(step.work.name)
            contract = step.contract or met
            # unchanged IR is valid for the same contract
            unverified |= changes or contract is not met
            met = contract
            if unverified and after_each:
                _require_valid(function, met, f"after the pass {step.work}", self._text_from(index))
                unverified = False
        if unverified:
            when = "after all passes (TILEWRIGHT_VERIFY=1 names the one)"
            _require_valid(function, met, when, str(self))
        if after_each:
            self._require_ensured(function)
        return changed

    def _require_ensured(self, function: Function) -> None:
        held = require_order(self.name, self.given, map(_declared, self.steps), self.ensures)
        for each in held:
            broken = each.check(function) if each in self.ensures and each.check else []
            if broken:
                detail = f"after all passes, it does not hold that {each.name}: {broken[0]}"
                raise InternalCompilerError(detail, notes=(f"passes: {self}",))

    def _run_step(
        self, step: Step, function: Function, recorder: Recorder | None, index: int
    ) -> bool:
        work = step.work
        start = perf_counter()
        if recorder is not None:
            recorder.record(PassStarted(str(work), function.name, lambda: print_function(function)))
        try:
            changed = work.run(function)
        # A user error that a pass detects, such as a kernel that needs too much memory.
        except TilewrightError:
            raise
        except synchronous(Exception) as error:
            detail = f"the pass {work} failed on @{function.name}: {type(error).__name__}: {error}"
            notes = (f"passes from here: {self._text_from(index)}",)
            raise InternalCompilerError(detail, notes=notes) from error
        if recorder is not None:
            text = lambda: print_function(function)  # noqa: E731
            seconds = perf_counter() - start
            recorder.record(PassEnded(str(work), function.name, seconds, changed, text))
        return changed

    def _text_from(self, index: int) -> str:
        return ",".join(str(step.work) for step in self.steps[index:])


def _declared(step: Step) -> Declared:
    return Declared(step.work, step.needs, step.gives, step.ends)


def _latest_contract(properties: Iterable[Property]) -> Contract | None:
    contracts = [each.contract for each in properties if each.contract is not None]
    return contracts[-1] if contracts else None


def _require_valid(function: Function, contract: Contract | None, when: str, passes: str) -> None:
    problems = report(function, contract)
    if problems is not None:
        notes = (f"passes: {passes}",)
        raise InternalCompilerError(f"invalid tile IR {when}:\n{problems}", notes=notes)


def parse_pipeline(text: str) -> Pipeline:
    """The pipeline of a text such as `canonicalize,unroll{limit=4},cse`.

    Raises UnknownName for an unknown pass or option, InvalidOption for other texts.
    """
    steps: list[Step] = []
    at = 0
    while at < len(text.rstrip()):
        match = _STEP.match(text, at)
        if match is None:
            raise InvalidOption("pipeline", "passes such as a,b{x=1}", text[at:])
        name, options = match[1], match[2]
        steps.append(Step(_build(pass_named(name), options or "")))
        at = match.end()
    return Pipeline(text.strip(), tuple(steps))


def pass_names() -> list[str]:
    """The names of all passes."""
    return sorted({*PASSES, *pass_modules()})


def pass_named(name: str) -> type[Pass]:
    """The class of a pass. Errors: UnknownName."""
    if name not in PASSES and name in pass_modules():
        import_late(pass_modules()[name])
    if name not in PASSES:
        raise UnknownName("pass", name, pass_names())
    return PASSES[name]


def _build(cls: type[Pass], text: str) -> Pass:
    options = {f.name: f for f in fields(cls)}
    values: dict[str, Any] = {}
    for word in text.replace(",", " ").split():
        name, _, value = word.partition("=")
        if name not in options:
            raise UnknownName("option", name, options, f"the pass {cls.name}")
        values[name] = _option_value(cls, options[name], value)
    return cls(**values)


def _option_value(cls: type[Pass], field: Field[Any], text: str) -> object:
    """The value of an option, which has the type of its default."""
    default = field.default
    try:
        if text == "none":
            return None
        if isinstance(default, bool) or "bool" in str(field.type):
            return {"true": True, "false": False}[text]
        if isinstance(default, str):
            return text
        return float(text) if isinstance(default, float) else int(text)
    except synchronous(KeyError, ValueError):
        kind = _option_text(default)
        raise InvalidOption(f"{field.name} of {cls.name}", f"a value like {kind}", text) from None


def _option_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value is None else str(value)


def pipeline_of(
    name: str,
    steps: Iterable[tuple[Pass, str]],
) -> Pipeline:
    """A pipeline of passes with their descriptions, without properties that order them."""
    return Pipeline(name, tuple(Step(work, does) for work, does in steps))
