"""Explanations name the tiles that hold registers, by the model that passes use."""

from typing import Any

import tilewright.language as tl
from tilewright import jit
from tilewright.backends import GPUTarget, StageContext, backend_named
from tilewright.backends.nvidia.explain.register_pressure import pressure_text
from tilewright.backends.nvidia.register_model import register_pressure
from tilewright.compiler import ASTSource, frontend_options, options_of
from tilewright.ir import Function


@jit
def sums(x, y, n):
    at = tl.arange(0, 4096)
    large = tl.load(x + at)
    total = tl.zeros((4096,), tl.float32)
    for i in range(n):
        total += tl.load(x + at + i * 4096)
    tl.store(y + at, total)
    tl.store(y + 4096 + at, large)


@jit
def waits(x, y, n):
    at = tl.arange(0, 4096)
    large = tl.load(x + at)
    total = tl.zeros((4096,), tl.float32)
    while n > 0:
        total += tl.load(x + at + n * 4096)
        n -= 1
    tl.store(y + at, total)
    tl.store(y + 4096 + at, large)


def laid_out(kernel: Any) -> Function:
    """A kernel with the layouts of 4 warps, in which a tile of 4,096 takes 32 registers."""
    backend, target = backend_named("cuda"), GPUTarget("cuda", 90, 32)
    options = options_of(backend, {"num_warps": 4})
    source = ASTSource(kernel, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {})
    made: Any = source.lower(frontend_options(backend, options, target))
    context = StageContext(target, options, {"name": ""})
    for stage in backend.stages[:2]:
        made = stage.run(made, context)
    return made.kernel


def test_a_tile_lives_through_a_loop_that_does_not_use_it() -> None:
    # the sum, the tile that is added to it, and the one loaded before the loop
    assert register_pressure(laid_out(sums)).registers == 96
    assert register_pressure(laid_out(waits)).registers == 96


def test_the_text_names_tiles_and_lines() -> None:
    function = laid_out(sums)
    text, most = pressure_text(function), register_pressure(function)
    line = sums.fn.__code__.co_firstlineno
    assert f"up to {most.registers} registers per thread at line" in text
    assert f"large 32 (line {line + 3})" in text
