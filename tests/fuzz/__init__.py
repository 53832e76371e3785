"""A differential fuzzer of whole kernels.

`program(seed)` makes a random kernel as Python source together with its arguments; a model of the
language in NumPy says what it computes, and every device must compute the same, bit by bit.

    dtypes, tree        what programs are made of: types, expressions, statements, source text
    operations, model   what they mean, in NumPy and in words of this package alone
    maker ... program   how they are made, a file for each kind of statement
    execute             runs one on the devices and compares
    reduce, save        makes a failing program small, and writes it as a test file
    workers             many programs in many processes, of which some may crash or hang

What a language leaves undefined (division by zero, sums of floats whose order shows, accesses out
of bounds, races) is left out by construction, and the model refuses what slips through.
"""

from tests.fuzz.dtypes import Undefined
from tests.fuzz.execute import Failure, failure_of
from tests.fuzz.program import program
from tests.fuzz.reduce import fails_alike, reduced
from tests.fuzz.save import written_test
from tests.fuzz.tree import Program

__all__ = [
    "Failure", "Program", "Undefined", "failure_of", "fails_alike", "program", "reduced",
    "written_test",
]  # fmt: skip
