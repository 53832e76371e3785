"""`check=`: wrong accesses are named, and right ones are no mistakes."""

# pyright: reportArgumentType=false, reportOperatorIssue=false, reportAttributeAccessIssue=false

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import EmulatedNvidia
from tilewright import jit
from tilewright.support import TilewrightWarning, errors, settings

EVERYTHING = "bounds,race,overflow,uninit"
WRONG: list[tuple[Callable[..., Any], type[Exception], str, str]] = []
RIGHT: list[Callable[..., Any]] = []


def wrong(
    error: type[Exception], message: str, code: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the error of a kernel that is launched with x and y of 16 floats, and n = 16."""

    def register(kernel: Callable[..., Any]) -> Callable[..., Any]:
        WRONG.append((kernel, error, message, code))
        return kernel

    return register


def right(kernel: Callable[..., Any]) -> Callable[..., Any]:
    RIGHT.append(kernel)
    return kernel


@wrong(
    errors.OutOfBounds,
    "element 16 of argument 'x', which has 16 elements (program (2, 0, 0)",
    "tl.load(x + i)",
)
def reads_past_the_end(x, y, n):
    i = tl.program_id(0) * 6 + tl.arange(0, 8)
    tl.store(y + i % n, tl.load(x + i))


@wrong(
    errors.RaceCondition,
    "program (1, 0, 0) writes element 0 of argument 'y', which has 16 "
    "elements; program (0, 0, 0) wrote it",
    "tl.store(y, tl.program_id(0) + 1.0)",
)
def stores_to_one_element(x, y, n):
    tl.store(y, tl.program_id(0) + 1.0)


@wrong(
    errors.RaceCondition,
    "program (1, 0, 0) reads element 3 of argument 'y'",
    "tl.load(y + tl.program_id(0) * 4 - 1, mask=tl.program_id(0) > 0)",
)
def reads_what_a_neighbour_writes(x, y, n):
    i = tl.program_id(0) * 4 + tl.arange(0, 4)
    tl.store(y + i, 5.0)
    left = tl.load(y + tl.program_id(0) * 4 - 1, mask=tl.program_id(0) > 0)
    tl.store(x + tl.program_id(0), left, mask=tl.program_id(0) > 0)


@wrong(errors.RaceCondition, "other programs read it", "tl.store(x, 9.0, mask=last)")
def writes_what_all_have_read(x, y, n):
    first = tl.load(x)
    last = tl.program_id(0) == 3
    tl.store(y + tl.program_id(0), first)
    tl.store(x, 9.0, mask=last)


@wrong(
    errors.RaceCondition,
    "program (0, 0, 0) stores different values to element 1 of argument 'y', which has 16 "
    "elements, in several lanes",
    "tl.store(y + i // 2, tl.load(x + i), mask=i > 1)",
)
def stores_several_lanes_to_one_element(x, y, n):
    i = tl.arange(0, 16)
    tl.store(y + i // 2, tl.load(x + i), mask=i > 1)


@wrong(
    errors.RaceCondition,
    "program (0, 0, 0) stores different values to element 0",
    "tl.store(y + segment, tl.load(y + segment) + v)",
)
def adds_lanes_without_atomics(x, y, n):
    i = tl.arange(0, 16)
    segment, v = i % 4, tl.load(x + i)
    tl.store(y + segment, tl.load(y + segment) + v)


@wrong(
    errors.RaceCondition,
    "program (1, 0, 0) reads element 0 of argument 'y', which has 16 elements; "
    "program (0, 0, 0) updated it",
    "tl.load(y)",
)
def reads_what_an_atomic_changes(x, y, n):
    if tl.program_id(0) == 0:
        tl.atomic_add(y, 1.0)
    else:
        tl.store(x + tl.program_id(0), tl.load(y))


@wrong(
    errors.RaceCondition,
    "program (1, 0, 0) updates element 0 of argument 'y', which has 16 elements; "
    "program (0, 0, 0) read it",
    "tl.atomic_add(y, 1.0)",
)
def changes_by_an_atomic_what_was_read(x, y, n):
    if tl.program_id(0) == 0:
        tl.store(x, tl.load(y))
    else:
        tl.atomic_add(y, 1.0)


@wrong(
    errors.RaceCondition,
    "program (1, 0, 0) updates element 0 of argument 'y', which has 16 elements; "
    "program (0, 0, 0) read it",
    "tl.atomic_add(y, 1.0)",
)
def reads_its_counter_after_adding(x, y, n):
    tl.atomic_add(y, 1.0)
    tl.store(x + tl.program_id(0), tl.load(y))


@wrong(
    errors.UndefinedElement,
    "the condition of a branch or loop is computed from elements that a masked load has left "
    "undefined",
    "if tl.sum(v.to(tl.int32)) > 0:",
)
def branches_on_what_is_not_loaded(x, y, n):
    i = tl.arange(0, 32)
    v = tl.load(x + i, mask=i < n)
    if tl.sum(v.to(tl.int32)) > 0:
        tl.store(y + tl.program_id(0), 1.0)


@wrong(errors.UndefinedElement, "the condition of a branch or loop is computed", "while left > 0:")
def loops_on_what_is_not_loaded(x, y, n):
    i = tl.arange(0, 32)
    left = tl.sum(tl.load(x + i, mask=i < n).to(tl.int32))
    while left > 0:
        left -= 1
    tl.store(y + tl.program_id(0), 1.0)


@wrong(errors.UndefinedElement, "a bound of a loop is computed", "for step in range(count):")
def counts_to_what_is_not_loaded(x, y, n):
    i = tl.arange(0, 32)
    count = tl.sum(tl.load(x + i, mask=i < n).to(tl.int32))
    total = 0.0
    for step in range(count):
        total += step
    tl.store(y + tl.program_id(0), total)


@wrong(errors.UndefinedElement, "what is stored of argument 'y', tile index (0,)", "tl.store(y")
def sorts_what_is_not_loaded(x, y, n):
    i = tl.arange(0, 32)
    v = tl.sort(tl.load(x + i, mask=i < n))
    tl.store(y + i, v, mask=i < n)


@wrong(errors.UndefinedElement, "what is stored of argument 'y', tile index (0,)", "tl.store(y")
def counts_what_is_not_loaded(x, y, n):
    i = tl.arange(0, 32)
    v = tl.load(x + i, mask=i < n)
    counts = tl.histogram(v.to(tl.int32), 16)
    tl.store(y + tl.arange(0, 16), counts.to(tl.float32))


@wrong(errors.UndefinedElement, "what is stored of argument 'y', tile index (15,)", "tl.store(y")
def gathers_by_what_is_not_loaded(x, y, n):
    i = tl.arange(0, 16)
    index = tl.load(x + i, mask=i < n - 1).to(tl.int32)
    tl.store(y + i, tl.gather(i.to(tl.float32), index, 0))


@wrong(
    errors.OutOfBounds,
    "index 1073741824 of a gather along an extent of 16",
    "tl.gather(v, i << 30, 0)",
)
def gathers_beyond_the_tile(x, y, n):
    i = tl.arange(0, 16)
    v = tl.load(x + i)
    tl.store(y + i, tl.gather(v, i << 30, 0))


@wrong(
    errors.OffsetOverflow,
    "int32 overflow in the offset of a load of argument 'x', tile index (1,)",
    "tl.load(x + far - far + i)",
)
def wraps(x, y, n):
    i = tl.arange(0, 4)
    far = (i + 1) * (n * 100000000)
    tl.store(y + i, tl.load(x + far - far + i))


@wrong(
    errors.UndefinedElement,
    "what is stored of argument 'y', tile index (7,) is computed from",
    "tl.store(y + i, v * 2)",
)
def stores_what_is_not_loaded(x, y, n):
    i = tl.arange(0, 8)
    v = tl.load(x + i, mask=i < 7)
    tl.store(y + i, v * 2)


@wrong(errors.UndefinedElement, "what is stored of argument 'y'", "tl.store(y, tl.sum(v, 0))")
def sums_what_is_not_loaded(x, y, n):
    i = tl.arange(0, 8)
    v = tl.load(x + i, mask=i < 7)
    tl.store(y, tl.sum(v, 0))


@wrong(errors.UndefinedElement, "the address of a load of argument 'x'", "tl.load(x + at)")
def follows_what_is_not_loaded(x, y, n):
    i = tl.arange(0, 8)
    at = tl.load(x + i, mask=i < 7).to(tl.int32)
    tl.store(y + i, tl.load(x + at), mask=i < 3)


@right
def masks_every_use(x, y, n):
    i = tl.program_id(0) * 5 + tl.arange(0, 8)
    inside = (i < n) & (tl.arange(0, 8) < 5)
    v = tl.load(x + i, mask=inside)
    w = tl.where(inside, v, 0.0)
    tl.store(y + i, v * 2 + tl.sum(w), mask=inside)
    tl.store(y + i, tl.trans(tl.reshape(v, (8, 1))).reshape(8), mask=inside & (v > 0))


@right
def counts_and_lets_the_last_one_sum(x, y, n):
    pid = tl.program_id(0)
    tl.store(y + pid, pid * 1.0)
    count = tl.atomic_add(y + 15, 1.0)
    if count == tl.num_programs(0) - 1:
        tl.store(y + 14, tl.sum(tl.load(y + tl.arange(0, 4))))
        tl.store(y + 3, 7.0)


@right
def hashes(x, y, n):
    i = tl.program_id(0) * 4 + tl.arange(0, 4)
    mixed = (i + 77) * 1103515245 + 12345
    at = ((mixed >> 3) & 7) % n
    tl.store(y + i, tl.load(x + at) + tl.rand(n, i))


@right
def stores_the_same_everywhere(x, y, n):
    tl.store(y, tl.load(y))
    tl.atomic_max(y + 1, tl.program_id(0) * 1.0)


@wrong(
    errors.OutOfBounds,
    "store at element -1 of argument 'y', which has 16 elements (program (0, 0, 0), "
    "tile index (0, 2))",
    "tl.store(y + at, 1.0, mask=at < 14)",
)
def stores_before_the_start(x, y, n):
    rows, columns = tl.arange(0, 2), tl.arange(0, 4)
    at = rows[:, None] * 4 + tl.where(columns == 2, -1, columns)[None, :]
    tl.store(y + at, 1.0, mask=at < 14)


@wrong(errors.OutOfBounds, "atomic add at element 16 of argument 'y'", "tl.atomic_add(y + i, 1.0)")
def adds_past_the_end(x, y, n):
    i = tl.program_id(0) * 8 + tl.arange(0, 8)
    tl.atomic_add(y + i, 1.0)


@wrong(errors.OutOfBounds, "load at element 20 of argument 'x'", "total += tl.load(x + k)")
def reads_on_in_a_loop(x, y, n):
    total = 0.0
    for k in range(0, n + 5, 10):
        total += tl.load(x + k)
    tl.store(y + tl.program_id(0), total)


@wrong(
    errors.OutOfBounds,
    "load of f32 at address 0x3f80000000000000, which is in no array argument",
    "tl.load((tl.load(table) + i * 0).to(tl.pointer_type(tl.float32)))",
)
def follows_a_wild_address(x, y, n):
    i = tl.arange(0, 4).to(tl.int64)
    table = x.to(tl.pointer_type(tl.int64))
    v = tl.load((tl.load(table) + i * 0).to(tl.pointer_type(tl.float32)))
    tl.store(y + i, v)


@wrong(
    errors.OutOfBounds,
    "load at element 16 of argument 'x', which has 16 elements (program (0, 0, 0), "
    "tile index (4,))",
    "described.load([12])",
)
def describes_more_than_there_is(x, y, n):
    described = tl.make_tensor_descriptor(x, [n * 2], [1], [8])
    tl.store(y + tl.arange(0, 8), described.load([12]))


@wrong(errors.UndefinedElement, "the mask of a store", "tl.store(y + i, 1.0, mask=v != 5)")
def masks_by_what_is_not_loaded(x, y, n):
    i = tl.arange(0, 8)
    v = tl.load(x + i, mask=i < 7)
    tl.store(y + i, 1.0, mask=v != 5)


@wrong(
    errors.UndefinedElement,
    "what is stored of argument 'y', tile index (0, 0)",
    "tl.store(y + i[:, None] * 0, carried, mask=i[:, None] < 1)",
)
def carries_what_is_not_loaded(x, y, n):
    i = tl.arange(0, 16)
    carried = tl.zeros((16, 1), tl.float32)
    for k in range(0, 2):
        part = tl.load(x + i[:, None] * 0 + i[None, :], mask=i[None, :] < n - k)
        carried += tl.sum(tl.dot(part, part), 1, keep_dims=True)
    tl.store(y + i[:, None] * 0, carried, mask=i[:, None] < 1)


@wrong(
    errors.RaceCondition,
    "program (1, 0, 0) writes element 2 of argument 'y'",
    "tl.store(p + i, tl.program_id(0) + 1.0)",
)
def stores_through_a_chosen_pointer(x, y, n):
    i = tl.arange(0, 2)
    p = y + 2
    if tl.program_id(0) > 1:
        p = x
    tl.store(p + i, tl.program_id(0) + 1.0)


@wrong(
    errors.RaceCondition,
    "program (1, 0, 0) writes element 1 of argument 'y'",
    "tl.store(bytes + 4 + i, tl.program_id(0))",
)
def stores_bytes_of_what_another_has_stored(x, y, n):
    i = tl.arange(0, 4)
    bytes = y.to(tl.pointer_type(tl.int8))
    first = tl.program_id(0) == 0
    tl.store(y + i, 1.0, mask=first)
    tl.store(bytes + 4 + i, tl.program_id(0))


@wrong(
    errors.RaceCondition,
    "program (1, 0, 0) writes element 3 of argument 'y', which has 16 "
    "elements; program (0, 0, 0) wrote it",
    "tl.store(y + tl.program_id(0) * 3 + i, tl.program_id(0) + 1.0)",
)
def stores_windows_that_overlap(x, y, n):
    i = tl.arange(0, 4)
    tl.store(y + tl.program_id(0) * 3 + i, tl.program_id(0) + 1.0)


@right
def stores_windows_of_its_own(x, y, n):
    i = tl.arange(0, 2)
    for k in range(0, 2):
        tl.store(y + 12 - tl.program_id(0) * 4 + 2 * k + i, tl.load(x + k + i) + 1.0)


@right
def waits_for_its_turn(x, y, n):
    pid = tl.program_id(0)
    while tl.atomic_add(y + 15, 0.0) < pid:
        pass
    tl.store(x, tl.load(x) + 1.0)
    tl.atomic_add(y + 15, 1.0)


@right
def follows_addresses(x, y, n):
    there = (x.to(tl.int64) + 8).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, 4)
    chosen = tl.where(i < 2, there + i, y + i)
    tl.store(y + 4 + tl.program_id(0), tl.sum(tl.load(chosen)))


@right
def leaves_a_loop_by_what_is_loaded(x, y, n):
    k = tl.program_id(0)
    while (k < n) & (tl.load(x + k, mask=k < n, other=0.0) < 7.0):
        k += 2
    tl.store(y + tl.program_id(0), k)


@right
def stores_one_value_in_several_lanes(x, y, n):
    i = tl.arange(0, 16)
    if tl.program_id(0) == 0:
        tl.store(y + i // 4, 7.0)
        tl.store(y + i // 2, tl.load(x + i // 2))


@right
def reads_after_the_last_update(x, y, n):
    """The last program comes after all others, by a counter."""
    tl.atomic_add(y, 1.0)
    before = tl.atomic_add(y + 1, 1.0)
    if before == tl.num_programs(0) - 1:
        tl.store(x, tl.load(y))


@right
def polls_by_volatile_loads(x, y, n):
    if tl.program_id(0) == 0:
        tl.atomic_add(y, 1.0)
    else:
        seen = tl.load(y, volatile=True)
        tl.store(x + tl.program_id(0), seen * 0)


@right
def sorts_what_is_loaded(x, y, n):
    i = tl.arange(0, 32)
    v = tl.sort(tl.load(x + i, mask=i < n, other=1e9))
    if tl.sum(tl.where(i < n, v, 0).to(tl.int32)) > 0:
        if tl.program_id(0) == 0:
            tl.store(y + i, v, mask=i < n)


def launch(kernel: Callable[..., Any], **options: Any) -> list[np.ndarray[Any, Any]]:
    x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    made: Any = jit(kernel, **options)
    made[(4,)](x, y, 16)
    return [x, y]


def without_column(text: str) -> str:
    """A message without its columns: from 3.12 on, Python reports those of a branch's condition
    where compiled code, as 3.11, reports those of the whole statement."""
    return re.sub(r"^ +\| +\^+\n", "", re.sub(r"(\.py:\d+):\d+", r"\1", text), flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("kernel", "error", "message", "code"), WRONG, ids=[case[0].__name__ for case in WRONG]
)
def test_wrong_accesses_are_named_alike_in_compiled_and_interpreted_kernels(
    kernel: Callable[..., Any], error: type[Exception], message: str, code: str
):
    texts: list[str] = []
    for interpret in (False, True):
        with pytest.raises(error) as caught:
            launch(kernel, check=EVERYTHING, interpret=interpret)
        texts.append(str(caught.value))
    compiled, interpreted = texts
    assert without_column(compiled) == without_column(interpreted)
    assert message in compiled and code in compiled and "test_checked_mode.py:" in compiled


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("kernel", RIGHT, ids=[kernel.__name__ for kernel in RIGHT])
def test_right_accesses_are_no_mistakes(kernel: Callable[..., Any], interpret: bool):
    checked, plain = launch(kernel, check=EVERYTHING, interpret=interpret), launch(kernel)
    np.testing.assert_allclose(checked, plain, rtol=1e-6)


@jit(check="race")
def own_windows(x, y):
    i = tl.program_id(0) * 4 + tl.arange(0, 4)
    tl.store(y + i, tl.load(x + i) + tl.program_id(1) + 1.0)


def test_windows_are_shared_where_the_launch_makes_them_so():
    """What each program has for itself is not watched: other axes and other arrays count."""
    memory = np.zeros(17, np.float32)
    own_windows[(4, 1)](memory[:16], np.zeros(16, np.float32))
    with pytest.raises(errors.RaceCondition, match=r"program \(0, 1, 0\) writes element 0"):
        own_windows[(4, 2)](memory[:16], np.zeros(16, np.float32))
    with pytest.raises(errors.RaceCondition, match=r"program \(1, 0, 0\) writes"):
        own_windows[(4, 1)](memory[1:], memory[:16])


def test_a_gpu_says_that_it_does_not_check():
    device = EmulatedNvidia()
    x, y = device.array(np.arange(16, dtype=np.float32)), device.empty(16, np.float32)
    made: Any = jit(hashes, check="race,bounds")
    with pytest.warns(TilewrightWarning, match="hashes runs unchecked for bounds, race"):
        device.run(made, (4,), x, y, 16)
    np.testing.assert_allclose(y, launch(hashes)[1], rtol=1e-6)


def test_only_what_is_asked_for_is_checked():
    launch(stores_what_is_not_loaded, check="race,overflow")
    launch(stores_to_one_element, check=["uninit"])
    with settings().interpreter.scope(check="race"):
        made: Any = jit(stores_to_one_element)
    with pytest.raises(errors.RaceCondition):
        made[(4,)](np.zeros(16, np.float32), np.zeros(16, np.float32), 16)
    with pytest.raises(errors.InvalidOption, match="some of bounds, race"):
        launch(hashes, check="bound")
