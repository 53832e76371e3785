"""Drawings of the inspector as SVG: the modelled schedule of a loop, and the roofline of a
launch."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import log10

from tilewright.backends import Bound, ScheduledOp, ScheduleRow

__all__ = ["roofline_svg", "schedule_svg"]

_STEP, _ROW, _LEFT = 92, 26, 190
"""Pixels of an iteration, of a row, and of the labels."""

_ITERATIONS = 6


def schedule_svg(row: ScheduleRow) -> str:
    """A figure: iterations from left to right, the ops of one below each other. A bar of a copy
    reaches from the iteration that issues it to the one that uses it."""
    lines = list(_schedule_lines(row))
    height = _ROW * (len(lines) + 1)
    width = _LEFT + _STEP * (_ITERATIONS + 1)
    head = [
        _text(_LEFT + _STEP * (i + 0.5), 16, "before" if i == 0 else f"iteration {i - 1}", "h")
        for i in range(_ITERATIONS + 1)
    ]
    grid = [
        f'<path class="g" d="M{_LEFT + _STEP * i} 22V{height}"/>' for i in range(_ITERATIONS + 2)
    ]
    body = [_line(number, *line) for number, line in enumerate(lines)]
    place = "A loop" if row.line is None else f"The loop of line {row.line}"
    caption = f"{place}: copies by {row.issuer}, {row.slots} slots for each operand"
    picture = _svg(width, height, [*grid, *head, *body])
    return f"<figure><figcaption>{caption}</figcaption>{picture}</figure>"


def _schedule_lines(row: ScheduleRow) -> Iterator[tuple[str, str, list[tuple[float, float, str]]]]:
    """A label, a class, and bars: start and end in iterations, and their text."""
    for op in row.ops:
        label = f"{op.text}, line {op.line}" if op.line is not None else op.text
        if op.kind == "copy":
            for slot in range(row.slots):
                yield f"{label}, slot {slot}", "copy", list(_copies(op, slot, row.slots))
        else:
            note = "" if op.pending is None else f"{op.pending} pending"
            bars = [(i + 0.05, i + 0.95, note) for i in range(_ITERATIONS)]
            yield label, op.kind, bars


def _copies(op: ScheduledOp, slot: int, slots: int) -> Iterator[tuple[float, float, str]]:
    """The copies into a slot, of the iterations that use it."""
    for used in range(slot, _ITERATIONS + op.ahead, max(1, slots)):
        issued = used - op.ahead
        begin = -0.9 if issued < 0 else issued + 0.05
        yield begin, min(used + 0.05, _ITERATIONS), f"for {used}"


def _line(number: int, label: str, kind: str, bars: list[tuple[float, float, str]]) -> str:
    top = 26 + _ROW * number
    parts = [_text(6, top + 15, label, "t")]
    for begin, end, note in bars:
        x = _LEFT + _STEP * (begin + 1)
        width = max(4.0, _STEP * (end - begin))
        parts.append(
            f'<rect class="{kind}" x="{x:.0f}" y="{top}" width="{width:.0f}" '
            f'height="{_ROW - 6}" rx="3"/>'
        )
        if note and width > 30:
            parts.append(_text(x + width / 2, top + 14, note, "b"))
    return "".join(parts)


# ---- roofline ------------------------------------------------------------------------------------

_WIDTH, _HEIGHT, _MARGIN = 640, 380, 60


def roofline_svg(bound: Bound, seconds: float | None = None) -> str:
    """Attainable FLOP/s by FLOPs per byte, with the launch at its intensity; seconds: measured."""
    flops = bound.product_flops + bound.other_flops
    peak = flops / bound.flop_seconds if bound.flop_seconds else 0.0
    bandwidth = bound.distinct / bound.byte_seconds if bound.byte_seconds else 0.0
    if not (flops and peak and bandwidth):
        return "<p>The launch computes nothing in floating point: there is no roofline.</p>"
    ridge, here = peak / bandwidth, bound.intensity
    low = 10 ** int(log10(min(ridge, here)) - 1.5)
    high = 10 ** int(log10(max(ridge, here)) + 1.5)
    measured = None if not seconds else flops / seconds
    bottom = min(low * bandwidth, measured or peak) / 2
    axes = _Axes(low, high, bottom, peak * 3)
    attained = min(peak, here * bandwidth)
    roof = " ".join(
        f"{axes.x(i):.1f},{axes.y(min(peak, i * bandwidth)):.1f}" for i in (low, ridge, high)
    )
    parts = [
        *axes.lines(),
        f'<polyline class="roof" points="{roof}"/>',
        _text(_MARGIN, 24, f"peak {_si(peak)}FLOP/s and {_si(bandwidth)}B/s", "t"),
        _point(axes, here, attained, "bound", f"at most {_si(attained)}FLOP/s", -10),
    ]
    if measured:
        parts.append(
            _point(axes, here, measured, "measured", f"measured: {_si(measured)}FLOP/s", 20)
        )
    return _svg(_WIDTH, _HEIGHT, parts)


class _Axes:
    """Logarithmic axes."""

    def __init__(self, low: float, high: float, bottom: float, top: float) -> None:
        self.low, self.high, self.bottom, self.top = low, high, bottom, top

    def x(self, intensity: float) -> float:
        """Pixels of FLOPs per byte."""
        part = log10(intensity / self.low) / log10(self.high / self.low)
        return _MARGIN + part * (_WIDTH - 2 * _MARGIN)

    def y(self, rate: float) -> float:
        """Pixels of FLOPs per second."""
        part = log10(rate / self.bottom) / log10(self.top / self.bottom)
        return _HEIGHT - _MARGIN - part * (_HEIGHT - 2 * _MARGIN)

    def lines(self) -> Iterator[str]:
        """Grid lines and labels of the powers of ten."""
        power = self.low
        while power <= self.high:
            x = self.x(power)
            yield f'<path class="g" d="M{x:.1f} {_MARGIN}V{_HEIGHT - _MARGIN}"/>'
            yield _text(x, _HEIGHT - _MARGIN + 18, f"{power:g}", "h")
            power *= 10
        yield _text(_WIDTH / 2, _HEIGHT - 16, "FLOPs per byte", "h")


def _point(axes: _Axes, intensity: float, rate: float, kind: str, label: str, below: float) -> str:
    x, y = axes.x(intensity), axes.y(rate)
    on_left = x > _WIDTH - 150
    anchor = "e" if on_left else "t"
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>' + _text(
        x - 8 if on_left else x + 8, y + below, label, anchor
    )


def _si(value: float) -> str:
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g} "


# ---- SVG -----------------------------------------------------------------------------------------


def _svg(width: float, height: float, parts: list[str]) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f"<svg {size}>{''.join(parts)}</svg>"


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>'
