"""`triton.profiler`: sessions with `data="trace"` write what was launched; others say so."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.triton_alias.alias_fixture import triton_alias
from tilewright.runtime import jit, launch_enter
from tilewright.support import TilewrightWarning


@pytest.fixture
def proton(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    with triton_alias():
        proton = importlib.import_module("triton.profiler")
        yield proton
        proton.finalize()
    assert not launch_enter


def launch() -> None:
    @jit
    def double(x, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(x + i) * 2)

    double[(1,)](np.ones(8, "f"), BLOCK=8)


def events(name: str) -> list[tuple[str, str]]:
    written = json.loads(Path(f"{name}.chrome_trace").read_text())["traceEvents"]
    shown = ("launch", "scope")
    return [(e["cat"], e["name"].partition(" ")[0]) for e in written if e.get("cat") in shown]


def test_a_trace_has_scopes_and_launches(proton: Any) -> None:
    session = proton.start("mine", data="trace", context="shadow", hook="launch")
    with proton.scope("step", {"flops": 3.0}):
        launch()
    proton.finalize(session)
    assert events("mine") == [("launch", "double"), ("scope", "step")]
    launch()
    proton.finalize()
    assert events("mine") == [("launch", "double"), ("scope", "step")]


def test_metrics_are_arguments_of_the_event(proton: Any) -> None:
    proton.start(data="trace")
    proton.enter_scope("outer")
    proton.enter_scope("inner")
    assert proton.exit_scope("inner", metrics={"bytes": 8}) == 1
    assert proton.exit_scope() == 0
    proton.finalize()
    written = json.loads(Path("proton.chrome_trace").read_text())["traceEvents"]
    scopes = [(e["name"], e["args"]) for e in written if e.get("cat") == "scope"]
    assert scopes == [("inner", {"bytes": 8}), ("outer", {})]


def test_paused_sessions_record_nothing(proton: Any) -> None:
    first = proton.start("first", data="trace")
    proton.start("second", data="trace")
    proton.deactivate(first)
    launch()
    proton.activate(first)
    launch()
    proton.finalize()
    assert len(events("first")) == 1
    assert len(events("second")) == 2
    # the second launch finds the first one's kernel on disk, or compiles it again
    for name, count in (("first", 1), ("second", 2)):
        text = Path(f"{name}.chrome_trace").read_text()
        assert text.count('"disk cache"') + text.count('"compile"') == count


def test_a_decorated_function_is_a_session(proton: Any) -> None:
    @proton.profile(name="call", data="trace")
    def call(count: int) -> int:
        for _ in range(count):
            launch()
        return count

    assert call(2) == 2
    assert events("call") == [("launch", "double")] * 2


def test_other_data_warn_that_nothing_is_measured(proton: Any) -> None:
    with pytest.warns(TilewrightWarning, match="data='trace' writes a trace"):
        session = proton.start("tree")
    launch()
    proton.finalize(session)
    assert not list(Path().glob("tree*"))
