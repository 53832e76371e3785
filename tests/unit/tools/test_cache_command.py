"""`tilewright cache`: path, list, clear."""

import json
import re
import sys

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


def test_an_empty_cache_names_its_folder(cache, capsys):
    assert main(["cache", "list"]) == 0
    assert capsys.readouterr().out == f"no kernels are in {cache}; compilations write them\n"


def test_path(cache, capsys):
    assert main(["cache", "path"]) == 0
    assert capsys.readouterr().out == f"{cache}\n"


def test_list_and_clear(cache, capsys):
    assert main(["cache", "list"]) == 0
    assert "kernel" in capsys.readouterr().out
    compile_one()
    (cache / "mine.txt").write_text("not of the cache")
    assert main(["cache", "list"]) == 0
    text = capsys.readouterr().out
    assert "add_kernel" in text
    assert "ptr<f32>, ptr<f32>, ptr<f32>, i32" in text
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("deleted 1 kernels")
    assert [path.name for path in cache.iterdir()] == ["mine.txt"]
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("deleted 0 kernels")


def test_a_pipe_gets_whole_lines_and_programs_get_json(cache, capsys):
    compile_one()
    assert main(["cache", "list"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["kernel", "for", "parameters", "constants", "key", "kB", "last", "used"]
    assert re.search(r"ptr<f32>, ptr<f32>, ptr<f32>, i32 +BLOCK=32 ", row)
    assert main(["cache", "list", "--json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)
    assert kernel["name"] == "add_kernel"
    assert kernel["size"] > 0
    assert kernel["constants"] == "BLOCK=32"
    assert (cache / "kernels" / kernel["key"]).is_dir()
    assert main(["cache", "--json", "path"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(cache)}
    assert main(["cache", "clear", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kernels"] == 1


def test_the_list_is_readable_in_eighty_columns(cache, capsys, monkeypatch):
    compile_one()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["cache", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    (row,) = [line for line in lines if "add_kernel" in line]
    assert re.search(r"ptr<f.*\u2026 +BLOCK=32 +[0-9a-f]{8} +\d+ +20\d\d-", row)


def test_constants_and_targets_tell_variants_apart(cache, capsys):
    from tilewright.backends import GPUTarget
    from tilewright.c import CSource
    from tilewright.compiler import compile

    source = "__global__ void fill(float *x) { int i[N] = 0 ... N; *(x + i) = 1.0f; }"
    for n, target in ((32, None), (64, None), (64, GPUTarget("cuda", 90, 32))):
        compile(CSource(source, {"N": n}), target, {"num_warps": 1})
    assert main(["cache", "list"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert sorted(row[3] for row in rows) == ["N=32", "N=64", "N=64"]
    assert [row[1] for row in rows].count("sm_90") == 1


def test_a_damaged_entry_is_no_obstacle(cache, capsys):
    compile_one()
    index = next((cache / "kernels").glob("*/kernel.json"))
    index.write_bytes(np.random.default_rng(0).bytes(100))
    assert main(["cache", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["cache", "clear"]) == 0
    assert not (cache / "kernels").exists()


def test_unknown_action_is_a_usage_error():
    with pytest.raises(SystemExit) as stop:
        main(["cache", "shrink"])
    assert stop.value.code == 2


@pytest.mark.parametrize("action", ["export", "import"])
def test_an_empty_key_is_named(cache, capsys, monkeypatch, tmp_path, action):
    key = tmp_path / "key"
    key.write_text("\n")
    monkeypatch.setenv("TILEWRIGHT_REMOTE_CACHE_KEY", str(key))
    assert main(["cache", action, str(tmp_path / "k.tar")]) != 0
    assert f"TILEWRIGHT_REMOTE_CACHE_KEY names no key: {key} is empty" in capsys.readouterr().err
    assert not (tmp_path / "k.tar").exists()
