"""Arrays that programs access in disjoint windows, and so without a race.

    %o + 4096 * program_id(0) + 4 * d0, with d0 up to 1023      windows of 4096 bytes, 4096 apart

It requires that programs differ along that axis only, and that no other array overlaps, which the
launch checks. Addresses that depend on masks or loads have no windows.

Also the distance of the addresses of adjacent programs along an axis.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, cast

from tilewright.analysis.access_forms import MemoryForms
from tilewright.analysis.access_overlap import differs_by_program, is_program_number
from tilewright.analysis.affine_addresses import Form, Kind, Symbol, symbols_of
from tilewright.ir import Value
from tilewright.ops import AtomicCasOp, AtomicOp, LoadOp, StoreOp

ANY_PROGRAM = -1
"""The result without an axis: programs may access the same elements."""


class _Window(NamedTuple):
    """The bytes [low, high), offset by stride for each program along an axis."""

    axis: int
    stride: int
    low: int
    high: int


def axis_of_windows(
    forms: MemoryForms, root: Value, accesses: Iterable[LoadOp | StoreOp | AtomicOp | AtomicCasOp]
) -> int:
    """The axis of the grid along which programs access disjoint windows of a parameter; ANY_PROGRAM
    if none is known. accesses: all accesses with this root."""
    windows = [_window(forms, root, op) for op in accesses]
    known = [window for window in windows if window is not None]
    if len(known) < len(windows) or len({(w.axis, w.stride) for w in known}) != 1:
        return ANY_PROGRAM
    extent = max(w.high for w in known) - min(w.low for w in known)
    return known[0].axis if extent <= abs(known[0].stride) else ANY_PROGRAM


def step_of_programs(form: Form, axis: int) -> int | None:
    """The distance in bytes between the addresses of adjacent programs along an axis; None if it is
    not constant."""
    step = 0
    for factors, coefficient in form:
        if len(factors) == 1 and is_program_number(factors[0]):
            step += coefficient if _axis(factors[0]) == axis else 0
        elif any(_differs_along(symbol, axis) for symbol in factors):
            return None
    return step


def _differs_along(symbol: Symbol, axis: int) -> bool:
    """Whether programs along an axis may have different numbers for a symbol."""
    if is_program_number(symbol):
        return _axis(symbol) == axis
    if symbol.kind is not Kind.COMPUTED:
        return differs_by_program(symbol)
    _, _, forms = cast("tuple[object, object, tuple[Form, ...]]", symbol.key)
    return any(_differs_along(inner, axis) for form in forms for inner in symbols_of(form))


def _window(
    forms: MemoryForms, root: Value, op: LoadOp | StoreOp | AtomicOp | AtomicCasOp
) -> _Window | None:
    access = forms.access(op)
    axes: list[tuple[int, int]] = []
    low, high = 0, access.size
    for factors, coefficient in access.form:
        if not factors:
            low, high = low + coefficient, high + coefficient
        elif len(factors) == 1 and is_program_number(factors[0]):
            axes.append((_axis(factors[0]), coefficient))
        elif factors != _symbol_of(forms, root):
            last = access.last(factors[0]) if _is_counted(factors) else None
            if last is None:
                return None
            low, high = low + min(0, coefficient * last), high + max(0, coefficient * last)
    return _Window(*axes[0], low, high) if len(axes) == 1 else None


def _symbol_of(forms: MemoryForms, root: Value) -> tuple[Symbol, ...]:
    ((factors, _),) = forms.forms.form(root)
    return factors


def _is_counted(factors: tuple[Symbol, ...]) -> bool:
    return len(factors) == 1 and factors[0].kind in (Kind.DIM, Kind.ITERATION)


def _axis(program: Symbol) -> int:
    _, attributes, _ = cast("tuple[str, tuple[tuple[str, int], ...], object]", program.key)
    return dict(attributes)["axis"]
