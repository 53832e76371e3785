"""Kernels in LLVM IR for the tests that run on a GPU."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import pytest

from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.driver.cuda_driver import driver
from tilewright.backends.nvidia.driver.gpu_launcher import NvidiaLauncher
from tilewright.ir.types import dtype_named
from tilewright.llvm import emit_assembly, llvm_type
from tilewright.support import settings

needs_gpu = pytest.mark.gpu

THREADS = 128

ADD = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
define ptx_kernel void @add(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %out,
                            i32 %n, float %scale) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %start = mul i32 %b, 128
  %i = add i32 %start, %t
  %inside = icmp slt i32 %i, %n
  br i1 %inside, label %body, label %out.of.range
body:
  %px = getelementptr float, ptr addrspace(1) %x, i32 %i
  %py = getelementptr float, ptr addrspace(1) %y, i32 %i
  %po = getelementptr float, ptr addrspace(1) %out, i32 %i
  %vx = load float, ptr addrspace(1) %px
  %vy = load float, ptr addrspace(1) %py
  %m = fmul float %vy, %scale
  %v = fadd float %vx, %m
  store float %v, ptr addrspace(1) %po
  br label %out.of.range
out.of.range:
  ret void
}
"""
ADD_PARAMETERS = ["ptr<f32>", "ptr<f32>", "ptr<f32>", "i32", "f32"]

SHARED = """
@s = external addrspace(3) global [0 x i8], align 16
define ptx_kernel void @shared(ptr addrspace(1) %out, i32 %at) {
  %p = getelementptr i8, ptr addrspace(3) @s, i32 %at
  store volatile i32 77, ptr addrspace(3) %p
  %v = load volatile i32, ptr addrspace(3) %p
  store i32 %v, ptr addrspace(1) %out
  ret void
}
"""

CLUSTER = """
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.cluster.nctarank()
declare void @llvm.nvvm.griddepcontrol.wait()
define ptx_kernel void @cluster(ptr addrspace(1) %out) {
  call void @llvm.nvvm.griddepcontrol.wait()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %n = call i32 @llvm.nvvm.read.ptx.sreg.cluster.nctarank()
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %b
  store i32 %n, ptr addrspace(1) %p
  ret void
}
"""

WRITE_TO = """
define ptx_kernel void @write_to(i64 %address) {
  %p = inttoptr i64 %address to ptr addrspace(1)
  store i32 1, ptr addrspace(1) %p
  ret void
}
"""


def store_all(kinds: Sequence[str]) -> str:
    """A kernel that stores each scalar argument to 8 bytes of its own."""
    types = [llvm_type(dtype_named(kind)) for kind in kinds]
    parameters = "".join(f"{type_} %a{i}, " for i, type_ in enumerate(types))
    stores = "".join(
        f"  %p{i} = getelementptr i64, ptr addrspace(1) %out, i64 {i}\n"
        f"  store {type_} %a{i}, ptr addrspace(1) %p{i}\n"
        for i, type_ in enumerate(types)
    )
    head = f"define ptx_kernel void @store_all({parameters}ptr addrspace(1) %out)"
    return f"{head} {{\n{stores}  ret void\n}}\n"


@functools.cache
def ptx_of(text: str) -> str:
    return emit_assembly(text, row_for(driver().device(0).capability).target)


def build(
    text: str, name: str, parameters: Sequence[str], maxnreg: int | None = None, **metadata: object
) -> NvidiaLauncher:
    """Compile by the driver and load."""
    cubin = driver().compile_ptx(ptx_of(text), name, 0, maxnreg=maxnreg).cubin
    given = {"name": name, "num_warps": THREADS // 32, "shared": 0, "num_ctas": 1, **metadata}
    blocking = settings().cuda.launch_blocking
    return NvidiaLauncher(cubin, given, parameters, blocking=blocking)
