"""`Config`: one choice of meta-parameters and options; pruning of lists of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from tilewright.support import call_user_function, errors, user_boundary

_OPTIONS = ("num_warps", "num_ctas", "num_stages", "maxnreg", "ir_override")


class Config:
    """One configuration that an autotuner may choose.

    kwargs: meta-parameters by name; num_warps, num_stages, num_ctas, maxnreg: options of the
    launch; pre_hook: called with all arguments by name before each launch with this configuration;
    ir_override: path of a file that replaces a stage of the compiler.
    """

    def __init__(
        self,
        kwargs: Mapping[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], object] | None = None,
        ir_override: str | None = None,
    ) -> None:
        with user_boundary:
            if not isinstance(cast("object", kwargs), Mapping):
                raise errors.InvalidOption("kwargs", "a dictionary of meta-parameters", kwargs)
        self.kwargs = dict(kwargs)
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    def all_kwargs(self) -> dict[str, Any]:
        """Meta-parameters and options, as they are passed to the launch."""
        options = {name: getattr(self, name) for name in _OPTIONS}
        return {**self.kwargs, **{k: v for k, v in options.items() if v is not None}}

    def _identity(self) -> tuple[object, ...]:
        return (*self.all_kwargs().items(), self.pre_hook)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.all_kwargs().items())

    def __repr__(self) -> str:
        return f"Config({self})"


class Pruning:
    """Pruning of configurations before an autotuner measures them.

    early: function (configs, positional arguments by name, **keywords) -> configs that may work;
    model: function (**arguments and meta-parameters) -> estimated time; top_k: number, or fraction
    up to 1.0, of configurations with the best estimates that are measured.
    """

    def __init__(self, by: Mapping[str, Any] | None) -> None:
        by = by or {}
        if not isinstance(cast("object", by), Mapping):
            raise errors.InvalidOption("prune_configs_by", "a dictionary", by)
        names = ("early_config_prune", "perf_model", "top_k")
        for name in by:
            # `torch.compile` copies an autotuner by this attribute
            if name not in (*names, "configs_top_k"):
                raise errors.UnknownName("entry", name, names, "prune_configs_by")
        self.early: Callable[..., list[Config]] | None = by.get("early_config_prune")
        self.model: Callable[..., float] | None = by.get("perf_model")
        self.top_k: float = by.get("top_k", by.get("configs_top_k", 1.0))

    def __call__(
        self,
        configs: Sequence[Config],
        positional: dict[str, Any],
        named: dict[str, Any],
        keywords: Mapping[str, Any],
        **launch: object,
    ) -> list[Config]:
        """The configurations that are left.

        positional: arguments by name, without those among the keywords; named: all of them;
        launch: passed to `early` with the keywords. Raises AutotunerError if none is left.
        """
        left = list(configs)
        if self.early is not None:
            left = self._pruned(self.early, left, positional, {**keywords, **launch})
        if self.model is not None:
            estimates = [
                _estimated(self.model, {**named, **keywords, **config.all_kwargs()})
                for config in left
            ]
            order = sorted(range(len(left)), key=estimates.__getitem__)
            # a fraction of all configurations, not of those that `early` returned, as in Triton
            left = [left[i] for i in order[: self._count(len(configs))]]
        return left

    @staticmethod
    def _pruned(
        early: Callable[..., object],
        configs: list[Config],
        named: dict[str, Any],
        keywords: Mapping[str, Any],
    ) -> list[Config]:
        takes = "the configurations, the positional arguments by name, and the keywords"
        left = call_user_function("early_config_prune", takes, early, configs, named, **keywords)
        if not isinstance(left, list | tuple) or not _are_configs(cast("Sequence[object]", left)):
            raise errors.AutotunerError(
                f"early_config_prune returned {left!r}",
                "return a list of the configurations that may work",
            )
        if not left:
            raise errors.AutotunerError(
                "early_config_prune returned no configuration",
                "return at least one of the given configurations",
            )
        return list(cast("Sequence[Config]", left))

    def _count(self, total: int) -> int:
        if isinstance(self.top_k, float) and self.top_k <= 1.0:
            return max(1, int(total * self.top_k))
        if isinstance(self.top_k, int):
            return max(1, self.top_k)
        raise errors.InvalidOption("top_k", "an int, or a float up to 1.0", self.top_k)


def _are_configs(items: Sequence[object]) -> bool:
    return all(isinstance(item, Config) for item in items)


def _estimated(model: Callable[..., object], keywords: dict[str, Any]) -> float:
    estimate = call_user_function(
        "perf_model", "all arguments and meta-parameters by name", model, **keywords
    )
    if isinstance(estimate, int | float):
        return estimate
    raise errors.AutotunerError(
        f"perf_model returned {estimate!r}", "return an estimated time, a number"
    )
