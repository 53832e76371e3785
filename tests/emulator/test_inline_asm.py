"""Statements of inline assembly: declarations, labels, jumps, predicates and small arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.llvm_program import Program, launch
from tests.emulator.memory import Array, EmulationError
from tests.emulator.test_barriers import start, store


def result_of(assembly: str, *operands: str) -> Array:
    """What 64 threads get in $0; $1 is the number of the thread, others follow."""
    p: Program = start()
    letters = ",".join("b" if o.startswith("i1") else "r" for o in operands)
    constraints = "=r,r" + ("," + letters if operands else "")
    store(p, p.asm(assembly, constraints, "i32 %tid", *operands, type_="i32"))
    out = np.zeros(64, np.int32)
    launch(p.text("ptr %out"), 64, out, warps=2)
    return out


T = np.arange(64)


@pytest.mark.parametrize(
    ("assembly", "expected"),
    [
        ("{ .reg .b32 t, u; add.u32 t, $1, 3; mov.b32 u, 2; mul.lo.s32 $0, t, u; }", 2 * (T + 3)),
        ("{\n.reg .b64 d;\n.reg .b32 lo, hi;\nmov.b64 d, {$1, $1};\nmov.b64 {lo, hi}, d;\n"
         "sub.u32 $0, hi, 1;\n}", T - 1),
        ("{ .reg .pred p; setp.lt.s32 p, $1, 9; selp.b32 $0, 5, $1, p; }", np.where(T < 9, 5, T)),
        ("{ .reg .pred p; setp.ge.u32 p, $1, 7; mov.b32 $0, 1; @p mov.b32 $0, 2; }", 1 + (T >= 7)),
        ("{ .reg .pred p; setp.ge.u32 p, $1, 7; mov.b32 $0, 1; @!p mov.b32 $0, 2; }", 1 + (T < 7)),
        ("mov.b32 $0, 0f40490FDB;", np.full(64, 0x40490FDB)),
        ("{ mov.b32 $0, 1; bra END; mov.b32 $0, 2; END: }", np.ones(64)),
        # threads part at a jump forwards, and meet again
        ("{ .reg .pred p; setp.lt.u32 p, $1, 5; mov.b32 $0, 0; @p bra SOME; add.u32 $0, $0, 10;\n"
         "SOME: add.u32 $0, $0, 1; }", np.where(T < 5, 1, 11)),
        # all go round together
        ("{ .reg .pred p; .reg .b32 i; mov.b32 i, 0; mov.b32 $0, 0;\nAGAIN: add.u32 $0, $0, $1;\n"
         "add.u32 i, i, 1; setp.lt.u32 p, i, 4; @p bra AGAIN; }", 4 * T),
    ],
)  # fmt: skip
def test_results(assembly: str, expected: Array) -> None:
    np.testing.assert_array_equal(result_of(assembly), expected)


def test_an_operand_that_is_a_predicate() -> None:
    found = result_of("mov.b32 $0, 1;\n@$2 mov.b32 $0, 2;", "i1 true")
    np.testing.assert_array_equal(found, 2)


def test_threads_that_part_at_a_jump_backwards() -> None:
    with pytest.raises(EmulationError, match="jump backwards"):
        result_of("{ .reg .pred p; AGAIN: setp.lt.u32 p, $1, 3; @p bra AGAIN; mov.b32 $0, 1; }")


def test_an_instruction_that_the_emulator_does_not_know() -> None:
    with pytest.raises(AssertionError, match=r"does not know brkpt"):
        result_of("brkpt; mov.b32 $0, 1;")


@pytest.mark.parametrize("tail", ["@done bra DONE;\nbra WAIT;\nDONE:", "@!done bra WAIT;"])
def test_both_forms_of_a_wait_loop(tail: str) -> None:
    p = start()
    p.do("%first = icmp eq i32 %tid, 0")
    with p.only("%first"):
        p.asm("mbarrier.init.shared.b64 [$0], 1;", "r,~{memory}", "i32 8")
    p.asm("bar.sync 0;", "~{memory}")
    with p.only("%first"):
        p.asm("mbarrier.arrive.shared::cta.b64 _, [$0+8];", "r,~{memory}", "i32 0")
    wait = "WAIT: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [$0], $1;"
    p.asm(f"{{\n.reg .pred done;\n{wait}\n{tail}\n}}", "r,r,~{memory}", "i32 8", "i32 0")
    store(p, "7")
    out = np.zeros(64, np.int32)
    launch(p.text("ptr %out"), 64, out, warps=2, seed=0)
    np.testing.assert_array_equal(out, 7)
