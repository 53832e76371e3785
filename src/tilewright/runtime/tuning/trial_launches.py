"""Trial launches: the arguments of one launch with different configurations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from dataclasses import field
from functools import partial
from typing import Any

from tilewright import compiler
from tilewright.backends import Backend
from tilewright.compiler import CompiledKernel, options_of
from tilewright.runtime.launch.variant_cache import in_trial
from tilewright.runtime.tuning.kernel_wrapper import Launchable
from tilewright.runtime.tuning.timing_store import Timing
from tilewright.runtime.tuning.tuning_arguments import Bench, Hooks, call_hook_of, measured_by
from tilewright.runtime.tuning.tuning_config import Config
from tilewright.support import TilewrightError, errors, usable_cpus
from tilewright.support.asynchronous_exceptions import suppress, synchronous
from tilewright.support.data_class import dataclass

QUANTILES = (0.5, 0.2, 0.8)
"""Quantiles of the measured times of a configuration: the first decides."""

_CANNOT_RUN = (
    errors.OutOfResources,
    errors.CompileTimeAssertionFailure,
    errors.PTXASError,
)
"""Errors that only mean that a configuration does not fit; others are mistakes of the user."""

_MAX_THREADS = 8


@dataclass
class Trial:
    """Launches of `fn` that try configurations.

    hooks: called around each; args, grid, keywords: of the launch; named: its arguments by name;
    executor: compiles, instead of threads of this process.
    problem: the error of the last configuration that cannot run; kernels: compiled kernels of
    configurations, None for those that cannot be compiled; crashed: configurations that end each
    process that compiles them.
    """

    fn: Launchable
    hooks: Hooks
    args: tuple[object, ...]
    grid: object
    keywords: Mapping[str, Any]
    named: dict[str, Any]
    executor: Executor | None = None
    problem: TilewrightError | None = None
    kernels: dict[Config, CompiledKernel | None] = field(default_factory=dict[Any, Any])
    crashed: dict[Config, TilewrightError] = field(default_factory=dict[Any, Any])

    def chosen(self, config: Config) -> dict[str, Any]:
        """The keywords of a launch with a configuration, which those of the launch override."""
        return {**config.all_kwargs(), **self.keywords}

    # --- which are the same -----------------------------------------------------------------------

    def alike(self, configs: Iterable[Config], backend: Backend) -> list[list[Config]]:
        """Groups of configurations that are known before compiling to run equal code: they differ
        in options that the backend ignores."""
        return [
            same
            for group in _grouped(configs, partial(self._prior, backend=backend))
            for same in _grouped(group, self._launch if len(group) > 1 else _one)
        ]

    def alike_by_code(self, configs: Iterable[Config]) -> list[list[Config]]:
        """Groups of compiled configurations with equal code and equal launches; one that could not
        be compiled is a group alone."""
        return [
            same
            for group in _grouped(configs, self._code)
            for same in _grouped(group, self._launch if len(group) > 1 else _one)
        ]

    def _prior(self, config: Config, backend: Backend) -> Hashable:
        chosen = self.chosen(config)
        parameters = self.fn.arg_names
        options = backend.options.names().intersection(chosen).difference(parameters)
        try:
            launch_options = options_of(backend, {name: chosen.pop(name) for name in options})
        except TilewrightError:  # which the trial will raise
            return id(config)
        # Keywords of the launch are equal in all trials, and may be arrays, whose `repr` is slow:
        # it copies them from a GPU.
        own = {name: value for name, value in chosen.items() if name not in self.keywords}
        return (launch_options.meaningful(), repr(own), config.pre_hook)

    def _code(self, config: Config) -> Hashable:
        kernel = self.kernels.get(config)
        return id(config) if kernel is None else (kernel.identity, config.pre_hook)

    def _launch(self, config: Config) -> Hashable:
        """Grid and run-time arguments, which may depend on the configuration."""
        with suppress(Exception):  # which the trial will raise
            return self.fn.launch_values(*self.args, grid=self.grid, **self.chosen(config))
        return id(config)

    # --- compiling --------------------------------------------------------------------------------

    def compile(
        self, configs: Sequence[Config], seconds: float | None, tell: Callable[[int], object]
    ) -> None:
        """Compile, for a limited time; `tell(count)` is called after each one. Errors:
        OtherCompiler.

        Another error is raised again by the measurement. Without an executor, threads compile: an
        external assembler runs in parallel to the front end; the CPU gains nothing, since LLVM has
        one lock.
        """
        threads = min(_MAX_THREADS, len(configs), len(usable_cpus()))
        pool = ThreadPoolExecutor(threads, "tilewright-tune")
        calls = [partial(self._compile, config) for config in configs]
        started = compiler.start_compilations(calls, self.executor or pool)
        config_of = dict(zip(started, configs, strict=True))
        try:
            for done, future in enumerate(as_completed(config_of, seconds), 1):
                self._keep(config_of[future], future)
                tell(done)
        except synchronous(TimeoutError):
            pass
        finally:
            # those that were not started are compiled when they are measured
            started.cancel()
            pool.shutdown()

    def _compile(self, config: Config) -> Any:
        return self.fn.warmup(*self.args, grid=self.grid, **self.chosen(config))

    def _keep(self, config: Config, future: Future[Any]) -> None:
        self.kernels[config] = None
        try:
            kernel = future.result()
        except errors.OtherCompiler:
            raise
        except errors.CompilerCrashed as problem:
            self.problem = self.crashed[config] = problem
        except synchronous(Exception):
            pass
        else:
            if isinstance(kernel, CompiledKernel):
                self.kernels[config] = kernel

    # --- running ----------------------------------------------------------------------------------

    def time(self, config: Config, bench: Bench) -> Timing:
        """Milliseconds at each of the QUANTILES; infinite for a configuration that cannot run."""
        if config in self.crashed:  # this process would crash as well
            return [float("inf")] * len(QUANTILES)
        trial = in_trial.set(True)
        try:
            return measured_by(bench, partial(self._call, config), QUANTILES)
        except _CANNOT_RUN as problem:
            self.problem = problem
            return [float("inf")] * len(QUANTILES)
        finally:
            in_trial.reset(trial)

    def clean(self) -> None:
        """Zero arrays after the trials, since the actual launch must accumulate from zero."""
        self.hooks.before(self.named, reset_only=True)

    def _call(self, config: Config) -> None:
        chosen = self.chosen(config)
        arguments = {**self.named, **chosen}
        call_hook_of(config, arguments)
        self.hooks.before(arguments)
        try:
            self.fn.run(*self.args, grid=self.grid, warmup=False, **chosen)
        except synchronous(Exception) as problem:
            self.hooks.after(arguments, problem)
            raise
        self.hooks.after(arguments, None)


def _grouped(
    configs: Iterable[Config], key: Callable[[Config], Hashable]
) -> Iterable[list[Config]]:
    """Groups of configurations with equal keys, in the order of the first of each."""
    groups: dict[Hashable, list[Config]] = {}
    for config in configs:
        groups.setdefault(key(config), []).append(config)
    return groups.values()


def _one(config: Config) -> Hashable:
    return None
