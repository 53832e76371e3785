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
def test_descriptors_of_the_host_are_known_by_their_argument(text: str):
    op = access(text)
    assert op.host_argument == 1
    assert [value.name for value in (op.pointer, *op.shape, *op.strides)] == ["x", "a", "b", "s"]
    assert {value.name for value in op.offsets} == {"n"}


def test_others_are_not():
    assert access(LOAD.format("%b, %a, %s")).host_argument is None
    made = ARGUMENTS.replace(", descriptor = 2", "")
    assert access(LOAD.format("%a, %b, %s"), made).host_argument is None
    of_another_rank = "%t = mem.descriptor_load %x, %a, %n {block_shape = [8]} : tile<8xf32>"
    assert access(of_another_rank).host_argument is None
