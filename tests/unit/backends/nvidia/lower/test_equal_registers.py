"""Booleans that are equal in a thread's registers: computed once for each vector."""

import pytest

import tilewright.language as tl
from tests.unit.backends.nvidia.compiled import compiled, count
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import jit
from tilewright.backends.nvidia.lower.gpu_lowering import first_of_runs
from tilewright.layout import LinearLayout


def test_first_of_runs() -> None:
    layout = LinearLayout.from_bases(
        {"register": [(1,), (2,), (64,)], "lane": [(4,), (8,), (16,), (32,)]},
        {"dim0": 128},
    )
    assert first_of_runs(layout, (1,)) is None
    assert first_of_runs(layout, (2,)) == [0, 0, 2, 2, 4, 4, 6, 6]
    assert first_of_runs(layout, (4,)) == [0, 0, 0, 0, 4, 4, 4, 4]
    assert first_of_runs(layout, (128,)) == [0] * 8


@jit
def centred(source, target, n, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    row = tl.program_id(0) * n
    x = tl.load(source + row + i, mask=i < n, other=0.0)
    x = tl.where((i < n) & (i + 16 < n), x - 1.0, 0.0)
    tl.store(target + row + i, x * tl.sum(x, 0), mask=i < n)


@needs_ptxas
@pytest.mark.parametrize("known", [True, False])
def test_a_vector_has_one_comparison(known: bool) -> None:
    aligned = "i32/16" if known else "i32"
    kernel = compiled(centred, f"*fp32/16 *fp32/16 {aligned}", SIZE=2048)
    # 16 elements of a thread are 4 vectors; of either comparison LLVM turns some around.
    found = sum(count(kernel, f"setp.{name}.s32") for name in ("lt", "gt", "le", "ge"))
    assert found == (8 if known else 32)
