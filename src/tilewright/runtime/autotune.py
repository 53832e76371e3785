"""`autotune`: measures a kernel's configurations at its first launch of a kind, keeps the best."""

from __future__ import annotations

import contextvars
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, cast

from tilewright.backends import Backend
from tilewright.runtime.active_driver import backend_of, driver
from tilewright.runtime.array_state import ArrayState
from tilewright.runtime.bench import do_bench, do_bench_cudagraph, step_bar
from tilewright.runtime.configs import Config, Pruning
from tilewright.runtime.found import Found
from tilewright.runtime.jit import JITFunction
from tilewright.runtime.specialize import HANDLERS, HOST, Spec
from tilewright.runtime.tuning_arguments import (
    Bench,
    Hooks,
    PostHook,
    PreHook,
    call_hook_of,
    configs_of,
    measured_by,
    names_of,
)
from tilewright.runtime.tuning_store import Timing, choice_name, read_timings, write_timings
from tilewright.runtime.variant import GlobalCheck
from tilewright.runtime.wrapper import KernelWrapper
from tilewright.support import ForkLock, TilewrightError, errors, settings, user_boundary

QUANTILES = (0.5, 0.2, 0.8)
"""Of the measured times of a configuration: the first decides."""

_CANNOT_RUN = (
    errors.OutOfResources,
    errors.CompileTimeAssertionFailure,
    errors.PTXASError,
)
"""What only says that a configuration does not fit; anything else is a mistake of the user."""

_MOST_THREADS = 8

_BY_VALUE = (int, float, bool, type(None))
"""Keys that machine code compares by value."""


