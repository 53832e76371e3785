"""`results.html` of a report: a plot and a table for each benchmark, in one page."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import datetime
from html import escape

from tilewright.support.version import __version__
from tilewright.testing.benchmark import Benchmark
from tilewright.testing.result_table import Columns, column_texts

_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2.5rem 0 .5rem }
.made { color: #777; margin: 0 } .unit { color: #777; font-weight: normal }
img { background: #fff; border-radius: 6px; max-width: 100% }
.rows { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin-top: .5rem }
th, td { border-bottom: 1px solid #8884; padding: .2rem .9rem; text-align: right }
th { font-weight: 600 } tbody tr:hover { background: #8882 }
"""


def result_page(results: Sequence[tuple[Benchmark, Columns]]) -> str:
    """The page; its plots are the files <plot_name>.png in the same folder."""
    made = (
        f"{datetime.now():%Y-%m-%d %H:%M} on {platform.machine()} ({platform.system()}), "
        f"Tilewright {__version__}, Python {platform.python_version()}"
    )
    names = ", ".join(benchmark.plot_name for benchmark, _ in results if benchmark.plot_name)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(names or 'Benchmarks')}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f'<body>\n<h1>Benchmarks</h1>\n<p class="made">{escape(made)}</p>\n'
        f"{''.join(_section(*result) for result in results)}</body>\n</html>\n"
    )


def _section(benchmark: Benchmark, columns: Columns) -> str:
    name = escape(benchmark.plot_name)
    unit = f' <span class="unit">{escape(benchmark.ylabel)}</span>' if benchmark.ylabel else ""
    image = f'<img src="{name}.png" alt="{name}">\n' if benchmark.plot_name else ""
    settings = ", ".join(f"{key}={value}" for key, value in benchmark.args.items())
    note = f'<p class="made">{escape(settings)}</p>\n' if settings else ""
    return f"<section>\n<h2>{name}{unit}</h2>\n{note}{image}{_table(columns)}</section>\n"


def _table(columns: Columns) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = zip(*map(column_texts, columns.values()), strict=True)
    body = "\n".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return (
        f'<div class="rows"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>\n"
    )
