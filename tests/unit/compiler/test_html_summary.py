"""Kernels in notebooks: `_repr_html_` shows source, variants, tile IR and machine code."""

import re
from html.parser import HTMLParser

import numpy as np

import tilewright
import tilewright.language as tl
from tilewright.backends import GPUTarget


@tilewright.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2.0, mask=i < n)


class Tags(HTMLParser):
    """The open tags, in order; every one has to be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_a_kernel_shows_source_and_variants():
    before = scale._repr_html_()
    assert "not compiled yet" in before
    compiled = scale[(2,)](np.ones(64, "f"), 64, BLOCK=32)
    shown = Tags(scale._repr_html_())
    assert shown.open == []
    assert "scale" in shown.texts
    assert "def scale(x_ptr, n, BLOCK: tl.constexpr):" in "".join(shown.texts)
    assert "BLOCK=32" in shown.texts
    assert compiled.hash[:12] in shown.texts
    assert re.search(r"test_html_summary.py:\d+", before)


def test_a_variant_shows_tile_ir_and_machine_code():
    compiled = scale[(2,)](np.ones(64, "f"), 64, BLOCK=32)
    shown = Tags(compiled._repr_html_())
    assert shown.open == []
    assert {"tile IR", "asm", "BLOCK=32", compiled.hash} <= set(shown.texts)
    assert compiled.asm["ttir"] in shown.texts  # `<` of types is escaped


def test_a_variant_for_a_gpu_shows_ptx():
    from tilewright.compiler import ASTSource, compile

    types = {"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    kernel = compile(
        ASTSource(scale, types, {"BLOCK": 64}), GPUTarget("cuda", 90, 32), {"num_warps": 2}
    )
    shown = Tags(kernel._repr_html_())
    assert {"sm_90", "ptx", "num_warps", "2", "BLOCK=64"} <= set(shown.texts)
