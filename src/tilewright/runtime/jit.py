"""`jit`: the decorator of kernels, and the function object that launches them."""

from __future__ import annotations

import inspect
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Self, TypedDict, Unpack, cast, overload

from tilewright.backends import backend_named
from tilewright.compiler import (
    ASTSource,
    Compilable,
    CompiledKernel,
    PythonKernel,
    options_of,
)
from tilewright.frontend.python import Dependencies, function_of_text
from tilewright.language import DeviceFunction
from tilewright.runtime import launch
from tilewright.runtime.ahead_of_time import AheadOfTime
from tilewright.runtime.arguments.kernel_parameters import (
    KernelParam,
    Selection,
    parameters_of,
)
from tilewright.runtime.arguments.key_rules import machine_readable, run_time_pairs
from tilewright.runtime.arguments.mock_tensor import stand_in
from tilewright.runtime.async_compile import active_mode
from tilewright.runtime.kernel_interface import KernelInterface
from tilewright.runtime.launch.bound_call import Binder, BoundCall
from tilewright.runtime.launch.compile_hooks import CompileSkipped, full_name, read_value
from tilewright.runtime.launch.prepared_launches import PreparedLaunches
from tilewright.runtime.launch.variant_cache import (
    LaunchState,
    RecordedLaunch,
    Variant,
    VariantCache,
)
from tilewright.runtime.launch_hooks import LaunchMetadata, launch_enter, launch_exit
from tilewright.runtime.replaceable_functions import FunctionText
from tilewright.support import (
    Grid,
    HookChain,
    TilewrightWarning,
    cached_property,
    call_user_function,
    checks_of,
    errors,
    function_late,
    grid_for,
    kernel_boundary,
    normal_grid,
    settings,
    user_boundary,
)

Kernel = Callable[..., Any]

_html = function_late("tilewright.compiler.html_summary:kernel_html")


class DispatchedLaunches(ABC):
    """The launches of a kernel, or of an autotuned one: the first from Python, then natively.

    `_launch(grid, *args, **keywords)` is `_launch_first` until the second launch, or
    `_launch_from_python` where machine code cannot launch.
    """

    _launch: Kernel
    _launched = False

    def __getitem__(self, grid: object) -> Callable[..., Any]:
        """`kernel[grid]`, to be called with the arguments.

        grid: one to three positive ints, or a function of all arguments by name that returns them.
        """
        # A method of the grid takes half the time of a partial, but None can have none.
        launch = self._launch
        return partial(launch, grid) if grid is None else MethodType(launch, grid)

    @abstractmethod
    def _launch_from_python(self, grid: object, /, *args: Any, **keywords: Any) -> Any: ...

    @abstractmethod
    def _new_dispatch(self, args: tuple[object, ...], keywords: Mapping[str, Any]) -> Kernel:
        """The launches from the second one on, whose arguments are given."""

    def _launch_first(self, grid: object, /, *args: Any, **keywords: Any) -> Any:
        """Launch before native dispatch exists, and create it at the second launch. A stored
        `kernel[grid]` calls this at later launches."""
        with user_boundary:
            if self._launch == self._launch_first:
                if not self._launched:
                    result = self._launch_from_python(grid, *args, **keywords)
                    self._launched = True
                    return result
                self._launch = self._new_dispatch(args, keywords)
            return self._launch(grid, *args, **keywords)


