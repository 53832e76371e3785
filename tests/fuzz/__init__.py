"""A differential fuzzer of whole kernels.

`program(seed)` makes a random kernel as Python source together with its arguments; a model of the
language in NumPy says what it computes, and every device must compute the same, bit by bit.

    program_dtypes, program_tree       what programs are made of: types, expressions, statements
    program_source                     a program as Python text
    operation_table, reference_model   what they mean, in NumPy and in words of this package alone
    program_maker, make_...            how they are made, a file for each kind of statement
    random_program                     which kinds of statements, how many
    run_program                        runs one on the devices and compares
    reduce_program, save_test          makes a failing program small, and writes it as a test file
    fuzz_workers                       many programs in processes that may crash or hang

What a language leaves undefined (division by zero, sums of floats whose order shows, accesses out
of bounds, races) is left out by construction, and the model refuses what slips through.
"""

from tests.fuzz.fuzz_workers import Fleet, Plan, Result
from tests.fuzz.program_dtypes import Undefined, same_bits
from tests.fuzz.program_tree import Program
from tests.fuzz.random_program import program
from tests.fuzz.reduce_program import fails_alike, reduced
from tests.fuzz.run_program import Failure, failure_of
from tests.fuzz.save_test import save, written_test

__all__ = [
    "Failure", "Fleet", "Plan", "Program", "Result", "Undefined", "failure_of", "fails_alike",
    "program", "reduced", "same_bits", "save", "written_test",
]  # fmt: skip
