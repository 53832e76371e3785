"""The data of the inspector's page: panes, links, passes, and pages of kernels that fail."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.figures import source_with
from tests.kernels.tutorial_matmul import tutorial_matmul
from tests.unit.backends.nvidia.explain.test_op_rows import BLOCKS, TUTORIAL
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends import GPUTarget
from tilewright.backends.nvidia.assemble import ptxas
from tilewright.compiler import compile
from tilewright.inspector import inspect_source
from tilewright.inspector.recorded_compilation import compile_recorded
from tilewright.kernels.elementwise import add_kernel
from tilewright.kernels.softmax import softmax_kernel
from tilewright.llvm import host_cpu
from tilewright.support import ListRecorder, PassEnded, RuleFired, errors, recording, settings

CPU, H100 = GPUTarget("cpu", "x86-64-v4", 1), GPUTarget("cuda", 90, 32)
SOFTMAX = "*fp32/16 *fp32/16 i32/16 i32/16 i32"


def data_of(file: Path) -> dict[str, Any]:
    """The data in a page."""
    found = re.search(r'<script type="application/json" id="data">(.*)</script>', file.read_text())
    assert found is not None
    return json.loads(found[1])


def inspected(
    tmp_path: Path, kernel: Any, types: str, target: GPUTarget, words: dict[str, Any], **launch: Any
) -> dict[str, Any]:
    made = source_with(kernel, types, words)
    return data_of(inspect_source(made, target, {}, tmp_path / "page.html", **launch).file)


def panes(data: dict[str, Any]) -> list[str]:
    return [pane["stage"] for pane in data["panes"]]


def linked(data: dict[str, Any], stage: str) -> set[tuple[int, int]]:
    """Files and lines to which a pane is linked."""
    (pane,) = (pane for pane in data["panes"] if pane["stage"] == stage)
    assert sum(count for _, count in pane["chains"]) == len(pane["text"].split("\n"))
    chains = [data["chains"][number] for number, _ in pane["chains"] if number >= 0]
    return {tuple(frame) for chain in chains for frame in chain}


def test_a_kernel_for_a_cpu_has_a_pane_for_each_stage(tmp_path: Path):
    data = inspected(tmp_path, softmax_kernel, SOFTMAX, CPU, {"BLOCK": 1024})
    assert panes(data) == ["source", "ttir", "llir", "asm"] and data["missing"] == []
    assert data["error"] is None and data["kernel"] == "softmax_kernel"
    assert [file["name"] for file in data["files"]] == ["softmax.py"]
    texts = [text for _, text, _ in data["files"][0]["lines"]]
    assert any("def softmax_kernel" in text for text in texts)
    assert any("def softmax_of_row" in text for text in texts)


def test_each_line_with_an_op_is_linked_in_each_stage_of_a_cpu(tmp_path: Path):
    data = inspected(tmp_path, softmax_kernel, SOFTMAX, CPU, {"BLOCK": 1024})
    accesses = {row["loc"].rpartition(":")[2] for row in data["explanation"]["rows"]}
    for stage in panes(data):
        assert {(0, int(line)) for line in accesses} <= linked(data, stage), stage


@needs_ptxas
def test_each_line_with_an_op_is_linked_in_each_stage_of_a_gpu(tmp_path: Path):
    data = inspected(tmp_path, tutorial_matmul, TUTORIAL, H100, BLOCKS)
    assert panes(data)[:5] == ["source", "ttir", "ttgir", "llir", "ptx"]
    lines = {(0, int(row["loc"].rpartition(":")[2])) for row in data["explanation"]["rows"]}
    for stage in panes(data):
        assert lines <= linked(data, stage), stage


def test_tokens_cover_the_text_of_each_line(tmp_path: Path):
    data = inspected(tmp_path, softmax_kernel, SOFTMAX, CPU, {"BLOCK": 64})
    for _, text, runs in data["files"][0]["lines"]:
        assert sum(length for _, length in runs) == len(text)


def test_rules_and_passes_are_those_of_the_events():
    made = source_with(tutorial_matmul, TUTORIAL, BLOCKS)
    events = ListRecorder()
    with settings().cache.scope(always_compile=True), recording(events):
        compile(made, CPU)
    recorded = compile_recorded(made, CPU, {})
    assert [p.name for p in recorded.passes] == [e.pass_name for e in events.of(PassEnded)]
    fired = [rule for p in recorded.passes for rule, n in p.rules.items() for _ in range(n)]
    assert sorted(fired) == sorted(event.rule for event in events.of(RuleFired)) and fired


def test_an_inspected_kernel_needs_no_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    x = np.zeros(64, np.float32)
    kernel = add_kernel[(1,)](x, x, np.zeros_like(x), 64, BLOCK=64)
    assert kernel.inspect() == Path("add_kernel.html")
    data = data_of(tmp_path / "add_kernel.html")
    assert data["explanation"]["backend"] == "cpu"
    assert data["explanation"]["bound"] is None


def test_the_roofline_has_the_counts_of_explain(tmp_path: Path):
    launch = {"sizes": {"n": 1 << 16}, "grid": (64,), "seconds": 1e-3}
    host = GPUTarget("cpu", host_cpu().name, 1)
    data = inspected(tmp_path, add_kernel, "*fp32 *fp32 *fp32 i32", host, {"BLOCK": 1024}, **launch)
    assert data["explanation"]["bound"]["distinct"] == 12 << 16
    page = (tmp_path / "page.html").read_text()
    assert "measured: 65.5 MFLOP/s" in page and "at most" in page


@tilewright.jit
def wrong(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), undefined)  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


def test_a_kernel_that_does_not_compile_has_a_page_with_its_error(tmp_path: Path):
    data = inspected(tmp_path, wrong, "*fp32", CPU, {"BLOCK": 64})
    assert "'undefined'" in data["error"] and "^" in data["error"]
    assert data["panes"] == [] and data["explanation"] is None


def test_an_error_after_some_stages_leaves_their_panes(tmp_path: Path):
    made = source_with(add_kernel, "*fp32 *fp32 *fp32 i32", {"BLOCK": 64})
    data = data_of(inspect_source(made, H100, {"num_ctas": 32}, tmp_path / "page.html").file)
    assert "num_ctas" in data["error"] and panes(data) == ["source", "ttir", "ttgir"]


def missing(*_: object) -> object:
    raise errors.ToolMissing("nvdisasm", "PATH", "pip install nvidia-cuda-nvdisasm")


@needs_ptxas
def test_without_nvdisasm_the_pane_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ptxas, "find_disassembler", missing)
    data = inspected(tmp_path, add_kernel, "*fp32 *fp32 *fp32 i32", H100, {"BLOCK": 64})
    assert "sass_lines" not in panes(data) and "ptx" in panes(data)
    (text,) = data["missing"]
    assert text.startswith("SASS: 'nvdisasm' was not found")
    assert "pip install nvidia-cuda-nvdisasm" in text


def test_without_ptxas_the_panes_up_to_ptx_remain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ptxas, "find_ptxas", missing)
    data = inspected(tmp_path, add_kernel, "*fp32 *fp32 *fp32 i32", H100, {"BLOCK": 128})
    assert data["error"] is None and panes(data)[-1] == "ptx"
    assert "pip install nvidia-cuda-nvcc" in data["missing"][0]


def test_texts_cannot_end_the_data(tmp_path: Path):
    data = inspected(tmp_path, wrong, "*fp32", CPU, {"BLOCK": 64})
    page = (tmp_path / "page.html").read_text()
    assert page.count("</script>") == 2 and data["error"]
