"""Why a kernel is compiled again: which argument or option differs, and in which property.

tilewright: add is compiled again: argument 'n' is divisible by 16, and was not
  hint: @jit(do_not_specialize=['n']) makes one variant for all values
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping

from tilewright.compiler import name_of_type
from tilewright.ir.types import PointerType
from tilewright.runtime.arguments.key_rules import Spec
from tilewright.support import settings

Keys = Mapping[str, object]
"""Parameter or option -> its element of the launch key."""

_MISSING = object()


def difference(now: Keys, before: Collection[Keys]) -> str:
    """How a variant differs from the closest one before: "n: i32/16 -> i32/8"."""
    if not before:
        return "the first launch"
    closest = _closest(now, before)
    parts = (
        f"{name}: {_text(closest, name)} -> {_text(now, name)}" for name in _differing(now, closest)
    )
    return ", ".join(parts) or "settings have changed"


def log_recompile(
    kernel: str, now: Keys, before: Collection[Keys], params: Collection[str]
) -> None:
    """Print to standard error why a kernel is compiled again, if the setting is on."""
    if not before or not settings().compilation.log_recompiles:
        return
    closest = _closest(now, before)
    names = _differing(now, closest)
    reasons = [
        f"{'argument' if name in params else 'option'} '{name}' {change}"
        for name in names
        for change in _changes(now.get(name, _MISSING), closest.get(name, _MISSING))
    ]
    why = "; ".join(reasons) or "settings have changed"
    lines = [f"tilewright: {kernel} is compiled again: {why}"]
    by_value = [n for n in names if n in params and _is_value_alone(now.get(n), closest.get(n))]
    if by_value:
        lines.append(f"  hint: @jit(do_not_specialize={by_value}) makes one variant for all values")
    print("\n".join(lines), file=sys.stderr)


def _closest(now: Keys, before: Collection[Keys]) -> Keys:
    return min(before, key=lambda old: len(_differing(now, old)))


def _differing(now: Keys, old: Keys) -> list[str]:
    names = dict.fromkeys([*now, *old])
    return [name for name in names if _text(now, name) != _text(old, name)]


def _text(keys: Keys, name: str) -> str:
    return repr(keys[name]) if name in keys else "not given"


def _is_value_alone(new: object, old: object) -> bool:
    """Whether only a fact about the value of a number, or its equality to 1, differs."""
    types = {key.type for key in (new, old) if isinstance(key, Spec)}
    others = [key for key in (new, old) if not isinstance(key, Spec)]
    # Integers that are 1 are constants in a key.
    is_number = len(types) == 1 and not any(isinstance(type_, PointerType) for type_ in types)
    return is_number and all(key == 1 for key in others)


def _changes(new: object, old: object) -> Iterator[str]:
    """The difference of an argument: "is divisible by 16, and was not"."""
    if isinstance(new, Spec) and isinstance(old, Spec):
        yield from _changed_facts(new, old)
    elif isinstance(new, Spec):
        yield f"is a run-time {name_of_type(new.type)}, and was the constant {old!r}"
    elif isinstance(old, Spec):
        yield f"is {new!r}, compiled as a constant, and was a run-time {name_of_type(old.type)}"
    elif new is _MISSING:
        yield f"is not given, and was {old!r}"
    elif old is _MISSING:
        yield f"is {new!r}, and was not given"
    else:
        yield f"is {new!r}, and was {old!r}"


def _changed_facts(new: Spec, old: Spec) -> Iterator[str]:
    if new.type is not old.type:
        yield f"is {name_of_type(new.type)}, and was {name_of_type(old.type)}"
    if new.divisor != old.divisor:
        verb = "aligned to" if isinstance(new.type, PointerType) else "divisible by"
        unit = " bytes" if isinstance(new.type, PointerType) else ""
        if new.divisor > 1:
            was = f"by {old.divisor}" if old.divisor > 1 else "not"
            yield f"is {verb} {new.divisor}{unit}, and was {was}"
        else:
            yield f"is not {verb} {old.divisor}{unit}, and was"
    if new.sign != old.sign:
        yield "is negative, and was not" if new.sign < 0 else "is not negative, and was"
    if new.device != old.device:
        yield f"is on {new.device or 'no device'}, and was on {old.device or 'no device'}"
    if new.read_only is not old.read_only:
        yield "is read-only, and was not" if new.read_only else "may be written, and was read-only"
