"""The verifier on what text cannot express: links, owners, use lists, attributes, contracts.

What text can express is in tests/golden/verifier.
"""

from collections.abc import Callable

import pytest

from tests.unit.ir.op_samples import sample, shared_ops
from tilewright import ops
from tilewright.ir import (
    OPS,
    Contract,
    Function,
    Module,
    Op,
    Value,
    parse_function,
    parse_module,
    report,
    verify,
)
from tilewright.ir.types import TileType, Type, f32, i32
from tilewright.support import SourceLoc

TEXT = """
func @f(%x: i32, %n: i32) {
  %y = arith.add %x, %x : i32
  %r = cf.for %x, %n, %n, %y : i32 (%i: i32, %c: i32) {
    %z = arith.mul %c, %i : i32
    cf.yield %z
  }
  %w = arith.neg %r : i32
  cf.return
}
"""


@pytest.fixture
def function() -> Function:
    return parse_function(TEXT)


def _messages(function: Function) -> list[str]:
    return [diagnostic.message for diagnostic in verify(function)]


def test_the_example_is_valid(function: Function) -> None:
    assert verify(function) == []
    assert report(function) is None


@pytest.mark.parametrize("cls", shared_ops(), ids=lambda cls: cls.opcode)
def test_a_sample_of_every_op_is_valid(cls: type[Op]) -> None:
    assert verify(sample(cls)) == []


def _add(function: Function) -> ops.AddOp:
    add = function.body.first
    assert isinstance(add, ops.AddOp)
    return add


def _loop(function: Function) -> ops.ForOp:
    (loop,) = (op for op in function.walk() if isinstance(op, ops.ForOp))
    return loop


def _wrong_parent(function: Function) -> None:
    _add(function).parent = _loop(function).body


def _wrong_prev(function: Function) -> None:
    _loop(function).prev = None


def _wrong_last(function: Function) -> None:
    function.body.last = _loop(function)


def _wrong_owner_of_block(function: Function) -> None:
    _loop(function).body.owner = function


def _wrong_owner_of_value(function: Function) -> None:
    _add(function).result.owner = function.body


def _wrong_index(function: Function) -> None:
    function.args[1].index = 0


def _missing_use(function: Function) -> None:
    function.args[0].uses.clear()


def _wrong_count(function: Function) -> None:
    function.args[0].uses[_add(function)] = 1


def _stale_use(function: Function) -> None:
    function.args[0].uses[ops.NegOp(function.args[0])] = 1


def _use_by_an_op_that_does_not(function: Function) -> None:
    function.args[1].uses[_add(function)] = 1


def _foreign_value(function: Function) -> None:
    _add(function).set_operand(0, Value(i32, function.body, 0, "foreign"))


def _use_before_definition(function: Function) -> None:
    _add(function).set_operand(0, _loop(function).result)


def _missing_attribute(function: Function) -> None:
    del _loop(function).attrs["licm"]


def _extra_attribute(function: Function) -> None:
    _add(function).attrs["fast"] = True


def _missing_region(function: Function) -> None:
    _loop(function).regions = ()


def _wrong_result_type(function: Function) -> None:
    _add(function).result.type = f32


def _empty_extent(function: Function) -> None:
    function.body.first = ops.SplatOp(function.args[0], (0,))
    function.body.first.parent, function.body.first.next = function.body, function.body.last


BREACHES: list[tuple[Callable[[Function], None], str]] = [
    (_wrong_parent, "links and its block do not agree"),
    (_wrong_prev, "links and its block do not agree"),
    (_wrong_last, "last op is not the end of its list"),
    (_wrong_owner_of_block, "has a wrong owner"),
    (_wrong_owner_of_value, "value 0 has a wrong owner or index"),
    (_wrong_index, "value 1 has a wrong owner or index"),
    (_missing_use, "%x is used 2 times, its use list says 0"),
    (_wrong_count, "%x is used 2 times, its use list says 1"),
    (_stale_use, "the use list names a arith.neg outside the function"),
    (_use_by_an_op_that_does_not, "is in the use list of %n, but unused there"),
    (_foreign_value, "operand %foreign is not defined above"),
    (_use_before_definition, "operand %r is not defined above"),
    (_missing_attribute, "expected the attributes"),
    (_extra_attribute, "expected the attributes"),
    (_missing_region, "expected 1 regions, found 0"),
    (_wrong_result_type, "expected result types (i32), found (f32)"),
    (_empty_extent, "dimensions must be positive"),
]


@pytest.mark.parametrize(("damage", "message"), BREACHES, ids=lambda b: getattr(b, "__name__", ""))
def test_each_breach_is_found(
    function: Function, damage: Callable[[Function], None], message: str
) -> None:
    damage(function)
    assert any(message in found for found in _messages(function)), _messages(function)


