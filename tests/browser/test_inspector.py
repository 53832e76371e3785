"""The page of `tilewright inspect` in an offline browser: links, layouts, banks, passes."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

import tilewright
import tilewright.language as tl
from tests.browser.opened_page import OpenedPage, OpenPage
from tests.corpus.figures import source_with
from tests.kernels.tutorial_matmul import tutorial_matmul
from tests.unit.backends.nvidia.explain.test_op_rows import BLOCKS, TUTORIAL
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends import GPUTarget
from tilewright.backends.nvidia.explain.shared_access_rows import access_row
from tilewright.inspector import inspect_source
from tilewright.inspector.recorded_compilation import compile_recorded
from tilewright.kernels.softmax import softmax_kernel
from tilewright.layout import LinearLayout, plan_shared_access, shared_row_major

pytestmark = [pytest.mark.browser, needs_ptxas]

CPU, H100 = GPUTarget("cpu", "x86-64-v4", 1), GPUTarget("cuda", 90, 32)
LIMIT = 600_000
"""Bytes of the README's matmul."""


@tilewright.jit
def readme_matmul(a, b, c, M, N, K, BLOCK: tl.constexpr):
    """One BLOCK x BLOCK tile of c = a @ b, for row-major matrices."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        d = k + tl.arange(0, BLOCK)
        x = tl.load(a + i[:, None] * K + d, (i[:, None] < M) & (d < K), other=0.0)
        y = tl.load(b + d[:, None] * N + j, (d[:, None] < K) & (j < N), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * N + j, acc, (i[:, None] < M) & (j < N))


@tilewright.jit
def transposition(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :])
    tl.store(out_ptr + columns[:, None] * M + rows[None, :], tl.trans(x))


README = "*fp16/16 *fp16/16 *fp16/16 i32 i32 i32"
"""Sizes such as 1000, that are no multiples of 16: the longest code."""

MATMUL_SIZES = dict.fromkeys(("M", "N", "K", "stride_am", "stride_bk", "stride_cm"), 4096)
CASES: dict[str, tuple[Any, str, GPUTarget, dict[str, Any], dict[str, Any]]] = {
    "matmul": (
        tutorial_matmul, TUTORIAL, H100, BLOCKS, {"sizes": MATMUL_SIZES, "grid": (1024,)},
    ),
    "readme": (readme_matmul, README, H100, {"BLOCK": 128}, {}),
    "softmax": (
        softmax_kernel, "*fp32/16 *fp32/16 i32/16 i32/16 i32", CPU, {"BLOCK": 1024}, {},
    ),
    "transposition": (transposition, "*fp32/16 *fp32/16 i32/16 i32/16", H100, {"BLOCK": 64}, {}),
}  # fmt: skip


SILENT = {"arith.constant", "cf.program_id", "tile.range", "tile.splat"}
"""Ops that may have no instruction: constants are operands, and indices the counters of loops."""

LINES_OF = """stage => [...new Set([...document.querySelectorAll(`[data-pane=${stage}] [data-c]`)]
    .map(row => window.inspector.data.chains[row.dataset.c][0].join(":")))]"""
"""Source lines of a pane, as `file:line`."""

HITS = """Object.fromEntries([...document.querySelectorAll(".pane")].map(pane =>
    [pane.dataset.pane, [...pane.querySelectorAll(".hit")].map(row => row.textContent)]))"""


def page_of(name: str, folder: Path) -> Path:
    _, _, target, _, launch = CASES[name]
    return inspect_source(source_of_case(name), target, {}, folder / f"{name}.html", **launch).file


def source_of_case(name: str) -> Any:
    kernel, types, _, words, _ = CASES[name]
    return source_with(kernel, types, words)


def value(opened: OpenedPage, script: str, argument: object = None) -> Any:
    return opened.page.evaluate(script, argument)


def tabs(opened: OpenedPage) -> list[str]:
    return value(opened, "[...document.querySelectorAll('#tabs button')].map(b => b.dataset.tab)")


@pytest.mark.parametrize("name", CASES)
def test_pages_make_one_request_and_log_nothing(
    name: str, open_page: OpenPage, tmp_path: Path
) -> None:
    file = page_of(name, tmp_path)
    assert file.stat().st_size <= LIMIT
    opened = open_page(file, 1440, 900)
    opened.take_screenshot(f"inspector-{name}-code")
    shown = tabs(opened)
    for tab in shown:
        opened.page.click(f"#tabs button[data-tab={tab}]")
        assert opened.page.is_visible(f"#{tab}")
        opened.take_screenshot(f"inspector-{name}-{tab}")
    assert opened.requests == [file.as_uri()] and opened.complaints == []
    assert shown[:3] == ["code", "why", "passes"]
    assert ("layouts" in shown) == (name != "softmax")
    assert ("schedule" in shown) == (name == "matmul")


@pytest.mark.parametrize("name", CASES)
def test_clicking_a_line_highlights_its_counterparts_in_every_pane(
    name: str, open_page: OpenPage, tmp_path: Path
) -> None:
    opened = open_page(page_of(name, tmp_path), 1440, 900)
    data = value(opened, "window.inspector.data")
    stages = [pane["stage"] for pane in data["panes"]]
    last_ir = "ttgir" if "ttgir" in stages else "ttir"
    keys = value(opened, LINES_OF, last_ir)
    assert len(keys) >= 4
    for key in keys:
        opened.page.click(f'.row[data-line="{key}"]')
        hits = value(opened, HITS)
        assert set(hits) == {"python", *stages}
        ops = {re.sub(r"^.*?= ", "", text.strip()).split(" ")[0] for text in hits[last_ir]}
        assert hits["python"] and ops
        if not ops <= SILENT:
            assert all(hits.values()), (key, hits)


def test_clicking_machine_code_highlights_its_line_and_the_calls(
    open_page: OpenPage, tmp_path: Path
) -> None:
    opened = open_page(page_of("softmax", tmp_path), 1440, 900)
    chains = value(opened, "window.inspector.data.chains")
    number = next(n for n, chain in enumerate(chains) if len(chain) == 2)
    value(opened, "n => document.querySelector(`[data-pane=asm] [data-c='${n}']`).click()", number)
    (file, line), (_, caller) = chains[number]
    classes = "key => document.querySelector(`.row[data-line='${key}']`).className"
    assert "hit" in value(opened, classes, f"{file}:{line}")
    assert "via" in value(opened, classes, f"0:{caller}")


def test_the_page_builds_the_text_after_each_pass(open_page: OpenPage, tmp_path: Path) -> None:
    opened = open_page(page_of("matmul", tmp_path))
    recorded = compile_recorded(source_of_case("matmul"), H100, {})
    lines = value(opened, "window.inspector.data.pass_lines")
    built = value(opened, "window.inspector.texts.map(([before, after]) => after)")
    assert [[lines[n] for n in after] for after in built] == [
        each.after.splitlines() for each in recorded.passes
    ]
    opened.page.click("#tabs button[data-tab=passes]")
    name = next(each.name for each in recorded.passes if each.rules)
    opened.page.click(f'#passlist button[data-pass="{name}"]')
    assert "rules: " in opened.page.inner_text("#change")


def random_layout(chance: random.Random) -> LinearLayout:
    """A layout of random bases, with copies and any order of elements."""
    sizes = {f"dim{n}": 1 << chance.randint(0, 5) for n in range(chance.randint(1, 3))}

    def bases(most: int) -> list[list[int]]:
        return [
            [chance.randrange(n) for n in sizes.values()] for _ in range(chance.randint(0, most))
        ]

    return LinearLayout.from_bases(
        {"register": bases(5), "lane": bases(5), "warp": bases(3)}, sizes
    )


def test_random_layouts_agree_with_the_layout_algebra(open_page: OpenPage, tmp_path: Path) -> None:
    opened, chance = open_page(page_of("transposition", tmp_path)), random.Random(0)
    for _ in range(200):
        layout = random_layout(chance)
        names = ("register", "lane", "warp")
        given = {name: layout.bases(name) for name in names} | {"shape": layout.shape}
        points = [[chance.randrange(layout.in_size(name)) for name in names] for _ in range(8)]
        script = "([l, points]) => points.map(p => window.inspector.layoutApply(l, ...p))"
        expected = [list(layout.apply(**dict(zip(names, p, strict=True)))) for p in points]
        assert value(opened, script, [given, points]) == expected


def test_a_cell_of_a_layout_names_its_owner(open_page: OpenPage, tmp_path: Path) -> None:
    opened = open_page(page_of("matmul", tmp_path), 1440, 900)
    opened.page.click("#tabs button[data-tab=layouts]")
    layout = value(opened, "window.inspector.data.explanation.layouts[0]")
    assert layout["tile"].endswith("xf32")
    opened.page.click("#layouts .cell >> nth=0")
    on = opened.page.locator("#layouts .cell.on").count()
    assert on == value(
        opened,
        "[...document.querySelectorAll('#layouts .cell')]"
        ".filter(c => c.dataset.lane === '0' && c.dataset.warp === '0').length",
    )
    assert "register 0 of lane 0 of warp 0" in opened.page.inner_text("#layouts")


def test_a_transposition_without_swizzle_shows_32_conflicts(
    open_page: OpenPage, tmp_path: Path
) -> None:
    opened = open_page(page_of("transposition", tmp_path))
    own = value(opened, "window.inspector.data.explanation.accesses")
    assert own and all(access["degree"] == 1 for access in own)
    column = LinearLayout.from_bases(
        {"register": [], "lane": [(1 << bit, 0) for bit in range(5)], "warp": []},
        {"dim0": 32, "dim1": 32},
    )
    planted = plan_shared_access(shared_row_major((32, 32)), column, 32)
    row = access_row(1, "read", "ld.shared.b32", planted, 4)
    given = {"addresses": row.addresses, "bytes": row.bytes}
    assert row.degree == planted.degree == 32
    assert value(opened, "window.inspector.degreeOf", given) == 32
    for access in own:
        assert value(opened, "window.inspector.degreeOf", access) == access["degree"]


def test_a_page_of_an_error_shows_it(open_page: OpenPage, tmp_path: Path) -> None:
    source = source_with(transposition, "*fp32 *fp32 i32 i32", {"BLOCK": 65})
    made = inspect_source(source, H100, {"num_warps": 4, "num_ctas": 99}, tmp_path / "error.html")
    opened = open_page(made.file)
    assert made.error is not None
    assert opened.page.is_visible("pre.error") and "num_ctas" in opened.page.inner_text("#error")
    assert opened.complaints == []
    opened.take_screenshot("inspector-error")
