"""The limits that the CPU's figures are compared with, and the file that keeps all runs."""

import json
import re

import pytest

from benchmarks.cpu import machine_limits, scaling
from benchmarks.cpu.machine_limits import SIZES, Limits, Sample
from tilewright.llvm import emit_assembly, host_cpu, host_target


@pytest.fixture(scope="module")
def measured() -> Limits:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_limits, "SIZES", SIZES[:2])
        patch.setattr(machine_limits, "SAMPLE_SECONDS", 1e-5)
        return machine_limits.measure_limits((1, 2))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("flow", machine_limits.FLOWS)
def test_every_flow_moves_data_at_some_rate(measured: Limits, flow: str, threads: int):
    sample = measured.bandwidths[flow, threads, SIZES[0]]
    assert 0 < sample.best == max(sample.samples)


@pytest.mark.skipif(not host_cpu().has_fma, reason="the peak is one of fused instructions")
@pytest.mark.parametrize("name", ["fp32", "fp64"])
def test_the_chains_of_a_peak_stay_apart(name: str):
    """LLVM must not find that they are one."""
    text, _ = machine_limits.peak_loops()[name]
    source = "\n".join([*machine_limits.declarations(text), text, "attributes #0 = { nounwind }"])
    multiplied = re.findall(r"v?fmadd\w+|fmla", emit_assembly(source, host_target()))
    assert len(multiplied) >= machine_limits.SUMS


def test_a_bandwidth_between_two_sizes_lies_between_theirs():
    limits = Limits((1,))
    for place, size in enumerate(SIZES):
        limits.bandwidths["copy", 1, size] = Sample(100.0 - place, (100.0 - place,))
    assert limits.bandwidth("copy", 1, SIZES[3]) == pytest.approx(97.0)
    assert 96.0 < limits.bandwidth("copy", 1, SIZES[3] * 3 // 2) < 97.0
    assert limits.bandwidth("copy", 1, 1) == 100.0
    assert limits.bandwidth("copy", 1, 1 << 40) == pytest.approx(101.0 - len(SIZES))


def test_limits_are_plain_data_with_all_samples(measured: Limits):
    data = json.loads(json.dumps(measured.as_json()))
    assert len(data["clock_ghz"]) == 2
    assert all(row["samples"] for row in (*data["bandwidth"], *data["peak"]))
    again = Limits.of_json(data)
    assert (again.bandwidths, again.peaks) == (measured.bandwidths, measured.peaks)


def test_the_last_cache_is_shared_and_the_others_are_each_cores():
    levels = {"L1": 48 << 10, "L2": 1 << 20, "L3": 32 << 20}
    sizes = {40 << 10: "L1", 80 << 10: "L1", 100 << 10: "L2", 2 << 20: "L2", 40 << 20: "DRAM"}
    assert [machine_limits.level_of(size, 2, levels) for size in sizes] == [*sizes.values()]
    assert machine_limits.level_of(80 << 10, 1, levels) == "L2"


def test_the_scalability_law_is_found_again():
    law = scaling.Scaling("x", {}, contention=0.1, coherence=10**-2.5)
    times = {t: 100.0 / law.speedup(t) for t in (1, 2, 4, 8)}
    found = scaling.fitted("x", times)
    assert found.speedup(64) == pytest.approx(law.speedup(64), rel=0.02)
    assert scaling.fitted("y", {1: 10.0, 2: 5.0}).speedup(64) == pytest.approx(64.0)
