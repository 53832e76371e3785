"""Variants that are compiled, and loaded, before a launch needs them.

    precompile([KernelSpec(...), ...], executor=pool)

The count and the bytes are printed first, from the bytes of one variant. Variants of equal machine
code are loaded once, and reported.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import field
from functools import partial

from tilewright.aot.misses import prepare
from tilewright.aot.spec import KernelSpec, current_device
from tilewright.aot.variants import generic_of
from tilewright.backends import GPUTarget
from tilewright.compiler import (
    CompiledKernel,
    StatedArgument,
    shared_store,
    started_calls,
)
from tilewright.ir.types import DType
from tilewright.runtime import Step, step_bar
from tilewright.support import errors, settings
from tilewright.support.data_class import dataclass

MAX_COUNT = 256
"""Number of variants above which the caller has to confirm."""


@dataclass(frozen=True, slots=True)
class Precompiled:
    """Compiled variants. specs, kernels: in the same order, generic ones first; groups: variants
    with equal machine code"""

    specs: tuple[KernelSpec, ...]
    kernels: tuple[CompiledKernel, ...]
    generic: int
    groups: tuple[tuple[KernelSpec, ...], ...] = field(repr=False)

    @property
    def bytes(self) -> int:
        """Bytes of the different binaries."""
        return sum({kernel.identity: len(kernel.kernel) for kernel in self.kernels}.values())

    def __str__(self) -> str:
        return (
            f"{len(self.specs)} variants ({self.generic} without facts) have "
            f"{len(self.groups)} kinds of machine code, {_size(self.bytes)}"
        )


def precompile(
    specs: Iterable[KernelSpec],
    executor: Executor | None = None,
    yes: bool = False,
    target: GPUTarget | None = None,
    terminal: object = None,
) -> Precompiled:
    """Compile variants, and for each set of types, constexprs and options one without facts.

    executor: compiles them, in other threads, processes or machines; default: this thread; yes:
    also more than MAX_COUNT; target: default this machine, where they are loaded, too; terminal: a
    `rich.console.Console` for the progress. Errors: TooManyVariants, and those of compiling.
    """
    wanted = list(specs)
    generic = [spec for spec in _unique(map(generic_of, wanted)) if _lowers(spec)]
    ordered = _unique([*generic, *wanted])
    kernels = list[CompiledKernel]()
    if ordered:
        _check_count(ordered, yes)
        kernels = _compiled(ordered, executor, target, terminal)
    if target is None:
        load_once(kernels)
        for spec in generic:
            if spec.kernel.on_miss == "generic":
                spec.add_variant()
        for kernel, spec in {spec.kernel: spec for spec in ordered}.items():
            kernel.variant_cache.declare(bounds_of(s for s in wanted if s.kernel is kernel))
            prepare(spec)
    return Precompiled(tuple(ordered), tuple(kernels), len(generic), _groups(ordered, kernels))


def _lowers(spec: KernelSpec) -> bool:
    """Whether a variant without facts exists: not if an integer has to be a constant."""
    try:
        spec.lower()
    except errors.CompilationError:
        return False
    return True


def load_once(kernels: Sequence[CompiledKernel]) -> None:
    """Load kernels on this machine; those of equal machine code as one."""
    loaded: dict[Hashable, CompiledKernel] = {}
    for kernel in kernels:
        first = loaded.setdefault(kernel.identity, kernel)
        if first is not kernel:
            kernel.share_launcher(first)
        _ = kernel.launcher


def _compiled(
    specs: Sequence[KernelSpec],
    executor: Executor | None,
    target: GPUTarget | None,
    terminal: object,
) -> list[CompiledKernel]:
    """The first variant is compiled here: its size gives that of all."""
    first = _compiled_here(specs[0], target, current_device())
    total = stored_bytes(first) * len(specs)
    names = ", ".join(dict.fromkeys(spec.kernel.__name__ for spec in specs))
    print(f"tilewright: {names}: {len(specs)} variants, about {_size(total)}", file=sys.stderr)
    with step_bar("compiling", len(specs), terminal) as step:
        step(names)
        return [first, *_all_compiled(specs[1:], executor, target, step)]


def _all_compiled(
    specs: Sequence[KernelSpec], executor: Executor | None, target: GPUTarget | None, step: Step
) -> list[CompiledKernel]:
    # of this thread: threads of an executor have another one
    device = current_device()
    calls = [partial(_compiled_here, spec, target, device) for spec in specs]
    kernels = list[CompiledKernel]()
    with started_calls(calls, executor) as results:
        for spec, result in zip(specs, results, strict=True):
            step(spec.kernel.__name__)
            kernels.append(result())
    return kernels


def _compiled_here(spec: KernelSpec, target: GPUTarget | None, device: str) -> CompiledKernel:
    return spec.compile_for_launches(device) if target is None else spec.compile(target)


def _check_count(specs: Sequence[KernelSpec], yes: bool) -> None:
    limit = settings().cache.max_variants
    for kernel in dict.fromkeys(spec.kernel for spec in specs):
        count = sum(spec.kernel is kernel for spec in specs)
        if count > MAX_COUNT and not yes:
            instead = "narrow the declarations, or pass yes=True (--yes)"
            raise errors.TooManyVariants(kernel.__name__, count, MAX_COUNT, instead)
        if limit and count > limit:
            instead = "set TILEWRIGHT_MAX_VARIANTS to a larger number"
            raise errors.TooManyVariants(kernel.__name__, count, limit, instead)


def _groups(
    specs: Sequence[KernelSpec], kernels: Sequence[CompiledKernel]
) -> tuple[tuple[KernelSpec, ...], ...]:
    groups: dict[Hashable, list[KernelSpec]] = {}
    for spec, kernel in zip(specs, kernels, strict=True):
        groups.setdefault(kernel.identity, []).append(spec)
    return tuple(map(tuple, groups.values()))


def bounds_of(specs: Iterable[KernelSpec]) -> dict[str, tuple[int, int] | None]:
    """The bounds of the integers of variants, by parameter; None where one has none."""
    found: dict[str, list[tuple[int, int] | None]] = {}
    for spec in specs:
        for name, stated in spec.stated.items():
            if isinstance(stated.type, DType) and stated.type.is_integer:
                found.setdefault(name, []).append(_bounds(stated))
    return {name: _hull(bounds) for name, bounds in found.items()}


def _bounds(stated: StatedArgument) -> tuple[int, int] | None:
    if isinstance(stated.value, int):
        return stated.value, stated.value + 1
    return None if stated.low is None or stated.high is None else (stated.low, stated.high)


def _hull(bounds: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    known = [pair for pair in bounds if pair is not None]
    if len(known) < len(bounds):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _unique(specs: Iterable[KernelSpec]) -> list[KernelSpec]:
    return list({spec.launch_key: spec for spec in reversed(list(specs))}.values())[::-1]


def stored_bytes(kernel: CompiledKernel) -> int:
    """Bytes of a kernel in the disk cache; of its binary if it is not there."""
    entry = shared_store(settings().cache).read(kernel.hash)
    if entry is None:
        return len(kernel.kernel)
    return sum(len(artifact) for artifact in entry.artifacts.values())


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
