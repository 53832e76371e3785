"""The rule driver: order, names, locations, events, dead code, termination."""

import pytest

from tilewright import ops
from tilewright.ir import (
    Function,
    Rule,
    RuleContext,
    RuleSet,
    Value,
    parse_function,
    print_function,
    removable,
    rewrite,
    rule,
    verify,
)
from tilewright.support import ListRecorder, RuleFired, SourceLoc, recording
from tilewright.support.errors import InternalCompilerError


@rule(ops.NegOp)
def negate_twice(op: ops.NegOp, ctx: RuleContext) -> Value | None:
    """-(-x) -> x"""
    inner = op.x.op
    return inner.x if isinstance(inner, ops.NegOp) else None


@rule(ops.AddOp)
def double(op: ops.AddOp, ctx: RuleContext) -> Value | None:
    """x + x -> -(x - x) - 0, to have something to look at"""
    if op.lhs is not op.rhs:
        return None
    return ctx.value(ops.NegOp(ctx.value(ops.SubOp(op.lhs, op.rhs))))


def _function(body: str, head: str = "%x: i32, %X: ptr<i32>") -> Function:
    return parse_function(f"func @f({head}) {{\n{body}  cf.return\n}}")


def _body(function: Function) -> list[str]:
    return [line.strip() for line in print_function(function).splitlines()[1:-1]]


def test_a_rule_knows_its_name_identity_and_place() -> None:
    assert isinstance(negate_twice, Rule)
    assert negate_twice.name == "negate_twice"
    assert negate_twice.identity == "-(-x) -> x"
    assert negate_twice.file.startswith("test_rules.py:")


def test_a_rule_must_state_its_identity() -> None:
    with pytest.raises(AssertionError, match="does not state its identity"):

        @rule(ops.NegOp)
        def nameless(op: ops.NegOp, ctx: RuleContext) -> Value | None:
            return None

        del nameless


def test_sets_are_indexed_by_class_and_join_in_order() -> None:
    both = RuleSet([negate_twice]) + RuleSet([double])
    assert both.rules == (negate_twice, double)
    assert both.by_class == {ops.NegOp: (negate_twice,), ops.AddOp: (double,)}
    assert len(both) == 2


def test_rewriting_replaces_and_removes_what_is_dead() -> None:
    function = _function(
        "  %a = arith.neg %x : i32\n  %b = arith.neg %a : i32\n  mem.store %X, %b\n"
    )
    assert rewrite(function, RuleSet([negate_twice])) is True
    assert _body(function) == ["mem.store %X, %x", "cf.return"]
    assert verify(function) == []
    assert rewrite(function, RuleSet([negate_twice])) is False


def test_new_ops_take_location_and_name_of_the_old_one() -> None:
    function = _function("  %b = arith.add %x, %x : i32\n  mem.store %X, %b\n")
    loc = SourceLoc("k.py", 7)
    assert function.body.first is not None
    function.body.first.loc = loc
    rewrite(function, RuleSet([double]))
    assert _body(function)[:2] == ["%0 = arith.sub %x, %x : i32", "%b = arith.neg %0 : i32"]
    assert [op.loc for op in list(function.body)[:2]] == [loc, loc]


def test_new_ops_are_looked_at_again() -> None:
    @rule(ops.SubOp)
    def nothing(op: ops.SubOp, ctx: RuleContext) -> Value | None:
        """x - x -> 0"""
        return ctx.value(ops.ConstantOp(0, op.type)) if op.lhs is op.rhs else None

    function = _function("  %b = arith.add %x, %x : i32\n  mem.store %X, %b\n")
    rewrite(function, RuleSet([double, nothing]))
    assert _body(function)[0] == "%0 = arith.constant {value = 0} : i32"


def test_inner_blocks_are_rewritten_too() -> None:
    function = _function(
        "  %r = cf.for %x, %x, %x, %x : i32 (%i: i32, %c: i32) {\n"
        "    %a = arith.neg %c : i32\n    %b = arith.neg %a : i32\n    cf.yield %b\n  }\n"
        "  mem.store %X, %r\n"
    )
    assert rewrite(function, RuleSet([negate_twice]))
    assert "cf.yield %c" in _body(function)


def test_events_name_rule_file_and_op() -> None:
    function = _function(
        "  %a = arith.neg %x : i32\n  %b = arith.neg %a : i32\n  mem.store %X, %b\n"
    )
    events = ListRecorder()
    with recording(events):
        rewrite(function, RuleSet([negate_twice]))
    assert events.of(RuleFired) == [RuleFired("negate_twice", negate_twice.file, "arith.neg")]


def test_rules_without_end_are_stopped_by_name() -> None:
    @rule(ops.AddOp)
    def swap(op: ops.AddOp, ctx: RuleContext) -> Value | None:
        """x + y -> y + x"""
        return ctx.value(ops.AddOp(op.rhs, op.lhs))

    function = _function("  %a = arith.add %x, %y : i32\n  mem.store %X, %a\n",
                         "%x: i32, %y: i32, %X: ptr<i32>")  # fmt: skip
    with pytest.raises(InternalCompilerError, match=r"does not come to an end: swap"):
        rewrite(function, RuleSet([swap]))


@pytest.mark.parametrize(
    ("line", "may_go"),
    [
        ("%a = arith.neg %x : i32", True),
        ("%a = mem.load %X : i32", True),
        ("%a = mem.load %X {volatile = true} : i32", False),
        ("mem.store %X, %x", False),
        ("mem.barrier", False),
        ("%a = mem.atomic %X, %x : i32", False),
        ("cf.for %x, %x, %x (%i: i32) {\n  %l = mem.load %X : i32\n  cf.yield\n}", True),
        ("cf.for %x, %x, %x (%i: i32) {\n  mem.store %X, %x\n  cf.yield\n}", False),
        ("%a = cf.while %x : i32 (%c: i32) {\n  %t = arith.constant {value = true} : i1\n"
         "  cf.condition %t, %c\n} (%d: i32) {\n  cf.yield %d\n}", False),
    ],
)  # fmt: skip
def test_what_may_be_removed(line: str, may_go: bool) -> None:
    function = _function(f"{line}\n")
    assert function.body.first is not None
    assert removable(function.body.first) is may_go
    rewrite(function, RuleSet())
    assert (len(_body(function)) == 1) is may_go
