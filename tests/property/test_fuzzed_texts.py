"""Tile IR and Triton-C that nobody wrote: refused with a designed error, or compiled.

`just fuzz-text tile --count 50000` judges more of them.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz_text.judge import CASES, REFUSED, VALID, Case, Defect, judge_tile, reached

TEXTS = 300
COMPILED = 10
"""Every so many are compiled, for CPUs and GPUs, as far as they get there."""


@pytest.mark.parametrize("kind", list(CASES))
def test_every_text_is_refused_by_design_or_compiles(kind: str) -> None:
    counts = Counter(
        reached(CASES[kind](f"0:{number}", number % COMPILED == 0)) for number in range(TEXTS)
    )
    assert counts[REFUSED] < TEXTS * 2 // 3, f"too few are sentences: {counts}"
    assert counts["compiled"] > 0


def test_what_only_later_passes_are_given_is_no_defect() -> None:
    text = "func @f(%x: tile<8xi32, register=(1) lane=(2)(4) -> dim0:8>) {\n  cf.return\n}\n"
    assert judge_tile(text, False) == VALID


def test_what_shows_a_defect_is_made_small() -> None:
    def judge(text: str) -> str:
        if "arith.neg" in text and "%x" in text:
            raise KeyError("neg")
        return REFUSED

    text = "func @f(%x: i32) {\n  %y = arith.add %x, %x : i32\n  %z = arith.neg %y : i32\n}\n"
    with pytest.raises(Defect, match="KeyError: 'neg'") as caught:
        reached(Case(text, judge))
    assert len(str(caught.value).partition("\n\n")[2]) < 20