class JITFunction(FunctionText, DeviceFunction, DispatchedLaunches, KernelInterface, AheadOfTime):
    """A kernel: `kernel[grid](*args, **keywords)` compiles the variant it needs and runs it.

    params: its parameters; arg_names: their names; signature: as `inspect` has it.
    """

    def __init__(
        self,
        fn: Kernel,
        version: object = None,
        do_not_specialize: Selection = None,
        do_not_specialize_on_alignment: Selection = None,
        debug: bool | None = None,
        noinline: bool | None = None,
        repr: Callable[[Any], str] | None = None,
        launch_metadata: Callable[..., Mapping[str, object]] | None = None,
        interpret: bool | None = None,
        strict_triton: bool | None = None,
        int64_offsets: bool | None = None,
        check: str | Sequence[str] | None = None,
        on_miss: str | None = None,
        params: Sequence[KernelParam] | None = None,
        compilable: Compilable | None = None,
    ) -> None:
        fn = _plain_function(fn)
        super().__init__(fn)
        self._given = {
            "version": version,
            "repr": repr,
            "launch_metadata": launch_metadata,
            "do_not_specialize": do_not_specialize,
            "do_not_specialize_on_alignment": do_not_specialize_on_alignment,
            "debug": debug,
            "noinline": noinline,
            "interpret": interpret,
            "strict_triton": strict_triton,
            "int64_offsets": int64_offsets,
            "check": check, "on_miss": on_miss,
        }  # fmt: skip
        self.version = version
        self.debug = debug
        self.noinline = noinline
        self.do_not_specialize = do_not_specialize
        self.do_not_specialize_on_alignment = do_not_specialize_on_alignment
        self.launch_metadata = launch_metadata
        current = settings()
        self.check = checks_of(current.interpreter.check if check is None else check)
        self.interpreted = current.interpreter.enabled if interpret is None else interpret
        self.params = tuple(
            params or parameters_of(fn, do_not_specialize, do_not_specialize_on_alignment)
        )
        self.arg_names = [param.name for param in self.params]
        _warn_of_constants(self.__name__, self.params)
        self._pre_run_hooks: HookChain[...] = HookChain()
        named = ("debug", "strict_triton", "int64_offsets")
        self._options = {name: self._given[name] for name in named if self._given[name] is not None}
        source = compilable or PythonKernel(self, repr)
        self._options["check"] = "+".join(self.check)
        self.variant_cache = VariantCache(self.__name__, source, self._options, current.cache, self)
        self.on_miss = on_miss
        self._repr = repr
        # the dictionary itself, not a copy: launches see what is assigned later
        self._assigned = vars(current.compilation)
        self.dispatchable = not (self.interpreted or self.check) and machine_readable(self.params)
        self._launched = False
        self._launch = self._launch_first if self.dispatchable else self._launch_from_python

    # since its own `run` would give the class the one of `KernelInterface`
    __getitem__ = DispatchedLaunches.__getitem__

    def run(
        self, *args: object, grid: object, warmup: bool = False, **keywords: object
    ) -> CompiledKernel:
        """As `kernel[grid](*args, **keywords)`; with `warmup`, only compile."""
        if warmup:
            return JITFunction.warmup(self, *args, grid=grid, **keywords)
        # not by `self[grid]`, which calls the `run` of subclasses that have their own
        return self._launch(grid, *args, **keywords)

    def warmup(self, *args: object, grid: object = None, **keywords: object) -> Any:
        """Compile what a launch with these arguments would run. Arrays may be stand-ins: dtypes of
        the language, NumPy or torch, or `MockTensor`s; any run-time argument may be a text of type
        and facts, such as "*fp16:16" or "i32:16,>=0". Inside an `AsyncCompileMode` the kernel is a
        `FutureKernel`. None: a hook vetoed the compilation."""
        with user_boundary:
            call = self.bind(*args, **keywords)
            # before the first use of the keys, which are derived from the arguments
            call.args = [
                arg if param.is_constexpr else stand_in(arg, param.name)
                for param, arg in zip(call.params, call.args, strict=True)
            ]
            mode = active_mode.get()
            if mode is not None:
                key = (self.cache_key, call.key)
                return mode.submit(key, partial(self._compiled, call))
            return self._compiled(call)

    def _compiled(self, call: BoundCall) -> CompiledKernel | None:
        try:
            return self.variant_cache.compiled(call)
        except CompileSkipped:
            return None

    def launch_values(self, *args: object, grid: object, **keywords: object) -> Hashable:
        """Grid and run-time arguments of a launch, without launching. Launches of the same code
        with equal values do the same."""
        call = self.bind(*args, **keywords)
        values = (value for _, value in run_time_pairs(call.keys, call.values))
        return (grid_for(grid, call.named), *values)

    @property
    def pre_run_hooks(self) -> HookChain[...]:
        """The hooks before each launch of this kernel."""
        return self._pre_run_hooks

    @pre_run_hooks.setter
    def pre_run_hooks(self, hooks: Iterable[Callable[..., object]]) -> None:
        # in place, since native dispatch refers to the chain
        self._pre_run_hooks[:] = hooks

    def add_pre_run_hook(self, hook: Callable[..., object]) -> None:
        """Call `hook(*args, **keywords)` before each launch of this kernel."""
        self.pre_run_hooks.add(hook)

    # --- what Triton's functions offer ------------------------------------------------------------

    def repr(self, specialization: Any) -> str:
        """The name of the kernel for a specialization: its full name, unless `jit(repr=)` was
        given."""
        if self._repr is None:
            return f"{self.__module__}.{self.__qualname__}"
        return call_user_function("repr", "the specialization", self._repr, specialization)

    @staticmethod
    def is_gluon() -> bool:
        """Whether the kernel is written in Gluon: never."""
        return False

    @property
    def outside(self) -> str:
        """The advice of errors about calls from outside a kernel."""
        return f"launch it with {self.__name__}[grid](...), or call it from a kernel"

    def _unsafe_update_src(self, new_src: str) -> None:
        """Become the function that a text defines, from `def` on and under the same name. Programs
        that write kernels call this, in spite of its name."""
        given: dict[str, Any] = self._given
        fn = function_of_text(new_src, self.fn)
        vars(self).clear()  # including what was computed from the old text
        type(self).__init__(self, fn, **given)

    @cached_property
    def signature(self) -> inspect.Signature:
        """The Python function's signature."""
        return inspect.signature(self.fn)

    @property
    def constexprs(self) -> list[int]:
        """Positions of the parameters annotated `constexpr`."""
        return [param.num for param in self.params if param.is_constexpr]

    def find_dependencies(self) -> Dependencies:
        """The dependencies as the first launch, or query, found them."""
        return self.variant_cache.dependencies

    @property
    def hash(self) -> str | None:
        """The cache key, once it has been computed. Assign None after replacing the text of a
        function that this one calls: the dependencies are then read again."""
        return self.variant_cache.known_hash

    @hash.setter
    def hash(self, value: None) -> None:
        vars(self).pop("used_global_vals", None)
        self.variant_cache.forget_dependencies()

    def _repr_html_(self) -> str:
        """The kernel in a notebook: source and compiled variants."""
        location = f"{self.fn.__code__.co_filename}:{self.starting_line_number}"
        return _html(self.__name__, location, self.src, self.variant_cache.kernels.made.values())

    @property
    def device_caches(self) -> dict[int, tuple[dict[str, CompiledKernel]]]:
        """Device -> (compiled kernels by what decides them,)."""
        return {0: (self.variant_cache.kernels.made,)}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name, as functions do. If `fn` is None, as `torch.compile` sets it in its
        workers, pickle the parameters and assigned attributes instead."""
        if cast("object", self.fn) is not None:
            return super().__reduce__()
        described = {name: value for name, value in vars(self).items() if name in _DESCRIPTION}
        return object.__new__, (type(self),), described

    def __deepcopy__(self, memo: object) -> Self:
        """The kernel itself; a copy of one without a function, which will be given another."""
        if cast("object", self.fn) is not None:
            return self
        make, args, described = self.__reduce__()
        copied: Self = make(*args)
        vars(copied).update(described)
        return copied

    def reduce_by_value(self) -> tuple[Any, ...]:
        """Pickle by the function, for picklers that need no name for it, and the options."""
        return partial(type(self), **self._given), (self.fn,)

    def preload(self, specialization_data: str) -> CompiledKernel:
        """Compile a variant before its first launch. specialization_data: the description that
        compile hooks are passed. Errors: OtherSpecialization."""
        data = json.loads(specialization_data)
        if data["name"] != full_name(self):
            raise errors.OtherSpecialization(data["name"], full_name(self))
        constants = {name: read_value(value) for name, value in data["constexprs"].items()}
        attrs = {tuple(position): facts for position, facts in data["attrs"]}
        signature = ASTSource(self, data["signature"], constants, attrs).arguments
        backend = backend_named(data["backend"])
        named: dict[str, Any] = {name: read_value(o) for name, o in data["options"].items()}
        # launches do not take all of them: some follow from arguments or from `jit`
        given = {name: named.pop(name) for name in backend.options.names() & named.keys()}
        options = replace(options_of(backend, given), **named)
        return self.variant_cache.preload(signature, backend, options)

    # --- launching --------------------------------------------------------------------------------

    def _new_dispatch(self, args: tuple[object, ...], keywords: Mapping[str, Any]) -> Kernel:
        return self.native_dispatch(self._launch_from_python, self.recorded_launch)

    def _launch_from_python(
        self, grid: object, /, *args: object, **keywords: object
    ) -> CompiledKernel:
        """Launch without native dispatch: with hooks, settings, checks or the interpreter."""
        with kernel_boundary if self.interpreted else user_boundary:
            if self.pre_run_hooks:
                self.pre_run_hooks(*args, **keywords)
            run: Kernel = self._interpret if self.interpreted else self.launch_compiled
            return run(grid, *args, **keywords)

    @cached_property
    def _binder(self) -> Binder:
        # at the first use, since a module may hold many kernels
        return Binder(self.__name__, self.params, self._assigned, self.variant_cache.bounds)

    def bind(self, /, *args: object, **keywords: object) -> BoundCall:
        """Bind the arguments of a launch. Errors: see `Binder.bind`."""
        return self._binder.bind(args, keywords)

    def launch_compiled(
        self, grid: object, /, *args: object, **keywords: object
    ) -> CompiledKernel | None:
        """Launch a variant from Python. None: a hook vetoed the compilation of the variant."""
        call = self._binder.bind(args, keywords)
        try:
            variant = self.variant_cache.variant(call)
        except CompileSkipped:
            return None
        extents = grid_for(grid, call.named) if callable(grid) else normal_grid(grid)
        if launch_enter or launch_exit:
            self._launch_with_hooks(variant, extents, call)
        else:
            self._launch_variant(variant, extents, call)
        return variant.kernel

    def _launch_with_hooks(self, variant: Variant, extents: Grid, call: BoundCall) -> None:
        kernel, extra = variant.kernel, self.launch_metadata

        def describe() -> dict[str, Any]:
            # only for hooks that look: the stream needs the driver
            stream = 0 if kernel.backend.memory is None else kernel.backend.memory.current()[1]
            return kernel.described(extents, stream, extra, {} if extra is None else call.named)

        metadata = LaunchMetadata(describe, call.host_arrays)
        launch_enter(metadata)
        self._launch_variant(variant, extents, call)
        # not in a `finally`: exit hooks are called only for launches that were made
        launch_exit(metadata)

    def _launch_variant(self, variant: Variant, extents: Grid, call: BoundCall) -> None:
        kernel, values = variant.kernel, variant.pick(call.values)
        if variant.pairs:
            overlaps = self.variant_cache.overlaps
            kernel = overlaps.kernel_for(kernel, extents, variant.pick(call.args), values)
        if variant.checked:
            launch.launch_checked(kernel, extents, call, values)
        elif kernel is variant.kernel:
            variant.launch(extents, values)
        else:
            kernel.launcher.launch(extents, values)

    def native_dispatch(
        self,
        python: Kernel,
        recorded_launch: Callable[..., RecordedLaunch | None],
        by_value: Collection[str] = (),
    ) -> Kernel:
        """`launch(grid, *args, **keywords)` through a dispatch table in machine code.

        python: launches what has no cache entry; recorded_launch(args, keywords) -> the variant
        that such a launch ran, None if a launch with equal words might run another; by_value:
        parameters whose value, beyond its specialization, decides the variant.
        """
        dispatcher = launch.Dispatcher(
            self.__name__, self.params, python, recorded_launch, self.launch_state, by_value
        )
        self.variant_cache.add(dispatcher)
        return dispatcher.launch

    @cached_property
    def launch_state(self) -> LaunchState:
        """State that each launch reads."""
        return LaunchState(
            assigned=self._assigned,
            enter=launch_enter,
            exit=launch_exit,
            before=self.pre_run_hooks,
            overlaps=self.variant_cache.overlaps,
            clock=self.variant_cache.clock,
            bounds=self.variant_cache.bounds,
            variants=cast("Any", self.variant_cache.by_key),
        )

    def prepared_launches(self, *parameters: str) -> PreparedLaunches:
        """Launches found by the layouts of some objects. parameters: for each object, the parameter
        to which it is passed if it is an array, or ""."""
        state = self.launch_state if self.dispatchable else None
        return PreparedLaunches(
            self.__name__, parameters, self.recorded_launch, state, self.variant_cache.add
        )

    def recorded_launch(
        self, args: Sequence[object], keywords: Mapping[str, object]
    ) -> RecordedLaunch | None:
        """The launch with these arguments and its variant, if that is in memory."""
        return self.variant_cache.recorded(self.bind(*args, **keywords))

    def _interpret(self, grid: object, /, *args: object, **keywords: object) -> None:
        """Launch in the interpreter; nothing is compiled."""
        call = self.bind(*args, **keywords)
        launch.run_interpreted(self, grid, call, self._options, self.check)


_DESCRIPTION = frozenset(
    {
        "__doc__", "__globals__", "__module__", "__name__", "__qualname__", "_hash_lock",
        "arg_names", "debug", "do_not_specialize", "do_not_specialize_on_alignment", "fn",
        "launch_metadata", "noinline", "params", "repr", "used_global_vals", "version",
    }
)  # fmt: skip
"""Attributes of a kernel without a function: Triton's names, some of which programs assign."""


