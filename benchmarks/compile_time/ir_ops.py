"""What one op of tile IR costs: build, verify, print, parse, clone, visit, in microseconds.

    python -m benchmarks.compile_time.ir_ops [--ops 20000] [--json FILE]

Two programs are measured: a chain of element-wise ops, and a mixture of what kernels hold (loops,
masks, loads, constants with attributes). Each figure is the least of several rounds. Exits non-zero
if a figure is over its budget times `--slack`; tests/unit/ir/test_budget.py does the same.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import thread_time

from tilewright import ops
from tilewright.ir import (
    OPS,
    Block,
    Builder,
    Function,
    Op,
    RuleContext,
    RuleSet,
    Value,
    parse_function,
    print_function,
    rewrite,
    rule,
    verify,
)
from tilewright.ir.types import PointerType, TileType, f32, i32

BUDGET = {
    "build": 4.0,
    "verify": 3.0,
    "print": 3.0,
    "parse": 15.0,
    "clone": 8.0,
    "visit": 0.5,
}
"""Microseconds an op: principle 5 of the style guide. `visit` is a rule that does not match."""

TILE = TileType((128,), f32)


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured cost."""

    program: str
    step: str
    microseconds: float

    @property
    def budget(self) -> float:
        """What it may cost."""
        return BUDGET[self.step]


def chain(count: int) -> Function:
    """`count` alternating additions and products."""
    body = Block((TILE,), ("x",))
    builder = Builder(body)
    first = value = body.args[0]
    for number in range(count - 1):
        op = ops.AddOp(value, first) if number % 2 else ops.MulOp(value, first)
        value = builder.value(op)
        value.name = "y"
    builder.emit(ops.ReturnOp())
    return Function("chain", body)


def mixture(count: int) -> Function:
    """Loops over masked loads, each with 10 ops."""
    body = Block((PointerType(f32), i32), ("X", "n"))
    builder = Builder(body)
    base, bound = body.args
    for _ in range(count // 10):
        _loop(builder, base, bound)
    builder.emit(ops.ReturnOp())
    return Function("mixture", body)


def _loop(builder: Builder, base: Value, bound: Value) -> None:
    init = builder.value(ops.ConstantOp(0.0, TILE))
    body = Block((i32, TILE), ("k", "acc"))
    inner = Builder(body)
    offsets = inner.value(ops.RangeOp(0, 128))
    limits = inner.value(ops.SplatOp(bound, (128,)))
    mask = inner.value(ops.CompareOp(offsets, limits, "lt"))
    pointers = inner.value(ops.OffsetOp(inner.value(ops.SplatOp(base, (128,))), offsets))
    loaded = inner.value(ops.LoadOp(pointers, mask, init, eviction="evict_first"))
    inner.emit(ops.YieldOp((inner.value(ops.AddOp(body.args[1], loaded)),)))
    builder.emit(ops.ForOp(bound, bound, bound, (init,), body, stages=3))


@rule(*OPS.values())
def nothing(op: Op, ctx: RuleContext) -> Value | None:
    """x -> x, never"""
    return None


PROGRAMS: dict[str, Callable[[int], Function]] = {"chain": chain, "mixture": mixture}


def measure(count: int = 4000, rounds: int = 5) -> list[Figure]:
    """Every figure, for programs of about `count` ops."""
    figures: list[Figure] = []
    for name, make in PROGRAMS.items():
        function = make(count)
        real = sum(1 for _ in function.walk())
        for step, work in _steps(make, function, count).items():
            figures.append(Figure(name, step, _least(work, rounds) / real * 1e6))
    return figures


def _steps(
    make: Callable[[int], Function], function: Function, count: int
) -> dict[str, Callable[[], object]]:
    text = print_function(function)
    no_match, live = RuleSet([nothing]), function.clone()
    _keep_alive(live)
    return {
        "build": lambda: make(count),
        "verify": lambda: verify(function),
        "print": lambda: print_function(function),
        "parse": lambda: parse_function(text),
        "clone": function.clone,
        "visit": lambda: rewrite(live, no_match),
    }


def _keep_alive(function: Function) -> None:
    """Use every unused result, so that the rule driver removes nothing."""
    end = function.body.terminator
    for op in function.body:
        unused = tuple(value for value in op.results if not value.uses)
        if unused:
            Builder.at(end).emit(ops.PrintOp(unused, ""))


def _least(work: Callable[[], object], rounds: int) -> float:
    """CPU seconds of the fastest round, without the garbage collector's."""
    best = float("inf")
    was_on = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            start = thread_time()
            work()
            best = min(best, thread_time() - start)
    finally:
        if was_on:
            gc.enable()
    return best


def table(figures: list[Figure]) -> str:
    """The figures as text."""
    lines = [f"{'program':<8} {'step':<7} {'us/op':>7} {'budget':>7}"]
    lines += [
        f"{f.program:<8} {f.step:<7} {f.microseconds:>7.2f} {f.budget:>7.1f}" for f in figures
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure, print, compare with the budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ops", type=int, default=20_000, help="ops of each program")
    parser.add_argument("--rounds", type=int, default=7, help="rounds, of which the best counts")
    parser.add_argument("--slack", type=float, default=1.0, help="factor on the budget")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    figures = measure(options.ops, options.rounds)
    print(table(figures))
    if options.json:
        rows = [
            {"program": f.program, "step": f.step, "us_per_op": f.microseconds} for f in figures
        ]
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    over = [f for f in figures if f.microseconds > f.budget * options.slack]
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
