"""Golden tests of passes, parser and verifier: `.tile` files, rewritten by `pytest --bless`.

As a pytest plugin (`-p tests.golden_runner`, or `pytest_plugins` in a conftest) it collects
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

from tests.golden_runner.execute_both import Disagreement, compare_runs
from tests.golden_runner.golden_case import Case, Outcome, read_case
from tests.golden_runner.pytest_plugin import (
    GoldenFile,
    GoldenItem,
    pytest_addoption,
    pytest_collect_file,
)
from tests.golden_runner.run_case import check, outcome_of

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
