"""Random programs: printing and parsing are inverse, copies print alike, the verifier agrees."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.programs import functions
from tilewright.ir import (
    Block,
    Builder,
    Function,
    parse_function,
    parse_type,
    print_function,
    verify,
)
from tilewright.ir.types import BufferType, DType, bf16, f8e4m3, f16, f32, i8
from tilewright.layout import LinearLayout, shared_row_major, shared_swizzled
from tilewright.ops import ReturnOp


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


@st.composite
def buffers(draw: st.DrawFn) -> BufferType:
    """Buffers of tiles of rank 1 to 3, in rows in some order, swizzled or not."""
    rank = draw(st.integers(1, 3))
    shape = tuple(1 << draw(st.integers(0, 5)) for _ in range(rank))
    element = draw(st.sampled_from([f16, bf16, f32, i8, f8e4m3]))
    slots = draw(st.integers(1, 8))
    return BufferType(shape, element, draw(layouts(shape, element)), slots)


@st.composite
def layouts(draw: st.DrawFn, shape: tuple[int, ...], element: DType) -> LinearLayout:
    order = draw(st.permutations(range(len(shape))))
    width = draw(st.sampled_from([0, 32, 64, 128]))
    if len(shape) != 2 or not 0 < width <= shape[order[0]] * element.bytes:
        return shared_row_major(shape, order)
    return shared_swizzled(shape, element.bits, width, order)


@settings(max_examples=60)
@given(buffers())
def test_the_text_of_a_buffer_type_is_the_type(type_: BufferType) -> None:
    assert parse_type(str(type_)) is type_
    body = Block((type_,), ("m",))
    Builder(body).emit(ReturnOp())
    text = print_function(Function("f", body))
    again = parse_function(text)
    assert again.args[0].type is type_
    assert print_function(again) == text
