"""Trial launches: the arguments of one launch, with one configuration or another."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import field
from functools import partial
from typing import Any

from tilewright.backends import Backend
from tilewright.compiler import CompiledKernel, options_of
from tilewright.runtime.tuning.kernel_wrapper import Launchable
from tilewright.runtime.tuning.timing_store import Timing
from tilewright.runtime.tuning.tuning_arguments import Bench, Hooks, call_hook_of, measured_by
from tilewright.runtime.tuning.tuning_config import Config
from tilewright.support import TilewrightError, errors, usable_cpus
from tilewright.support.asynchronous_exceptions import suppress, synchronous
from tilewright.support.data_class import dataclass

__all__ = ["QUANTILES", "Trial"]

QUANTILES = (0.5, 0.2, 0.8)
"""Of the measured times of a configuration: the first decides."""

_CANNOT_RUN = (
    errors.OutOfResources,
    errors.CompileTimeAssertionFailure,
    errors.PTXASError,
)
"""What only says that a configuration does not fit; anything else is a mistake of the user."""

_MAX_THREADS = 8


@dataclass
class Trial:
    """Launches of `fn` that try configurations.

    hooks: to call around each; args, grid, keywords: of the launch that is to come; named: its
    arguments by name. problem: why the last configuration that cannot run cannot; kernels: what
    configurations have been compiled to, None for those for which that failed.
    """

    fn: Launchable
    hooks: Hooks
    args: tuple[object, ...]
    grid: object
    keywords: Mapping[str, Any]
    named: dict[str, Any]
    problem: TilewrightError | None = None
    kernels: dict[Config, CompiledKernel | None] = field(default_factory=dict[Any, Any])

    def chosen(self, config: Config) -> dict[str, Any]:
        """The keywords of a launch with a configuration; those of the launch itself beat it."""
        return {**config.all_kwargs(), **self.keywords}

    # --- which are the same -----------------------------------------------------------------------

    def alike(self, configs: Iterable[Config], backend: Backend) -> list[list[Config]]:
        """Groups of configurations that run the same, as far as that is known before compiling:
        they differ in options that mean nothing to the backend."""
        return [
            same
            for group in _grouped(configs, partial(self._prior, backend=backend))
            for same in _grouped(group, self._launch if len(group) > 1 else _one)
        ]

    def alike_by_code(self, configs: Iterable[Config]) -> list[list[Config]]:
        """Groups of compiled configurations that have come to the same code, run in the same way;
        one that could not be compiled is alone."""
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
        # What the launch itself gives is the same in all trials, and may be arrays, which are slow
        # to show: of a GPU, they are fetched for it.
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
        """Compile in threads, for some time; tell(how many are done) each time that one is.

        What goes wrong here goes wrong again when it is measured. An external assembler runs beside
        the front end. For the CPU nothing is gained (8 matmuls: 0.20 s instead of 0.21), since
        there is one lock for all of LLVM.
        """
        threads = min(_MAX_THREADS, len(configs), len(usable_cpus()))
        pool = ThreadPoolExecutor(threads, "tilewright-tune")
        try:
            # a copy of the context for each: one context cannot be entered by two threads at a time
            run = contextvars.copy_context
            started = {pool.submit(run().run, self._compile, config): config for config in configs}
            for done, future in enumerate(as_completed(started, seconds), 1):
                self._keep(started[future], future)
                tell(done)
        except synchronous(TimeoutError):
            pass
        finally:
            # those not begun are compiled when they are measured
            pool.shutdown(cancel_futures=True)

    def _compile(self, config: Config) -> Any:
        return self.fn.warmup(*self.args, grid=self.grid, **self.chosen(config))

    def _keep(self, config: Config, future: Future[Any]) -> None:
        self.kernels[config] = None
        with suppress(Exception):
            kernel = future.result()
            if isinstance(kernel, CompiledKernel):
                self.kernels[config] = kernel

    # --- running ----------------------------------------------------------------------------------

    def time(self, config: Config, bench: Bench) -> Timing:
        """Milliseconds at each of the QUANTILES; infinite for a configuration that cannot run."""
        try:
            return measured_by(bench, partial(self._call, config), QUANTILES)
        except _CANNOT_RUN as problem:
            self.problem = problem
            return [float("inf")] * len(QUANTILES)

    def clean(self) -> None:
        """After the trials: what accumulates must begin at zero in the launch proper."""
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
    """Those with equal keys together, in the order of the first of each."""
    groups: dict[Hashable, list[Config]] = {}
    for config in configs:
        groups.setdefault(key(config), []).append(config)
    return groups.values()


def _one(config: Config) -> Hashable:
    return None
