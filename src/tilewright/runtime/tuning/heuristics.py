"""`heuristics`: meta-parameters that are computed from the arguments of each launch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, cast

from tilewright.runtime.tuning.kernel_wrapper import KernelWrapper, Launchable, check_kernel
from tilewright.support import call_user_function, errors, user_boundary

Rule = Callable[[dict[str, Any]], object]


class Heuristics(KernelWrapper):
    """A kernel with computed keywords. values: keyword -> function of the arguments by name."""

    decorator = "heuristics"

    def __init__(
        self, fn: Launchable, arg_names: Sequence[str], values: Mapping[str, Rule]
    ) -> None:
        super().__init__(fn, arg_names)
        self.values = values

    def run(self, *args: object, grid: object, warmup: bool = False, **keywords: object) -> Any:
        """Launch with the computed keywords; with `warmup`, only compile."""
        with user_boundary:
            chosen = self._with_rules(args, keywords)
        return self.fn.run(*args, grid=grid, warmup=warmup, **chosen)

    def warmup(self, *args: object, grid: object = None, **keywords: object) -> Any:
        """Compile what a launch would run."""
        return self.fn.warmup(*args, grid=grid, **self._with_rules(args, keywords))

    def launch_values(self, *args: object, grid: object, **keywords: object) -> Hashable:
        """The keywords, including the computed ones."""
        return self.fn.launch_values(*args, grid=grid, **self._with_rules(args, keywords))

    def _with_rules(self, args: tuple[object, ...], given: Mapping[str, object]) -> dict[str, Any]:
        arguments = self.named_arguments(args, given)
        keywords: dict[str, Any] = dict(given)
        for name, rule in self.values.items():
            what = f"the heuristic for '{name}'"
            value = call_user_function(what, "the dictionary of all arguments", rule, arguments)
            arguments[name] = keywords[name] = value
        return keywords


def heuristics(
    values: Mapping[str, Rule],
) -> Callable[[Launchable], Heuristics]:
    """Decorator: compute keywords of a launch, such as `EVEN`, from its arguments.

        @heuristics({"BLOCK": lambda args: next_power_of_2(args["n"])})
        @jit
        def kernel(x, n, BLOCK: tl.constexpr): ...

    values: keyword -> function of a dictionary of all arguments; they are evaluated in order, and
    each sees those before it. Stacks with `autotune` in either order.
    """
    with user_boundary:
        rules = _checked(values)

    def decorate(fn: Launchable) -> Heuristics:
        with user_boundary:
            check_kernel("heuristics", fn)
            return Heuristics(fn, fn.arg_names, rules)

    return decorate


def _checked(values: object) -> dict[str, Rule]:
    """The checked rules. Raises InvalidOption."""
    if not isinstance(values, Mapping):
        raise errors.InvalidOption("values", "a dictionary: keyword -> function", values)
    rules = dict(cast("Mapping[str, Rule]", values))
    for name, rule in rules.items():
        if not callable(rule):
            raise errors.InvalidOption(f"values['{name}']", "a function of the arguments", rule)
    return rules
