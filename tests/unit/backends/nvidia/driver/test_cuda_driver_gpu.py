"""The driver itself: what a GPU says, compiles and loads."""

import re

import pytest

from tests.unit.backends.nvidia.gpu_kernels import ADD, needs_gpu, ptx_of
from tilewright.backends.nvidia.arch import ARCHITECTURES, row_for
from tilewright.backends.nvidia.assemble.ptxas import assemble
from tilewright.backends.nvidia.driver.cuda_driver import driver
from tilewright.backends.nvidia.driver.cuda_errors import CudaCallFailed
from tilewright.backends.nvidia.driver.event_timer import CudaEventTimer, DeviceMemory
from tilewright.llvm import emit_assembly
from tilewright.support import errors

pytestmark = needs_gpu

SPILLING_LOADS = "\n".join(f"  %v{i} = load volatile float, ptr addrspace(1) %p" for i in range(64))
SPILLING_STORES = "\n".join(
    f"  store volatile float %v{i}, ptr addrspace(1) %p" for i in reversed(range(64))
)
SPILLING = (
    f"define ptx_kernel void @spilling(ptr addrspace(1) %p) {{\n{SPILLING_LOADS}\n"
    f"{SPILLING_STORES}\n  ret void\n}}\n"
)


def test_device_has_the_limits_of_its_row() -> None:
    device = driver().device(0)
    row = row_for(device.capability)
    assert (device.shared_optin, device.shared_sm) == (row.shared_optin, row.shared_sm)
    assert (device.registers_sm, device.warp_size) == (row.registers_sm, row.warp_size)
    assert device.multiprocessors > 0
    assert re.fullmatch(r"[\w .()-]+", device.name)
    assert 1e11 < device.bandwidth < 1e14


def test_compiled_code_reports_its_registers_and_loads() -> None:
    made = driver().compile_ptx(ptx_of(ADD), "add", 0)
    facts = driver().function_facts(driver().load(made.cubin, "add", 0))
    assert made.report.registers == facts.registers > 0
    assert facts.local_bytes == 0
    assert facts.max_threads == 1024


def test_text_loads_too() -> None:
    function = driver().load(ptx_of(ADD).encode(), "add", 0)
    assert driver().function_facts(function).registers > 0


def test_limit_of_registers_and_spills() -> None:
    made = driver().compile_ptx(ptx_of(SPILLING), "spilling", 0, maxnreg=24)
    facts = driver().function_facts(driver().load(made.cubin, "spilling", 0))
    assert made.report.registers == facts.registers <= 24
    assert facts.local_bytes > 0
    assert made.report.stack > 0, made.log


def test_refused_ptx_shows_the_line() -> None:
    with pytest.raises(errors.PTXASError) as caught:
        driver().compile_ptx(ptx_of(ADD).replace("ld.global", "ld.glubal"), "add", 0)
    assert re.search(r"-> +\d+ \|\s+ld\.glubal", str(caught.value))


def test_code_for_another_architecture() -> None:
    other = next(r for r in ARCHITECTURES.values() if r.capability > driver().device(0).capability)
    cubin = assemble(emit_assembly(ADD, other.target), other.cpu, "add").cubin
    with pytest.raises(CudaCallFailed, match="NO_BINARY_FOR_GPU"):
        driver().load(cubin, "add", 0)


def test_memory_round_trip() -> None:
    memory = DeviceMemory(64, 0)
    memory.fill(7)
    memory.write(b"abc")
    assert memory.read() == b"abc" + b"\7" * 61


def test_pointer_is_that_of_the_device() -> None:
    memory = DeviceMemory(64, 0)
    found = driver().pointer(memory.address)
    assert found is not None and found.on_device and not found.managed and found.device == 0
    assert driver().pointer(id(memory)) is None


def test_timer_measures_what_a_fill_takes() -> None:
    size = 1 << 30
    memory = DeviceMemory(size, 0)
    timer = CudaEventTimer(0)
    memory.fill(1)
    timer.flush_cache()
    start = timer.record()
    memory.fill(2)
    end = timer.record()
    timer.synchronize()
    seconds = timer.elapsed_ms(start, end) / 1e3
    assert 0.3 < size / seconds / driver().device(0).bandwidth < 1.0
    timer.close()
