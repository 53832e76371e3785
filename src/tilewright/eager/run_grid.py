"""Execution of a kernel as a Python function, once for each program instance."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from tilewright.eager.bind_arguments import is_constexpr
from tilewright.eager.eager_dispatcher import EagerDispatcher
from tilewright.eager.error_location import definition_of, location_in
from tilewright.eager.host_values import annotations_of, language_value
from tilewright.eager.misspelt_names import designed_error
from tilewright.frontend import FrontendOptions
from tilewright.frontend.python import advise_operands
from tilewright.interp import (
    AccessChecks,
    Machine,
    Memory,
    program_id,
    program_ids,
    write_to_stdout,
)
from tilewright.language import DeviceFunction
from tilewright.support import TilewrightError, checks_of, errors, normal_grid, settings

_REST = inspect.Parameter.VAR_POSITIONAL


def run_kernel(
    fn: DeviceFunction,
    grid: tuple[int, ...],
    arguments: Mapping[str, object],
    options: FrontendOptions | None = None,
    *,
    pid: tuple[int, ...] | None = None,
    write: Callable[[str], object] = write_to_stdout,
    check: object = "",
    unspecialized: Collection[str] = (),
) -> None:
    """Run every program instance of a grid in order; arrays change in place.

    arguments: parameter name -> array, number, tuple, None, constexpr, or compile-time value; names
    that are not parameters go to the kernel's `**META`. Missing parameters take their defaults.
    pid: run only this instance (default: the setting `interpreter.program_id`). write: receives the
    output of `tl.device_print`. check: kinds of `interp.access_checks` (default: the setting).
    unspecialized: parameters whose integer 1 is not a compile-time value

    Errors are located in the kernel's source. Exceptions of the kernel itself pass unchanged.
    """
    only = settings().interpreter.program_id if pid is None else pid
    machine = Machine(Memory(fn.__name__), normal_grid(grid), write=write)
    kinds = checks_of(check or settings().interpreter.check)
    if kinds:
        machine.checks = AccessChecks(kinds)
        machine.memory.races = machine.checks.races
    # Arguments are converted once; all program instances share the arrays.
    dispatcher = EagerDispatcher(machine, options or FrontendOptions())
    values = _values(fn, machine.memory, arguments, unspecialized)
    call = _call(fn, {name: dispatcher.argument(value) for name, value in values.items()})
    programs = program_ids(machine.grid, None if only is None else program_id(only))
    machine.run(programs, lambda: _run_program(fn, dispatcher, *call))


def _run_program(
    fn: DeviceFunction, dispatcher: EagerDispatcher, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    try:
        with dispatcher.running():
            result = dispatcher.call_function(fn, args, kwargs)
    except TilewrightError as error:
        # `fail` inside a stub has no location here: the traceback has the kernel's line
        place = location_in(error.__traceback__, dispatcher.codes)
        # found in the text of a function before it ran: the traceback ends at its call
        if isinstance(error, errors.BeyondTriton) and error.loc is not None:
            error.loc = error.loc.inlined_at(place)
        error.with_loc(place)
        names = inspect.signature(fn.fn).parameters
        advise_operands(error, {**dict(zip(names, args, strict=False)), **kwargs})
        raise
    except (NameError, AttributeError) as error:
        mistake = designed_error(error, dispatcher.codes)
        if mistake is None:
            raise
        place = location_in(error.__traceback__, dispatcher.codes)
        # with the traceback: debuggers stop in the kernel's own frame
        raise mistake.with_loc(place).with_traceback(error.__traceback__) from None
    if result is not None:
        raise errors.UnsupportedLanguageConstruct(
            "returning a value from a kernel",
            "store it through a pointer parameter",
            loc=definition_of(fn.fn.__code__),
        )


def _values(
    fn: DeviceFunction,
    memory: Memory,
    arguments: Mapping[str, object],
    unspecialized: Collection[str],
) -> dict[str, Any]:
    """Language values of the parameters; constexprs and `**META` entries are unchanged."""
    parameters = inspect.signature(fn.fn).parameters
    annotations = annotations_of(fn.fn)
    return {
        name: language_value(
            memory, name, value, annotations.get(name), specialized=name not in unspecialized
        )
        # Constexpr parameters get Python's own values, as in a call of a plain function.
        if name in parameters and not is_constexpr(annotations.get(name))
        else value
        for name, value in arguments.items()
    }


def _call(fn: DeviceFunction, values: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments of a call; only `*args` requires the former."""
    kwargs = dict(values)
    kinds = {name: p.kind for name, p in inspect.signature(fn.fn).parameters.items()}
    rest = next((name for name, kind in kinds.items() if kind is _REST), None)
    # Without *args every parameter can be named, and needs no order.
    if rest is None or rest not in kwargs:
        return (), kwargs
    before = list(kinds)[: list(kinds).index(rest)]
    args = [kwargs.pop(name) for name in before]
    return (*args, *kwargs.pop(rest)), kwargs
