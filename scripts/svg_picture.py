"""Small SVG pictures that are readable on light and dark pages.

A picture has its own background and follows the reader's colour scheme by a media query, so that
it does not depend on the page around it. It loads nothing.
"""

from __future__ import annotations

import colorsys
from dataclasses import dataclass, field
from html import escape

HUES = 8
"""Colours for lanes, warps and programs."""

LIGHT = {"back": "#ffffff", "ink": "#1f2430", "soft": "#5b6472", "line": "#aab2bf"}
DARK = {"back": "#16191f", "ink": "#e8eaf0", "soft": "#a3adbb", "line": "#525c6b"}
FONTS = "font-family:system-ui,'DejaVu Sans',Helvetica,Arial,sans-serif"
MONOSPACE = "font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"


def tint(number: int, *, dark: bool) -> str:
    """A background colour for text: pale on light pages, deep on dark ones."""
    lightness, saturation = (0.215, 0.45) if dark else (0.86, 0.75)
    hue = (number * 5 % HUES) / HUES + 0.58
    red, green, blue = colorsys.hls_to_rgb(hue % 1, lightness, saturation)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def colours(*, dark: bool) -> dict[str, str]:
    """The colours of one scheme by the names of their classes."""
    tints = {f"c{number}": tint(number, dark=dark) for number in range(HUES)}
    return (DARK if dark else LIGHT) | tints


def _style() -> str:
    """The style sheet, with both schemes."""
    schemes: list[str] = []
    for dark in (False, True):
        table = colours(dark=dark)
        rules = [f".{name}{{fill:{table[name]}}}" for name in table]
        rules += [f".edge{{stroke:{table['line']}}}", f".bold{{stroke:{table['ink']}}}"]
        schemes.append("".join(rules))
    return (
        f"text{{{FONTS};font-size:13px}}.code{{{MONOSPACE}}}"
        ".head{font-weight:600;font-size:15px}.small{font-size:11px}.tiny{font-size:9px}"
        ".middle{text-anchor:middle}.end{text-anchor:end}.none{fill:none}"
        ".edge{stroke-width:1}.bold{stroke-width:2}.dash{stroke-dasharray:4 3}"
        f"{schemes[0]}@media (prefers-color-scheme:dark){{{schemes[1]}}}"
    )


@dataclass
class Picture:
    """An SVG picture of fixed size, with title and description for readers who cannot see it."""

    width: int
    height: int
    title: str
    description: str
    parts: list[str] = field(default_factory=list[str])

    def rect(
        self, x: float, y: float, width: float, height: float, names: str, radius: int = 0
    ) -> None:
        """A rectangle with the classes `names`."""
        corner = f' rx="{radius}"' if radius else ""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{corner}'
            f' class="{names}"/>'
        )

    def text(self, x: float, y: float, text: str, names: str = "") -> None:
        """A line of text whose baseline starts at a point."""
        names = f"ink {names}".strip() if "soft" not in names else names
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{names}">{escape(text)}</text>')

    def cell(
        self, x: float, y: float, width: float, height: float, text: str, fill: str, size: str = ""
    ) -> None:
        """A box with a line of text in its middle."""
        self.rect(x, y, width, height, f"{fill} edge")
        drop = {"tiny": 3, "small": 4}.get(size, 4.5)
        self.text(x + width / 2, y + height / 2 + drop, text, f"middle {size}".strip())

    def arrow(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """A horizontal or vertical arrow."""
        self.parts.append(f'<path d="M{x:g} {y:g}L{to_x:g} {to_y:g}" class="bold none"/>')
        back_x, back_y = (to_x > x) - (to_x < x), (to_y > y) - (to_y < y)
        points = [
            (to_x, to_y),
            (to_x - 7 * back_x - 4 * back_y, to_y - 7 * back_y - 4 * back_x),
            (to_x - 7 * back_x + 4 * back_y, to_y - 7 * back_y + 4 * back_x),
        ]
        corners = " ".join(f"{a:g},{b:g}" for a, b in points)
        self.parts.append(f'<polygon points="{corners}" class="ink"/>')

    def line(self, x: float, y: float, to_x: float, to_y: float, names: str) -> None:
        """A line with the classes `names`."""
        self.parts.append(f'<path d="M{x:g} {y:g}L{to_x:g} {to_y:g}" class="{names} none"/>')

    def svg(self) -> str:
        """The file."""
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}"'
                f' width="{self.width}" height="{self.height}" role="img"'
                ' aria-labelledby="title desc">',
                f'<title id="title">{escape(self.title)}</title>',
                f'<desc id="desc">{escape(self.description)}</desc>',
                f"<style>{_style()}</style>",
                f'<rect width="{self.width}" height="{self.height}" rx="8" class="back"/>',
                *self.parts,
                "</svg>\n",
            ]
        )
