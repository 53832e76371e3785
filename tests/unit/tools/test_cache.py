"""`tilewright cache`: path, list, clear."""

import numpy as np
import pytest

from tilewright.tools.cli import main


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(folder))
    monkeypatch.setenv("COLUMNS", "100")
    return folder


def compile_one():
    from tilewright.compiler import ASTSource, compile
    from tilewright.kernels.elementwise import add_kernel

    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
    compile(ASTSource(add_kernel, {**types, "BLOCK": "constexpr"}, {"BLOCK": 32}))


def test_path(cache, capsys):
    assert main(["cache", "path"]) == 0
    assert capsys.readouterr().out == f"{cache}\n"


def test_list_and_clear(cache, capsys):
    assert main(["cache", "list"]) == 0
    assert "0 kernels" in capsys.readouterr().out
    compile_one()
    (cache / "mine.txt").write_text("not of the cache")
    assert main(["cache", "list"]) == 0
    text = capsys.readouterr().out
    assert "add_kernel" in text
    assert "ptr<f32>, ptr<f32>, ptr<f32>, i32" in text
    assert "1 kernels" in text
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("deleted 1 kernels")
    assert [path.name for path in cache.iterdir()] == ["mine.txt"]
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("deleted 0 kernels")


def test_a_damaged_entry_is_no_obstacle(cache, capsys):
    compile_one()
    index = next((cache / "kernels").glob("*/kernel.json"))
    index.write_bytes(np.random.default_rng(0).bytes(100))
    assert main(["cache", "list"]) == 0
    assert "0 kernels" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert not (cache / "kernels").exists()


def test_unknown_action_is_a_usage_error():
    with pytest.raises(SystemExit) as stop:
        main(["cache", "shrink"])
    assert stop.value.code == 2
