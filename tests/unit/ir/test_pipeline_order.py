"""Pipelines whose steps need, give and end properties: which orders are refused, and how."""

import pytest

from tilewright.ir import Contract, Function, Pass, Pipeline, Property, Step, parse_function
from tilewright.support.data_class import dataclass
from tilewright.support.errors import InternalCompilerError

SORTED = Property("ops are sorted")
WRITTEN = Property("ops are as written")


@dataclass(frozen=True)
class Nothing(Pass, name="test-nothing"):
    """Changes nothing."""

    def run(self, function: Function) -> bool:
        return False


GIVES = Step(Nothing(), "sort", gives=(SORTED,))
NEEDS = Step(Nothing(), "use the order", needs=(SORTED,))
ENDS = Step(Nothing(), "shuffle", ends=(SORTED,))


def test_a_step_after_the_one_that_gives_what_it_needs_is_in_order() -> None:
    pipeline = Pipeline("p", (GIVES, NEEDS, ENDS, GIVES), ensures=(SORTED,))
    assert [step.does for step in pipeline.steps] == ["sort", "use the order", "shuffle", "sort"]


def test_given_properties_hold_before_the_first_step() -> None:
    assert Pipeline("p", (NEEDS,), given=(SORTED,)).steps == (NEEDS,)


@pytest.mark.parametrize(
    ("steps", "ensures", "message"),
    [
        ((NEEDS, GIVES), (),
         "the pass test-nothing needs the property 'ops are sorted', which no earlier pass gives"),
        ((GIVES, ENDS, NEEDS), (),
         "needs the property 'ops are sorted', which the pass test-nothing ends"),
        ((GIVES, ENDS), (SORTED,), "p: its end needs the property 'ops are sorted', which the"),
        ((), (WRITTEN,), "p: its end needs the property 'ops are as written', which no earlier"),
    ],
)  # fmt: skip
def test_another_order_is_refused_by_the_propertys_name(
    steps: tuple[Step, ...], ensures: tuple[Property, ...], message: str
) -> None:
    with pytest.raises(InternalCompilerError, match=message):
        Pipeline("p", steps, ensures=ensures)


def test_the_latest_contract_is_the_legal_one() -> None:
    first, second = Contract("first"), Contract("second")
    steps = tuple(Step(Nothing(), gives=(Property(c.name, c),)) for c in (first, second))
    pipeline = Pipeline("p", (*steps, GIVES), given=(Property("all"), Property("some", first)))
    assert (pipeline.legal_before, pipeline.legal_after) == (first, second)


def test_an_ensured_property_is_checked_at_the_end() -> None:
    broken = Property("there are no ops", check=lambda f: [op.opcode for op in f.body])
    pipeline = Pipeline("p", (Step(Nothing(), gives=(broken,)),), ensures=(broken,))
    function = parse_function("func @f() {\n  cf.return\n}")
    with pytest.raises(InternalCompilerError, match="not hold that there are no ops: cf.return"):
        pipeline.run(function)
