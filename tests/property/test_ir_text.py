"""Random programs: printing and parsing are inverse, copies print alike, the verifier agrees."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.programs import functions
from tilewright.ir import Function, parse_function, print_function, verify


@settings(max_examples=40)
@given(functions(), st.booleans())
def test_print_parse_print_is_the_identity(function: Function, locations: bool) -> None:
    assert verify(function) == []
    text = print_function(function, locations=locations)
    again = parse_function(text)
    assert print_function(again, locations=locations) == text
    assert verify(again) == []


@settings(max_examples=40)
@given(functions())
def test_a_copy_prints_alike_and_shares_nothing(function: Function) -> None:
    text = print_function(function)
    copy = function.clone()
    assert print_function(copy) == text
    assert verify(copy) == []
    assert not set(function.walk()) & set(copy.walk())
