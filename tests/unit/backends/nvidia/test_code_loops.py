"""Loops count by ones in PTX: ptxas unrolls others as if their index could not overflow."""

import re
from typing import Any

import pytest

import tilewright.language as tl
from tests.unit.backends.nvidia.compiled import compiled
from tilewright import jit

_LOOP = re.compile(r"\n(\$L__BB\w+):(.*?)\bbra(?:\.uni)?\s+\1;", re.DOTALL)
_EXIT = re.compile(r"setp\.(?:eq|ne)\.b(?:32|64)\s+%p\d+, (%\w+), (%\w+|-?\d+);")


def strides(ptx: str) -> list[int]:
    """What each loop adds to the register that it compares with its end."""
    found: list[int] = []
    for _, body in _LOOP.findall(ptx):
        if "ret;" in body:  # what stands behind the end jumps there
            continue
        exits = _EXIT.search(body)
        assert exits is not None, body
        steps = re.findall(r"add\.s(?:32|64)\s+(%\w+), \1, (%\w+|-?\d+);", body)
        (step,) = [step for register, step in steps if register in exits.groups()]
        found.append(int(step))
    return found


@jit
def constant_step(x, out, bounds, STEP: tl.constexpr, UNROLL: tl.constexpr):
    start, stop = tl.load(bounds), tl.load(bounds + 1)
    total = start * 0
    for k in tl.range(start, stop, STEP, loop_unroll_factor=UNROLL):
        total = total * 31 + (k ^ tl.load(x + k))
    tl.store(out, total)


@jit
def step_of_the_launch(x, out, bounds):
    start, stop, step = tl.load(bounds), tl.load(bounds + 1), tl.load(bounds + 2)
    total = start * 0
    for k in range(start, stop, step):
        total = total * 31 + (k ^ tl.load(x + k))
    tl.store(out, total)


CASES = [(1, 1), (2, 1), (100, 1), (100, 4), (1, 3), (2**30 - 1, 1), (2**30 - 1, 2), (2**31 - 1, 1)]


@pytest.mark.parametrize("dtype", ["i32", "u32", "i64", "u64"])
@pytest.mark.parametrize(("step", "unroll"), CASES)
def test_loops_count_iterations(dtype: str, step: int, unroll: int) -> None:
    types = f"*{dtype} *{dtype} *{dtype}"
    words: dict[str, Any] = {"STEP": step, "UNROLL": unroll, "num_warps": 1}
    found = strides(str(compiled(constant_step, types, **words).asm["ptx"]))
    assert found
    assert {abs(stride) for stride in found} == {1}


@pytest.mark.parametrize("dtype", ["u32", "u64"])
def test_an_unsigned_index_is_not_compared_with_its_end(dtype: str) -> None:
    """That would be a signed comparison in ptxas: the index passes the largest signed number."""
    types = f"*{dtype} *{dtype} *{dtype}"
    words: dict[str, Any] = {"STEP": 1, "UNROLL": 1, "num_warps": 1}
    text = str(compiled(constant_step, types, **words).asm["ptx"])
    ends = [_EXIT.search(body) for _, body in _LOOP.findall(text)]
    assert [end and end[2] for end in ends] == ["0"]


@pytest.mark.parametrize("dtype", ["i32", "u32", "i64", "u64"])
def test_loops_with_steps_of_the_launch_count_iterations(dtype: str) -> None:
    types = f"*{dtype} *{dtype} *{dtype}"
    found = strides(str(compiled(step_of_the_launch, types, num_warps=1).asm["ptx"]))
    assert found
    assert {abs(stride) for stride in found} == {1}
