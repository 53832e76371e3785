"""The golden format: what passes, what fails and how it reads, what --bless writes and refuses."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.golden_runner import check, read_case
from tests.golden_runner.golden_case import BadGolden
from tilewright.ir import Builder, Function, Pass
from tilewright.ops import ConstantOp, StoreOp

INPUT = """\
// run: canonicalize
func @f(%X: ptr<i32>, %x: i32) {
  %zero = arith.constant {value = 0} : i32
  %y = arith.add %x, %zero : i32
  mem.store %X, %y
  cf.return
}
"""
OUTPUT = """\
// expect
func @f(%X: ptr<i32>, %x: i32) {
  mem.store %X, %x
  cf.return
}
"""
REFUSED = """\
// run: verify
func @f(%x: i32, %y: f32) {
  %z = arith.add %x, %y : i32 // error: operands differ in type: i32 and f32
  cf.return
}
"""


@dataclass(frozen=True)
class StoreSeven(Pass, name="test-store-seven"):
    """A wrong pass: the kernel now stores 7."""

    def run(self, function: Function) -> bool:
        (store,) = (op for op in function.walk() if isinstance(op, StoreOp))
        store.set_operand(1, Builder.at(store).value(ConstantOp(7, store.stored.type)))
        return True


def _file(folder: Path, text: str) -> Path:
    path = folder / "case.tile"
    path.write_text(text)
    return path


def test_a_right_expectation_passes(tmp_path: Path) -> None:
    assert check(_file(tmp_path, INPUT + OUTPUT)) is None
    assert check(_file(tmp_path, REFUSED)) is None


def test_a_different_output_is_shown_line_against_line(tmp_path: Path) -> None:
    path = _file(tmp_path, INPUT + OUTPUT.replace("%X, %x\n", "%X, %y\n").replace("%x:", "%y:"))
    assert check(path) == (
        f"{path}:9  output differs\n"
        "  expected | func @f(%X: ptr<i32>, %y: i32) {\n"
        "  actual   | func @f(%X: ptr<i32>, %x: i32) {\n"
        "           |                        ^ first difference; 1 more lines differ\n"
        "executed on 4 random inputs: input, actual and expected agree, "
        "so the actual output is correct, only not as expected\n"
        f"if it is meant: pytest --bless {path}"
    )


def test_an_expectation_that_computes_something_else_is_named(tmp_path: Path) -> None:
    wrong = OUTPUT.replace("  mem.store %X, %x", "  %n = arith.neg %x : i32\n  mem.store %X, %n")
    report = check(_file(tmp_path, INPUT + wrong))
    assert report is not None
    assert "input and actual agree, what is expected computes something else" in report


def test_bless_writes_the_output(tmp_path: Path) -> None:
    path = _file(tmp_path, INPUT)
    assert check(path) is not None
    assert path.read_text() == INPUT
    assert check(path, bless=True) is None
    assert path.read_text() == INPUT + OUTPUT
    assert check(path) is None


def test_bless_writes_errors_on_their_lines(tmp_path: Path) -> None:
    stale = REFUSED.replace("operands differ", "something else").replace(
        "cf.return", "cf.return // error: is not there"
    )
    path = _file(tmp_path, stale)
    report = check(path)
    assert report is not None
    assert f"{path}:3  errors differ" in report
    assert f"{path}:4  errors differ\n  expected | is not there\n  actual   | no error" in report
    assert check(path, bless=True) is None
    assert path.read_text() == REFUSED


def test_a_syntax_error_is_an_error_of_its_line(tmp_path: Path) -> None:
    text = REFUSED.replace("%z = arith.add", "%z = arith.plus")
    path = _file(tmp_path, text)
    assert check(path, bless=True) is None
    assert "// error: expected an operation, found 'arith.plus'" in path.read_text()


@pytest.mark.parametrize("bless", [False, True])
def test_a_pass_that_changes_the_meaning_always_fails(tmp_path: Path, bless: bool) -> None:
    text = INPUT.replace("run: canonicalize", "run: test-store-seven")
    path = _file(tmp_path, text)
    report = check(path, bless=bless)
    assert report is not None
    assert "executing input and output gives different results" in report
    assert "the array %X differs" in report
    assert path.read_text() == text


def test_an_input_without_effect_is_refused(tmp_path: Path) -> None:
    path = _file(tmp_path, "// run: canonicalize\nfunc @f() {\n  cf.return\n}\n")
    report = check(path, bless=True)
    assert report is not None
    assert "no effect that could be compared" in report


def test_an_input_out_of_bounds_is_refused_unless_args_help(tmp_path: Path) -> None:
    text = (
        "// run: canonicalize\nfunc @f(%X: ptr<i32>, %n: i32) {\n"
        "  %c = arith.constant {value = 10000} : i32\n  %a = arith.mul %n, %c : i32\n"
        "  %p = mem.offset %X, %a : ptr<i32>\n  mem.store %p, %n\n  cf.return\n}\n"
    )
    report = check(_file(tmp_path, text), bless=True)
    assert report is not None
    assert "the input cannot be executed, '// args:' may help" in report
    path = _file(tmp_path, text.replace("canonicalize\n", "canonicalize\n// args: %n = 0\n"))
    assert check(path, bless=True) is None


def test_headers_are_read() -> None:
    case = read_case("// run: cse\n// args: x = 3, %y = -0.5\n// grid: 2, 3\nfunc @f() {\n}\n")
    assert (case.passes, case.args, case.grid) == ("cse", {"x": 3, "y": -0.5}, (2, 3))


@pytest.mark.parametrize("text", ["func @f() {\n}\n", "// run: cse\n// args: x\n"])
def test_files_that_do_not_follow_the_format_are_refused(text: str) -> None:
    with pytest.raises(BadGolden):
        read_case(text)


@pytest.mark.parametrize("bless", [False, True])
def test_pytest_collects_files_and_prints_no_traceback(
    pytester: pytest.Pytester, bless: bool
) -> None:
    folder = pytester.mkdir("golden")
    (folder / "good.tile").write_text(INPUT + OUTPUT)
    (folder / "new.tile").write_text(INPUT)
    options = ["-p", "tests.golden_runner", "-p", "no:cacheprovider"]
    result = pytester.runpytest(*options, *(["--bless"] if bless else []))
    result.assert_outcomes(passed=2 if bless else 1, failed=0 if bless else 1)
    assert "Traceback" not in result.stdout.str()
    if not bless:
        result.stdout.fnmatch_lines(["golden/new.tile:9  output differs", "*pytest --bless*"])
