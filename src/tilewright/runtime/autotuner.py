"""`autotune`: measures the configurations of a kernel at its first launch with a key, and keeps
the best."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, cast

from tilewright.backends import Backend
from tilewright.language import TensorDescriptor
from tilewright.runtime.active_driver import backend_of, driver
from tilewright.runtime.arguments.key_rules import HANDLERS, HOST, Spec
from tilewright.runtime.bench import do_bench, do_bench_cudagraph
from tilewright.runtime.jit import DispatchedLaunches, JITFunction
from tilewright.runtime.launch.used_globals import GlobalCheck
from tilewright.runtime.launch.variant_cache import RecordedLaunch
from tilewright.runtime.tuning.array_restore import ArrayState
from tilewright.runtime.tuning.choices import Choices
from tilewright.runtime.tuning.kernel_wrapper import KernelWrapper, Launchable, check_kernel
from tilewright.runtime.tuning.measure_configs import Tuning
from tilewright.runtime.tuning.shared_choice import SharedTuning, Turn, texts_of, together
from tilewright.runtime.tuning.timing_store import SOURCE_DIGITS, Choice, StoredTimings, Timing
from tilewright.runtime.tuning.timing_table import timing_lines
from tilewright.runtime.tuning.trial_launches import Trial
from tilewright.runtime.tuning.tuning_arguments import (
    Bench,
    Hooks,
    PostHook,
    PreHook,
    call_hook_of,
    configs_of,
    name_of,
    names_of,
)
from tilewright.runtime.tuning.tuning_config import Config, Pruning
from tilewright.support import (
    ForkLock,
    Settings,
    errors,
    kernel_hooks,
    settings,
    thread_count,
    user_boundary,
)

_BY_VALUE = (int, float, bool, type(None))
"""Types of keys that machine code compares by value."""


class Autotuner(DispatchedLaunches, KernelWrapper):
    """A kernel with configurations to choose from; made by `autotune`.

    Options of a launch, such as num_warps, beat those of the configuration.

    configs; keys: names of arguments whose values decide the choice; cache: key -> chosen Config;
    best_config: the last one chosen; configs_timings: milliseconds (at QUANTILES) of each
    configuration in the last measurement; bench_time: its seconds.
    """

    decorator = "autotune"

    def __init__(
        self,
        fn: Launchable,
        arg_names: Sequence[str],
        configs: Sequence[Config],
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None = None,
        restore_value: Sequence[str] | None = None,
        pre_hook: PreHook | None = None,
        post_hook: PostHook | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        warmup: float | None = None,
        rep: float | None = None,
        use_cuda_graph: bool = False,
        do_bench: Bench | None = None,
        cache_results: bool | None = None,
        *,
        seconds: float | None = None,
        executor: Executor | None = None,
    ) -> None:
        super().__init__(fn, arg_names)
        self.configs = configs_of(configs) or [Config({})]
        self.keys = names_of("key", key)
        self._cache = Choices()
        # None before the first choice, but not Optional: users read it after a launch
        self._best_config = cast("Config", None)
        self._latest = array("Q", [0])
        self._launched_natively: dict[int, Config] = {}
        self.configs_timings: dict[Config, Timing] = {}
        self.bench_time = 0.0
        self.nargs: dict[str, Any] | None = None
        self.cache_results = cache_results
        self._state = ArrayState(
            names_of("reset_to_zero", reset_to_zero or ()),
            names_of("restore_value", restore_value or ()),
        )
        self.restore_copies: dict[str, Any] = {}
        self.user_defined_pre_hook = pre_hook is not None
        self.user_defined_post_hook = post_hook is not None
        self.pre_hook: PreHook = pre_hook or self._prepare
        self.post_hook: PostHook = post_hook or self._put_back
        self.pruning = Pruning(prune_configs_by)
        self.do_bench = do_bench
        self.num_warmups, self.num_reps = warmup, rep
        self.use_cuda_graph = use_cuda_graph
        self._seconds = seconds
        self._executor = executor
        self._tuned = frozenset(name for config in self.configs for name in config.kwargs)
        self._lock = ForkLock()
        dispatchable = isinstance(fn, JITFunction) and fn.dispatchable
        self._launch = self._launch_first if dispatchable else self._launch_from_python
        self._check_names()
        together.register(self)

    def _check_names(self) -> None:
        """Raise UnknownArgument for a name that is no parameter of the kernel."""
        for name in (*self.keys, *self.reset_to_zero, *self.restore_value):
            if name not in self.arg_names:
                raise errors.UnknownArgument(self.__name__, name, self.arg_names)

    @property
    def cache(self) -> dict[tuple[object, ...], Config]:
        """The chosen configuration of each key; programs may change it."""
        return self._cache

    @cache.setter
    def cache(self, choices: Mapping[tuple[object, ...], Config]) -> None:
        self._cache.clear()
        self._cache.update(choices)

    @property
    def best_config(self) -> Config:
        """The configuration of the latest launch."""
        return self._launched_natively.get(self._latest[0], self._best_config)

    @best_config.setter
    def best_config(self, config: Config) -> None:
        self._best_config = config
        self._latest[0] = 0

    # --- what Triton's autotuners have ------------------------------------------------------------

    @property
    def reset_to_zero(self) -> list[str]:
        """Names of arrays that are zeroed before each trial."""
        return self._state.reset_to_zero

    @property
    def restore_value(self) -> list[str]:
        """Names of arrays that are put back after each trial."""
        return self._state.restore_value

    @property
    def perf_model(self) -> Callable[..., float] | None:
        """The function that estimates times."""
        return self.pruning.model

    @property
    def configs_top_k(self) -> float:
        """The number, or fraction, of configurations with the best estimates that are measured."""
        return self.pruning.top_k

    @property
    def early_config_prune(self) -> Callable[..., list[Config]] | None:
        """The function that removes configurations."""
        return self.pruning.early

    # --- launching --------------------------------------------------------------------------------

    # since its own `run` would give the class the one of `KernelInterface`
    __getitem__ = DispatchedLaunches.__getitem__

    def run(self, *args: object, grid: object, warmup: bool = False, **keywords: Any) -> Any:
        """Launch the best configuration, after measuring if this is the first launch of a kind;
        with `warmup`, only compile."""
        if warmup:
            return Autotuner.warmup(self, *args, grid=grid, **keywords)
        # not by `self[grid]`, which calls the `run` of subclasses that have their own
        return self._launch(grid, *args, **keywords)

    def _launch_from_python(self, grid: object, /, *args: object, **keywords: Any) -> Any:
        with user_boundary:
            self.nargs = self._positional(args)
            named = self.named_arguments(args, keywords)
            config = self._choice(args, grid, keywords, named)
        self.best_config = config
        chosen = {**config.all_kwargs(), **keywords}
        with user_boundary:
            call_hook_of(config, {**named, **chosen})
        result = self.fn.run(*args, grid=grid, warmup=False, **chosen)
        self.nargs = None
        return result

    def _new_dispatch(
        self, args: tuple[object, ...], keywords: Mapping[str, Any]
    ) -> Callable[..., Any]:
        fn = cast("JITFunction", self.fn)
        launch = fn.native_dispatch(self._launch_from_python, self._recorded_by_keys, self.keys)
        if self.has_one_choice(self.named_arguments(args, keywords)):
            launch = fn.native_dispatch(launch, self._recorded_if_one_choice)
        return launch

    def has_one_choice(self, named: Mapping[str, Any]) -> bool:
        """Whether launches with equal descriptors always use one configuration, independent of the
        values of the keys."""
        return len(self.configs) == 1

    def _recorded_if_one_choice(
        self, args: tuple[object, ...], keywords: Mapping[str, Any]
    ) -> RecordedLaunch | None:
        """The recorded launch, if its configuration does not depend on the values of the keys."""
        named = self.named_arguments(args, keywords)
        if not self.has_one_choice(named):
            return None
        config = self.cache.get(self._key(named)) if len(self.configs) > 1 else self.configs[0]
        return self._recorded(args, keywords, config)

    def _recorded_by_keys(
        self, args: tuple[object, ...], keywords: Mapping[str, Any]
    ) -> RecordedLaunch | None:
        """The recorded launch, if the values of the keys decide its configuration."""
        named = self.named_arguments(args, keywords)
        values = [named[name] for name in self.keys if name in named]
        if len(self.configs) == 1 or not all(isinstance(value, _BY_VALUE) for value in values):
            return None
        key = self._key(named)
        return self._recorded(args, keywords, self.cache.get(key), self._cache.check)

    def _recorded(
        self,
        args: tuple[object, ...],
        keywords: Mapping[str, Any],
        config: Config | None,
        *checks: GlobalCheck,
    ) -> RecordedLaunch | None:
        """A launch with a configuration, which becomes `best_config` as by Python."""
        if config is None or config.pre_hook is not None:
            return None
        fn = cast("JITFunction", self.fn)
        launch = fn.recorded_launch(args, {**config.all_kwargs(), **keywords})
        if launch is None:
            return None
        self._launched_natively[id(config)] = config
        note = self._latest, id(config)
        return RecordedLaunch(launch.call, launch.variant, checks, note, launch.served)

    def warmup(self, *args: object, grid: object = None, **keywords: Any) -> list[Any]:
        """Compile every configuration that is not pruned; a list of compiled kernels."""
        named = self.named_arguments(args, keywords)
        positional = self._positional(args)
        left = self.pruning(self.configs, positional, named, keywords, grid=grid, warmup=True)
        return [self.fn.warmup(*args, grid=grid, **{**c.all_kwargs(), **keywords}) for c in left]

    def prune_configs(self, keywords: Mapping[str, Any]) -> list[Config]:
        """The configurations to measure for arguments by name."""
        positional = self.nargs or {}
        return self.pruning(self.configs, positional, {**positional, **keywords}, keywords)

    def _positional(self, args: tuple[object, ...]) -> dict[str, Any]:
        return dict(zip(self.arg_names, args, strict=False))

    def _choice(
        self,
        args: tuple[object, ...],
        grid: object,
        keywords: Mapping[str, Any],
        named: dict[str, Any],
    ) -> Config:
        for name in self._tuned.intersection(keywords):
            raise errors.AutotunerError(
                f"'{name}' is given in the launch of {self.__name__} and also tuned",
                "leave it out of the launch, or out of the configurations",
            )
        if len(self.configs) == 1:
            return self.configs[0]
        key = self._key(named)
        config = self.cache.get(key)
        if config is not None:
            return config
        with self._lock:
            # Another thread may have tuned while this one waited for the lock.
            if key not in self.cache:
                self.cache[key] = self._choose(self._trial(args, grid, keywords, named), key)
            return self.cache[key]

    def _trial(
        self,
        args: tuple[object, ...],
        grid: object,
        keywords: Mapping[str, Any],
        named: dict[str, Any],
    ) -> Trial:
        # read here, since subclasses and programs assign hooks
        hooks = Hooks(self.pre_hook, self.post_hook)
        return Trial(self.fn, hooks, args, grid, keywords, named, self._executor)

    def _prepare(self, arguments: dict[str, Any], reset_only: bool = False) -> None:
        """Before a trial: zero arrays, and save those to restore."""
        self._state.reset(arguments)
        if not reset_only:
            self.restore_copies = self._state.save(arguments)

    def _put_back(self, arguments: dict[str, Any], exception: Exception | None) -> None:
        """After a trial: restore arrays."""
        self._state.restore(arguments, self.restore_copies)
        self.restore_copies = {}

    def _key(self, named: Mapping[str, Any]) -> tuple[object, ...]:
        """Values of the key arguments, and dtypes of all arrays."""
        arguments = {name: named[name] for name in self.arg_names if name in named}
        values = [arguments[name] for name in self.keys if name in arguments]
        dtypes = [str(array.dtype) for array in _arrays(arguments.values())]
        return (*values, *dtypes)

    # --- measuring --------------------------------------------------------------------------------

    def _choose(self, trial: Trial, key: tuple[object, ...]) -> Config:
        # timings of the interpreter say nothing about compiled code
        if together.now is None or self.base_fn.interpreted:
            return self._choose_alone(trial, key)
        with together.now.turn() as turn:
            return self._choose_together(turn, trial, key)

    def _choose_alone(self, trial: Trial, key: tuple[object, ...]) -> Config:
        left = self._pruned(trial)
        if len(left) == 1 or self.base_fn.interpreted:
            return left[0]
        chosen = self._chosen_by_tables(trial, key, left)
        if chosen is not None:
            return chosen
        tuning = self._tuning(trial, key, left)
        known = len(tuning.timings)
        tuning.run(left)
        self.bench_time = tuning.spent
        if not tuning.timings:
            return left[0]
        best = self._best(tuning.timings, trial)
        self._report(key, best, cache_hit=known == len(tuning.timings))
        return best

    def _choose_together(self, turn: Turn, trial: Trial, key: tuple[object, ...]) -> Config:
        """The choice of several processes. Timings are stored when all have theirs, since those of
        processes that share a folder are not comparable before."""
        left = self._pruned(trial)
        tuning = self._tuning(trial, key, left)
        stored, tuning.stored = tuning.stored, None
        known = len(tuning.timings)
        alike = trial.alike(left, tuning.backend)
        groups = {self.configs.index(group[0]): group for group in alike}

        def measure(numbers: Sequence[int], done: Callable[[], object]) -> dict[int, Timing]:
            tuning.done = done
            tuning.add_part([groups[number] for number in numbers])
            timings = {number: tuning.timings.get(groups[number][0]) for number in numbers}
            return {number: timing for number, timing in timings.items() if timing is not None}

        title = ", ".join(filter(None, (self.__name__, self._key_text(key, trial.named))))
        text = "\n".join((title, self.base_fn.cache_key, repr(key), texts_of(self.configs)))
        device = self._device_text(trial, tuning.backend)
        choice = turn.choose(SharedTuning(title, text, device, list(groups), measure))
        self.bench_time = tuning.spent
        best = self.configs[choice.number]
        timings = {
            config: timing for n, timing in choice.timings.items() for config in groups.get(n, ())
        }
        if timings:
            self._best(timings, trial)  # only for its error
            if stored is not None:
                stored.add_all(timings)
            self._report(key, best, cache_hit=known == len(timings))
        return best

    def _pruned(self, trial: Trial) -> list[Config]:
        launch = {"grid": trial.grid, "warmup": False}
        positional = self._positional(trial.args)
        return self.pruning(self.configs, positional, trial.named, trial.keywords, **launch)

    def _tuning(self, trial: Trial, key: tuple[object, ...], left: Sequence[Config]) -> Tuning:
        """The measurement to make, with the timings that are on disk."""
        device, backend = _device(trial.named)
        current = settings()
        tuning_settings = current.autotuning
        stores = tuning_settings.cache if self.cache_results is None else self.cache_results
        stored = self._stored_timings(trial, key, backend, current) if stores else None
        seconds = tuning_settings.seconds if self._seconds is None else self._seconds
        bench = self._bench_on(device)
        tuning = Tuning(self.__name__, trial, backend, bench, stored, seconds)
        if stored is not None and not current.cache.always_compile:
            tuning.timings = stored.read(left)
        if all(timing[0] == float("inf") for timing in tuning.timings.values()):
            tuning.timings = {}  # so that the error can name the reason
        return tuning

    def _chosen_by_tables(
        self, trial: Trial, key: tuple[object, ...], left: Sequence[Config]
    ) -> Config | None:
        """The choice by the tables of the settings; None: measure."""
        current = settings()
        if not current.autotuning.tables:
            return None
        backend = _device(trial.named)[1]
        return self._stored_timings(trial, key, backend, current).from_tables(left)

    def _report(self, key: tuple[object, ...], best: Config, *, cache_hit: bool) -> None:
        if settings().autotuning.print:
            self._print_choice(best)
        self._call_tuned_hook(key, best, cache_hit=cache_hit)

    def _call_tuned_hook(self, key: tuple[object, ...], best: Config, *, cache_hit: bool) -> None:
        if kernel_hooks.tuned is not None:
            kernel_hooks.tuned(
                fn=self.base_fn,
                key=key,
                best_config=best,
                configs_timings=self.configs_timings,
                duration=self.bench_time,
                cache_hit=cache_hit,
            )

    def _stored_timings(
        self, trial: Trial, key: tuple[object, ...], backend: Backend, current: Settings
    ) -> StoredTimings:
        """The timings on disk for this device and method of measurement."""
        target, device = backend.target(), backend.device_name()
        threads = _threads(backend, current)
        keywords = {k: value for k, value in trial.keywords.items() if k not in self.arg_names}
        about = {
            "kernel": self.__name__,
            "key": self._key_text(key, trial.named),
            "target": (device or target.label) + (f" with {threads} threads" if threads else ""),
            "source": self.base_fn.cache_key[:SOURCE_DIGITS],
        }
        circumstances = self._circumstances(backend, current)
        choice = Choice(self.base_fn, key, backend, circumstances, about)
        return StoredTimings(choice, keywords)

    def _circumstances(self, backend: Backend, current: Settings) -> tuple[str, ...]:
        """Texts of everything besides the kernel, its key and the tools that decides timings."""
        measured = (
            _threads(backend, current),
            repr(self._budgets()),
            str(self.use_cuda_graph),
            name_of(self.do_bench),
        )
        device = (repr(backend.target()), backend.device_name())
        return (*device, *measured, current.cache_key())

    def _device_text(self, trial: Trial, backend: Backend) -> str:
        """Text that is equal in processes whose timings may be compared."""
        index = _device(trial.named)[0].partition(":")[2]
        properties = backend.properties(int(index or 0))
        version = backend.tool_versions(backend.target())
        return " ".join((str(properties), version, *self._circumstances(backend, settings())))

    def _key_text(self, key: tuple[object, ...], named: Mapping[str, Any]) -> str:
        """A key as users read it: the values by name, then the dtypes of arrays."""
        names = [name for name in self.keys if name in named and name in self.arg_names]
        values = [f"{name}={value}" for name, value in zip(names, key, strict=False)]
        return ", ".join([*values, *map(str, key[len(names) :])])

    def _best(self, timings: dict[Config, Timing], trial: Trial) -> Config:
        self.configs_timings = timings
        best = min(timings, key=lambda config: timings[config][0])
        if timings[best][0] == float("inf"):
            raise errors.AutotunerError(
                f"no configuration of {self.__name__} can run: {trial.problem}",
                "add smaller configurations",
            ) from trial.problem
        return best

    def _print_choice(self, best: Config) -> None:
        timings = self.configs_timings
        print(
            f"Autotuning of {self.__name__} took {self.bench_time:.2f} s; "
            f"best of {len(timings)}: {best} ({timings[best][0]:.4f} ms)",
            *timing_lines({str(config): timing for config, timing in timings.items()}),
            sep="\n",
        )

    def _bench(self, *args: object, config: Config, grid: object, **keywords: Any) -> Timing:
        """Milliseconds, at QUANTILES, of launches with one configuration (Triton's name)."""
        keywords.pop("warmup", None)
        named = self.named_arguments(args, keywords)
        return self._trial(args, grid, keywords, named).time(
            config, self._bench_on(_device(named)[0])
        )

    def _budgets(self) -> dict[str, float]:
        """The given milliseconds for `do_bench`."""
        given = {"warmup": self.num_warmups, "rep": self.num_reps}
        return {name: ms for name, ms in given.items() if ms is not None}

    def _bench_on(self, device: str) -> Bench:
        if self.do_bench is not None:
            return self.do_bench
        if self.use_cuda_graph and device != HOST:
            return cast("Bench", do_bench_cudagraph)
        return cast("Bench", partial(do_bench, device=device, **self._budgets()))


def _arrays(values: Iterable[Any]) -> Iterator[Any]:
    """The arrays among arguments, including those in tensor descriptors."""
    for value in values:
        array = value.base if isinstance(value, TensorDescriptor) else value
        if hasattr(array, "dtype"):
            yield array


def _device(named: Mapping[str, Any]) -> tuple[str, Backend]:
    """The device of the first array that a backend serves, and that backend."""
    keys = (HANDLERS.key_and_value(array)[0] for array in _arrays(named.values()))
    for device in (key.device for key in keys if isinstance(key, Spec)):
        backend = backend_of(device)
        if backend is not None:
            return device, backend
    backend = driver.active.backend
    return backend.name, backend


def _threads(backend: Backend, current: Settings) -> str:
    # on a CPU, the best configuration depends on the number of threads
    return "" if backend.memory else str(current.cpu.threads or thread_count())


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
    *,
    seconds: float | None = None,
    executor: Executor | None = None,
) -> Callable[[Launchable], Autotuner]:
    """Decorator: choose among configurations by measuring them.

    configs: the configurations; key: parameters whose values, with the dtypes of all arrays,
    decide the choice: each new key is measured.
    prune_configs_by: {"early_config_prune": function (configs, positional, **keywords, with the
    grid and `warmup`) -> configs, "perf_model": function (**arguments) -> estimated time,
    "top_k": number or fraction of configurations}.
    reset_to_zero, restore_value: arrays to zero before, or restore after, each trial;
    pre_hook(arguments, reset_only=False), post_hook(arguments, exception): functions to call
    instead. warmup, rep: milliseconds for `do_bench`; use_cuda_graph: measure inside a CUDA graph
    if possible; do_bench(fn, quantiles=...): the function that measures. cache_results: keep
    timings on disk (default: the setting TILEWRIGHT_CACHE_AUTOTUNING). seconds: time for one
    choice, 0 for no limit (default: the setting TILEWRIGHT_AUTOTUNE_SECONDS). executor: compiles
    the configurations, in other processes or on other machines, see `compile_many`; they are
    measured here, one at a time.

    Equal launches of equal code are measured once; each timing is stored at once. When the time is
    over, the best so far is used, with a warning; the next process measures the others.

    A configuration for which compiling or launching runs out of resources, or fails a
    `static_assert`, is skipped. Errors: AutotunerError, UnknownArgument, InvalidOption,
    NotAKernel; BadCallback for a function that cannot be called as it must be.
    """
    with user_boundary:
        choices, keys = configs_of(configs), names_of("key", key)
        zeroed = names_of("reset_to_zero", reset_to_zero or ())
        restored = names_of("restore_value", restore_value or ())
        Pruning(prune_configs_by)  # only for its errors, which should point to this line

    def decorate(fn: Launchable) -> Autotuner:
        with user_boundary:
            check_kernel("autotune", fn)
            return Autotuner(
                fn, fn.arg_names, choices, keys, zeroed, restored, pre_hook, post_hook,
                prune_configs_by, warmup, rep, use_cuda_graph, do_bench, cache_results,
                seconds=seconds, executor=executor,
            )  # fmt: skip

    return decorate