def _warn_of_constants(kernel: str, params: Sequence[KernelParam]) -> None:
    """Warn of `do_not_specialize` on a constexpr, whose value always decides the variant."""
    for param in params:
        if param.is_constexpr and param.do_not_specialize:
            warnings.warn(
                f"'{param.name}' of {kernel} is a constexpr, whose value always decides the "
                "variant: do_not_specialize has no effect on it",
                TilewrightWarning,
                stacklevel=5,  # where `jit` is called
            )


class InterpretedFunction(JITFunction):
    """A kernel that runs as Python; `jit` creates it for the interpreter."""

    def __init__(self, fn: Kernel, **options: Any) -> None:
        given: dict[str, Any] = {**options, "interpret": True}
        super().__init__(fn, **given)


def _kernel(fn: Kernel, interpret: bool | None = None, **options: Any) -> JITFunction:
    interprets = settings().interpreter.enabled if interpret is None else interpret
    return (InterpretedFunction if interprets else JITFunction)(fn, interpret=interpret, **options)


def _plain_function(fn: object) -> FunctionType:
    """The function under `jit`. Raises NotAKernel."""
    fn = fn.fn if isinstance(fn, DeviceFunction) else fn
    fn = cast("object", fn.__func__) if isinstance(fn, staticmethod) else fn
    if isinstance(fn, FunctionType):
        return _unwrapped(fn)
    found, instead = errors.with_article(type(fn).__name__), "decorate a function"
    if isinstance(fn, type):
        found = f"the class {fn.__name__}"
    elif isinstance(fn, partial):
        instead = "decorate the function itself, and give its other arguments at the launch"
    elif isinstance(getattr(fn, "base_fn", None), DeviceFunction):
        instead = "put @jit below the other decorators, right above the function"
    elif callable(fn):
        instead = "decorate a function that is no method"
    raise errors.NotAKernel("jit", "a function written with 'def'", found, instead)


