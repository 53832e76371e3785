"""Every op has a meaning in the interpreter."""

import tilewright.ops as ops
from tilewright.interp import MACHINE_RULES
from tilewright.ir import OPS, REFERENCE_RULES, Effect, Trait

STRUCTURED = {ops.ForOp, ops.WhileOp, ops.IfOp, ops.ReduceOp, ops.ScanOp, ops.MapOp}
TILE_OPS = [op for op in OPS.values() if op.__module__.startswith("tilewright.ops")]


def test_no_rule_is_missing():
    assert len(TILE_OPS) > 40
    for op in TILE_OPS:
        if Trait.TERMINATOR not in op.traits and op not in STRUCTURED:
            assert op in REFERENCE_RULES or op in MACHINE_RULES, f"no rule for {op.opcode}"


def test_no_op_has_two_rules():
    assert not set(REFERENCE_RULES) & set(MACHINE_RULES)


def test_what_reads_or_writes_memory_needs_the_machine():
    for op in TILE_OPS:
        if op.effects & {Effect.READ, Effect.WRITE}:
            assert op in MACHINE_RULES
