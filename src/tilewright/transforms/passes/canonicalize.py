"""Apply the rewrite rules until none matches (`canonicalize`).

    %0 = arith.constant {value = 1} : i32
    %1 = arith.mul %0, %n : i32                    ->   %2 = tile.splat %n {shape = [64]}
    %2 = tile.splat %1 {shape = [64]}

The rules are in `rules/`, one identity each; `rules/README.md` states what each must keep.
"""

from __future__ import annotations

from tilewright.ir import Function, Pass, rewrite
from tilewright.transforms.rules import CANONICAL


class Canonicalize(Pass, name="canonicalize"):
    """Bring ops to their canonical forms, and remove pure ops without uses."""

    def run(self, function: Function) -> bool:
        return rewrite(function, CANONICAL)