def _unwrapped(fn: FunctionType) -> FunctionType:
    """The function itself. Raises NotAKernel for the wrapper of a decorator, whose code would
    become the kernel."""
    takes_anything = fn.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if takes_anything and "__wrapped__" in vars(fn):
        found = f"a wrapper that a decorator has put around '{fn.__name__}'"
        instead = "put @jit innermost, right above the 'def'"
        raise errors.NotAKernel("jit", "a function written with 'def'", found, instead)
    return fn


class JitOptions(TypedDict, total=False):
    """The options of `jit`, as the decorator describes them."""

    version: object
    repr: Callable[[Any], str] | None
    launch_metadata: Callable[..., Mapping[str, object]] | None
    do_not_specialize: Selection
    do_not_specialize_on_alignment: Selection
    debug: bool | None
    noinline: bool | None
    interpret: bool | None
    strict_triton: bool | None
    int64_offsets: bool | None
    check: str | Sequence[str] | None
    on_miss: str | None


_OPTIONS = JitOptions.__optional_keys__


@overload
def jit(fn: Kernel) -> JITFunction: ...


@overload
def jit(fn: None = None, **options: Unpack[JitOptions]) -> Callable[[Kernel], JITFunction]: ...


def jit(
    fn: Kernel | None = None, **options: object
) -> JITFunction | Callable[[Kernel], JITFunction]:
    """Make a kernel of a Python function; used as `@jit` or `@jit(debug=True)`.

    version: accepted for Triton's sake; repr: function of the specialization that gives the name
    in profiles; launch_metadata: function (grid, metadata, arguments by name) -> dict for launch
    hooks; do_not_specialize: names or positions of parameters whose values must not decide the
    variant; do_not_specialize_on_alignment: those whose divisibility by 16 or 8 must not; debug:
    keep `device_assert`; noinline: accepted, calls are always inlined; interpret: run as Python
    instead of compiling (default: the setting TILEWRIGHT_INTERPRET); strict_triton: refuse what
    Triton's language lacks; int64_offsets: program ids, ranges and integer arguments are int64;
    check: "bounds,race,overflow,uninit" or some of them: report the first access that is wrong in
    this way, on arrays of the host (default: the setting TILEWRIGHT_CHECK); on_miss: what a launch
    does whose variant is not in memory, "compile", "generic", "error" or "log" (default: the
    setting TILEWRIGHT_ON_MISS).

    Launching a kernel raises the designed errors of `tilewright.support.errors`, without frames of
    the compiler.
    """
    given: Any = options

    def make(fn: Kernel) -> JITFunction:
        with user_boundary:
            return _kernel(fn, **given)

    with user_boundary:
        for name in options.keys() - _OPTIONS:
            raise errors.UnknownName("option", name, _OPTIONS, "jit")
        return make if fn is None else _kernel(fn, **given)
