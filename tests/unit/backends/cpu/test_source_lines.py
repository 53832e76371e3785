"""Line tables of x86 code: how much of it belongs to a line of the kernel."""

import re

import tilewright
from tests.corpus.figures import source_of
from tests.corpus.user_figures import CPU
from tests.corpus.variants import CORPUS
from tilewright.backends import GPUTarget


def count(assembly: str) -> tuple[int, int]:
    """The instructions with a line, and all."""
    located, with_line, total = False, 0, 0
    for text in assembly.splitlines():
        directive = re.match(r"\s*\.loc\s+\d+\s+(\d+)", text)
        if directive:
            located = int(directive[1]) > 0
        elif re.match(r"\t[a-z]\w*\b", text):
            total += 1
            with_line += located
    return with_line, total


def test_nine_of_ten_instructions_of_the_ready_made_kernels_have_a_line() -> None:
    # the rest unpacks arguments, and loops over the programs of a thread
    target = GPUTarget("cpu", CPU, 1)
    ready_made = [variants[0] for name, variants in CORPUS.items() if not name.startswith("users/")]
    counts = [count(tilewright.compile(source_of(one), target).asm["asm"]) for one in ready_made]
    with_line, total = map(sum, zip(*counts, strict=True))
    assert len(counts) > 10 and with_line >= 0.9 * total, (with_line, total)
    assert min(some / every for some, every in counts) > 0.75
