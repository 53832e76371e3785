"""Loops, jumps and functions, against the same in Python; and what IR they become."""

import numpy as np
import pytest

from tests.unit.frontend.c.harness import run, text
from tilewright.support import errors


def value(body: str, n: int = 10, before: str = "") -> int:
    """What a piece of code leaves in `r`."""
    out = np.zeros(1, np.int32)
    run(f"int n = b; int r = 0; {body} *a = r;", out, n, before=before)
    return int(out[0])


@pytest.mark.parametrize(
    ("head", "numbers"),
    [
        ("int i = 0; i < n; i++", range(10)),
        ("int i = 0; i <= n; i += 3", range(0, 11, 3)),
        ("int i = n; i > 0; i -= 4", range(10, 0, -4)),
        ("int i = n; i >= 0; --i", range(10, -1, -1)),
        ("int i = 2; n > i; i = i + 2", range(2, 10, 2)),
        ("long i = 0; i < n; ++i", range(10)),
        ("unsigned i = 8; i > 0; i -= 2", range(8, 0, -2)),
        ("int i = 5; i < 5; i++", range(0)),
        ("int i = 2147483637 + n; i <= 2147483647; i += n - 9", range(2147483647, 2147483648)),
        ("int i = 2147483630 + n; i < 2147483647; i += 4", range(2147483640, 2147483647, 4)),
        (
            "int i = -2147483640 - n % 8; i >= -2147483647 - 1; i--",
            range(-2147483642, -2147483649, -1),
        ),
        (
            "int i = 2147483637 + n; i >= -2147483647; i -= 1000000000",
            range(2147483647, -2147483648, -(10**9)),
        ),
        ("int i = 0; i <= n; i += n - 7", range(0, 11, 3)),
        ("int i = n; i > 0; i -= n - 6", range(10, 0, -4)),
        ("int i = n; i >= 2; i -= n - 6", range(10, 1, -4)),
        (
            "unsigned i = 4294967285u + n; i <= 4294967295u; i += 7",
            range(4294967295, 4294967296, 7),
        ),
        ("int i = n; i < 5; i += n - 10", range(0)),
    ],
)
def test_for(head: str, numbers: range) -> None:
    expected = 0
    for i in numbers:
        expected = (expected * 3 + i + 2**31) % 2**32 - 2**31
    assert value(f"for ({head}) r = r * 3 + (int) i;") == expected


@pytest.mark.parametrize("step", ["i += n - 10", "i += 5 - n", "i = i + (n - 11)"])
def test_a_loop_that_would_never_end_stops_the_launch(step: str) -> None:
    with pytest.raises(errors.DeviceAssertionFailure, match="is not positive, so it would never"):
        value(f"for (int i = 0; i < n; {step}) r++;")


def test_a_counted_loop_becomes_one() -> None:
    source = "void k(int *p, int n) { int s = 0; for (int i = 0; i < n; i += 4) s += i; *p = s; }"
    assert "cf.for" in text(source) and "cf.while" not in text(source)
    leaving = source.replace("s += i;", "{ s += i; if (s > 9) break; }")
    assert "cf.while" in text(leaving) and "cf.for" not in text(leaving)


def test_a_variable_from_before_the_loop_keeps_its_last_value() -> None:
    assert value("int i; for (i = 0; i < n; i += 4) r += i; r = r * 100 + i;") == 12 * 100 + 12
    assert value("int i = 7; for (i = 3; i < 3; i++) r++; r = i;") == 3


def test_while_and_do() -> None:
    assert value("while (n > 0) { r += n; n -= 3; }") == 10 + 7 + 4 + 1
    assert value("while (n-- > 5) r += n;") == 9 + 8 + 7 + 6 + 5
    assert value("do { r += n; n -= 3; } while (n > 0);") == 22
    assert value("do r++; while (n < 0);") == 1


