"""Wrong or awkward arguments on a GPU: an error that names the mistake, or a right result."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tilewright
from tests.unit.backends.nvidia.gpu_kernels import needs_gpu
from tests.unit.backends.nvidia.gpu_tiles import add, copy_2d, count_up, matmul, turned
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.driver.cuda_driver import driver
from tilewright.support import errors

pytestmark = needs_gpu

N = 1000


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def new_add() -> Any:
    """Without any variant yet."""
    return tilewright.jit(add.fn)


def still_works(torch: Any) -> None:
    x, out = torch.randn(N, device="cuda"), torch.zeros(N, device="cuda")
    add[(8,)](x, x, out, N, BLOCK=128)
    assert torch.equal(out, x + x)


# --- memory of somewhere else ---------------------------------------------------------------------


@pytest.mark.parametrize("earlier", ["nothing", "on the GPU", "pinned"])
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_memory_of_the_host(torch: Any, library: str, earlier: str, place: int) -> None:
    kernel = new_add()
    arrays = list(torch.zeros(3, N, device="cuda"))
    if earlier != "nothing":
        good = list(arrays)
        good[place] = torch.zeros(N).pin_memory() if earlier == "pinned" else good[place]
        for _ in range(3):
            kernel[(8,)](*good, N, BLOCK=128)
    arrays[place] = np.zeros(N, "f") if library == "numpy" else torch.zeros(N)
    name = ("x", "y", "out")[place]
    for _ in range(2):
        with pytest.raises(errors.DeviceMismatch) as caught:
            kernel[(8,)](*arrays, N, BLOCK=128)
        assert caught.value.argument == name
        text = str(caught.value)
        assert "is on the CPU" in text or "is on the host" in text
        assert "but the kernel runs on cuda:0" in text
        assert "move all arrays of a launch to one device" in text
    torch.cuda.synchronize()
    still_works(torch)


class Elsewhere:
    """A tensor that says that it is on another device."""

    def __init__(self, tensor: Any, device: str) -> None:
        self._tensor, self.device, self.dtype = tensor, device, tensor.dtype

    def data_ptr(self) -> int:
        return self._tensor.data_ptr()


def test_tensors_of_two_devices(torch: Any) -> None:
    x = torch.zeros(N, device="cuda")
    with pytest.raises(errors.DeviceMismatch, match="'y' is on cuda:7, but .* runs on cuda:0"):
        add[(8,)](x, Elsewhere(x, "cuda:7"), x, N, BLOCK=128)
    with pytest.raises(errors.DeviceMismatch, match="'x' is on meta"):
        add[(8,)](torch.zeros(N, device="meta"), x, x, N, BLOCK=128)
    still_works(torch)


def test_tensors_of_two_gpus(torch: Any) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU")
    x, y = torch.zeros(N, device="cuda:0"), torch.zeros(N, device="cuda:1")
    with pytest.raises(errors.DeviceMismatch, match="'y' is on cuda:1, but .* runs on cuda:0"):
        add[(8,)](x, y, x, N, BLOCK=128)
    with pytest.raises(errors.DeviceMismatch, match="'x' is on cuda:1, but .* runs on cuda:0"):
        add[(8,)](y, y, y, N, BLOCK=128)
    still_works(torch)


# --- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32", "float64"])
def test_pointers_that_are_not_aligned_to_16_bytes(torch: Any, dtype: str) -> None:
    base = (torch.randn(4 * N, device="cuda") * 8).to(getattr(torch, dtype))
    kernel = new_add()
    for shift in (0, 1, 2, 3, 0, 5):
        x, y = base[shift : shift + N], base[2 * N + 7 : 3 * N + 7]
        out = torch.zeros(N + 16, device="cuda", dtype=base.dtype)
        for _ in range(2):
            kernel[(2,)](x, y, out[shift:], N, BLOCK=512)
        assert torch.equal(out[shift : shift + N], x + y)
        assert not out[:shift].any() and not out[shift + N :].any()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_products_of_unaligned_operands(torch: Any, dtype: str) -> None:
    """Operands of products are copied asynchronously where they are aligned."""
    base = torch.randint(-4, 5, (3 * 64 * 128,), device="cuda").to(getattr(torch, dtype))
    for shift in (0, 1, 4, 0):
        a = base[shift : shift + 64 * 128]
        b = base[64 * 128 + 3 * shift :][: 64 * 128]
        out = torch.zeros(64 * 64 + 1, device="cuda")[1:]
        matmul[(1,)](a, b, out, 128, N=64, STEP=32)
        expected = a.view(64, 128).double() @ b.view(128, 64).double()
        assert torch.equal(out.view(64, 64).double(), expected)


VIEWS = {
    "transposed": lambda x: x.T,
    "every third column": lambda x: x[:, ::3],
    "inner part": lambda x: x[3:50, 7:40],
    "repeated row": lambda x: x[5:6].expand(40, -1),
    "repeated element": lambda x: x[5:6, 6:7].expand(17, 19),
    "one column": lambda x: x[:, 4:5],
}


@pytest.mark.parametrize("target", ["whole", "transposed"])
@pytest.mark.parametrize("view", VIEWS)
def test_strides(torch: Any, view: str, target: str) -> None:
    x = VIEWS[view](torch.randn(67, 71, device="cuda"))
    rows, columns = x.shape
    out = torch.zeros(rows, columns, device="cuda")
    if target == "transposed":
        out = torch.zeros(columns, rows, device="cuda").T
    grid = (-(-rows // 16), -(-columns // 32))
    copy_2d[grid](x, out, rows, columns, *x.stride(), *out.stride(), M=16, N=32)
    assert torch.equal(out, x)


# --- grids ----------------------------------------------------------------------------------------


def test_empty_and_impossible_grids(torch: Any) -> None:
    x, out = torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
    for grid in ((0,), (8, 0), (1, 1, 0)):
        for _ in range(2):  # the second launch takes the fast path
            add[grid](x, x, out, N, BLOCK=128)
    for grid in ((-1,), (2**31,), (1, 1, 1, 1), (1.5,)):
        for _ in range(2):
            with pytest.raises(errors.BadGrid):
                add[grid](x, x, out, N, BLOCK=128)
    with pytest.raises(errors.LaunchError, match="65535"):
        add[(1, 65536)](x, x, out, N, BLOCK=128)
    torch.cuda.synchronize()
    assert not out.any()
    still_works(torch)


# --- resources ------------------------------------------------------------------------------------


def test_too_much_shared_memory(torch: Any) -> None:
    limit = row_for(driver().device(0).capability).shared_optin
    x, out = torch.ones(1 << 16, device="cuda"), torch.zeros(1 << 16, device="cuda")
    for _ in range(2):
        with pytest.raises(errors.OutOfResources) as caught:
            turned[(1,)](x, out, N=1 << 16, num_warps=8)
        error = caught.value
        assert error.name == "shared memory" and error.limit == limit < error.required
        assert f"needs {error.required} of shared memory; the limit is {limit}" in str(error)
    assert not out.any()
    still_works(torch)


# --- types ----------------------------------------------------------------------------------------


def test_elements_that_kernels_have_not(torch: Any) -> None:
    x = torch.zeros(N, device="cuda", dtype=torch.complex64)
    with pytest.raises(errors.UnsupportedArgument, match="argument 'x' is a .*complex64"):
        add[(8,)](x, x, x, N, BLOCK=128)


def test_atomics_on_elements_that_have_none(torch: Any) -> None:
    out = torch.zeros(64, device="cuda").to(torch.float8_e5m2)
    with pytest.raises(errors.CompilationError, match="atomic_add on fp8e5") as caught:
        count_up[(1,)](out, BLOCK=64)
    assert "tl.atomic_add(out + i" in str(caught.value)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "int32", "int64"])
def test_atomics_on_every_architecture(torch: Any, dtype: str) -> None:
    """By an instruction where there is one, else by compare and swap: bfloat16 before sm_90."""
    out = torch.zeros(64, device="cuda", dtype=getattr(torch, dtype))
    for _ in range(2):
        count_up[(100,)](out, BLOCK=64)
    assert (out == 200).all()


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn"])
def test_products_of_fp8_on_every_architecture(torch: Any, dtype: str) -> None:
    """By an instruction where there is one, else by that of fp16."""
    a, b = torch.randint(-4, 5, (2, 64, 64), device="cuda").float()
    out = torch.zeros(64, 64, device="cuda")
    kind = getattr(torch, dtype)
    matmul[(1,)](a.to(kind), b.to(kind), out, 64, N=64, STEP=64)
    assert torch.equal(out, (a.double() @ b.double()).float())


# --- faults ---------------------------------------------------------------------------------------

FAULT = """
import time
import torch
from tests.unit.backends.nvidia.gpu_tiles import add, far
from tilewright.backends.nvidia.driver.cuda_errors import KernelFault
from tilewright.backends.nvidia.driver.gpu_launcher import synchronize
x = torch.zeros(1000, device="cuda")
add[(8,)](x, x, x, 1000, BLOCK=128)
far[(2,)](x, 1 << 3)
synchronize()
try:
    far[(3,)](x, 1 << 41)
    print("launched")
    for _ in range(100):  # a GPU that others use too may start it late
        time.sleep(0.2)
        add[(8,)](x, x, x, 1000, BLOCK=128)
    print("no error at all")
except KernelFault as error:
    print(error)
try:
    add[(8,)](x, x, x, 1000, BLOCK=128)
    print("no error again")
except KernelFault as error:
    print("again:", type(error).__name__)
print("alive")
"""


@pytest.mark.parametrize("blocking", [False, True])
def test_an_illegal_address_names_kernel_and_launch(torch: Any, blocking: bool) -> None:
    env = {**os.environ, "TILEWRIGHT_LAUNCH_BLOCKING": str(int(blocking))}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", FAULT], env=env, capture_output=True, text=True)
    assert "alive" in done.stdout, done.stderr
    assert ("launched" in done.stdout) != blocking
    told = next(line for line in done.stdout.splitlines() if "an illegal address" in line)
    one = told.startswith("an access to an illegal address in the launch far[(3, 1, 1)]")
    # A busy GPU may start the launch after later ones were asked for.
    assert one or (not blocking and "latest launches" in told and "far[(3, 1, 1)]" in told), told
    assert "context of this process is lost" in done.stdout
    assert "again: KernelFault" in done.stdout
