"""`assert_close` and `relative_error` on NumPy, ml_dtypes, lists and scalars."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from tilewright.testing import assert_close, relative_error

INF, NAN = float("inf"), float("nan")


def message(x: object, y: object, atol: float | None = None, rtol: float | None = None) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_close(x, y, atol=atol, rtol=rtol)
    return str(caught.value)


def test_default_tolerance_is_absolute_and_one_hundredth() -> None:
    assert_close([100.0], [100.0099])
    assert "1 of 1 elements" in message([100.0], [100.0101])
    assert "1 of 1 elements" in message([0.0], [-0.0101])


def test_the_limit_itself_is_close() -> None:
    assert_close(np.float64(1.5), 1.0, atol=0.5)
    assert_close([3.0], [2.0], atol=0.0, rtol=0.5)


def test_relative_tolerance_scales_with_y() -> None:
    assert_close([90.0], [100.0], atol=0.0, rtol=0.1)
    assert "elements differ" in message([100.0], [90.0], atol=0.0, rtol=0.1)


def test_tolerances_may_depend_on_the_dtype_of_x() -> None:
    seen: list[object] = []

    def tolerance(dtype: object) -> float:
        seen.append(dtype)
        return 1.0

    assert_close(np.ones(2, np.float16), [1.5, 0.5], atol=tolerance, rtol=tolerance)
    assert seen == [np.float16, np.float16]


def test_the_message_counts_and_shows_the_worst_and_the_first() -> None:
    x = np.zeros((3, 4), np.float32)
    x[0, 1], x[2, 3] = 0.5, -2.0
    text = message(x, np.zeros((3, 4), np.float32))
    assert text.splitlines() == [
        "2 of 12 elements differ (16.667%) by more than atol=0.01 + rtol=0 * |y|",
        "  worst at [2, 3]: x = -2.0, y = 0.0, difference 2",
        "  first at [0, 1]: x = 0.5, y = 0.0, difference 0.5",
    ]


def test_worst_is_measured_against_what_is_allowed() -> None:
    text = message([1.0, 1100.0], [2.0, 1000.0], atol=0.0, rtol=0.09)
    assert "worst at [1]" in text


def test_err_msg_opens_the_message() -> None:
    with pytest.raises(AssertionError, match=r"\Asoftmax, row 3\n1 of 1"):
        assert_close(1, 2, err_msg="softmax, row 3")


def test_scalars_have_no_index() -> None:
    assert "worst: x = 1, y = 2, difference 1" in message(1, 2)


def test_scalar_is_compared_with_every_element() -> None:
    assert_close(np.ones((2, 3)), 1.0)
    assert "worst at [1]" in message(0, [0, 5])


@pytest.mark.parametrize(("left", "right"), [((2, 3), (3, 2)), ((3,), (1, 3)), ((1,), (3,))])
def test_shapes_must_agree(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    text = message(np.zeros(left), np.zeros(right))
    assert text == f"shapes differ: x is {left}, y is {right}"


def test_empty_arrays_are_close() -> None:
    assert_close(np.zeros((0, 3)), np.zeros((0, 3)))


@pytest.mark.parametrize(("x", "y"), [(NAN, NAN), (INF, INF), (-INF, -INF)])
def test_same_special_values_are_close(x: float, y: float) -> None:
    assert_close(np.array([x, 1.0]), np.array([y, 1.0]))


@pytest.mark.parametrize(
    ("x", "y"), [(NAN, 1.0), (1.0, NAN), (INF, -INF), (INF, NAN), (INF, 1e300), (1e300, INF)]
)
def test_other_special_values_are_not_whatever_the_tolerance(x: float, y: float) -> None:
    assert "1 of 2 elements differ" in message([x, 1.0], [y, 1.0], atol=1e308, rtol=1.0)


def test_overflowing_differences_are_not_close() -> None:
    assert "difference inf" in message([1.7e308], [-1.7e308], atol=1.0)


def test_large_integers_are_compared_exactly() -> None:
    big = 2**63 - 1
    assert_close(np.array([big]), np.array([big], np.uint64))
    assert "difference 1" in message(np.array([big]), np.array([big - 1]))
    assert "difference 1" in message(
        np.array([2**64 - 1], np.uint64), np.array([2**64 - 2], np.uint64)
    )
    assert f"difference {2.0**64:.6g}" in message(
        np.array([-(2**63)]), np.array([2**63], np.uint64)
    )
    assert "difference 1" in message(np.array([-1]), np.array([0], np.uint64))
    assert "x = 9223372036854775807" in message(np.array([big]), np.array([0]))


def test_bool_and_complex() -> None:
    assert_close(np.array([True, False]), [1, 0])
    assert "worst at [1]: x = True, y = False" in message([True, True], [True, False])
    assert_close([1 + 1j], [1 + 1.005j])
    assert "difference 2" in message([1 + 1j], [1 - 1j])


@pytest.mark.parametrize(
    "dtype",
    [
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e5m2,
        ml_dtypes.int4,
        np.float16,
    ],
)
def test_small_types(dtype: type) -> None:
    x = np.array([1, 2, -3], dtype)
    assert_close(x, [1, 2, -3], atol=0.0)
    assert "x = 2.0, y = 4" in message(x, [1, 4, -3])


def test_float16_differences_do_not_overflow() -> None:
    x = np.array([60000.0], np.float16)
    assert "difference 120000" in message(x, -x)


@dataclass
class OnDevice:
    """An array in device memory, as CuPy's."""

    host: np.ndarray
    __cuda_array_interface__: object = None

    def get(self) -> np.ndarray:
        return self.host