def test_break_and_continue() -> None:
    assert value("for (int i = 0; i < n; i++) { if (i == 4) break; r += i; }") == 6
    assert value("for (int i = 0; i < n; i++) { if (i % 2) continue; r += i; }") == 20
    body = """
        for (int i = 0; i < n; i++) {
            if (i == 2) { r += 100; continue; }
            if (i > 5) { r += 1000; break; } else r += i;
            for (int j = 0; ; j++) { if (j == i) break; r += 10; if (j > 2) continue; r += 1; }
        }"""
    expected = 0
    for i in range(10):
        if i == 2:
            expected += 100
            continue
        if i > 5:
            expected += 1000
            break
        expected += i
        for j in range(i):
            expected += 10 if j > 2 else 11
    assert value(body) == expected


def test_a_break_in_a_block_and_in_a_while_loop() -> None:
    assert value("while (true) { { if (r > 20) break; r += 7; } r += 1; }") == 24
    assert (
        value("do { r += 2; if (r == 6) break; r += 1; if (r > 4) continue; } while (r < 99);")
        == 99
    )


def test_an_early_return() -> None:
    source = "void k(int *p, int n) { if (n > 3) return; *p = 5; }"
    assert text(source).count("cf.if") == 1
    out = np.zeros(1, np.int32)
    run("if (b > 3) return; *a = 5;", out, 4)
    assert out[0] == 0
    run("if (b > 3) return; *a = 5;", out, 3)
    assert out[0] == 5


def test_a_return_from_inside_loops() -> None:
    body = (
        "for (int i = 0; i < 9; i++) { while (1) { if (i == b) return; break; } *a = i; } *a = 77;"
    )
    out = np.zeros(1, np.int32)
    run(body, out, 4)
    assert out[0] == 3
    run(body, out, 20)
    assert out[0] == 77


FUNCTIONS = """
    const int LIMIT = 6;
    int clamp_to(int x, int low) {
        if (x < low) return low;
        for (int i = 0; i < 4; i++) if (x == i + LIMIT) return -i;
        return x;
    }
    float half_of(float x) { return x / 2; }
    void put(int *p, int x) { *p = x; }
"""


def test_device_functions() -> None:
    assert value("r = clamp_to(n, 3);", 1, FUNCTIONS) == 3
    assert value("r = clamp_to(n, 3);", 5, FUNCTIONS) == 5
    assert value("r = clamp_to(n, 3);", 8, FUNCTIONS) == -2
    out = np.zeros(4, np.float32)
    run("put((int *) a, 0); int i[4] = 0 ... 4; *(a + i) = half_of(i);", out, before=FUNCTIONS)
    np.testing.assert_array_equal(out, [0, 0.5, 1, 1.5])


def test_parameters_that_are_tiles() -> None:
    before = """
        #define M 4
        int weigh(int x[M, 8], const int w[8], int scale) { x *= w; return scale * x[+, +]; }
    """
    body = """
        int i[4] = 0 ... 4, j[8] = 0 ... 8;
        r = weigh(i[:, newaxis] + j[newaxis, :], j, 2) + weigh(n, 1, 1);
    """
    expected = 2 * ((np.arange(4)[:, None] + np.arange(8)) * np.arange(8)).sum() + 32 * 3
    assert value(body, 3, before) == expected


def test_a_function_as_an_argument() -> None:
    before = "int larger(int x, int y) { return x > y ? x : y; }"
    assert value("r = reduce((0 ... 16) ^ 5, 0, larger);", 0, before) == 15


def test_branches_that_are_decided_while_compiling_leave_nothing() -> None:
    source = "void k(int *p) { if (TM > 32) *p = 1; else { undeclared; } }"
    assert "cf.if" not in text(source, TM=64)


def test_names_belong_to_their_block() -> None:
    assert value("int x = 1; { int x = 2; r += x; } r = r * 10 + x;") == 21
    assert value("for (int i = 0; i < 2; i++) { int x = i; x++; r += x; }") == 3


def test_variables_of_branches_join() -> None:
    assert value("int x; if (n > 3) x = 1; else x = 2; r = x;") == 1
    assert value("int x = 5; if (n > 30) { x = 1; r = 2; } r += x;") == 5
