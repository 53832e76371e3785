"""One variant of a kernel, described without values: what a launch would find out.

KernelSpec(add, {"x": "*fp32:16", "n": "i32:16,>=0"}, {"BLOCK": 1024}, {"num_warps": 8})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from tilewright.backends import Backend, CommonOptions, GPUTarget, backend_named
from tilewright.compiler import (
    CompiledKernel,
    KernelSource,
    StatedArgument,
    argument_text,
    compile_source,
    frontend_options,
    parse_argument,
)
from tilewright.frontend.python import ArgSpec
from tilewright.ir import Module
from tilewright.runtime import BoundCall, JITFunction, KernelParam, Stated, driver, placed_call
from tilewright.support import errors
from tilewright.support.data_class import dataclass

OVERLAP = "may_overlap"
"""The option that states that pointer arguments may be parts of one array."""


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """A variant of `kernel`.

    arguments: of each run-time parameter, type and facts as text (`compiler/argument_notation.py`);
    constexprs: compile-time values, also those for `**META` and for parameters without an
    annotation; options: of the backend, such as num_warps, and `may_overlap`: pointer arguments may
    be parts of one array; grid: an expression of Python in the kernel's parameters

    Errors: UnknownArgument, MissingArgument, InvalidArgumentText, InvalidOption.
    """

    kernel: JITFunction
    arguments: Mapping[str, str]
    constexprs: Mapping[str, object] = field(default_factory=dict[str, object])
    options: Mapping[str, object] = field(default_factory=dict[str, object])
    grid: str | None = None

    def __post_init__(self) -> None:
        names = [param.name for param in self.kernel.params]
        for name in self.arguments:
            if name not in names:
                raise errors.UnknownArgument(self.kernel.__name__, name, names)
        for name in self.arguments.keys() & self.constexprs.keys():
            raise errors.RepeatedArgument(self.kernel.__name__, name)
        for param in self.kernel.params:
            _check(param, self.arguments.get(param.name))
        _ = self.call(driver.active.backend).options

    @classmethod
    def of_call(cls, kernel: JITFunction, call: BoundCall, grid: str | None = None) -> KernelSpec:
        """The variant that a launch runs. Errors: InvalidArgumentText for arguments without a
        text."""
        arguments: dict[str, str] = {}
        constexprs: dict[str, object] = {}
        for spec in call.signature.args:
            if spec.kind == "constexpr" and spec.type is None:
                constexprs[spec.name] = spec.value
            else:
                arguments[spec.name] = argument_text(spec)
        return cls(kernel, arguments, constexprs, call.options, grid)

    @property
    def stated(self) -> dict[str, StatedArgument]:
        """The run-time arguments by name, in the order of the parameters."""
        names = [param.name for param in self.kernel.params if param.name in self.arguments]
        return {name: parse_argument(self.arguments[name], name) for name in names}

    def call(self, backend: Backend) -> BoundCall:
        """A launch of the variant on a backend, without values, to be compiled."""
        stated = self.stated
        args: list[object] = []
        keywords: dict[str, Any] = dict(self.options)
        keywords.pop(OVERLAP, None)
        given: dict[str, object] = {**self.constexprs}
        for name, argument in stated.items():
            given[name] = Stated(argument)
        for param in self.kernel.params:
            if param.is_rest and param.name in stated:
                args += map(Stated, stated[param.name].items)
                del given[param.name]
            elif param.is_positional and param.name in given and len(args) == param.num:
                args.append(given.pop(param.name))
        return self.kernel.bind(*args, **given, **keywords).on(backend)

    def compile(self, target: GPUTarget | None = None) -> CompiledKernel:
        """The compiled variant, through the disk cache. target: default this machine.

        Errors: those of `tilewright.compile`.
        """
        backend = driver.active.backend if target is None else backend_named(target.backend)
        source, options = self._source(backend)
        if self.options.get(OVERLAP):
            options = replace(options, may_overlap=True)
        return compile_source(source, backend, target or backend.target(), options)

    def lower(self) -> Module:
        """The front end's tile IR, for this machine. Errors: CompilationErrors."""
        backend = driver.active.backend
        source, options = self._source(backend)
        return source.lower(frontend_options(backend, options, backend.target()))

    def _source(self, backend: Backend) -> tuple[KernelSource, CommonOptions]:
        call, cache = self.call(backend), self.kernel.variant_cache
        return cache.source_of(call), cache.options_of(call)

    def compile_for_launches(self, device: str | None = None) -> CompiledKernel:
        """The variant as launches on a device find it in memory; it is not loaded.

        device: as arrays name it; default: the current one of this thread
        """
        backend = driver.active.backend
        call = self.call(backend).on(backend, current_device() if device is None else device)
        kernel = self.kernel.variant_cache.compiled(call)
        if self.options.get(OVERLAP) and kernel.in_order is not None:
            return kernel.in_order()
        return kernel

    def add_variant(self) -> None:
        """Make the variant of launches with arrays on the current device, which find it at once."""
        backend = driver.active.backend
        placed = placed_call(self.call(backend), current_device() or backend.target().backend)
        self.kernel.variant_cache.add_variant(placed)

    @property
    def launch_key(self) -> tuple[object, ...]:
        """A key that is equal for specs of one variant."""
        key = self.call(driver.active.backend).key
        return (self.kernel, *key, bool(self.options.get(OVERLAP)))

    @property
    def signature(self) -> tuple[ArgSpec, ...]:
        """The arguments as the front end describes them, in order."""
        return self.call(driver.active.backend).signature.args


def current_device() -> str:
    """The current device of this thread, as arrays name it; each device has its own loaded
    kernels."""
    backend = driver.active.backend
    if backend.memory is None or not backend.available():
        return ""
    index, _ = backend.memory.current()
    return f"{backend.target().backend}:{index}"


def _check(param: KernelParam, text: str | None) -> None:
    """Raise InvalidArgumentText for a text that contradicts the declaration of a parameter."""
    if text is None:
        return
    if param.is_constexpr:
        problem = "states a run-time value, and the parameter is a constexpr"
        raise errors.InvalidArgumentText(param.name, text, problem)
    type_ = parse_argument(text, param.name).type
    if param.type is not None and type_ != param.type:
        problem = f"contradicts the annotation {param.type}"
        raise errors.InvalidArgumentText(param.name, text, problem)
