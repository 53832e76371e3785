"""Kernels as HTML, which notebooks show for the last value of a cell (`_repr_html_`)."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from tilewright.compiler.compiled_kernel import CompiledKernel
from tilewright.compiler.sources import KernelSource

_MACHINE_CODE = ("ptx", "asm")
_TABLE = 'cellpadding="4" style="text-align: left"'
_CODE = 'style="white-space: pre; overflow: auto; max-height: 30em; font-size: 90%"'


def kernel_html(name: str, location: str, source: str, variants: Iterable[CompiledKernel]) -> str:
    """A kernel with its source, and a row for each compiled variant."""
    rows = [
        (
            variant.target.label,
            ", ".join(variant.parameters),
            _constants(variant),
            ", ".join(f"{name}={value}" for name, value in _resources(variant).items()),
            variant.hash[:12],
        )
        for variant in variants
    ]
    head = ("target", "arguments", "constants", "options", "hash")
    compiled = _table(head, rows) if rows else "<p>not compiled yet: launch it</p>"
    return _heading(name, location) + _details("source", source, is_open=True) + compiled


def variant_html(kernel: CompiledKernel) -> str:
    """A compiled kernel: what decided it, then tile IR and machine code, folded."""
    facts: dict[str, object] = {
        "target": kernel.target.label,
        "arguments": ", ".join(kernel.parameters),
        "constants": _constants(kernel),
        **_resources(kernel),
        "hash": kernel.hash,
    }
    rows = [(name, str(value)) for name, value in facts.items() if value not in ("", None)]
    # only text: no cubin, no object file
    texts = [("tile IR", kernel.asm.get("ttir"))]
    texts += [(kind, kernel.asm.get(kind)) for kind in _MACHINE_CODE]
    shown = (_details(title, text) for title, text in texts if isinstance(text, str))
    heading = _heading(kernel.name, getattr(kernel.src, "location", ""))
    return heading + _table((), rows) + "".join(shown)


def _resources(kernel: CompiledKernel) -> dict[str, object]:
    """Resources of a launch on a GPU; options of warps mean nothing on a CPU."""
    names = ("num_warps", "num_stages", "num_ctas", "shared")
    on_gpu = kernel.target.warp_size > 1
    return {name: getattr(kernel.metadata, name, None) for name in names if on_gpu}


def _constants(kernel: CompiledKernel) -> str:
    source = kernel.src
    texts = source.constant_texts if isinstance(source, KernelSource) else {}
    return ", ".join(f"{name}={text}" for name, text in texts.items())


def _heading(name: str, location: str) -> str:
    return f"<p><b><code>{escape(name)}</code></b> <small>{escape(location)}</small></p>"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table {_TABLE}><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _details(title: str, text: str, *, is_open: bool = False) -> str:
    state = " open" if is_open else ""
    return (
        f"<details{state}><summary>{escape(title)}</summary>"
        f"<pre {_CODE}>{escape(text)}</pre></details>"
    )
