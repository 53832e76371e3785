"""Generates the function that a launch of one kernel calls.

A launch must do little: put arguments in order, fill in defaults, see what of each argument decides
the variant, look the variant up, evaluate the grid, call. `inspect.Signature.bind` alone takes ten
times as long as all that, so for each kernel a function with the kernel's own parameters is written
as text and compiled, as `dataclasses` does. For `def add(x, n, B: tl.constexpr = 64)` it is

    def add(grid, x=MISSING, n=MISSING, B=DEFAULT_B, *more, **words):
        with boundary:
            try:
                k0, v0 = HANDLERS[x.__class__](x)
                if n.__class__ is int: k1 = I32 ...; v1 = n        # the common case, in line
                else: k1, v1 = HANDLERS[n.__class__](n)
                k2 = B if B.__class__ is int else constant_key(B)
                variant = VARIANTS.get((k0, k1, k2))
            except Exception:
                variant = None                      # the slow way finds out what is wrong
            if variant is None: return slow(grid, (x, n, B), more, words)
            if variant.pairs: watch(variant, (x, n, B), (v0, v1, v2))
            if callable(grid): grid = grid_for(grid, {"x": x, "n": n, "B": B, **words})
            variant.stamp = clock[0] = clock[0] + 1
            variant.launch(normal_grid(grid), variant.pick((v0, v1, v2)))
            return variant.kernel

with the names below prefixed by `_tw_`.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from tilewright.runtime.arguments.kernel_parameters import KernelParam
from tilewright.runtime.arguments.specialization import (
    HANDLERS,
    I32,
    I32_16,
    Handler,
    Spec,
    annotated_key,
    constant_items,
    constant_key,
    integer_key,
)

_INT = """\
if {x}.__class__ is int:
    if {x} == 1: {k} = {v} = 1
    elif -0x80000000 <= {x} <= 0x7fffffff: {k} = _tw_I32 if {x} & 15 else _tw_I32_16; {v} = {x}
    else: {k} = _tw_integer_key({x}); {v} = {x}
else: {k}, {v} = _tw_HANDLERS[{x}.__class__]({x})
"""
_FIXED = "{k}, {v} = _tw_fixed_{x}({x})\n"
_CONSTEXPR = "{k} = {x} if {x}.__class__ is int else _tw_constant_key({x})\n{v} = {x}\n"

_ORDER = """\
def _tw_order(_tw_self, /{positional}, *{rest}{keyword_only}, **{words}):
    return ({arguments}), {rest}, {words}
"""

_LAUNCH = """\
def {name}(_tw_grid, /{positional}, *{rest}{keyword_only}, **{words}):
    with _tw_boundary:
        try:
{specialize}
            _tw_key = ({keys})
            if {words}: _tw_key = (*_tw_key, *{word_keys})
            if _tw_assigned: _tw_key = (*_tw_key, *_tw_assigned.items())
            _tw_variant = _tw_variants.get(_tw_key)
        except Exception:
            _tw_variant = None
        if _tw_variant is None or _tw_enter or _tw_exit{surplus}:
            return _tw_slow(_tw_grid, ({arguments}), {rest}, {words})
        for _tw_get, _tw_name, _tw_value in _tw_variant.globals:
            if _tw_get(_tw_name) is not _tw_value: _tw_variant.check_globals()
        if _tw_grid.__class__ is not tuple and callable(_tw_grid):
            _tw_grid = _tw_grid_for(_tw_grid, {{{meta}**{words}}})
        if _tw_variant.pairs: _tw_watch(_tw_variant, ({given}), ({values}))
        _tw_variant.stamp = _tw_clock[0] = _tw_clock[0] + 1
        _tw_variant.launch(_tw_normal_grid(_tw_grid), _tw_variant.pick(({values})))
        return _tw_variant.kernel