def test_device_arrays_are_copied_to_the_host() -> None:
    assert_close(OnDevice(np.ones(3)), np.ones(3))
    assert "worst at [0]" in message(OnDevice(np.ones(1)), [3])


class OnlyDLPack:
    """An array of a library that offers DLPack alone."""

    def __init__(self, host: np.ndarray) -> None:
        self.host = host

    def __dlpack__(self, **options: object) -> object:
        return self.host.__dlpack__(**options)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.host.__dlpack_device__()


def test_dlpack_arrays() -> None:
    assert_close(OnlyDLPack(np.arange(3)), [0, 1, 2])


@pytest.mark.parametrize("value", [["a"], [None], [[1], [2, 3]], np.array(["2020"], "M8[Y]")])
def test_what_holds_no_numbers_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="cannot compare"):
        assert_close(value, value)


def test_relative_error_is_the_largest() -> None:
    reference = np.array([1.0, -2.0, 4.0])
    actual = np.array([1.0, -2.5, 4.1], np.float64)
    assert relative_error(actual, reference) == pytest.approx(0.5 / (7 / 3))
    assert relative_error(reference, reference) == 0.0


def test_relative_error_of_large_elements_is_relative_to_themselves() -> None:
    assert relative_error([1.0, 99.0 * 1.01], [1.0, 99.0]) == pytest.approx(0.01)


def test_elements_that_cancel_are_judged_by_the_typical_size() -> None:
    assert relative_error([1e-7, 1.0], [0.0, 1.0]) == pytest.approx(2e-7)


def test_relative_error_of_float32_is_its_rounding() -> None:
    reference = np.random.default_rng(0).standard_normal(1000)
    assert 0.0 < relative_error(reference.astype(np.float32), reference) <= 2.0**-24


@pytest.mark.parametrize("wrong", [NAN, INF, -INF])
def test_special_values_in_the_wrong_place_are_infinitely_wrong(wrong: float) -> None:
    assert relative_error([wrong, 1.0], [1.0, 1.0]) == INF
    assert relative_error([1.0, 1.0], [wrong, 1.0]) == INF


def test_special_values_in_the_right_place_do_not_count() -> None:
    assert relative_error([NAN, INF, 2.0], [NAN, INF, 1.0]) == 1.0


def test_a_zero_reference_allows_only_zero() -> None:
    assert relative_error([0.0], [0.0]) == 0.0
    assert relative_error([1e-30], [0.0]) == INF


def test_relative_error_of_nothing_is_zero_and_shapes_must_agree() -> None:
    assert relative_error([], []) == 0.0
    with pytest.raises(ValueError, match=r"actual is \(3,\), reference is \(1, 3\)"):
        relative_error(np.ones(3), np.ones((1, 3)))
