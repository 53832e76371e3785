"""Clocks, places, and what kernels know of the machine while they are compiled."""

# pyright: reportAttributeAccessIssue=false

import numpy as np

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import jit


@jit
def clock_kernel(out, steps):
    start = tl.extra.cuda.globaltimer()
    total = 0.0
    for i in range(steps):
        total += tl.sqrt(i.to(tl.float32))
    end = tl.extra.cuda.globaltimer()
    tl.store(out, end - start)
    tl.store(out + 1, tl.extra.cuda.smid().to(tl.int64))
    tl.store(out + 2, total.to(tl.int64))


@jit
def special_registers_kernel(out):
    time = tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], tl.int64, False, 1)
    place = tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], tl.int32, False, 1)
    block = tl.inline_asm_elementwise(
        "{ .reg .u32 count; mov.u32 count, %nctaid.x; mul.lo.u32 count, count, 10;"
        " mov.u32 $0, %ctaid.x; add.u32 $0, $0, count; }",
        "=r", [], tl.int32, True, 1,
    )  # fmt: skip
    row = out + tl.program_id(0) * 3
    tl.store(row, time)
    tl.store(row + 1, place)
    tl.store(row + 2, block)


def test_assembly_without_arguments_reads_special_registers(device: Device):
    out = device.empty((2, 3), np.int64)
    device.run(special_registers_kernel, (2,), out)
    assert (out[:, 0] > 0).all() and (0 <= out[:, 1]).all() and (out[:, 1] < 1024).all()
    assert out[:, 2].tolist() == [20, 21]


def test_the_clock_runs_on(device: Device):
    out = device.empty(3, np.int64)
    device.run(clock_kernel, (1,), out, 20)
    assert out[0] >= 0 and 0 <= out[1] < 1024 and out[2] == int(np.sqrt(np.arange(20.0)).sum())


@jit
def machine_kernel(out, WARPS: tl.constexpr):
    threads: tl.constexpr = tl.extra.cuda.num_threads()
    warps: tl.constexpr = tl.extra.cuda.num_warps()
    tl.extra.cuda.gdc_wait()
    kind = tl.target_info.current_target().backend
    tl.static_assert(kind == ("cuda" if tl.target_info.is_cuda() else "cpu"))
    if tl.target_info.is_cuda():
        tl.static_assert(warps == WARPS)
        tl.static_assert(threads == 32 * WARPS)
        tl.static_assert(tl.target_info.cuda_capability_geq(7, 5))
        tl.static_assert(not tl.target_info.cuda_capability_geq(99))
    else:
        tl.static_assert(threads == 1 and warps == 1)
        tl.static_assert(not tl.target_info.cuda_capability_geq(1))
    tl.static_assert(not tl.target_info.is_hip())
    tl.static_assert(not tl.target_info.is_hip_cdna3() and not tl.target_info.is_hip_cdna4())
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(out, threads)


def test_what_is_known_of_the_machine(device: Device):
    out = device.empty(1, np.int32)
    device.run(machine_kernel, (1,), out, WARPS=2, num_warps=2)
    assert out[0] in (1, 64)
