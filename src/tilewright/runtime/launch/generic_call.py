"""The launch of a variant without facts, and launches without their arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.ir.types import i32
from tilewright.runtime.arguments.descriptor_arguments import DescriptorKey
from tilewright.runtime.arguments.key_rules import (
    CONSTEXPR,
    Handled,
    Key,
    KeyRule,
    Spec,
    TupleKey,
    integer_key,
    spec,
)
from tilewright.runtime.launch.bound_call import BoundCall


def generic_call(call: BoundCall) -> BoundCall:
    """The same launch of a variant that knows types and compile-time values only: no alignment,
    divisor, sign, and no integer that is 1."""
    rules = [rule if rule.flags & CONSTEXPR else _without_facts(rule) for rule in call.rules]
    generic = replace(call, rules=rules, bounds={})
    # a launch that was bound for another backend remains so
    return generic.on(call.backend)


def detached_call(call: BoundCall) -> BoundCall:
    """The same launch without its arrays, which another thread must not keep alive."""
    values = zip(call.keys, call.values, strict=True)
    args = [None if isinstance(key, Spec | TupleKey) else value for key, value in values]
    detached = replace(call, args=args)
    kept = {
        name: getattr(call, name) for name in ("assigned_settings", "backend", "device", "outside")
    }
    vars(detached).update(kept, _specialized=(call.keys, call.values))
    return detached


def placed_call(call: BoundCall, device: str) -> BoundCall:
    """The same launch of stated arguments, as with arrays on a device."""

    def placed(key: Key) -> Key:
        if isinstance(key, Spec):
            return key if key.device == "" else spec(key.type, key.divisor, device, sign=key.sign)
        if isinstance(key, TupleKey):
            return type(key)((key.kind, *map(placed, key.items)))
        return key

    other = replace(call).on(call.backend, device)
    vars(other)["_specialized"] = [*map(placed, call.keys)], call.values
    return other


def _without_facts(rule: KeyRule) -> KeyRule:
    def key(value: Any) -> Handled:
        found, passed = rule.key(value)
        return _plain(found), passed

    return KeyRule(key, rule.flags)


def _plain(key: Key) -> Key:
    """A part of a launch key without facts."""
    if isinstance(key, Spec):
        return key.plain
    if isinstance(key, int):
        return integer_key(key).plain
    if isinstance(key, DescriptorKey):
        rank = len(key.blocks.shape)
        items = [*key.items]
        items[rank] = spec(i32, sign=1)  # the last extent
        return DescriptorKey((key.blocks, *items))
    if isinstance(key, TupleKey):
        return TupleKey((key.kind, *map(_plain, key.items)))
    return key
