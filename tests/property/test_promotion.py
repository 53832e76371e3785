"""Laws that the promotion tables keep."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.frontend import dtype_promotion
from tilewright.frontend.dtype_promotion import OPERATORS as NAMES
from tilewright.frontend.dtype_promotion import common_dtype, promoted_dtype
from tilewright.ir import types as ir

DTYPES = st.sampled_from(ir.all_dtypes())
INTEGERS = st.sampled_from([t for t in ir.all_dtypes() if not t.is_float])
OPERATORS = st.sampled_from(sorted(NAMES))
LITERALS = st.one_of(
    st.booleans(), st.integers(-(2**65), 2**65), st.floats(allow_nan=True, allow_infinity=True)
)


@given(OPERATORS, DTYPES, DTYPES)
def test_the_order_of_operands_does_not_matter(name: str, a: ir.DType, b: ir.DType) -> None:
    forward, backward = promoted_dtype(name, a, b), promoted_dtype(name, b, a)
    # Integers of one width and signedness aside, which are one type, promotion is symmetric.
    assert forward is backward


@given(INTEGERS, INTEGERS)
def test_a_right_shift_has_the_type_of_a_sum(a: ir.DType, b: ir.DType) -> None:
    total, shifted = promoted_dtype("add", a, b), promoted_dtype("rshift", a, b)
    assert total is shifted is not None


@given(DTYPES)
def test_one_dtype_promotes_to_itself(a: ir.DType) -> None:
    assert promoted_dtype("common", a, a) is a


@given(OPERATORS, INTEGERS, INTEGERS)
def test_integers_never_shrink(name: str, a: ir.DType, b: ir.DType) -> None:
    result = promoted_dtype(name, a, b)
    if result is not None and not result.is_float:
        assert result.bits >= max(a.bits, b.bits)
        assert result in (a, b)


@given(INTEGERS, INTEGERS, INTEGERS)
def test_integer_promotion_is_associative(a: ir.DType, b: ir.DType, c: ir.DType) -> None:
    left, right = common_dtype(common_dtype(a, b), c), common_dtype(a, common_dtype(b, c))
    assert left.bits == right.bits


@given(DTYPES, DTYPES)
def test_division_gives_floats_of_32_bits_or_more(a: ir.DType, b: ir.DType) -> None:
    result = promoted_dtype("truediv", a, b)
    assert result is None or (result.is_float and result.bits >= 32)


@given(DTYPES, DTYPES)
def test_bits_and_whole_quotients_are_for_integers(a: ir.DType, b: ir.DType) -> None:
    for name in ("and", "or", "xor", "lshift", "rshift", "floordiv"):
        result = promoted_dtype(name, a, b)
        assert result is None or not (a.is_float or b.is_float or result.is_float)


@given(DTYPES, DTYPES)
def test_a_float_operand_gives_a_float(a: ir.DType, b: ir.DType) -> None:
    result = promoted_dtype("common", a, b)
    if result is not None:
        assert result.is_float == (a.is_float or b.is_float)


@given(LITERALS)
def test_literals_fit_the_dtype_that_they_have(value: float) -> None:
    found = dtype_promotion.literal_dtype(value)
    if found is None:
        assert isinstance(value, int) and not -(2**63) <= value < 2**64
    else:
        assert dtype_promotion.fits(value, found) and dtype_promotion.is_weak(value, found)


@given(LITERALS, DTYPES)
def test_weak_literals_do_not_change_the_dtype(value: float, dtype: ir.DType) -> None:
    if dtype_promotion.is_weak(value, dtype):
        assert promoted_dtype("add", dtype, dtype) is dtype


@given(DTYPES)
def test_sums_and_extrema_keep_their_kind(a: ir.DType) -> None:
    total, peak = dtype_promotion.sum_dtype(a), dtype_promotion.extremum_dtype(a)
    assert total.is_float == a.is_float == peak.is_float
    assert total.bits >= a.bits and peak.bits >= 32


def test_floats_below_32_bits_are_not_associative() -> None:
    """bf16 beside an integer is fp32, so the order of three operands can matter; as in Triton."""
    first = promoted_dtype("common", ir.bf16, ir.i8)
    assert first is not None and promoted_dtype("common", first, ir.bf16) is ir.f32
    assert promoted_dtype("common", ir.f8e4m3, ir.i32) is None
