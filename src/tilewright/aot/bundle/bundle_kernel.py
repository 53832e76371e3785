"""A kernel of a bundle: its arguments in C, and its variants with their facts and code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import cast

from tilewright.backends import GPUTarget
from tilewright.compiler import CompiledKernel
from tilewright.ir.types import DType, PointerType, Scalar
from tilewright.support import errors
from tilewright.support.data_class import dataclass

MULTIPLE, EQUAL, AT_LEAST, AT_MOST = "TW_MULTIPLE", "TW_EQUAL", "TW_AT_LEAST", "TW_AT_MOST"


_OWN_FUNCTIONS = ("abi", "error", "load", "unload", "set_threads")


@dataclass(frozen=True, slots=True)
class Fact:
    """A property of an argument, which a variant relies on. kind: a constant of bundle_runtime.c"""

    argument: str
    kind: str
    value: int


@dataclass(frozen=True, slots=True)
class PlannedVariant:
    """A variant before it is compiled.

    name: of the kernel; arguments: types by name, those that are equal to a constant included;
    facts: of arguments; constants: compile-time values; grid: expression of Python, or None where
    the caller passes sizes; compile: the variant for a target
    """

    name: str
    arguments: Mapping[str, Scalar]
    facts: Sequence[Fact]
    constants: Mapping[str, object]
    grid: str | None
    compile: Callable[[GPUTarget], CompiledKernel]


@dataclass(frozen=True, slots=True)
class BundleVariant:
    """A compiled variant. facts: also those that choose among compile-time values; passed: names
    of the arguments that the code takes; code: by target"""

    constants: Mapping[str, object]
    facts: Sequence[Fact]
    passed: Sequence[str]
    code: Mapping[GPUTarget, CompiledKernel] = field(
        default_factory=dict[GPUTarget, CompiledKernel]
    )


@dataclass(frozen=True, slots=True)
class BundleKernel:
    """A function of a bundle. arguments: types by name, in order, then choices: compile-time
    integers that differ between variants; stored: names of pointers that are stored through"""

    name: str
    arguments: Mapping[str, Scalar]
    choices: Sequence[str]
    grid: str | None
    variants: Sequence[BundleVariant]
    stored: frozenset[str]
    separate: Sequence[tuple[str, str]]
    """Pairs of arrays that must not overlap."""

    @property
    def names(self) -> list[str]:
        """The names of all parameters of the C function, in order."""
        return [*self.arguments, *self.choices]


def bundle_kernels(
    plans: Sequence[PlannedVariant], targets: Sequence[GPUTarget]
) -> list[BundleKernel]:
    """The kernels of planned variants, compiled for all targets.

    Errors: InvalidBundle for variants that one function cannot tell apart, or of kernels that need
    Python; and those of compilation.
    """
    groups: dict[str, list[PlannedVariant]] = {}
    for plan in plans:
        groups.setdefault(plan.name, []).append(plan)
    return [_kernel(name, group, targets) for name, group in groups.items()]


def _kernel(
    name: str, plans: Sequence[PlannedVariant], targets: Sequence[GPUTarget]
) -> BundleKernel:
    first = plans[0]
    if name in _OWN_FUNCTIONS:
        raise errors.InvalidBundle(name, "each bundle has a function of this name")
    for plan in plans[1:]:
        for what, one, other in (
            ("arguments", {**plan.arguments}, {**first.arguments}),
            ("grids", plan.grid, first.grid),
        ):
            if one != other:
                raise errors.InvalidBundle(name, f"its variants differ in their {what}")
    choices = _choices(name, plans)
    variants = [_variant(plan, choices, targets) for plan in plans]
    variants.sort(key=_strength, reverse=True)
    for one, next_ in zip(variants, variants[1:], strict=False):
        if set(one.facts) == set(next_.facts):
            raise errors.InvalidBundle(name, "two of its variants have the same facts")
    codes = [code for variant in variants for code in variant.code.values()]
    return BundleKernel(
        name, first.arguments, choices, first.grid, variants, _stored(codes), _separate(codes)
    )


def _choices(name: str, plans: Sequence[PlannedVariant]) -> list[str]:
    """Names of the compile-time values that differ between variants."""
    names = dict.fromkeys(constant for plan in plans for constant in plan.constants)
    differing = [n for n in names if len({repr(plan.constants.get(n)) for plan in plans}) > 1]
    for plan in plans:
        for constant in differing:
            if not isinstance(plan.constants.get(constant), int):
                problem = f"its variants differ in '{constant}', which is no integer everywhere"
                raise errors.InvalidBundle(name, problem)
    return differing


def _variant(
    plan: PlannedVariant, choices: Sequence[str], targets: Sequence[GPUTarget]
) -> BundleVariant:
    chosen = [Fact(name, EQUAL, int(cast("int", plan.constants[name]))) for name in choices]
    facts = [*chosen, *plan.facts, *_natural_alignment(plan)]
    fixed = {fact.argument for fact in plan.facts if fact.kind == EQUAL}
    passed = [name for name in plan.arguments if name not in fixed]
    code = {target: plan.compile(target) for target in targets}
    for target, kernel in code.items():
        _check_launch(plan.name, target, kernel, passed)
    return BundleVariant(plan.constants, facts, passed, code)


def _natural_alignment(plan: PlannedVariant) -> list[Fact]:
    """The alignment to an element of each pointer that is not known to have more."""
    aligned = {fact.argument for fact in plan.facts if fact.kind == MULTIPLE}
    return [
        Fact(name, MULTIPLE, type_.element.bytes)
        for name, type_ in plan.arguments.items()
        if isinstance(type_, PointerType) and name not in aligned and type_.element.bytes > 1
    ]


def _check_launch(
    name: str, target: GPUTarget, kernel: CompiledKernel, passed: Sequence[str]
) -> None:
    """Raise InvalidBundle for a kernel whose launch needs Python."""
    metadata = kernel.metadata.as_dict()
    if metadata.get("prints") or (target.backend == "cpu" and "cf.print" in kernel.asm["ttir"]):
        raise errors.InvalidBundle(name, "it prints, which only Python formats")
    if target.backend == "cuda" and metadata.get("asserts"):
        problem = "it has assertions, which only Python reads from a GPU"
        raise errors.InvalidBundle(name, problem)
    if len(passed) != len(kernel.parameters):
        raise errors.InvalidBundle(name, "it takes tuples or tensor descriptors")


def _strength(variant: BundleVariant) -> tuple[int, int]:
    """Order of variants: more facts first, then those that fewer values fulfil."""
    divisors = sum(fact.value.bit_length() for fact in variant.facts if fact.kind == MULTIPLE)
    return len(variant.facts), divisors


def _stored(codes: Sequence[CompiledKernel]) -> frozenset[str]:
    return frozenset(code.metadata.names[i] for code in codes for i in code.stored)


def _separate(codes: Sequence[CompiledKernel]) -> list[tuple[str, str]]:
    pairs: dict[tuple[str, str], None] = {}
    for code in codes:
        if not code.metadata.may_overlap:
            names = code.metadata.names
            pairs.update({(names[p.first], names[p.second]): None for p in code.pairs})
    return [*pairs]


def is_integer(type_: Scalar) -> bool:
    """Whether an argument may occur in a grid."""
    return isinstance(type_, DType) and type_.is_integer
