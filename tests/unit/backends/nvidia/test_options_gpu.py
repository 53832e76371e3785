"""Launch options, figures of a compiled kernel, CUDA graphs and several GPUs, from a kernel's
source on."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

import tilewright
from tests.unit.backends.nvidia.gpu_kernels import needs_gpu
from tests.unit.backends.nvidia.gpu_tiles import add, matmul, multiply_add, normalize, tell_programs
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.driver.cuda_driver import driver
from tilewright.support import errors

pytestmark = needs_gpu

N = 1024


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def clusters() -> None:
    """Skip where programs have no clusters."""
    if not row_for(driver().device(0).capability).clusters:
        pytest.skip("this GPU has no clusters")


def assert_adds(torch: Any, grid: int = 8, **options: Any) -> Any:
    """Launch, twice as later ones take other paths, and compare; the compiled kernel."""
    x, y = torch.randn(2, grid * 128, device="cuda")
    out = torch.zeros(grid * 128, device="cuda")
    kernel = None
    for _ in range(2):
        kernel = add[(grid,)](x, y, out, grid * 128, BLOCK=128, **options)
        assert torch.equal(out, x + y)
        out.zero_()
    return kernel


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 8, 16])
def test_num_ctas(torch: Any, count: int) -> None:
    clusters()
    for grid in (1, 7, 2 * count):
        kernel = assert_adds(torch, grid=grid, num_ctas=count)
        assert kernel.metadata.num_ctas == count
        assert kernel.packed_metadata[1] == count


def test_each_program_of_a_cluster_runs_once(torch: Any) -> None:
    clusters()
    out = torch.zeros(8, dtype=torch.int32, device="cuda")
    for _ in range(2):
        tell_programs[(7,)](out, num_ctas=4)
    launches, times, programs = 2, 2, 7
    assert out.tolist() == [launches * times * programs * (1 + i) for i in range(7)] + [0]


@pytest.mark.parametrize("option", ["launch_cooperative_grid", "launch_pdl"])
def test_kinds_of_launches(torch: Any, option: str) -> None:
    if option == "launch_pdl":
        clusters()  # of the same architectures
    kernel = assert_adds(torch, **{option: True})
    assert getattr(kernel.metadata, option)


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8, 16])
def test_num_warps(torch: Any, num_warps: int) -> None:
    kernel = assert_adds(torch, num_warps=num_warps)
    assert kernel.metadata.num_warps == num_warps


def test_maxnreg_limits_registers_and_makes_spills(torch: Any) -> None:
    x = torch.rand(8192, device="cuda")
    out = torch.zeros_like(x)
    free = normalize[(1,)](x, out, BLOCK=8192, num_warps=4)
    limited = normalize[(1,)](x, out, BLOCK=8192, num_warps=4, maxnreg=32)
    torch.testing.assert_close(out, x / x.sum())
    assert free.n_regs > 32 and free.n_spills == 0
    assert limited.n_regs <= 32 and (limited.n_spills or 0) > 0
    assert limited.metadata.maxnreg == 32
    assert ".maxnreg 32" in limited.asm["ptx"]


def test_enable_fp_fusion(torch: Any) -> None:
    """(1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, and 0 where the product is rounded."""
    x = torch.full((128,), 1 + 2.0**-12, device="cuda")
    z = torch.full((128,), -(1 + 2.0**-11), device="cuda")
    out = torch.zeros(128, device="cuda")
    fused = multiply_add[(1,)](x, x, z, out, BLOCK=128)
    assert (out == 2.0**-24).all()
    apart = multiply_add[(1,)](x, x, z, out, BLOCK=128, enable_fp_fusion=False)
    assert (out == 0).all()
    assert "fma.rn.f32" in fused.asm["ptx"] and "fma.rn.f32" not in apart.asm["ptx"]
    assert apart.metadata.enable_fp_fusion is False


# --- figures and texts ----------------------------------------------------------------------------


def test_more_than_48_kb_of_shared_memory(torch: Any) -> None:
    a, b = torch.randint(-4, 5, (2, 128, 128), device="cuda").half()
    out = torch.zeros(128, 128, device="cuda")
    kernel = matmul[(1,)](a, b, out, 128, N=128, STEP=128, num_warps=8)
    assert torch.equal(out.double(), a.double() @ b.double())
    assert kernel.metadata.shared > 48 * 1024
    assert kernel.packed_metadata == (8, 1, kernel.metadata.shared)


def test_figures_of_a_kernel(torch: Any) -> None:
    kernel = assert_adds(torch)
    assert kernel.metadata.shared == 0
    assert 0 < kernel.n_regs <= 255 and kernel.n_spills == 0
    assert kernel.metadata.name == "add"
    assert kernel.metadata.target.arch == driver().device(0).capability


def test_texts_of_a_kernel(torch: Any) -> None:
    kernel = assert_adds(torch)
    assert {"ttir", "ttgir", "llir", "ptx", "cubin"} <= set(kernel.asm)
    assert re.search(r"\.entry add\(", kernel.asm["ptx"])
    assert kernel.asm["cubin"].startswith(b"\x7fELF")
    try:
        sass = kernel.asm["sass"]
    except errors.ToolMissing as missing:
        pytest.skip(str(missing))
    assert "LDG" in sass and "FADD" in sass and "STG" in sass and "EXIT" in sass


# --- graphs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("warm", [False, True])
def test_launches_in_a_graph(torch: Any, warm: bool) -> None:
    """Compiled and loaded before or during the capture; replayed with other values."""
    kernel = tilewright.jit(add.fn)
    x, y = torch.randn(2, N, device="cuda")
    middle, out = torch.zeros(2, N, device="cuda")
    if warm:
        kernel[(8,)](x, y, middle, N, BLOCK=128)
        middle.zero_()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel[(8,)](x, y, middle, N, BLOCK=128)
        kernel[(8,)](middle, y, out, N, BLOCK=128)
    torch.cuda.synchronize()
    assert not middle.any() and not out.any()
    for _ in range(3):
        x.normal_()
        graph.replay()
        assert torch.equal(out, (x + y) + y)


def test_a_mistake_during_a_capture_does_not_end_it(torch: Any) -> None:
    x, out = torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
    add[(8,)](x, x, out, N, BLOCK=128)
    out.zero_()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(errors.DeviceMismatch):
            add[(8,)](x, torch.zeros(N), out, N, BLOCK=128)
        add[(8,)](x, x, out, N, BLOCK=128)
    graph.replay()
    assert (out == 2).all()


# --- devices and threads --------------------------------------------------------------------------


def test_threads_launch_at_once(torch: Any) -> None:
    kernel = tilewright.jit(add.fn)
    wrong: list[object] = []

    def work(seed: int) -> None:
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                x = torch.full((N,), float(seed), device="cuda")
                out = torch.zeros_like(x)
                for _ in range(50):
                    kernel[(8,)](x, out, out, N, BLOCK=128)
                if not (out == 50 * seed).all():
                    wrong.append(seed)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_one_kernel_on_every_gpu(torch: Any) -> None:
    count = torch.cuda.device_count()
    if count < 2:
        pytest.skip("there is one GPU")
    kernel = tilewright.jit(add.fn)
    for ordinal in [*range(count), *reversed(range(count))]:
        with torch.cuda.device(ordinal):
            x, y = torch.randn(2, N, device="cuda")
            out = torch.zeros(N, device="cuda")
            for _ in range(2):
                kernel[(8,)](x, y, out, N, BLOCK=128)
                assert out.device.index == ordinal
                assert torch.equal(out, x + y)
                out.zero_()
        assert torch.cuda.current_device() == 0
