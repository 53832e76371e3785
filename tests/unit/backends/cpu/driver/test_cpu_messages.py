"""What kernels print and assert on the CPU: text, kinds of elements, indices, programs, threads."""

from __future__ import annotations

import io
import re
import sys
import threading

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import function_of, run
from tilewright.backends.cpu.driver.cpu_messages import Console, console
from tilewright.interp import run_function
from tilewright.support.errors import DeviceAssertionFailure


def print_kernel(element: str, shape: tuple[int, ...] = (4,), hexadecimal: bool = False) -> str:
    sizes, numel = "x".join(map(str, shape)), int(np.prod(shape))
    return f"""func @k(%X: ptr<{element}>) {{
      %i = tile.range {{start = 0, end = {numel}}} : tile<{numel}xi32>
      %j = tile.reshape %i {{shape = {list(shape)}}} : tile<{sizes}xi32>
      %xs = tile.splat %X {{shape = {list(shape)}}} : tile<{sizes}xptr<{element}>>
      %xp = mem.offset %xs, %j : tile<{sizes}xptr<{element}>>
      %x = mem.load %xp : tile<{sizes}x{element}>
      cf.print %x {{prefix = "x", hex = {str(hexadecimal).lower()}}}
      cf.return
    }}"""


NUMBERS = {
    "i1": ("?", [0, 1, 1, 0]), "i8": ("i1", [-128, -1, 0, 127]), "u8": ("u1", [0, 1, 128, 255]),
    "i64": ("i8", [-(2**63), -1, 0, 2**63 - 1]), "u64": ("u8", [0, 1, 2**63, 2**64 - 1]),
    "f32": ("f4", [0.1, -0.0, np.inf, np.nan]), "f64": ("f8", [0.1, 1e300, -np.inf, 5e-324]),
    "f16": ("f2", [0.5, -2.25, 100, np.nan]),
}  # fmt: skip


@pytest.mark.parametrize("element", NUMBERS)
@pytest.mark.parametrize("shape", [(4,), (2, 2), (2, 1, 2)])
def test_prints_what_the_interpreter_prints(
    element: str, shape: tuple[int, ...], capsys: pytest.CaptureFixture[str]
):
    dtype, numbers = NUMBERS[element]
    x = np.array(numbers, dtype)
    text = print_kernel(element, shape)
    run(text, [x])
    printed = capsys.readouterr().out
    expected: list[str] = []
    run_function(function_of(text), [x], write=expected.append)
    assert printed == "".join(expected)
    assert printed.count("\n") == 4


def test_hexadecimal(capsys: pytest.CaptureFixture[str]):
    run(print_kernel("u32", hexadecimal=True), [np.array([10, 255, 0, 2**32 - 1], np.uint32)])
    found = re.findall(r"0x0*([0-9a-f]+)", capsys.readouterr().out)
    assert found == ["a", "ff", "0", "ffffffff"]


def test_scalars_and_several_operands(capsys: pytest.CaptureFixture[str]):
    text = """func @k(%n: i32, %m: i64) {
      %pid = cf.program_id {axis = 0} : i32
      cf.print %n, %m {prefix = "both"}
      cf.print {prefix = "alone"}
      cf.return
    }"""
    run(text, [7, -8])
    printed = capsys.readouterr().out
    expected: list[str] = []
    run_function(function_of(text), [7, -8], write=expected.append)
    assert [line.rstrip() for line in printed.splitlines()] == [
        "pid (0, 0, 0) idx () both: (operand 0) 7",
        "pid (0, 0, 0) idx () both: (operand 1) -8",
        "pid (0, 0, 0) alone",
    ]
    assert printed == "".join(expected)


def test_text_of_any_kind_reaches_the_console(capsys: pytest.CaptureFixture[str]):
    text = r"""func @k(%n: i32) {
      cf.print %n {prefix = "100% \"é\" \\"}
      cf.return
    }"""
    run(text, [3])
    assert '100% "é" \\: 3' in capsys.readouterr().out


ASSERTION = """func @k(%n: i32) {
  %pid = cf.program_id {axis = 0} : i32
  %i = tile.range {start = 0, end = 16} : tile<16xi32>
  %ns = tile.splat %n {shape = [16]} : tile<16xi32>
  %below = arith.compare %i, %ns {predicate = "lt"} : tile<16xi1>
  cf.assert %below {message = "too few"}
  cf.return
}"""


def test_assertions_that_hold_are_silent(capfd: pytest.CaptureFixture[str]):
    run(ASSERTION, [16], (8,))
    assert capfd.readouterr() == ("", "")


def test_the_first_element_that_fails_is_named():
    with pytest.raises(DeviceAssertionFailure) as caught:
        run(ASSERTION, [5])
    assert caught.value.program == (0, 0, 0)
    assert "too few" in str(caught.value)
    assert "(5)" in str(caught.value)


def test_one_failure_of_many_programs_is_raised():
    with pytest.raises(DeviceAssertionFailure, match="too few"):
        run(ASSERTION, [5], (100,))
    run(ASSERTION, [16], (100,))


def test_masked_assertions(capfd: pytest.CaptureFixture[str]):
    text = ASSERTION.replace("cf.assert %below {", "cf.assert %below, %below {")
    run(text, [5])
    assert capfd.readouterr() == ("", "")


def test_a_failed_program_stops_and_others_go_on():
    """Only the program whose assertion fails does not store."""
    text = """func @k(%Y: ptr<i32>) {
      %pid = cf.program_id {axis = 0} : i32
      %two = arith.constant {value = 2} : i32
      %one = arith.constant {value = 1} : i32
      %right = arith.compare %pid, %two {predicate = "ne"} : i1
      %yp = mem.offset %Y, %pid : ptr<i32>
      cf.assert %right {message = "not two"}
      mem.store %yp, %one
      cf.return
    }"""
    y = np.zeros(6, np.int32)
    with pytest.raises(DeviceAssertionFailure) as caught:
        run(text, [y], (6,))
    assert caught.value.program == (2, 0, 0)
    assert y.tolist() == [1, 1, 0, 1, 1, 1]


def test_prints_of_many_threads_are_whole_lines(capsys: pytest.CaptureFixture[str]):
    text = """func @k(%n: i32) {
      %pid = cf.program_id {axis = 0} : i32
      cf.print %pid {prefix = "here"}
      cf.return
    }"""
    run(text, [0], (200,))
    lines = capsys.readouterr().out.splitlines()
    assert sorted(int(line.rsplit(" ", 1)[1]) for line in lines) == list(range(200))


def test_there_is_one_console():
    assert console() is console()
    assert console().address


def test_failures_are_raised_once():
    """The second of two failures is dropped, and a check clears the first."""
    own = Console()
    fail = own._fail  # pyright: ignore[reportPrivateUsage]
    threads = [
        threading.Thread(target=fail, args=(b'["no", []]', 0, 0, -1, -1, -1, x, 0, 0))
        for x in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(DeviceAssertionFailure):
        own.check()
    own.check()


def test_an_exception_while_a_line_is_printed_arrives(monkeypatch: pytest.MonkeyPatch):
    """Of a signal handler, or of what stands for the standard output; once."""
    text = """func @k(%n: i32) {
      cf.print %n {prefix = "here"}
      cf.return
    }"""

    class Closed:
        def write(self, line: str) -> None:
            raise TimeoutError("too slow")

        def flush(self) -> None:
            """Nothing to write."""

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Closed())
        with pytest.raises(TimeoutError, match="too slow"):
            run(text, [0], (3,))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.StringIO())
        run(text, [0], (3,))
