"""`if`, loops and `return`: what kernels compute, and how the IR looks."""

# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.frontend.python.harness import RunTime, lower, output, run, text
from tilewright.language import device_function
from tilewright.ops import AssertOp, CastOp, DivOp, ForOp, IfOp, StoreOp, WhileOp
from tilewright.support import errors


def ops(function, kind):
    return [op for op in function.walk() if isinstance(op, kind)]


@device_function
def branch(out, n):
    if n > 10:
        x = n * 2
    elif n > 5:
        x = n + 100
    else:
        x = 7
    tl.store(out, x)


@pytest.mark.parametrize(("n", "x"), [(20, 40), (6, 106), (0, 7)])
def test_if_joins_what_the_sides_assign(n, x):
    assert output(branch, 1, n=RunTime(n)) == [x]


def test_if_at_compile_time_leaves_no_trace():
    assert not ops(lower(branch, out="*i32", n=6), IfOp)
    assert output(branch, 1, n=6) == [106]


@device_function
def keeps_outer(out, n):
    x = 1
    y = 2
    if n > 0:
        x = y + n
    tl.store(out, x)
    tl.store(out + 1, y)


def test_a_name_that_one_side_changes_keeps_its_value_on_the_other():
    assert output(keeps_outer, 2, n=RunTime(5)) == [7, 2]
    assert output(keeps_outer, 2, n=RunTime(0)) == [1, 2]
    (branch_op,) = ops(lower(keeps_outer, out="*i32", n="i32"), IfOp)
    assert [r.name for r in branch_op.results] == ["x"]


@device_function
def equal_constants(out, n):
    if n > 0:
        size: tl.constexpr = 4
    else:
        size: tl.constexpr = 4
    tl.store(out + tl.arange(0, size), n)


def test_equal_constants_stay_constants():
    assert output(equal_constants, 4, n=RunTime(3)) == [3, 3, 3, 3]


@device_function
def joins_tuples(out, n):
    pair = (1, (2, 3))
    if n > 0:
        pair = (n, (n + 1, 3))
    tl.store(out, pair[0])
    tl.store(out + 1, pair[1][0])
    tl.store(out + 2, pair[1][1])


def test_tuples_join_item_by_item():
    assert output(joins_tuples, 3, n=RunTime(8)) == [8, 9, 3]
    assert output(joins_tuples, 3, n=RunTime(-8)) == [1, 2, 3]


@device_function
def early_return(out, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    tl.store(out + pid, pid)
    if pid == 1:
        return
    tl.store(out + pid + 4, 9)


def test_early_return_skips_the_rest():
    out = np.full(8, -1, np.int32)
    run(early_return, (4,), out=out, n=RunTime(3))
    assert out.tolist() == [0, 1, 2, -1, 9, -1, 9, -1]


def test_early_return_lowers_the_rest_once():
    function = lower(early_return, out="*i32", n="i32")
    outer, inner = ops(function, IfOp)
    assert inner.parent is outer.orelse
    assert len(list(outer.then)) == 1


@device_function
def returns_in_nested_branches(out, a, b):
    tl.store(out, 0)
    if a > 0:
        tl.store(out + 1, 1)
        if b > 0:
            return
        tl.store(out + 2, 2)
    tl.store(out + 3, 3)


@pytest.mark.parametrize("a", [0, 1])
@pytest.mark.parametrize("b", [0, 1])
def test_return_on_some_paths_of_a_branch(a, b):
    expected = [0] + ([1] if a else [-1]) + ([2] if a and not b else [-1])
    expected += [-1] if a and b else [3]
    assert output(returns_in_nested_branches, 4, a=RunTime(a), b=RunTime(b)) == expected


def test_a_return_that_is_dead_at_compile_time_costs_nothing():
    function = lower(returns_in_nested_branches, out="*i32", a="i32", b=0)
    (branch_op,) = ops(function, IfOp)
    assert len([op for op in branch_op.orelse]) == 1, "what follows is not copied into the branch"


@device_function
def pick(x, y):
    if x > y:
        return x, 1
    if x == y:
        return 0, 2
    else:
        return y, 3


@device_function
def calls_pick(out, a, b):
    value, which = pick(a, b)
    tl.store(out, value)
    tl.store(out + 1, which)


@pytest.mark.parametrize(("a", "b", "expected"), [(5, 3, [5, 1]), (3, 5, [5, 3]), (4, 4, [0, 2])])
def test_inlined_functions_return_values_from_branches(a, b, expected):
    assert output(calls_pick, 2, a=RunTime(a), b=RunTime(b)) == expected


@device_function
def counts(out, start, stop, step):
    total = 0
    times = 0
    for i in range(start, stop, step):
        total += i
        times += 1
    tl.store(out, total)
    tl.store(out + 1, times)


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [
        (0, 10, 1),
        (2, 11, 3),
        (5, 5, 1),
        (7, 3, 2),
        (10, 0, -1),
        (10, 0, -3),
        (0, 10, -1),
        (9, -9, -4),
    ],
)
def test_for_loops_count_as_python_does(start, stop, step):
    expected = [sum(range(start, stop, step)), len(range(start, stop, step))]
    args = {"start": RunTime(start), "stop": RunTime(stop), "step": step}
    assert output(counts, 2, **args) == expected
    assert output(counts, 2, start=start, stop=stop, step=step) == expected
    args["step"] = RunTime(step)
    assert output(counts, 2, **args) == expected


