"""Addresses of lanes in shared memory: their conflicts, counted by force, are the degree."""

import pytest

from tests.corpus.figures import source_of
from tests.corpus.variants import CORPUS, Variant
from tests.kernels.tutorial_matmul import tutorial_matmul
from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.explain.test_op_rows import BLOCKS, TUTORIAL, transposed
from tests.unit.backends.nvidia.requires import needs_ptxas
from tests.unit.layout.wavefronts import words_of_busiest_banks
from tilewright.backends import GPUTarget, SharedAccessRow
from tilewright.compiler import compile

pytestmark = needs_ptxas


def counted(row: SharedAccessRow) -> int:
    """The most distinct words of a bank that lanes need at once."""
    return max(words_of_busiest_banks(row.addresses, row.bytes))


CASES = [v for variants in CORPUS.values() for v in variants if v.capability in (80, 90)][::40]


@pytest.mark.parametrize("variant", CASES, ids=lambda v: f"{v.kernel.__name__}-{v.label}")
def test_degrees_are_those_of_the_addresses(variant: Variant) -> None:
    kernel = compile(source_of(variant), GPUTarget("cuda", variant.capability, 32), variant.options)
    rows = kernel.explain().accesses
    assert [row.degree for row in rows] == [counted(row) for row in rows]


def test_a_transposition_is_written_and_read_without_conflicts() -> None:
    write, read = compiled(transposed, "*fp32/16 *fp32/16", BLOCK=64).explain().accesses
    assert (write.what, read.what) == ("write to shared", "read from shared")
    assert (write.bytes, read.bytes, write.degree, read.degree) == (16, 4, 1, 1)


def test_copies_have_the_lines_of_their_loads() -> None:
    rows = compiled(tutorial_matmul, TUTORIAL, 80, **BLOCKS).explain().accesses
    a, b = (row.line for row in rows if row.what == "copy to shared")
    assert a is not None and b == a + 1