def test_types_known_to_be_right_do_not_hide_wrong_attributes() -> None:
    compare = '  %t = arith.compare %x, %n {predicate = "lt"} : i1\n  cf.return'
    function = parse_function(TEXT.replace("  cf.return", compare))
    assert verify(function) == []
    (op,) = (op for op in function.walk() if isinstance(op, ops.CompareOp))
    op.attrs["predicate"] = "near"
    assert "predicate must be one of" in _messages(function)[0]


def _with_tile(line: str) -> Function:
    return parse_function(f"func @f(%x: tile<4xi32>) {{\n  {line}\n  cf.return\n}}")


def test_an_attribute_of_a_wrong_kind_is_reported() -> None:
    function = _with_tile("%y = tile.transpose %x {order = [none]} : tile<4xi32>")
    assert _messages(function) == ["order must be of type tuple[int, ...], not [none]"]
    function = _with_tile("%y = tile.expand_dims %x {axis = true} : tile<1x4xi32>")
    assert _messages(function) == ["axis must be of type int, not true"]


def test_an_op_that_raises_while_it_is_checked_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of a shape that nothing else has: what was found right once is not checked again.
    line = "%y = tile.expand_dims %x {axis = 2} : tile<3x11x1xi32>"
    function = parse_function(f"func @f(%x: tile<3x11xi32>) {{\n  {line}\n  cf.return\n}}")
    monkeypatch.setattr(OPS["tile.expand_dims"], "verify", lambda self: self.missing)
    (message,) = _messages(function)
    assert message.startswith("cannot be checked: AttributeError")


@pytest.mark.parametrize(
    ("type_", "facts", "message"),
    [
        ("ptr<f32>", "aligned = nan", "aligned of %x must be a positive integer, not nan"),
        ("ptr<f32>", "aligned = 0", "aligned of %x must be a positive integer, not 0"),
        ("ptr<f32>", "aligned = true", "aligned of %x must be a positive integer, not true"),
        ("ptr<f32>", "multiple_of = 4", "multiple_of is not a fact about %x: ptr<f32>"),
        ("i32", "aligned = 4", "aligned is not a fact about %x: i32"),
        ("ptr<f32>", "non_negative = 1", "non_negative is not a fact about %x: ptr<f32>"),
        ("i32", "multiple_of = -4", "multiple_of of %x must be a positive integer, not -4"),
        ("f32", "multiple_of = 4", "multiple_of is not a fact about %x: f32"),
        ("i1", "multiple_of = 4", "multiple_of is not a fact about %x: i1"),
    ],
)
def test_facts_are_positive_integers_about_what_has_them(
    type_: str, facts: str, message: str
) -> None:
    module = parse_module(f"func @f(%x: {type_} {{{facts}}}) {{\n  cf.return\n}}")
    assert [problem.message for problem in verify(module)] == [message]


def test_tiles_that_no_machine_holds_are_reported() -> None:
    text = "tile<65536x65536xi32>"
    module = parse_module(
        "func @f(%x: i32) {\n  %y = tile.splat %x {shape = [65536, 65536]} : "
        + text
        + "\n  cf.return\n}"
    )
    assert [p.message for p in verify(module)] == [
        f"a tile has at most 2147483647 elements: {text}"
    ]


def test_the_report_puts_messages_under_their_ops(function: Function) -> None:
    _wrong_result_type(function)
    _missing_attribute(function)
    text = report(Module((function,)))
    assert text is not None
    lines = text.splitlines()
    assert lines[1:3] == [
        "  %y = arith.add %x, %x : f32",
        "  ^ error: expected result types (i32), found (f32)",
    ]
    loop = next(i for i, line in enumerate(lines) if "cf.for" in line)
    assert "expected the attributes" in lines[loop + 1]


def test_diagnostics_carry_the_location(function: Function) -> None:
    loc = SourceLoc("k.py", 3)
    _add(function).loc = loc
    _extra_attribute(function)
    assert [diagnostic.loc for diagnostic in verify(function)] == [loc]


def _only_scalars(type_: Type) -> str | None:
    return f"{type_} is a tile" if isinstance(type_, TileType) else None


def test_a_contract_limits_ops_and_types(function: Function) -> None:
    legal = frozenset((ops.AddOp, ops.ForOp, ops.YieldOp, ops.NegOp, ops.ReturnOp))
    found = verify(function, Contract("scalarize", legal, _only_scalars))
    assert [d.message for d in found] == ["arith.mul is not legal after scalarize"]
    tiles = parse_function("func @f(%t: tile<4xi32>) {\n  cf.return\n}")
    (found_type,) = verify(tiles, Contract("scalarize", None, _only_scalars))
    assert found_type.message == "tile<4xi32> is a tile (after scalarize)"
