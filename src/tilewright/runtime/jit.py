"""`jit`: the decorator of kernels, and the function object that launches them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, overload

from tilewright.backends import Backend, backend_named, default_backend
from tilewright.compiler import ASTSource, CompiledKernel, compile, options_of
from tilewright.frontend.python import Dependencies, KernelSignature, dependencies
from tilewright.language import DeviceFunction
from tilewright.runtime import arrays as arrays
from tilewright.runtime.binder import MISSING, launch_function
from tilewright.runtime.grid import normal_grid
from tilewright.runtime.once import Once
from tilewright.runtime.parameters import KernelParam, Selection, parameters_of
from tilewright.runtime.specialize import HANDLERS, Key, Spec, constant_key
from tilewright.runtime.variant import Variant, arg_spec
from tilewright.support import errors, settings, user_boundary

F = TypeVar("F", bound=Callable[..., Any])


class JITFunction(DeviceFunction):
    """A kernel: `kernel[grid](*args, **words)` compiles what is needed and runs it."""

    def __init__(
        self,
        fn: Callable[..., Any],
        do_not_specialize: Selection = None,
        do_not_specialize_on_alignment: Selection = None,
    ) -> None:
        super().__init__(fn)
        self.params = parameters_of(fn, do_not_specialize, do_not_specialize_on_alignment)
        self.arg_names = [p.name for p in self.params]
        self.hooked = False
        self.variants: dict[Any, Variant] = {}
        self._kernels: Once[Any, CompiledKernel] = Once()
        self._found: Dependencies | None = None
        self._launch = launch_function(
            "launch",
            self.params,
            {
                "boundary": user_boundary,
                "variants": self.variants,
                "assigned": vars(settings().compilation),
                "self": self,
                "slow": self._slow,
                "normal_grid": normal_grid,
            },
        )

    def __getitem__(self, grid: object) -> Callable[..., CompiledKernel]:
        return partial(self._launch, grid)

    def dependencies(self) -> Dependencies:
        """What the kernel's meaning depends on, as found at its first use."""
        if self._found is None:
            self._found = dependencies(self)
        return self._found

    def _slow(
        self,
        grid: object,
        args: Sequence[object],
        rest: Sequence[object],
        words: Mapping[str, object],
    ) -> CompiledKernel:
        """A launch of a variant that is not known yet, or with something unusual about it."""
        bound = {
            p.name: a for p, a in zip((p for p in self.params if not p.is_keywords), args)
        }
        keys: dict[str, Key] = {}
        values: dict[str, object] = {}
        for param in self.params:
            if param.is_keywords:
                continue
            value = bound[param.name]
            if value is MISSING:
                raise errors.MissingArgument(self.__name__, (param.name,))
            if param.is_constexpr:
                keys[param.name], values[param.name] = constant_key(value), value
            else:
                keys[param.name], values[param.name] = HANDLERS.key_and_value(value)
        backend = self._backend(keys)
        known = backend.options.names()
        options = options_of(backend, {k: v for k, v in words.items() if k in known})
        meta = {k: v for k, v in words.items() if k not in known}
        specs = [arg_spec(n, k, values[n]) for n, k in keys.items()]
        specs += [arg_spec(n, constant_key(v), v) for n, v in meta.items()]
        key = (*keys.values(), *words.items(), *vars(settings().compilation).items())

        def build() -> CompiledKernel:
            signature = KernelSignature(tuple(specs))
            source = ASTSource.of(self, signature, self.dependencies().hash)
            return compile(source, backend.target(), options)

        kernel = self._kernels.get(key, build)
        variant = self.variants[key] = Variant(
            kernel, tuple(keys.values()), self.dependencies()
        )
        if callable(grid):
            grid = grid({**bound, **words})
        variant.launch(normal_grid(grid), variant.pick(tuple(values.values())))
        return kernel

    def _backend(self, keys: Mapping[str, Key]) -> Backend:
        devices = {k.device: n for n, k in keys.items() if isinstance(k, Spec) and k.device}
        if not devices:
            return default_backend()
        return backend_named(next(iter(devices)).partition(":")[0])


@overload
def jit(fn: F) -> JITFunction: ...
@overload
def jit(fn: None = None, **words: Any) -> Callable[[F], JITFunction]: ...
def jit(fn: F | None = None, **words: Any) -> JITFunction | Callable[[F], JITFunction]:
    """Make a kernel of a Python function."""
    if fn is None:
        return lambda fn: JITFunction(fn)
    return JITFunction(fn)