"""


class Missing:
    """Stands for an argument that is not given."""

    def __repr__(self) -> str:
        return "<missing>"


MISSING = Missing()


def special_handler(param: KernelParam) -> Handler | None:
    """How an argument is seen where the type alone does not decide; None where it does."""
    if param.declared is not None:
        return param.declared.handler
    if param.type is not None:
        return annotated_key(param.type)
    if param.do_not_specialize:
        return _unspecialized
    if param.do_not_specialize_on_alignment:
        return _unaligned
    return None


def _unspecialized(value: Any) -> tuple[Any, Any]:
    if type(value) is int:
        return integer_key(value).plain, value
    return _unaligned(value)


def _unaligned(value: Any) -> tuple[Any, Any]:
    key, passed = HANDLERS.key_and_value(value)
    return (key.plain if isinstance(key, Spec) else key), passed


def launch_functions(
    name: str, params: Sequence[KernelParam], environment: Mapping[str, object]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The launch function of a kernel, and one that only orders arguments.

    launch(grid, *args, **words) -> CompiledKernel. order(None, *args, **words) -> (arguments for
    named parameters or MISSING, further positional ones, further keywords).
    environment: `boundary`, `variants`, `clock`, `assigned`, `slow`, `watch`, `enter`, `exit`,
    `normal_grid` and `grid_for`.
    """
    names: dict[str, object] = {
        "_tw_HANDLERS": HANDLERS,
        "_tw_I32": I32,
        "_tw_I32_16": I32_16,
        "_tw_integer_key": integer_key,
        "_tw_constant_key": constant_key,
        "_tw_constant_items": constant_items,
        "_tw_MISSING": MISSING,
        **{f"_tw_{key}": value for key, value in environment.items()},
    }
    function = name if name.isidentifier() and not keyword.iskeyword(name) else "launch"
    pieces = _pieces(params, names)
    for template in (_ORDER, _LAUNCH):
        source = template.format(name=function, **pieces)
        exec(compile(source, f"<launch of {name}>", "exec"), names)
    return cast("Any", names[function]), cast("Any", names["_tw_order"])


def _pieces(params: Sequence[KernelParam], names: dict[str, object]) -> dict[str, str]:
    """What the templates are filled with; adds to `names` what the texts refer to."""
    ordered = [param for param in params if not param.is_keywords]
    named = [param for param in ordered if not param.is_rest]
    declared = {param.name: f", {param.name}={_default(param, names)}" for param in named}
    rest = next((param.name for param in params if param.is_rest), "")
    meta = next((param.name for param in params if param.is_keywords), "")
    code = "".join(_specialize(param, names) for param in ordered)
    return {
        "positional": "".join(declared[p.name] for p in named if p.is_positional),
        "keyword_only": "".join(declared[p.name] for p in named if not p.is_positional),
        "rest": rest or "_tw_rest",
        "words": meta or "_tw_words",
        "word_keys": f"_tw_constant_items({meta})" if meta else "_tw_words.items()",
        "surplus": "" if rest else " or _tw_rest",
        "specialize": "".join(f"            {line}\n" for line in code.splitlines()),
        "keys": "".join(f"_tw_k_{param.name}, " for param in ordered),
        "values": "".join(f"_tw_v_{param.name}, " for param in ordered),
        "arguments": "".join(f"{param.name}, " for param in named),
        "given": "".join(f"{param.name}, " for param in ordered),
        "meta": "".join(f"{param.name!r}: {param.name}, " for param in ordered),
    }


def _specialize(param: KernelParam, names: dict[str, object]) -> str:
    words = {"x": param.name, "k": f"_tw_k_{param.name}", "v": f"_tw_v_{param.name}"}
    if param.is_constexpr:
        return _CONSTEXPR.format(**words)
    handler = special_handler(param)
    if handler is None:
        return _INT.format(**words)
    names[f"_tw_fixed_{param.name}"] = handler
    return _FIXED.format(**words)


def _default(param: KernelParam, names: dict[str, object]) -> str:
    if not param.has_default:
        return "_tw_MISSING"
    names[f"_tw_default_{param.name}"] = param.default
    return f"_tw_default_{param.name}"
