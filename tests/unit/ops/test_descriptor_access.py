"""What accesses by descriptors know of their descriptor."""

import pytest

from tilewright.ir import Function, parse_function
from tilewright.ops import DescriptorAccess

ARGUMENTS = "%n: i32, %x: ptr<f32> {aligned = 16, descriptor = 2}, %a: i32, %b: i32, %s: i64"


def access(text: str, arguments: str = ARGUMENTS) -> DescriptorAccess:
    function: Function = parse_function(f"func @f({arguments}) {{\n{text}\ncf.return\n}}")
    return next(op for op in function.walk() if isinstance(op, DescriptorAccess))


LOAD = "%t = mem.descriptor_load %x, {}, %n, %n {{block_shape = [4, 8]}} : tile<4x8xf32>"
GATHER = """%r = tile.range {start = 0, end = 8} : tile<8xi32>
%t = mem.descriptor_gather %x, %r, %a, %b, %s, %n {block_shape = [1, 8]} : tile<8x8xf32>"""


@pytest.mark.parametrize("text", [LOAD.format("%a, %b, %s"), GATHER])
def test_numbers_of_a_descriptor_have_names(text: str):
    op = access(text)
    assert [value.name for value in (op.pointer, *op.shape, *op.strides)] == ["x", "a", "b", "s"]
    assert {value.name for value in op.offsets} == {"n"}
