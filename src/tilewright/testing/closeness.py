"""`assert_close` for tests of kernels, and `relative_error` against a float64 reference.

Both accept NumPy arrays (including ml_dtypes), torch tensors of any dtype and device, CuPy arrays,
lists and scalars, and compute in float64, or exactly if both sides are integers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tilewright.support.data_class import dataclass
from tilewright.testing.as_numpy import Comparable, dtype_of, to_comparable

Tolerance = float | Callable[[object], float] | None
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Triton's defaults.
DEFAULT_ATOL = 1e-2
DEFAULT_RTOL = 0.0


def assert_close(
    x: object, y: object, atol: Tolerance = None, rtol: Tolerance = None, err_msg: str = ""
) -> None:
    """Raise AssertionError unless |x - y| <= atol + rtol * |y| in every element.

    atol, rtol: numbers, or functions of x's dtype that return one; None means 1e-2 and 0.
    NaN equals NaN; an infinity equals only the same infinity. Shapes must be equal, except that a
    scalar is compared with every element of the other side. The error starts with `err_msg`, counts
    the elements that differ, and shows the worst of them with its index.
    Raises TypeError for values that are not numbers.
    """
    limits = _Limits(
        _resolve(atol, DEFAULT_ATOL, x),
        _resolve(rtol, DEFAULT_RTOL, x),
    )
    left, right = to_comparable(x), to_comparable(y)
    headline = f"{err_msg}\n" if err_msg else ""
    # Scalars (ndim 0) broadcast; other shapes must be equal.
    if left.shape != right.shape and left.ndim and right.ndim:
        raise AssertionError(f"{headline}shapes differ: x is {left.shape}, y is {right.shape}")
    left, right = np.broadcast_arrays(left, right)
    difference = _difference(left, right)
    bad = ~_close(right, difference, limits)
    if bad.any():
        raise AssertionError(headline + _explain(left, right, difference, bad, limits))


def relative_error(actual: object, reference64: object) -> float:
    """The largest relative error of `actual`, measured against a reference in float64.

    An element's error is |actual - reference| / max(|reference|, mean of |reference|). With the
    mean, elements that cancel to almost zero, for which no computation has a relative accuracy, do
    not decide. If only one side is finite, or the infinities differ, the result is infinity; NaN
    matches NaN. Returns 0.0 for empty arrays. Raises ValueError if the shapes differ.
    """
    left, right = to_comparable(actual), to_comparable(reference64)
    if left.shape != right.shape:
        raise ValueError(f"shapes differ: actual is {left.shape}, reference is {right.shape}")
    difference = _difference(left, right)
    if not difference.any():
        return 0.0
    if not np.isfinite(difference).all():
        return float("inf")
    magnitude = _magnitude(right)
    finite = np.isfinite(magnitude)
    # without infinities, which would make the mean infinite
    scale = np.maximum(magnitude, magnitude[finite].mean())
    # If both are 0, the quotient would be 0 / 0.
    wrong = difference > 0
    with np.errstate(divide="ignore"):
        return float((difference[wrong] / scale[wrong]).max())


@dataclass(frozen=True, slots=True)
class _Limits:
    atol: float
    rtol: float

    def allowed(self, right: Comparable) -> Floats:
        """The tolerated difference of each element; none if y is not finite."""
        magnitude = _magnitude(right)
        # An infinite y would allow any difference.
        relative = np.where(np.isfinite(magnitude), magnitude, 0.0) * self.rtol
        return self.atol + relative

    def __str__(self) -> str:
        return f"atol={self.atol:g} + rtol={self.rtol:g} * |y|"


def _resolve(tolerance: Tolerance, default: float, x: object) -> float:
    if tolerance is None:
        return default
    return float(tolerance(dtype_of(x))) if callable(tolerance) else float(tolerance)


def _close(right: Comparable, difference: Floats, limits: _Limits) -> Bools:
    # An infinite difference is never close, whatever the tolerance.
    return np.isfinite(difference) & (difference <= limits.allowed(right))


def _difference(left: Comparable, right: Comparable) -> Floats:
    """|left - right|; 0 for equal infinities and two NaN, infinity if only one is finite."""
    if left.dtype.kind in "biu" and right.dtype.kind in "biu":
        return _integer_difference(left, right)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(np.subtract(left, right))
    # inf - inf is a NaN, though both are equal.
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    return np.where(same, 0.0, np.nan_to_num(distance, nan=np.inf, posinf=np.inf))


def _integer_difference(left: Comparable, right: Comparable) -> Floats:
    """|left - right| of integers: exact up to the last step for equal signs, since uint64 wraps."""
    # The difference of opposite signs may need 65 bits: add the magnitudes in float64.
    opposite = np.less(left, 0) != np.less(right, 0)
    with np.errstate(over="ignore"):
        forward = np.subtract(left.astype(np.uint64), right.astype(np.uint64))
        backward = np.subtract(right.astype(np.uint64), left.astype(np.uint64))
    # NumPy compares int64 with uint64 by value.
    exact = np.where(np.greater_equal(left, right), forward, backward).astype(np.float64)
    return np.where(opposite, _magnitude(left) + _magnitude(right), exact)


def _magnitude(values: Comparable) -> Floats:
    if values.dtype.kind in "biu":
        values = values.astype(np.float64)
    return np.abs(values)


def _explain(
    left: Comparable, right: Comparable, difference: Floats, bad: Bools, limits: _Limits
) -> str:
    # The element that exceeds its limit most, which need not have the largest difference.
    excess = np.where(bad, difference - limits.allowed(right), -np.inf)
    worst = np.unravel_index(int(excess.argmax()), excess.shape)
    first = np.unravel_index(int(bad.argmax()), bad.shape)
    count = int(bad.sum())
    lines = [
        f"{count} of {bad.size} elements differ ({count / bad.size:.3%}) by more than {limits}",
        f"  worst{_element(left, right, difference, worst)}",
    ]
    if count > 1:
        lines.append(f"  first{_element(left, right, difference, first)}")
    return "\n".join(lines)


def _element(
    left: Comparable, right: Comparable, difference: Floats, index: tuple[np.intp, ...]
) -> str:
    position = f" at [{', '.join(str(int(i)) for i in index)}]" if index else ""
    x, y = left[index].item(), right[index].item()
    return f"{position}: x = {x!r}, y = {y!r}, difference {float(difference[index]):.6g}"
