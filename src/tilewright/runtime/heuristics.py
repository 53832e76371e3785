"""`heuristics`: meta-parameters that are computed from the arguments of each launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.runtime.jit import JITFunction
from tilewright.runtime.wrapper import KernelWrapper

Rule = Callable[[dict[str, Any]], object]


class Heuristics(KernelWrapper):
    """A kernel some of whose keywords are computed: `values` maps each to a function of the
    arguments by name."""

    def __init__(self, fn: JITFunction | KernelWrapper, values: Mapping[str, Rule]) -> None:
        super().__init__(fn)
        self.values = dict(values)

    def run(self, *args: object, grid: object, **words: object) -> Any:
        """Launch with the computed keywords."""
        return self.fn.run(*args, grid=grid, **self._with_rules(args, words))

    def warmup(self, *args: object, grid: object = None, **words: object) -> Any:
        """Compile what a launch would run."""
        return self.fn.warmup(*args, grid=grid, **self._with_rules(args, words))

    def _with_rules(self, args: tuple[object, ...], words: Mapping[str, object]) -> dict[str, Any]:
        known = self.named_arguments(args, words)
        found: dict[str, Any] = dict(words)
        for name, rule in self.values.items():
            known[name] = found[name] = rule(known)
        return found


def heuristics(
    values: Mapping[str, Rule],
) -> Callable[[JITFunction | KernelWrapper], Heuristics]:
    """Decorator: compute keywords of a launch, such as `EVEN`, from its arguments.

        @heuristics({"BLOCK": lambda args: next_power_of_2(args["n"])})
        @jit
        def kernel(x, n, BLOCK: tl.constexpr): ...

    values: keyword -> function of a dictionary of all arguments; they are evaluated in order, and
    each sees those before it. Stacks with `autotune` in either order.
    """
    return lambda fn: Heuristics(fn, values)
