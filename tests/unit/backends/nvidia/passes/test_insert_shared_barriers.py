"""Barriers among buffers: where threads that fill, write or read them may meet, not elsewhere."""

import pytest

import tilewright.language as tl
from tests.unit.backends.nvidia.compiled import bodies_of_loops, compiled, ops
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import jit
from tilewright.backends import backend_named
from tilewright.backends.nvidia.passes.insert_shared_barriers import InsertSharedBarriers, _Ordering
from tilewright.ir import Function, parse_function, verify
from tilewright.ops import BarrierOp

backend_named("cuda")

TILE = "tile<64x16xf16, register=(0,1..4) lane=(0,8)(1..8,0) warp=(16..32,0) -> dim0:64 dim1:16>"
A = "buffer<64x16xf16, offset=(0,1..8)(1..2,0)(4,8)(8..32,0) -> dim0:64 dim1:16>"
SLOTS = A.replace("<", "<3 * ")
B = "buffer<16x64xf16, offset=(1..8,0)(0,1..2)(8,4)(0,8..32) -> dim0:16 dim1:64>"
SUMS = (
    "tile<64x64xf32, register=(0,1)(8,0)(0,8..32) lane=(0,2..4)(1..4,0) warp=(16..32,0) "
    "-> dim0:64 dim1:64>"
)


def before(body: str) -> list[str]:
    """The ops that barriers are put before. %x: a tile of A; %acc: sums of A and B."""
    made: Function = parse_function(f"""func @f(%x: {TILE}, %acc: {SUMS}, %n: i32) {{
  %zero = arith.constant {{value = 0}} : i32
  %one = arith.constant {{value = 1}} : i32
{body}  cf.return
}}
""")
    assert verify(made) == []
    changed = InsertSharedBarriers(capability=90).run(made)
    barriers = [op for op in made.walk() if isinstance(op, BarrierOp)]
    assert changed == bool(barriers)
    following = [op.next for op in barriers]
    return [op.opcode for op in following if op is not None]


def product(name: str, a: str, b: str, acc: str, **words: object) -> str:
    attrs = "".join(f", {key} = {value}" for key, value in words.items())
    return f"  %{name} = nvidia.wgmma {a}, {b}, {acc} {{columns = 64, rows = 1{attrs}}} : {SUMS}\n"


SHARED = f"""  %a = nvidia.share %x : {A}
  %b = nvidia.transpose_view %a {{order = [1, 0]}} : {B}
"""


def test_a_product_follows_what_threads_wrote() -> None:
    assert before(SHARED + product("c", "%a", "%b", "%acc")) == ["nvidia.wgmma"]


def test_one_barrier_is_enough_for_all_products_of_a_buffer() -> None:
    body = SHARED + product("c", "%a", "%b", "%acc") + product("d", "%a", "%b", "%c")
    assert before(body) == ["nvidia.wgmma"]


def test_bytes_are_written_again_behind_the_product_that_read_them() -> None:
    again = SHARED.replace("%a", "%k").replace("%b", "%l")
    body = SHARED + product("c", "%a", "%b", "%acc") + again + product("d", "%k", "%l", "%c")
    assert before(body) == ["nvidia.wgmma", "nvidia.share", "nvidia.wgmma"]


def test_reads_follow_what_copies_brought() -> None:
    body = f"""  %m = nvidia.alloc : {SLOTS}
  %s = nvidia.view %m, %zero : {A}
  nvidia.async_copy %x, %s {{vector = 8}}
  nvidia.commit
  nvidia.wait {{proxy = true}}
  %r = nvidia.read %s : {TILE}
  %q = nvidia.read %s : {TILE}
  %z = arith.add %r, %q : {TILE}
"""
    assert before(body) == ["nvidia.read"]


def looped(inside: str, start: str = "") -> str:
    """Two copies before a loop that fills slot %f, as its first statements say, and reads %i."""
    return f"""  %m = nvidia.alloc : {SLOTS}
  %s0 = nvidia.view %m, %zero : {A}
  nvidia.async_copy %x, %s0 {{vector = 8}}
  nvidia.commit
  %s1 = nvidia.view %m, %one : {A}
  nvidia.async_copy %x, %s1 {{vector = 8}}
  nvidia.commit
{start}  %sum = cf.for %zero, %n, %one, %acc : {SUMS} (%i: i32, %part: {SUMS}) {{
    %v = nvidia.view %m, %i : {A}
    %t = nvidia.transpose_view %v {{order = [1, 0]}} : {B}
    %f = nvidia.view %m, %one : {A}
{inside}    cf.yield %c
  }}
  nvidia.wait
  %last = nvidia.wgmma_wait %sum : {SUMS}
"""


COPY = "  nvidia.async_copy %x, %f {vector = 8}\n  nvidia.commit\n"


def test_a_loop_that_waits_for_its_products_has_one_barrier() -> None:
    """It stands for both: what has arrived is read, and what was read is filled again."""
    wait = "  nvidia.wait {pending = 1, proxy = true}\n"
    body = looped(wait + COPY + product("c", "%v", "%t", "%part"))
    assert before(body) == ["nvidia.async_copy"]


def test_a_loop_whose_products_go_on_has_one_barrier_and_one_before_it() -> None:
    """The one in the loop is behind the wait for what the next iteration reads."""
    first, wait = (f"  nvidia.wait {{pending = {n}, proxy = true}}\n" for n in (1, 0))
    body = looped(product("c", "%v", "%t", "%part", pending=1) + wait + COPY, first)
    assert before(body) == ["cf.for", "nvidia.async_copy"]


def test_slots_that_a_product_may_still_read_are_not_filled() -> None:
    """One group too many goes on: no barrier would help."""
    first, wait = (f"  nvidia.wait {{pending = {n}, proxy = true}}\n" for n in (1, 0))
    body = looped(product("c", "%v", "%t", "%part", pending="none") + wait + COPY, first)
    with pytest.raises(AssertionError, match="still reads"):
        before(body)


def test_bytes_are_not_written_while_copies_to_them_are_on_their_way() -> None:
    body = f"""  %m = nvidia.alloc : {A}
  nvidia.async_copy %x, %m {{vector = 8}}
  nvidia.commit
{SHARED}"""
    with pytest.raises(AssertionError, match="still in use"):
        before(body)


@jit
def turned(x, out, n, TIMES: tl.constexpr):
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    a = tl.load(x + i * 64 + j)
    for _ in range(n):
        for u in tl.static_range(TIMES):
            a = tl.trans(a + u) + a
    tl.store(out + i * 64 + j, a)


@needs_ptxas
def test_loops_with_many_barriers_are_walked_as_often_as_those_with_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a barrier that the others do not spare nothing need be tried."""
    walks: list[int] = []
    walk = _Ordering._walk_to_fixpoint

    def counted(self: _Ordering, *args: object) -> object:
        walks[-1] += 1
        return walk(self, *args)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(_Ordering, "_walk_to_fixpoint", counted)
    for times in (2, 30):
        walks.append(0)
        text = compiled(turned, "*fp32/16 *fp32/16 i32", TIMES=times).asm["ttgir"]
        assert ops(bodies_of_loops(str(text)))["mem.barrier"] == 2 * times
    assert walks[0] == walks[1]