def test_a_loop_that_counts_down_counts_up_in_the_ir():
    assert (
        text(counts, out="*i32", start="i32", stop="i32", step=-2)
        == """\
func @counts(%out: ptr<i32>, %start: i32, %stop: i32) {
  %0 = arith.max %start, %stop : i32
  %1 = arith.sub %0, %stop : i32
  %2 = arith.cast %1 : u32
  %3 = arith.constant {value = 0} : u32
  %4 = arith.constant {value = 2} : u32
  %5 = arith.constant {value = 0} : i32
  %6 = arith.constant {value = 0} : i32
  %total, %times = cf.for %3, %2, %4, %5, %6 : i32, i32 (%7: u32, %total_1: i32, %times_1: i32) {
    %8 = arith.cast %7 : i32
    %i = arith.sub %start, %8 : i32
    %total_2 = arith.add %total_1, %i : i32
    %9 = arith.constant {value = 1} : i32
    %times_2 = arith.add %times_1, %9 : i32
    cf.yield %total_2, %times_2
  }
  mem.store %out, %total
  %10 = arith.constant {value = 1} : i32
  %11 = mem.offset %out, %10 : ptr<i32>
  mem.store %11, %times
  cf.return
}
"""
    )


@device_function
def strides_over_programs(out, n, step, BLOCK: tl.constexpr):
    for i in tl.range(tl.program_id(0), n, tl.num_programs(0)):
        tl.store(out + i, i)
    for i in range(0, n, tl.num_programs(0) * BLOCK):
        tl.store(out + i, i)
    tl.assume(step > 0)
    for i in range(0, n, step):
        tl.store(out + i, i)
    for i in range(0, n, max(step, 1)):
        tl.store(out + i, i)


def test_loops_with_steps_that_are_known_to_be_positive_are_neither_counted_nor_checked():
    function = lower(strides_over_programs, out="*i32", n="i32", step="i32", BLOCK=64)
    assert not ops(function, DivOp) and not ops(function, AssertOp)


@device_function
def unknown_step(out, n, step):
    if n > 5:
        tl.assume(step > 0)
    for i in range(0, n, step):
        tl.store(out + i, i)


def test_an_assumption_of_a_branch_says_nothing_of_a_loop_after_it():
    assert ops(lower(unknown_step, out="*i32", n="i32", step="i32"), AssertOp)


@device_function
def index_types(out, start, end, STEP: tl.constexpr):
    for i in range(start, end, STEP):
        tl.store(out, i)


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [
        ("i8", "i16", 1, "i32"),
        ("i32", "i64", 1, "i64"),
        ("u32", 0, -1, "u32"),
        ("u32", -1, -1, "i64"),
        ("u64", 0, -1, "u64"),
        (-5, "u32", 1, "i64"),
        (0, "u64", 3, "u64"),
        ("i32", "u32", 1, "u32"),
        (0, 3_000_000_000, 1, "u32"),
        (-5, 3_000_000_000, 1, "i64"),
        (0, "i32", 3_000_000_000, "i64"),
    ],
)
def test_the_type_of_an_index_holds_the_bounds(start, end, step, expected):
    function = lower(index_types, out="*i64", start=start, end=end, STEP=step)
    (store,) = ops(function, StoreOp)
    index = store.stored.op.x if isinstance(store.stored.op, CastOp) else store.stored
    assert str(index.type) == expected


@device_function
def negative_below_u64(out, n):
    for i in range(n, -1, -1):
        tl.store(out, i)


def test_bounds_that_no_index_type_holds_are_an_error():
    with pytest.raises(errors.LiteralOutOfRange, match="-1 does not fit uint64"):
        lower(negative_below_u64, out="*i64", n="u64")


@device_function
def hinted(out, n):
    for i in tl.range(0, n, num_stages=3, loop_unroll_factor=2, flatten=True, disable_licm=True):
        tl.store(out + i, i)


def test_hints_of_a_range_are_kept():
    (loop,) = ops(lower(hinted, out="*i32", n="i64"), ForOp)
    assert (loop.stages, loop.unroll, loop.flatten, loop.licm) == (3, 2, True, False)
    assert str(loop.index.type) == "i64"
    assert loop.index.name == "i"


@device_function
def literal_widens(out, x):
    total = 0
    for _ in range(3):
        total += x
    tl.store(out, total)


