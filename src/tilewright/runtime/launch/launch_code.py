"""Generates the Python function that launches one kernel.

A launch must do little: put arguments in order, fill in defaults, specialize each argument, look
the variant up, evaluate the grid, call. `inspect.Signature.bind` alone takes ten times as long as
all that, so for each kernel a function with the kernel's own parameters is written as text and
compiled, as `dataclasses` does. For `def add(x, n, B: tl.constexpr = 64)` it is

    def add(grid, x=MISSING, n=MISSING, B=DEFAULT_B, *rest, **keywords):
        with boundary:
            try:
                k0, v0 = HANDLERS[x.__class__](x)
                if n.__class__ is int: k1 = SIZES[n & 15]; v1 = n  # the common case, inline
                else: k1, v1 = HANDLERS[n.__class__](n)
                k2 = B if B.__class__ is int else constant_key(B)
                variant = variants.get((k0, k1, k2))
            except synchronous(Exception):
                variant = None                      # bind_and_launch raises the designed error
            if variant is None: return bind_and_launch(grid, (x, n, B), rest, keywords)
            if callable(grid): grid = grid_for(grid, {"x": x, "n": n, "B": B, **keywords})
            grid, launch = normal_grid(grid), variant.launch
            if variant.pairs: launch = launch_for(variant, grid, (x, n, B), (v0, v1, v2))
            variant.stamp = clock[0] = clock[0] + 1
            launch(grid, variant.pick((v0, v1, v2)))
            return variant.kernel

with the names below prefixed by `_tw_`.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from tilewright.runtime.arguments.kernel_parameters import KernelParam, handler_of
from tilewright.runtime.arguments.specialization import (
    HANDLERS,
    SIZES,
    constant_items,
    constant_key,
    integer_key,
)
from tilewright.runtime.launch.bound_call import MISSING
from tilewright.support.asynchronous_exceptions import synchronous

_INT = """\
if {x}.__class__ is int:
    if {x} == 1: {k} = {v} = 1
    elif 0 <= {x} <= 0x7fffffff: {k} = _tw_SIZES[{x} & 15]; {v} = {x}
    else: {k} = _tw_integer_key({x}); {v} = {x}
else: {k}, {v} = _tw_HANDLERS[{x}.__class__]({x})
"""
_FIXED = "{k}, {v} = _tw_fixed_{x}({x})\n"
_CONSTEXPR = "{k} = {x} if {x}.__class__ is int else _tw_constant_key({x})\n{v} = {x}\n"

_ORDER = """\
def _tw_order(_tw_self, /{positional}, *{rest}{keyword_only}, **{keywords}):
    return ({arguments}), {rest}, {keywords}
"""

_LAUNCH = """\
def {name}(_tw_grid, /{positional}, *{rest}{keyword_only}, **{keywords}):
    with _tw_boundary:
        try:
{specialize}
            _tw_key = ({keys})
            if {keywords}: _tw_key = (*_tw_key, *{keyword_keys})
            if _tw_assigned: _tw_key = (*_tw_key, *_tw_assigned.items())
            _tw_variant = _tw_variants.get(_tw_key)
        except _tw_synchronous(Exception):
            _tw_variant = None
        if _tw_variant is None or _tw_enter or _tw_exit{surplus}:
            return _tw_bind_and_launch(_tw_grid, ({arguments}), {rest}, {keywords})
        for _tw_get, _tw_name, _tw_value in _tw_variant.globals:
            if _tw_get(_tw_name) is not _tw_value: _tw_variant.check_globals()
        if _tw_grid.__class__ is not tuple and callable(_tw_grid):
            _tw_grid = _tw_grid_for(_tw_grid, {{{meta}**{keywords}}})
        _tw_grid, _tw_launch = _tw_normal_grid(_tw_grid), _tw_variant.launch
        if _tw_variant.pairs:
            _tw_launch = _tw_launch_for(_tw_variant, _tw_grid, ({given}), ({values}))
        _tw_variant.stamp = _tw_clock[0] = _tw_clock[0] + 1
        _tw_launch(_tw_grid, _tw_variant.pick(({values})))
        return _tw_variant.kernel
"""


def launch_functions(
    name: str, params: Sequence[KernelParam], environment: Mapping[str, object]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The launch function of a kernel, and one that only orders arguments.

    launch(grid, *args, **keywords) -> CompiledKernel. order(None, *args, **keywords) -> (arguments
    for named parameters or MISSING, further positional ones, further keywords).
    environment: what the templates refer to besides this module: `boundary`, `variants`, `clock`,
    `assigned`, `bind_and_launch`, `launch_for`, `enter`, `exit`, `normal_grid`, `grid_for`.
    """
    names: dict[str, object] = {
        "_tw_HANDLERS": HANDLERS,
        "_tw_SIZES": SIZES,
        "_tw_integer_key": integer_key,
        "_tw_constant_key": constant_key,
        "_tw_constant_items": constant_items,
        "_tw_MISSING": MISSING,
        "_tw_synchronous": synchronous,
        **{f"_tw_{key}": value for key, value in environment.items()},
    }
    # kernels read from files may bear any name; the generated text must stay valid Python
    function = name if name.isidentifier() and not keyword.iskeyword(name) else "launch"
    pieces = _pieces(params, names)
    for template in (_ORDER, _LAUNCH):
        source = template.format(name=function, **pieces)
        # the file name marks these frames as the package's own (see `error_boundary`)
        exec(compile(source, f"<launch of {name}>", "exec"), names)
    return cast("Any", names[function]), cast("Any", names["_tw_order"])


def _pieces(params: Sequence[KernelParam], names: dict[str, object]) -> dict[str, str]:
    """The fields of the templates; objects that the filled texts refer to are added to `names`."""
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
        "keywords": meta or "_tw_keywords",
        "keyword_keys": f"_tw_constant_items({meta})" if meta else "_tw_keywords.items()",
        # positional arguments beyond the parameters are a mistake, which `bind` reports
        "surplus": "" if rest else " or _tw_rest",
        "specialize": "".join(f"            {line}\n" for line in code.splitlines()),
        "keys": "".join(f"_tw_k_{param.name}, " for param in ordered),
        "values": "".join(f"_tw_v_{param.name}, " for param in ordered),
        "arguments": "".join(f"{param.name}, " for param in named),
        "given": "".join(f"{param.name}, " for param in ordered),
        "meta": "".join(f"{param.name!r}: {param.name}, " for param in ordered),
    }


def _specialize(param: KernelParam, names: dict[str, object]) -> str:
    fields = {"x": param.name, "k": f"_tw_k_{param.name}", "v": f"_tw_v_{param.name}"}
    if param.is_constexpr:
        return _CONSTEXPR.format(**fields)
    handler = handler_of(param)
    if handler is None:
        return _INT.format(**fields)
    names[f"_tw_fixed_{param.name}"] = handler
    return _FIXED.format(**fields)


def _default(param: KernelParam, names: dict[str, object]) -> str:
    if not param.has_default:
        return "_tw_MISSING"
    names[f"_tw_default_{param.name}"] = param.default
    return f"_tw_default_{param.name}"
