"""Checks of the arguments of `autotune`: configurations, names, functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, cast

from tilewright.runtime.tuning.tuning_config import Config
from tilewright.support import call_user_function, errors
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass


class Bench(Protocol):
    """Measurement of a call: milliseconds at each quantile."""

    def __call__(self, fn: Any, *, quantiles: Sequence[float]) -> Any: ...


class PreHook(Protocol):
    """Called with the arguments by name before a trial, and with reset_only before the actual
    launch."""

    def __call__(self, arguments: dict[str, Any], reset_only: bool = False) -> object: ...


class PostHook(Protocol):
    """Called with the arguments by name after a trial, and with the exception it has raised."""

    def __call__(self, arguments: dict[str, Any], exception: Exception | None) -> object: ...


_ARGUMENTS = "the dictionary of all arguments"


@dataclass(frozen=True, slots=True)
class Hooks:
    """The functions to call around trials. Errors: BadCallback, their own."""

    pre: PreHook
    post: PostHook

    def before(self, arguments: dict[str, Any], **reset_only: bool) -> None:
        """Call the hook before a trial, or before the actual launch."""
        takes = f"{_ARGUMENTS}, and reset_only=True before the actual launch"
        call_user_function("pre_hook", takes, self.pre, arguments, **reset_only)

    def after(self, arguments: dict[str, Any], problem: Exception | None) -> None:
        """Call the hook after a trial."""
        call_user_function(
            "post_hook", f"{_ARGUMENTS}, and exception=", self.post, arguments, exception=problem
        )


def call_hook_of(config: Config, arguments: dict[str, Any]) -> None:
    """Call the hook of a configuration before a launch with it, if there is one."""
    if config.pre_hook is not None:
        call_user_function("pre_hook of a Config", _ARGUMENTS, config.pre_hook, arguments)


def measured_by(bench: Bench, fn: Any, quantiles: Sequence[float]) -> list[float]:
    """Milliseconds at each quantile. Errors: BadCallback, AutotunerError, those of the call."""
    timing = call_user_function(
        "do_bench", "a function to time, and quantiles=", bench, fn, quantiles=quantiles
    )
    several = cast("Sequence[Any]", timing if isinstance(timing, list | tuple) else [timing])
    try:
        return [float(ms) for ms in several]
    except synchronous(TypeError, ValueError):
        raise errors.AutotunerError(
            f"do_bench returned {timing!r}", "return milliseconds: one for each quantile"
        ) from None


def name_of(bench: Bench | None) -> str:
    """A name of a function that measures; "" for that of this package."""
    if bench is None:
        return ""
    kind = type(bench)
    name = getattr(bench, "__qualname__", kind.__qualname__)
    return f"{getattr(bench, '__module__', kind.__module__)}.{name}"


def configs_of(given: object) -> list[Config]:
    """The configurations in a list. Raises InvalidOption."""
    found = _items(given)
    if not all(isinstance(config, Config) for config in found):
        raise errors.InvalidOption("configs", "a list of Config", given)
    return cast("list[Config]", found)


def names_of(option: str, given: object) -> list[str]:
    """The names of parameters in a list. Raises InvalidOption."""
    found = [None] if isinstance(given, str) else _items(given)
    if not all(isinstance(name, str) for name in found):
        raise errors.InvalidOption(option, "a list of names of parameters", given)
    return cast("list[str]", found)


def _items(given: object) -> list[object]:
    """The items of a list; None for an object without items."""
    return list(cast("Iterable[object]", given)) if isinstance(given, Iterable) else [None]
