"""The tables of the grammar on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.frontend.c import Source, c_grammar, parse
from tilewright.support import errors, settings

parser = c_grammar.grammar

SOURCE = "__global__ void k(float *p, int n) { float x[8] = n; *(p + 0 ... 8) = x * 2; }"


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    parser.cache_clear()
    with settings().cache.scope(dir=tmp_path):
        yield tmp_path / "grammar"
    parser.cache_clear()


def tree(text: str) -> str:
    return repr(parse(Source(text, "<test>"), {}).program)


def test_tables_that_are_read_parse_as_those_that_are_made(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tree(SOURCE)
    (file,) = cache.iterdir()
    assert file.suffix == ".json"
    parser.cache_clear()
    monkeypatch.setattr(c_grammar, "Lark", type("Reader", (c_grammar.Lark,), {"__init__": None}))
    assert tree(SOURCE) == made
    with pytest.raises(errors.CSyntaxError, match="expected ';'"):
        tree(SOURCE.replace("= n;", "= n"))


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"\x80\x04N."])
def test_damaged_tables_are_made_again(cache: Path, damage: bytes) -> None:
    made = tree(SOURCE)
    (file,) = cache.iterdir()
    file.write_bytes(damage)
    parser.cache_clear()
    assert tree(SOURCE) == made
    assert file.stat().st_size > 1000


def test_a_folder_that_cannot_be_written(cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    assert "Function" in tree(SOURCE)


def test_reading_can_be_turned_off(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tree(SOURCE)
    parser.cache_clear()
    monkeypatch.setattr(c_grammar.Lark, "load", None)
    with settings().cache.scope(always_compile=True):
        assert tree(SOURCE) == made
