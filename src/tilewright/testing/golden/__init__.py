"""Golden tests of passes, parser and verifier: `.tile` files, rewritten by `pytest --bless`.

As a pytest plugin (`-p tilewright.testing.golden`, or `pytest_plugins` in a conftest) it collects
`**/golden/**/*.tile`. A file is::

    // run: canonicalize,cse
    func @f(%X: ptr<i32>, %x: i32) {
      %zero = arith.constant {value = 0} : i32
      %y = arith.add %x, %zero : i32
      mem.store %X, %y
      cf.return
    }
    // expect
    func @f(%X: ptr<i32>, %x: i32) {
      mem.store %X, %x
      cf.return
    }

Input and output are also executed on random arguments by the interpreter and must leave the same
arrays and prints. Further lines before the input say what to execute it with:

    // args: x = 3, X = 64      a number for a scalar, the number of elements for a pointer
    // grid: 2, 2

A file that is to be refused names each message on the offending line and has no output:

    // run: verify
    func @f(%x: i32, %y: f32) {
      %z = arith.add %x, %y : i32 // error: operands differ in type: i32 and f32
      cf.return
    }
"""

from tilewright.testing.golden.execute_both import Disagreement, compare_runs
from tilewright.testing.golden.golden_case import Case, Outcome, read_case
from tilewright.testing.golden.pytest_plugin import (
    GoldenFile,
    GoldenItem,
    pytest_addoption,
    pytest_collect_file,
)
from tilewright.testing.golden.run_case import check, outcome_of

__all__ = [
    "Case",
    "Disagreement",
    "GoldenFile",
    "GoldenItem",
    "Outcome",
    "check",
    "compare_runs",
    "outcome_of",
    "pytest_addoption",
    "pytest_collect_file",
    "read_case",
]
