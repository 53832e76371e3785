"""Where buffers and exchanges lie in shared memory: by alignment and by how long they live."""

from tilewright.backends import backend_named
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.buffer_ops import AllocOp, ShareOp, buffer_type
from tilewright.backends.nvidia.shared_memory.allocate_shared import BufferRoom, allocate_shared
from tilewright.ir import Function, Op, parse_function, verify
from tilewright.ir.types import BufferType, f16
from tilewright.layout import shared_row_major
from tilewright.ops import ForOp

backend_named("cuda")

ARCH = row_for(90)

TILE = "tile<64x16xf16, register=(0,1..4) lane=(0,8)(1..8,0) warp=(16..32,0) -> dim0:64 dim1:16>"
COLUMNS = (
    "tile<64x16xf16, register=(1..4,0) lane=(8..32,0)(0,1..2) warp=(0,4..8) -> dim0:64 dim1:16>"
)
A = "buffer<64x16xf16, offset=(0,1..8)(1..2,0)(4,8)(8..32,0) -> dim0:64 dim1:16>"
B = "buffer<16x16xf16, offset=(0,1..8)(1..2,0)(4,8)(8,0) -> dim0:16 dim1:16>"
SUMS = (
    "tile<64x16xf32, register=(0,1)(8,0)(0,8) lane=(0,2..4)(1..4,0) warp=(16..32,0) "
    "-> dim0:64 dim1:16>"
)
BYTES_A, BYTES_B = 64 * 16 * 2, 16 * 16 * 2


def function(body: str) -> Function:
    """%x: a tile of A; %acc: sums."""
    made = parse_function(f"""func @f(%x: {TILE}, %acc: {SUMS}, %n: i32) {{
  %zero = arith.constant {{value = 0}} : i32
  %one = arith.constant {{value = 1}} : i32
{body}  cf.return
}}
""")
    assert verify(made) == []
    return made


def offsets(made: Function) -> tuple[list[int], int]:
    """Of the ops that need shared memory, in order; and the bytes of all."""
    by_op, total = allocate_shared(made, ARCH)
    return [by_op[op] for op in made.walk() if op in by_op], total


def test_buffers_start_at_multiples_of_eight_rows_of_the_widest_swizzle() -> None:
    made = function(f"""  %m = nvidia.alloc : {B}
  %k = nvidia.alloc : {A}
  %l = nvidia.alloc : {B}
  %s = nvidia.view %m, %zero : {B}
  %t = nvidia.view %k, %zero : {A}
  %u = nvidia.view %l, %zero : {B}
  nvidia.async_copy %x, %t {{vector = 8}}
  %c = nvidia.wgmma %t, %s, %acc {{columns = 16, rows = 1}} : {SUMS}
  %d = nvidia.wgmma %t, %u, %c {{columns = 16, rows = 1}} : {SUMS}
""")
    placed, total = offsets(made)
    assert all(offset % 1024 == 0 for offset in placed)
    assert len(set(placed)) == 3
    assert total >= BYTES_A + 2 * BYTES_B


def test_a_buffer_holds_all_its_slots() -> None:
    three = A.replace("<", "<3 * ")
    made = function(f"""  %m = nvidia.alloc : {three}
  %s = nvidia.view %m, %one : {A}
  nvidia.async_copy %x, %s {{vector = 8}}
  nvidia.wait
""")
    assert offsets(made) == ([0], 3 * BYTES_A)


def test_bytes_of_a_buffer_are_used_again_behind_its_last_use() -> None:
    made = function(f"""  %m = nvidia.alloc : {B}
  %s = nvidia.share %x : {A}
  %c = nvidia.wgmma %s, %m, %acc {{columns = 16, rows = 1}} : {SUMS}
  %t = nvidia.share %x : {A}
  %d = nvidia.wgmma %t, %m, %c {{columns = 16, rows = 1}} : {SUMS}
""")
    (b, first, second), total = offsets(made)
    assert first == second
    assert b != first
    assert total < 2 * BYTES_A + BYTES_B


def test_a_buffer_that_is_used_later_keeps_its_bytes() -> None:
    made = function(f"""  %m = nvidia.alloc : {B}
  %s = nvidia.share %x : {A}
  %t = nvidia.share %x : {A}
  %c = nvidia.wgmma %s, %m, %acc {{columns = 16, rows = 1}} : {SUMS}
  %d = nvidia.wgmma %t, %m, %c {{columns = 16, rows = 1}} : {SUMS}
""")
    (_, first, second), total = offsets(made)
    assert abs(first - second) >= BYTES_A
    assert total >= 2 * BYTES_A + BYTES_B


def test_bytes_of_an_operand_are_used_again_behind_the_wait_for_its_product() -> None:
    made = function(f"""  %m = nvidia.alloc : {B}
  %s = nvidia.share %x : {A}
  %c = nvidia.wgmma %s, %m, %acc {{columns = 16, rows = 1, pending = 1}} : {SUMS}
  %d = nvidia.wgmma_wait %c : {SUMS}
  %t = nvidia.share %x : {A}
""")
    (_, first, second), _ = offsets(made)
    assert first == second


def test_what_a_loop_uses_lives_through_the_loop_and_the_wait_behind_it() -> None:
    made = function(f"""  %m = nvidia.alloc : {B}
  %k = nvidia.alloc : {A}
  %sum = cf.for %zero, %n, %one, %acc : {SUMS} (%i: i32, %a: {SUMS}) {{
    %v = nvidia.view %k, %zero : {A}
    %c = nvidia.wgmma %v, %m, %a {{columns = 16, rows = 1, pending = 1}} : {SUMS}
    %t = nvidia.share %x : {A}
    %d = nvidia.wgmma %t, %m, %c {{columns = 16, rows = 1}} : {SUMS}
    cf.yield %d
  }}
  nvidia.wait
  %last = nvidia.wgmma_wait %sum : {SUMS}
  %y = nvidia.convert %x : {COLUMNS}
""")
    (_, ahead, inside, behind), _ = offsets(made)
    assert abs(ahead - inside) >= BYTES_A, "the next iteration reads what was copied before"
    assert behind == 0


def test_room_beside_what_else_needs_shared_memory() -> None:
    made = function(f"""  %m = nvidia.alloc : {B}
  %sum = cf.for %zero, %n, %one, %acc : {SUMS} (%i: i32, %a: {SUMS}) {{
    %t = nvidia.share %x : {A}
    %d = nvidia.wgmma %t, %m, %a {{columns = 16, rows = 1}} : {SUMS}
    cf.yield %d
  }}
""")
    loop = next(op for op in made.walk() if isinstance(op, ForOp))
    shares: list[Op] = [op for op in made.walk() if isinstance(op, ShareOp)]
    new = BufferType((64, 16), f16, shared_row_major((64, 16)), 4)
    kept = BufferRoom(made, ARCH, loop, ())
    replaced = BufferRoom(made, ARCH, loop, shares)
    used = sum(buffer_type(op.result).bytes for op in made.walk() if isinstance(op, AllocOp))
    assert used == BYTES_B
    assert replaced.bytes_with([new]) == 4 * BYTES_A + BYTES_B
    assert kept.bytes_with([new]) == 5 * BYTES_A + BYTES_B
