"""Whatever happens to files of the disk cache, kernels compute the right results.

TILEWRIGHT_CORRUPTIONS is how often files are damaged at random (default 20).
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fail_points import killed_at, reached_points
from tests.forking import needs_fork
from tests.unit.compiler.kernels import ADD, add
from tests.unit.support.damage import (
    TO_A_FILE,
    TO_AN_INDEX,
    Damage,
    random_damage,
    resealed,
    rewritten,
)
from tilewright.compiler import ASTSource, CompiledKernel, compile
from tilewright.compiler.kernel_store import INDEX
from tilewright.frontend.c import Source, c_grammar, parse
from tilewright.support import TilewrightWarning, settings

CORRUPTIONS = int(os.environ.get("TILEWRIGHT_CORRUPTIONS", "20"))
FILES = (INDEX, "kernel.ttir", "kernel.llir", "kernel.obj")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no modes, links and pipes")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    with settings().cache.scope(dir=tmp_path / "cache"):
        yield tmp_path / "cache"


def sum_of_arrays() -> CompiledKernel:
    """Compile, or read, and launch; AssertionError for a wrong result."""
    kernel = compile(ASTSource(add, ADD, {"BLOCK": 16}))
    x, y = np.arange(50, dtype=np.float32), np.full(50, 0.5, np.float32)
    out = np.zeros(64, np.float32)
    kernel[(4,)](x, y, out, 50, 16)
    assert (out[:50] == x + y).all()
    assert not out[50:].any()
    return kernel


@pytest.fixture
def entry(cache: Path) -> Path:
    """The folder of that kernel in the cache."""
    return cache / "kernels" / sum_of_arrays().hash


def is_sound() -> None:
    """The next one reads what was written anew."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sum_of_arrays()


DIRECTED = [
    *((file, name, damage) for file in (INDEX, "kernel.obj") for name, damage in TO_A_FILE.items()),
    *((INDEX, name, damage) for name, damage in TO_AN_INDEX.items()),
]


@pytest.mark.parametrize(
    ("file", "damage"),
    [pytest.param(file, damage, id=f"{file}: {name}") for file, name, damage in DIRECTED],
)
def test_directed_damage(entry: Path, file: str, damage: Damage) -> None:
    damage(entry / file)
    with pytest.warns(TilewrightWarning, match="is damaged") as told:
        sum_of_arrays()
    assert len(told) == 1
    is_sound()


def test_random_damage(entry: Path, tmp_path: Path) -> None:
    chance = random.Random(21)
    good = tmp_path / "good"
    shutil.copytree(entry, good)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TilewrightWarning)
        for number in range(CORRUPTIONS):
            random_damage(chance)(entry / FILES[number % len(FILES)])
            assert sum_of_arrays().hash == entry.name
            shutil.rmtree(entry)
            shutil.copytree(good, entry)


def artifact(change: Callable[[bytes], bytes], name: str = "obj") -> Damage:
    """Another content of an artifact, with the checksum that belongs to it."""

    def damage(index: Path) -> None:
        file = index.with_name(f"kernel.{name}")
        rewritten(change)(file)
        content = file.read_bytes()
        row = ["binary", len(content), hashlib.sha256(content).hexdigest()]
        resealed(lambda m: m["artifacts"].update({name: row}))(index)

    return damage


def metadata(**changes: Any) -> Damage:
    return resealed(lambda m: m["metadata"].update(changes))


NOT_LOADABLE = {
    "no object": resealed(lambda m: m["artifacts"].pop("obj")),
    "an empty object": artifact(lambda code: b""),
    "nonsense": artifact(lambda code: b"nonsense" * 100),
    "half an object": artifact(lambda code: code[: len(code) // 2]),
    "an object without the kernel": artifact(lambda code: code.replace(b"add", b"sub")),
    "text": artifact(lambda code: code, "ttir"),
    "no name": resealed(lambda m: m["metadata"].pop("name")),
    "no parameters": resealed(lambda m: m["metadata"].pop("parameters")),
    "parameters of another kind": metadata(parameters=7),
    "no such type": metadata(parameters=["f99"] * 4),
    "stored of another kind": metadata(stored=7),
}


@pytest.mark.parametrize("damage", NOT_LOADABLE)
def test_a_kernel_that_cannot_be_loaded_is_compiled_again(entry: Path, damage: str) -> None:
    """Its checksums are right: somebody wrote it so."""
    NOT_LOADABLE[damage](entry / INDEX)
    if damage == "text":  # bytes instead of text: nothing needs it here
        sum_of_arrays()
        return
    with pytest.warns(TilewrightWarning, match="is damaged") as told:
        sum_of_arrays()
    assert len(told) == 1
    is_sound()


@needs_fork
def test_a_kill_in_any_step_of_writing_a_kernel(tmp_path: Path) -> None:
    with settings().cache.scope(dir=tmp_path / "points"):
        points = reached_points(sum_of_arrays)
    assert len(points) > 12
    for nth, point in enumerate(points):
        with settings().cache.scope(dir=tmp_path / str(nth)), warnings.catch_warnings():
            warnings.simplefilter("error")
            assert killed_at(nth, sum_of_arrays), point
            is_sound()
            is_sound()


# --- Triton-C's tables ----------------------------------------------------------------------------

C_SOURCE = "__global__ void k(float *p, int n) { float x[8] = n; *(p + 0 ... 8) = x * 2; }"


@pytest.fixture
def tables(cache: Path) -> Iterator[Path]:
    """The file with the tables of Triton-C's parser."""
    syntax_tree()
    (file,) = (cache / "grammar").iterdir()
    yield file
    c_grammar.grammar.cache_clear()


def syntax_tree() -> str:
    c_grammar.grammar.cache_clear()
    return repr(parse(Source(C_SOURCE, "<test>"), {}).program)


TO_TABLES = {
    "half": TO_A_FILE["half"],
    "no tables": resealed(lambda m: m.pop("data")),
    "tables of another kind": resealed(lambda m: m["data"].update(parser=[])),
    "states that are no numbers": resealed(
        lambda m: m["data"]["parser"]["parser"]["states"].update(x={})
    ),
}


@pytest.mark.parametrize("damage", TO_TABLES)
def test_damage_to_the_tables_of_the_grammar(tables: Path, damage: str) -> None:
    tree = syntax_tree()
    TO_TABLES[damage](tables)
    with pytest.warns(TilewrightWarning, match="is damaged") as told:
        assert syntax_tree() == tree
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert syntax_tree() == tree


def test_random_damage_to_the_tables_of_the_grammar(tables: Path) -> None:
    chance = random.Random(22)
    tree, good = syntax_tree(), tables.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TilewrightWarning)
        for _ in range(max(3, CORRUPTIONS // 10)):
            random_damage(chance)(tables)
            assert syntax_tree() == tree
            tables.write_bytes(good)
