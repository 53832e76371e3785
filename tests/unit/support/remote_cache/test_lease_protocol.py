"""The protocol of leases with thousands of clients: each variant is compiled once."""

from __future__ import annotations

import pytest

from tests.unit.support.remote_cache.simulation import Pool
from tilewright.support.remote_cache.lease_protocol import LEASE_SECONDS, LONGEST_WAIT


@pytest.mark.parametrize(
    "pool",
    [
        Pool(1000, 3),
        Pool(1000, 3, shuffled=True),
        Pool(1000, 3, spread=0.0),
        Pool(1000, 2, late=1.0),
        Pool(1000, 2, latency=0.05, service=0.0002),
        Pool(200, 2, compile=30.0),
    ],
    ids=["as-is", "shuffled", "at-once", "late-visibility", "slow-server", "long-compile"],
)
def test_each_variant_is_compiled_once(pool: Pool) -> None:
    pool.run()
    assert pool.compiled == {str(variant): 1 for variant in range(pool.variants)}
    assert len(pool.finished) == pool.clients
    assert pool.gave_up == 0


def test_clients_of_a_saturated_server_compile_alone() -> None:
    pool = Pool(1000, 2, service=0.002)
    pool.run()
    assert pool.gave_up > 100
    assert len(pool.finished) == pool.clients
    assert max(pool.finished) < 10


def test_a_lost_holder_is_replaced_by_one_client() -> None:
    pool = Pool(1000, 3, deaths=0.5, seed=4)
    pool.run()
    lost = pool.clients - len(pool.finished)
    assert lost > 0
    # each lost holder leaves one lease, which one other client takes over
    assert pool.compiled.total() == pool.variants + lost
    assert max(pool.finished) < (lost + pool.variants) * (LEASE_SECONDS + 2)


def test_a_client_waits_for_a_limited_time() -> None:
    pool = Pool(20, 1, compile=10 * LONGEST_WAIT)
    pool.run()
    assert pool.compiled["0"] == 20
    assert max(pool.finished) < 12 * LONGEST_WAIT