class Autotuner(KernelWrapper):
    """A kernel with configurations to choose from; made by `autotune`.

    Options of a launch, such as num_warps, beat those of the configuration.

    configs; keys: names of arguments whose values decide the choice; cache: key -> chosen Config;
    best_config: the last one chosen; configs_timings: milliseconds (at QUANTILES) of each that was
    measured last; bench_time: seconds that this took.
    """

    decorator = "autotune"

    def __init__(
        self,
        fn: JITFunction | KernelWrapper,
        configs: Sequence[Config],
        key: Sequence[str],
        pruning: Pruning,
        state: ArrayState,
        bench: Bench | None,
        budgets: Mapping[str, float],
        hooks: Hooks,
        use_cuda_graph: bool = False,
        cache_results: bool | None = None,
    ) -> None:
        super().__init__(fn)
        self.configs = list(configs) or [Config({})]
        self.keys = list(key)
        self.cache: dict[tuple[object, ...], Config] = {}
        self.best_config: Config | None = None
        self.configs_timings: dict[Config, Timing] = {}
        self.bench_time = 0.0
        self.cache_results = cache_results
        self._pruning = pruning
        self._state = state
        self._bench = bench
        self._budgets = dict(budgets)
        self._hooks = hooks
        self._use_cuda_graph = use_cuda_graph
        self._tuned = frozenset(name for config in self.configs for name in config.kwargs)
        self._lock = ForkLock()
        self._launch: Callable[..., Any] = self._run
        self._can_dispatch = isinstance(fn, JITFunction) and fn.dispatchable
        self._check_names()

    def _check_names(self) -> None:
        """Raise UnknownArgument for a name that the kernel has no parameter for."""
        for name in (*self.keys, *self._state.reset_to_zero, *self._state.restore_value):
            if name not in self.arg_names:
                raise errors.UnknownArgument(self.__name__, name, self.arg_names)

    # --- launching --------------------------------------------------------------------------------

    def __getitem__(self, grid: object) -> Callable[..., Any]:
        """`kernel[grid]`, to be called with the arguments."""
        hooks = self.base_fn.pre_run_hooks
        return partial(self._run if hooks else self._launch, grid)

    def run(self, *args: object, grid: object, **words: Any) -> Any:
        """Launch the best configuration, after measuring if this is the first launch of a kind."""
        return self[grid](*args, **words)

    def _run(self, grid: object, /, *args: object, **words: Any) -> Any:
        with user_boundary:
            named = self.named_arguments(args, words)
            config = self._choice(args, grid, words, named)
        self.best_config = config
        chosen = {**config.all_kwargs(), **words}
        with user_boundary:
            call_hook_of(config, {**named, **chosen})
        result = self.fn.run(*args, grid=grid, **chosen)
        if self._can_dispatch:
            self._can_dispatch, self._launch = False, self._launch_again
        return result

    def _launch_again(self, grid: object, /, *args: object, **words: Any) -> Any:
        """The second launch: from here on, machine code makes those that are like others."""
        fn = cast("JITFunction", self.fn)
        launch = fn.dispatched(self._run, self._find, self.keys)
        if self.is_settled(self.named_arguments(args, words)):
            launch = fn.dispatched(launch, self._find_settled)
        self._launch = launch
        with user_boundary:
            return launch(grid, *args, **words)

    def is_settled(self, named: Mapping[str, Any]) -> bool:
        """Whether arguments like these, by name, always get one configuration, whatever the values
        of those that decide the choice."""
        return len(self.configs) == 1

    def _find_settled(self, args: tuple[object, ...], words: Mapping[str, Any]) -> Found | None:
        """What a launch has run, if launches like it are the same whatever the values."""
        named = self.named_arguments(args, words)
        if not self.is_settled(named):
            return None
        config = self.cache.get(self._key(named)) if len(self.configs) > 1 else self.configs[0]
        return self._found(args, words, config)

    def _find(self, args: tuple[object, ...], words: Mapping[str, Any]) -> Found | None:
        """What a launch has run, if launches like it with the same values of keys are the same."""
        named = self.named_arguments(args, words)
        values = [named[name] for name in self.keys if name in named]
        if len(self.configs) == 1 or not all(isinstance(value, _BY_VALUE) for value in values):
            return None
        key = self._key(named)
        config = self.cache.get(key)
        return self._found(args, words, config, (self.cache.get, key, config))

    def _found(
        self,
        args: tuple[object, ...],
        words: Mapping[str, Any],
        config: Config | None,
        *checks: GlobalCheck,
    ) -> Found | None:
        """A launch with a configuration; machine code notes it as the last one, as `_run` does."""
        if config is None or config.pre_hook is not None:
            return None
        found = cast("JITFunction", self.fn).find(args, {**config.all_kwargs(), **words})
        if found is None:
            return None
        noted = (partial(setattr, self, "best_config"), config, None)
        return Found(found.call, found.variant, (*checks, noted))

    def warmup(self, *args: object, grid: object = None, **words: Any) -> list[Any]:
        """Compile every configuration that is not pruned; a list of compiled kernels."""
        named = self.named_arguments(args, words)
        left = self._pruning(self.configs, named, words)
        return [self.fn.warmup(*args, grid=grid, **{**c.all_kwargs(), **words}) for c in left]

    def prune_configs(self, words: Mapping[str, Any]) -> list[Config]:
        """The configurations that would be measured for arguments given by name."""
        return self._pruning(self.configs, dict(words), {})

    def _choice(
        self,
        args: tuple[object, ...],
        grid: object,
        words: Mapping[str, Any],
        named: dict[str, Any],
    ) -> Config:
        for name in self._tuned.intersection(words):
            raise errors.AutotunerError(
                f"'{name}' is given in the launch of {self.__name__} and tuned too",
                "leave it out of the launch, or out of the configurations",
            )
        if len(self.configs) == 1:
            return self.configs[0]
        key = self._key(named)
        found = self.cache.get(key)
        if found is not None:
            return found
        with self._lock:
            if key not in self.cache:
                self.cache[key] = self._choose(_Trial(self, args, grid, words, named), key)
            return self.cache[key]

    def _key(self, named: Mapping[str, Any]) -> tuple[object, ...]:
        """Values of the key arguments, and dtypes of all arrays."""
        arguments = {name: named[name] for name in self.arg_names if name in named}
        values = [arguments[name] for name in self.keys if name in arguments]
        dtypes = [str(arg.dtype) for arg in arguments.values() if hasattr(arg, "dtype")]
        return (*values, *dtypes)

    # --- measuring --------------------------------------------------------------------------------

    def _choose(self, trial: _Trial, key: tuple[object, ...]) -> Config:
        left = self._pruning(self.configs, trial.named, trial.words)
        if len(left) == 1 or self.base_fn.interpreted:
            return left[0]
        device, backend = _device(trial.named)
        keep = settings().autotuning.cache if self.cache_results is None else self.cache_results
        target = backend.target()
        texts = (repr(target), backend.version(target))
        name = choice_name(self.base_fn, self.configs, key, texts)
        timings = None
        if keep and not settings().cache.always_compile:
            timings = read_timings(name, self.configs)
        if timings is None:
            timings = self._measured(trial, left, device)
            if keep:
                write_timings(name, self.configs, timings)
        return self._best(timings, trial)

    def _best(self, timings: dict[Config, Timing], trial: _Trial) -> Config:
        self.configs_timings = timings
        best = min(timings, key=lambda config: timings[config][0])
        if timings[best][0] == float("inf"):
            raise errors.AutotunerError(
                f"no configuration of {self.__name__} can run: {trial.problem}",
                "add smaller configurations",
            ) from trial.problem
        if settings().autotuning.print:
            print(
                f"Autotuning of {self.__name__} took {self.bench_time:.2f} s; "
                f"best of {len(timings)}: {best} ({timings[best][0]:.4f} ms)"
            )
        return best

    def _measured(
        self, trial: _Trial, configs: Sequence[Config], device: str
    ) -> dict[Config, Timing]:
        """Milliseconds of each configuration; infinite for one that cannot run."""
        start = time.perf_counter()
        trial.compile_all(configs)
        timings: dict[Config, Timing] = {}
        with step_bar(f"tuning {self.__name__}", len(configs)) as step:
            for config in configs:
                step(str(config))
                timings[config] = trial.time(config, self._bench_on(device))
        self._clean(trial)
        self.bench_time = time.perf_counter() - start
        return timings

    def _clean(self, trial: _Trial) -> None:
        """After the trials: what accumulates must begin at zero in the launch proper."""
        if not self._hooks.before(trial.named, reset_only=True):
            self._state.reset(trial.named)

    def _bench_on(self, device: str) -> Bench:
        if self._bench is not None:
            return self._bench
        if self._use_cuda_graph and device != HOST:
            return cast("Bench", do_bench_cudagraph)
        return cast("Bench", partial(do_bench, device=device, **self._budgets))

    def before_trial(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Prepare the arrays for a trial; what `after_trial` needs to put them back."""
        if self._hooks.before(arguments):
            return {}
        self._state.reset(arguments)
        return self._state.save(arguments)

    def after_trial(
        self, arguments: dict[str, Any], saved: dict[str, Any], problem: Exception | None
    ) -> None:
        """Put the arrays back."""
        if not self._hooks.after(arguments, problem) and saved:
            self._state.restore(arguments, saved)


class _Trial:
    """Trial launches with the arguments of one launch."""

    def __init__(
        self,
        tuner: Autotuner,
        args: tuple[object, ...],
        grid: object,
        words: Mapping[str, Any],
        named: dict[str, Any],
    ) -> None:
        self.words = words
        self.named = named
        self.problem: TilewrightError | None = None
        self._tuner = tuner
        self._args = args
        self._grid = grid

    def compile_all(self, configs: Sequence[Config]) -> None:
        """Compile in threads; what goes wrong here goes wrong again when it is measured.

        An external assembler runs beside the front end. For the CPU nothing is gained (8 matmuls:
        0.20 s instead of 0.21), since llvmlite has one lock for all of LLVM.
        """
        threads = min(_MOST_THREADS, len(configs), os.cpu_count() or 1)
        with ThreadPoolExecutor(threads, "tilewright-tune") as pool:
            for config in configs:
                pool.submit(contextvars.copy_context().run, self._compile, config)

    def _compile(self, config: Config) -> None:
        words = {**config.all_kwargs(), **self.words}
        self._tuner.fn.warmup(*self._args, grid=self._grid, **words)

    def time(self, config: Config, bench: Bench) -> Timing:
        """Milliseconds at each quantile."""
        try:
            return measured_by(bench, partial(self._call, config), QUANTILES)
        except _CANNOT_RUN as problem:
            self.problem = problem
            return [float("inf")] * len(QUANTILES)

    def _call(self, config: Config) -> None:
        chosen = {**config.all_kwargs(), **self.words}
        arguments = {**self.named, **chosen}
        call_hook_of(config, arguments)
        saved = self._tuner.before_trial(arguments)
        try:
            self._tuner.fn.run(*self._args, grid=self._grid, **chosen)
        except Exception as problem:
            self._tuner.after_trial(arguments, saved, problem)
            raise
        self._tuner.after_trial(arguments, saved, None)


def _device(named: Mapping[str, Any]) -> tuple[str, Backend]:
    """Where the first array is that a backend serves, and that backend."""
    arrays = (value for value in named.values() if hasattr(value, "dtype"))
    keys = (HANDLERS.key_and_value(array)[0] for array in arrays)
    for device in (key.device for key in keys if isinstance(key, Spec)):
        backend = backend_of(device)
        if backend is not None:
            return device, backend
    backend = driver.active.backend
    return backend.name, backend


def is_on_host(named: Mapping[str, Any]) -> bool:
    """Whether arguments, by name, are in the memory of the CPU."""
    return _device(named)[1].memory is None


def autotune(
    configs: Sequence[Config],
    key: Sequence[str],
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: PreHook | None = None,
    post_hook: PostHook | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Bench | None = None,
    cache_results: bool | None = None,
) -> Callable[[JITFunction | KernelWrapper], Autotuner]:
    """Decorator: choose among configurations by measuring them.

    configs: what to choose from; key: parameters whose values, with the dtypes of all arrays,
    decide the choice: new ones are measured anew.
    prune_configs_by: {"early_config_prune": function (configs, arguments, **keywords) -> configs,
    "perf_model": function (**arguments) -> estimated time, "top_k": how many, or which part}.
    reset_to_zero, restore_value: arrays to be zeroed before, or put back after, each trial;
    pre_hook(arguments, reset_only=False), post_hook(arguments, exception): functions to call
    instead. warmup, rep: milliseconds for `do_bench`; use_cuda_graph: measure inside a CUDA graph
    where there is one; do_bench(fn, quantiles=...): measure by this. cache_results: keep the choice
    on disk (default: the setting TILEWRIGHT_CACHE_AUTOTUNING).

    A configuration for which compiling or launching runs out of resources, or fails a
    `static_assert`, is passed over. Errors: AutotunerError, UnknownArgument, InvalidOption,
    NotAKernel; BadCallback for a function that cannot be called as it must be.
    """
    budgets = {name: ms for name, ms in (("warmup", warmup), ("rep", rep)) if ms is not None}
    with user_boundary:
        choices, keys = configs_of(configs), names_of("key", key)
        zeroed = names_of("reset_to_zero", reset_to_zero or ())
        restored = names_of("restore_value", restore_value or ())
        pruning = Pruning(prune_configs_by)

    def decorate(fn: JITFunction | KernelWrapper) -> Autotuner:
        with user_boundary:
            return Autotuner(
                fn,
                choices,
                keys,
                pruning,
                ArrayState(zeroed, restored),
                do_bench,
                budgets,
                Hooks(pre_hook, post_hook),
                use_cuda_graph,
                cache_results,
            )

    return decorate
