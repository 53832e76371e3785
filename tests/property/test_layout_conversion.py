"""Every conversion plan, executed element by element, delivers every element."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.layout.simulate import count_degree, register_file, run_plan
from tests.unit.layout.strategies import conversions
from tilewright.layout import SharedMemory, f2, plan
from tilewright.layout.shared_swizzle import AccessConstraints, compatible, offset_basis

PLANS = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@PLANS
@given(conversions(), st.booleans(), st.booleans())
def test_plans_deliver_and_count_right(conversion, loads: bool, stores: bool):
    src, dst, bits = conversion
    chosen = plan(src, dst, bits, matrix_loads=loads, matrix_stores=stores)
    assert run_plan(chosen, src, dst, bits) == register_file(dst)
    if isinstance(chosen, SharedMemory):
        assert count_degree(chosen.store, src, bits) == chosen.store.degree
        assert count_degree(chosen.load, dst, bits) == chosen.load.degree


@PLANS
@given(conversions())
def test_conflicts_are_accepted_only_for_wider_accesses(conversion):
    """There is always a plan without conflicts; one with conflicts must win by its width."""
    src, dst, bits = conversion
    chosen = plan(src, dst, bits)
    if isinstance(chosen, SharedMemory) and chosen.degree > 1:
        single = bits // 8
        free = sum(side.in_size("register") * (1 + max(1, single // 4)) for side in (src, dst))
        assert chosen.store.cost + chosen.load.cost < free


vectors = st.integers(0, (1 << 9) - 1)


@given(
    st.lists(vectors, min_size=5, max_size=5),
    st.lists(vectors, min_size=5, max_size=5),
    st.integers(0, 2),
    st.integers(0, 3),
)
def test_equal_vectors_never_conflict(one, other, vector_bits: int, size: int):
    """With one vector width on both sides some basis is free of conflicts, and it is found."""
    if vector_bits + size > 4:
        return
    low = f2.extension((*one, *other), f2.unit(9))[:vector_bits]
    served = min(5, 7 - size - len(low))
    demands = [AccessConstraints(len(low), tuple(v), tuple(v[:served])) for v in (one, other)]
    assert compatible(low, *demands)
    basis = offset_basis(low, demands[0], demands[1], 9, size)
    assert f2.rank(basis) == 9 and basis[: len(low)] == low
    high = basis[max(0, 7 - size) :]
    words = basis[: max(0, 2 - size)]
    for demand in demands:
        touched = f2.basis((*low, *words, *demand.phase))
        assert not f2.intersection(high, touched)
