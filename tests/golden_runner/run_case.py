"""Runs a golden case and says in a few lines what is not as expected."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

from tests.golden_runner.execute_both import RUNS, compare_runs
from tests.golden_runner.golden_case import Case, Errors, Outcome, read_case
from tilewright.backends import load_ops
from tilewright.ir import (
    Module,
    Problem,
    parse_module,
    parse_pipeline,
    print_module,
    problems,
)
from tilewright.support.errors import TileIRSyntaxError, TilewrightError

_WITHOUT_PASSES = ("parse", "verify")


def outcome_of(case: Case, file: str) -> Outcome:
    """What really happens: parse, verify, run the passes, print."""
    load_ops()
    try:
        module = parse_module(case.source, file, locate=True)
    except TileIRSyntaxError as error:
        assert error.loc is not None
        return Outcome(errors={error.loc.line: [error.message]})
    invalid = problems(module)
    if invalid:
        return Outcome(errors=_by_line(invalid))
    if case.passes not in _WITHOUT_PASSES:
        parse_pipeline(case.passes).run(module)
    return Outcome(print_module(module))


def _by_line(reported: list[Problem]) -> Errors:
    errors: Errors = {}
    for problem in reported:
        loc = problem.where.loc
        assert loc is not None, "located while parsing"
        errors.setdefault(loc.line, []).append(problem.message)
    return errors


def check(path: Path, bless: bool = False) -> str | None:
    """The report of a case that fails, None for one that passes. `bless` rewrites the file first.

    A file whose output computes something else than its input is never blessed.
    """
    case = read_case(path.read_text())
    try:
        actual = outcome_of(case, path.name)
    except TilewrightError as error:
        return f"{path}: the passes fail\n{error}"
    verdict = _executed(case, actual)
    if verdict is not None:
        return f"{path}: executing input and output gives different results\n{verdict}"
    if actual == case.expected:
        return None
    if bless:
        path.write_text(case.written(actual))
        return None
    return _explained(path, case, actual)


def _executed(case: Case, actual: Outcome) -> str | None:
    """How the output behaves otherwise than the input; None if it does not."""
    if actual.errors:
        return None
    # Printed and parsed again: what is compared is what the file would say.
    before, after = parse_module(case.source), parse_module(actual.output)
    for name, function in before.functions.items():
        disagreement = compare_runs(function, after.functions[name], case.args, case.grid)
        if disagreement is not None:
            return f"@{name}: {disagreement.reason}"
    return None


def _explained(path: Path, case: Case, actual: Outcome) -> str:
    bless = f"if it is meant: pytest --bless {path}"
    if actual.errors or case.expected.errors:
        return "\n".join([*_different_errors(path, case.expected.errors, actual.errors), bless])
    lines = _different_output(path, case, actual.output)
    lines.append(f"executed on {RUNS} random inputs: {_judgement(case)}")
    return "\n".join([*lines, bless])


def _judgement(case: Case) -> str:
    """Whether the output that the file expects would be correct."""
    try:
        expected: Module = parse_module(case.expected.output)
    except TilewrightError as error:
        return f"input and actual agree; expected is no tile IR: {error.message}"
    for name, function in parse_module(case.source).functions.items():
        other = expected.functions.get(name)
        if other is None or compare_runs(function, other, case.args, case.grid) is not None:
            return "input and actual agree, what is expected computes something else"
    return "input, actual and expected agree, so the actual output is correct, only not as expected"


def _different_output(path: Path, case: Case, actual: str) -> list[str]:
    # zip_longest: a missing line at the end is a difference too.
    pairs = list(zip_longest(case.expected.output.splitlines(), actual.splitlines()))
    different = [(n, e, a) for n, (e, a) in enumerate(pairs) if e != a]
    if not different:
        return [f"{path}:{case.output_line}  the output ends differently"]
    number, expected, actual_line = different[0]
    expected, actual_line = expected or "", actual_line or ""
    same = next(
        (i for i, (e, a) in enumerate(zip(expected, actual_line, strict=False)) if e != a),
        min(len(expected), len(actual_line)),
    )
    return [
        f"{path}:{case.output_line + number}  output differs",
        f"  expected | {expected}",
        f"  actual   | {actual_line}",
        f"           | {' ' * same}^ first difference; {len(different) - 1} more lines differ",
    ]


def _different_errors(path: Path, expected: Errors, actual: Errors) -> list[str]:
    lines: list[str] = []
    for number in sorted(expected.keys() | actual.keys()):
        expected_here, actual_here = expected.get(number, []), actual.get(number, [])
        if expected_here != actual_here:
            lines.append(f"{path}:{number}  errors differ")
            lines += [f"  expected | {message}" for message in expected_here or ["no error"]]
            lines += [f"  actual   | {message}" for message in actual_here or ["no error"]]
    return lines