def test_a_literal_takes_the_type_that_the_loop_gives_it():
    function = lower(literal_widens, out="*f32", x="f32")
    (loop,) = ops(function, ForOp)
    assert str(loop.result.type) == "f32"
    out = np.zeros(1, np.float32)
    run(literal_widens, out=out, x=RunTime(1.5, "f32"))
    assert out[0] == 4.5


@device_function
def unrolled(out, n: tl.constexpr):
    total = 0
    for i in tl.static_range(n):
        if i == 4:
            break
        if i % 2 == 1:
            continue
        tl.store(out + i, i * i)
        total += i
    for i, item in enumerate((10, 20)):
        tl.store(out + 5 + i, item)
    tl.store(out + 7, total)


def test_static_ranges_and_tuples_unroll():
    assert output(unrolled, 8, n=6) == [0, -1, 4, -1, -1, 10, 20, 2]
    assert not ops(lower(unrolled, out="*i32", n=6), ForOp)


@device_function
def collatz(out, n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    tl.store(out, steps)


def test_while():
    assert output(collatz, 1, n=RunTime(6)) == [8]
    assert output(collatz, 1, n=RunTime(1)) == [0]
    (loop,) = ops(lower(collatz, out="*i32", n="i32"), WhileOp)
    assert [r.name for r in loop.results] == ["n", "steps"]


@device_function
def never(out, flag: tl.constexpr):
    x = 3
    while flag:
        x = 4
    tl.store(out, x)


def test_while_with_a_false_constant_is_skipped():
    assert output(never, 1, flag=False) == [3]
    assert not ops(lower(never, out="*i32", flag=False), WhileOp)


@device_function
def nested_loops(out, n):
    total = 0
    for i in range(n):
        row = 0
        for j in range(i):
            if j % 2 == 0:
                row += j
        total += row
        x = i
    for x in range(2):
        total += x
    tl.store(out, total)


def test_nested_loops_and_reused_names():
    expected = sum(j for i in range(7) for j in range(i) if j % 2 == 0) + 1
    assert output(nested_loops, 1, n=RunTime(7)) == [expected]


@device_function
def reuses_names(out, n):
    x = tl.arange(0, 4)
    i = 5
    for _ in range(n):
        x = n
        for i in range(n):
            x += i
        tl.store(out, x)
    x = 7
    tl.store(out + 1, x)


def test_names_may_change_type_where_nothing_reads_the_old_value():
    assert output(reuses_names, 2, n=RunTime(3)) == [6, 7]


@device_function
def alternates(out, n):
    x = 0
    for _ in range(n):
        if x.dtype == tl.int32:
            x = 1.5
        else:
            x = n
    tl.store(out, 1)


def test_a_variable_that_never_settles_is_not_carried():
    with pytest.raises(errors.InconsistentType, match="'x' is the constant 0 before the loop"):
        lower(alternates, out="*i32", n="i32")


@device_function
def carries_tuple_and_window(out, src, n):
    window = tl.make_block_ptr(src, (8,), (1,), (0,), (2,), (0,))
    state = (0, 1)
    for _ in range(n):
        pair = tl.load(window)
        state = (state[0] + tl.sum(pair, 0), state[1] * 2)
        window = tl.advance(window, (2,))
    tl.store(out, state[0])
    tl.store(out + 1, state[1])


def test_tuples_and_block_pointers_are_carried():
    src = np.arange(8, dtype=np.int32)
    out = np.zeros(2, np.int32)
    run(carries_tuple_and_window, out=out, src=src, n=RunTime(3))
    assert out.tolist() == [15, 8]


@device_function
def conditional(out, n, flag: tl.constexpr):
    a = n if flag else tl.undefined_function(n)
    b = n + 1 if n > 3 else 0
    tl.store(out, a)
    tl.store(out + 1, b)


def test_conditional_expressions():
    assert output(conditional, 2, n=RunTime(5), flag=True) == [5, 6]
    assert output(conditional, 2, n=RunTime(2), flag=1) == [2, 0]


@device_function
def literals_become_tiles(out, n):
    i = tl.arange(0, 4)
    total = 0
    for k in range(n):
        total += i * k
    tl.store(out + i, total)
    last = i if n > 2 else 0
    tl.store(out + 4 + i, last)


def test_literals_broadcast_where_they_meet_tiles():
    assert output(literals_become_tiles, n=RunTime(3)) == [0, 3, 6, 9, 0, 1, 2, 3]
    assert output(literals_become_tiles, n=RunTime(1)) == [0] * 8


@device_function
def clipped(x, limit):
    if x > limit:
        return limit
    x += 1
    return x


@device_function
def calls_in_a_loop(out, n):
    for i in range(n):
        tl.store(out + i, clipped(i, 3))


def test_called_functions_may_return_early_inside_a_loop():
    assert output(calls_in_a_loop, 6, n=RunTime(6)) == [1, 2, 3, 4, 3, 3]
