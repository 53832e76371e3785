"""Rows of layout conversions: the loop, and the two ops that need different layouts."""

import tilewright
import tilewright.language as tl
from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright.backends import OpRow

pytestmark = needs_ptxas


@tilewright.jit
def scan_between_dots(q_ptr, k_ptr, v_ptr, o_ptr, N, B: tl.constexpr):
    i = tl.arange(0, B)
    q = tl.load(q_ptr + i[:, None] * B + i[None, :])
    acc = tl.zeros((B, B), tl.float32)
    for n in range(0, N, B):
        k = tl.load(k_ptr + (n + i)[None, :] * B + i[:, None])
        s = tl.cumsum(tl.dot(q, k), 0)
        v = tl.load(v_ptr + (n + i)[:, None] * B + i[None, :])
        acc = tl.dot(s.to(tl.float16), v, acc)
    tl.store(o_ptr + i[:, None] * B + i[None, :], acc.to(tl.float16))


FIRST = scan_between_dots.starting_line_number


def converts() -> list[OpRow]:
    kernel = compiled(scan_between_dots, "*fp16/16 *fp16/16 *fp16/16 *fp16/16 i32/16", 80, B=64)
    return [row for row in kernel.explain().rows if row.op == "convert"]


def line(text: str) -> int:
    """The line of the kernel that has a text."""
    with open(__file__, encoding="utf-8") as file:
        return next(n for n, found in enumerate(file, 1) if text in found and n > FIRST - 1)


def test_conversions_in_a_loop_name_it_and_the_two_ops() -> None:
    loop, scan, dot = line("for n in"), line("tl.cumsum(tl.dot"), line("acc = tl.dot")
    notes = {note for row in converts() for note in row.notes}
    ops = f"the scan of line {scan} and the dot of line {dot}"
    assert f"in the loop of line {loop}: {ops} have different layouts" in notes


def test_the_accumulator_of_a_loop_is_followed_to_its_dot() -> None:
    dot, store = line("acc = tl.dot"), line("tl.store(o_ptr")
    (row,) = (row for row in converts() if row.loc and row.loc.line == store)
    assert row.notes == (
        f"the dot of line {dot} and the store of line {store} have different layouts",
    )


def test_each_conversion_has_a_cause() -> None:
    assert len(converts()) >= 3
    assert all(row.notes and "different layouts" in row.notes[0] for row in converts())
