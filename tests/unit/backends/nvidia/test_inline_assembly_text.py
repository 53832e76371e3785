"""Texts of inline assembly that LLVM would end the process for are refused before it sees them."""

import pytest

import tilewright.language as tl
from tests.unit.backends.nvidia.compiled import compiled
from tilewright import jit
from tilewright.ops import wrong_assembly
from tilewright.support import errors

BAD = [
    "$",
    "$9",
    "$2",
    "mov.b32 $0, $;",
    "${1",
    "${1:q}",
    "${:uid}",
    "${x}",
    "$(a$|b$)",
    "$x",
    "\0",
]
GOOD = [
    "mov.b32 $0, $1;",
    "mov.b32 $0, ${1};",
    "mov.b32 $0, ${1:r};",
    "// $$ $$1\n\tmov.b32 $0, $1;",
]


@jit
def moved(x, y, TEXT: tl.constexpr):
    i = tl.arange(0, 64)
    value = tl.load(x + i)
    tl.store(y + i, tl.inline_asm_elementwise(TEXT, "=r,r", [value], tl.int32, True, 1))


@pytest.mark.parametrize("text", BAD)
def test_a_designed_error(text: str) -> None:
    with pytest.raises(errors.InvalidValue, match="'asm' must be assembly"):
        compiled(moved, "*i32 *i32", TEXT=text)
    assert wrong_assembly(text, "=r,r,~{memory}") is not None


@pytest.mark.parametrize("text", GOOD)
def test_what_llvm_takes(text: str) -> None:
    assert "mov.b32" in str(compiled(moved, "*i32 *i32", TEXT=text).asm["ptx"])


@jit
def größe(x, y):
    i = tl.arange(0, 64)
    tl.store(y + i, tl.load(x + i))


def test_names_beyond_ascii() -> None:
    kernel = compiled(größe, "*i32 *i32")
    assert ".entry gr_u00f6_u00dfe(" in str(kernel.asm["ptx"])
