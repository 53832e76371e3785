"""The variants of a kernel that declared arguments reach.

    variants_of(scale, {"x": "*fp32:16", "n": range(1, 1 << 20), "BLOCK": [32, 64]})

A declaration of a parameter is

    a range               the integers that launches pass
    a text                type and facts: all values that have them; "fp16:16" is an array of fp16
    a list                alternatives, each a declaration
    anything else         one value: an array, a dtype for an array, a number, a constexpr

Options of the backend are declared alike. Classes of values are those of the launch key: the rule
of the parameter is applied to values of each sign, type and divisor in the range.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from tilewright.aot.spec import KernelSpec
from tilewright.compiler import (
    argument_text,
    find_type,
    is_argument_text,
    parse_argument,
)
from tilewright.ir.types import DType, PointerType
from tilewright.runtime import (
    JITFunction,
    KernelParam,
    argument_spec,
    driver,
    generic_call,
    mocked,
    rules_of,
)
from tilewright.support import errors
from tilewright.support.data_class import dataclass

_ENDS = (-(1 << 63), -(1 << 31), 0, 1, 2, 1 << 31, 1 << 63, 1 << 64)
"""Between two of these, integers have one type and sign, and differ in their divisors only."""
_CYCLE = 16
"""Values of a progression after which their divisors repeat."""
_ARRAY = re.compile(r"(\w+):(\d+)")


@dataclass(frozen=True, slots=True)
class Alternative:
    """One class of values of a parameter or option: a run-time argument as text, or a constant."""

    value: object
    is_text: bool


def variants_of(kernel: JITFunction, declared: Mapping[str, object]) -> list[KernelSpec]:
    """The variants that launches with declared arguments run, in order.

    Errors: MissingArgument, UnknownArgument, UnsupportedArgument, InvalidArgumentText.
    """
    choices = _choices(kernel, declared)
    specs = (
        _spec(kernel, dict(zip(choices, chosen, strict=True)))
        for chosen in itertools.product(*choices.values())
    )
    return list({spec.launch_key: spec for spec in specs}.values())


def count_of(kernel: JITFunction, declared: Mapping[str, object]) -> int:
    """The number of variants, without listing them."""
    return math.prod(map(len, _choices(kernel, declared).values()))


def generic_of(spec: KernelSpec) -> KernelSpec:
    """The variant without facts that serves in place of another."""
    call = generic_call(spec.call(driver.active.backend))
    found = KernelSpec.of_call(spec.kernel, call)
    return replace(found, options=spec.options, grid=spec.grid)


def _choices(kernel: JITFunction, declared: Mapping[str, object]) -> dict[str, list[Alternative]]:
    params = {param.name: param for param in kernel.params}
    choices: dict[str, list[Alternative]] = {}
    for name, value in declared.items():
        param = params.get(name)
        found = [found for item in _items(value) for found in _alternatives(param, item)]
        if not found:
            raise errors.InvalidArgumentText(name, repr(value), "declares no value")
        choices[name] = list({repr(item.value): item for item in found}.values())
    return choices


def _items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list) else [value]


def _alternatives(param: KernelParam | None, value: object) -> Iterator[Alternative]:
    """The classes of the values that one declaration states. param: None for options."""
    if param is None or param.is_constexpr or param.is_keywords:
        yield Alternative(value, False)
    elif isinstance(value, str) and is_argument_text(_full(value)):
        yield from _of_text(param, _full(value))
    elif isinstance(value, range):
        yield from (Alternative(text, True) for text in _of_range(param, value))
    else:
        yield _of_value(param, mocked(value))


def _full(text: str) -> str:
    """A text with `fp16:16`, an array of fp16, as a pointer: a float has no divisor."""
    short = _ARRAY.fullmatch(text.strip())
    type_ = find_type(short[1]) if short else None
    return f"*{text.strip()}" if isinstance(type_, DType) and type_.is_float else text


def _of_value(param: KernelParam, value: object) -> Alternative:
    key, passed = _key(param, value)
    spec = argument_spec(param, key, passed)
    if spec.kind == "constexpr" and spec.type is None:
        return Alternative(spec.value, False)
    return Alternative(argument_text(spec), True)


def _key(param: KernelParam, value: object) -> tuple[Any, Any]:
    try:
        return rules_of([param])[0].key(value)
    except errors.UnsupportedArgument as problem:
        problem.argument = problem.argument or param.name
        raise


def _of_text(param: KernelParam, text: str) -> Iterator[Alternative]:
    """The classes of values that have the facts of a text."""
    stated = parse_argument(text, param.name)
    if isinstance(stated.type, PointerType) and stated.divisor == 1:
        yield Alternative(f"{text}:16", True)
    found = [text] if stated.integers is None else _of_range(param, stated.integers)
    yield from (Alternative(one, True) for one in found)


def _of_range(param: KernelParam, values: range) -> list[str]:
    """The classes of the integers of a range, as texts with the bounds of the range."""
    ascending = values if values.step > 0 else values[::-1]
    if ascending and not _ENDS[0] <= ascending[0] <= ascending[-1] < _ENDS[-1]:
        raise errors.IntegerTooLarge(param.name, "range of more than 64 bits", "split it in two")
    found: dict[str, tuple[int, int]] = {}
    for part in _parts(ascending):
        # a positive part begins where the range does
        low = max(ascending[0], 0) if 0 <= part[0] <= 2 else part[0]
        for value in part[:_CYCLE]:
            text = str(_of_value(param, value).value)
            found[text] = min(low, found.get(text, (low,))[0]), part[-1] + 1
    return [_bounded(text, *bounds) for text, bounds in found.items()]


def _parts(values: range) -> Iterator[range]:
    """An ascending range, divided at _ENDS."""
    for low, high in itertools.pairwise(_ENDS):
        first = max(0, -(-(low - values.start) // values.step))
        end = min(len(values), -(-(high - values.start) // values.step))
        if first < end:
            yield values[first:end]


def _bounded(text: str, low: int, high: int) -> str:
    """The text of an integer with bounds; a constant as it is."""
    type_name, _, facts = text.partition(":")
    if "=" in type_name:
        return text
    kept = [fact for fact in facts.split(",") if fact.isdigit()]
    return f"{type_name}:{','.join([*kept, f'>={low}', f'<{high}'])}"


def _spec(kernel: JITFunction, chosen: Mapping[str, Alternative]) -> KernelSpec:
    params = {param.name for param in kernel.params}
    has_meta = any(param.is_keywords for param in kernel.params)
    offered = driver.active.backend.options.names()
    named = {name: item.value for name, item in chosen.items()}
    arguments = {name: str(named[name]) for name, item in chosen.items() if item.is_text}
    constants = {name: named[name] for name, item in chosen.items() if not item.is_text}
    options = {
        name: value
        for name, value in constants.items()
        if name not in params and not (has_meta and name not in offered)
    }
    constexprs = {name: value for name, value in constants.items() if name not in options}
    return KernelSpec(kernel, arguments, constexprs, options)
