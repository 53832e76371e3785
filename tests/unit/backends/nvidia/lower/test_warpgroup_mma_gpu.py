"""Products of warpgroups on a GPU: every way of addressing and every type, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.backends.nvidia.lower.wgmma_cases import (
    CASES,
    PARAMETERS,
    Case,
    assembled,
    lowering_state,
    module_text,
    operands,
    store_sums,
)
from tests.unit.layout.wgmma_reads import element_addresses
from tilewright.backends.nvidia.driver.event_timer import DeviceMemory
from tilewright.backends.nvidia.driver.gpu_launcher import NvidiaLauncher
from tilewright.backends.nvidia.lower.warpgroup_mma import emit_wgmma
from tilewright.ir.types import DType
from tilewright.layout import LANE, REGISTER, WARP, LinearLayout, operand_layout
from tilewright.llvm import Val, llvm_type

pytestmark = pytest.mark.gpu

_CHUNK = 16  # bytes that a thread copies at once


def kernel(case: Case, image_bytes: int) -> str:
    """Copies the image of shared memory, multiplies once, and stores the sums."""
    state = lowering_state(case)
    code = state.code
    own = code.let_here(f"mul i32 %tid, {_CHUNK}", "i32")
    for start in range(0, image_bytes, _CHUNK * 32 * case.warps):
        at = code.let_here(f"add i32 {own}, {start}", "i32")
        source = code.let_here(f"getelementptr i8, ptr addrspace(1) %image, i32 {at}", "ptr")
        chunk = code.let_here(f"load <4 x i32>, ptr addrspace(1) {source}", "<4 x i32>")
        target = code.let_here(f"getelementptr i8, ptr addrspace(3) @memory, i32 {at}", "ptr")
        code.line(f"store {chunk.typed}, ptr addrspace(3) {target}")
    # wgmma reads shared memory by a proxy of its own.
    state.asm("fence.proxy.async.shared::cta;", "~{memory}", "void")
    state.asm("bar.sync 0;", "~{memory}", "void")
    a, b = operands(state, case, Val("0", "i32"))
    zeros = [Val("0", llvm_type(case.types[2]))] * case.result.in_size(REGISTER)
    store_sums(state, case, emit_wgmma(state, case.block, zeros, a, b, accumulate=False))
    return module_text(state, f"{PARAMETERS}, ptr addrspace(1) %image")


def encoded(values: np.ndarray, dtype: DType) -> np.ndarray:
    """Small integers in a type, as its bytes along a new last axis."""
    if dtype.is_fp8 or dtype.name == "bf16":
        # All bits of f32 but those that small integers have: cut off, or rebiased.
        single = values.astype(np.float32).view(np.uint32)
        if dtype.name == "bf16":
            raw = (single >> 16).astype(np.uint16)
        else:
            exponent = (single >> 23 & 0xFF).astype(np.int64) - 127 + dtype.bias
            fraction = single >> (23 - dtype.mantissa) & ((1 << dtype.mantissa) - 1)
            raw = (single >> 31 << 7 | exponent << dtype.mantissa | fraction).astype(np.uint8)
            raw = np.where(values == 0, 0, raw).astype(np.uint8)
    else:
        names = {"f16": np.float16, "f32": np.float32, "i8": np.int8, "u8": np.uint8}
        raw = values.astype(names[dtype.name])
    return np.ascontiguousarray(raw).view(np.uint8).reshape(*values.shape, -1)


def thread_coordinates(layout: LinearLayout, warps: int) -> np.ndarray:
    """The coordinates of each register of each thread."""
    count = layout.in_size(REGISTER)
    places = [
        layout.apply(**{REGISTER: r, LANE: lane, WARP: warp})
        for warp in range(warps)
        for lane in range(32)
        for r in range(count)
    ]
    return np.array(places).reshape(32 * warps, count, 2)


def image_of(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Shared memory: A, then B, as their layouts say."""
    m, n, k = case.shape
    size = case.bits // 8
    whole = _CHUNK * 32 * case.warps
    image = np.zeros(-(-(m + n) * k * size // whole) * whole, np.uint8)
    # Rows of B are columns of the tile, as in `element_addresses`.
    sides = [("b", b.T, 0, 1, m * k * size)]
    if case.a_dim is not None:
        sides.append(("a", a, 1, 0, 0))
    for name, values, k_dim, type_, start in sides:
        at = element_addresses(case.operand(name)[0], k_dim, size) + start
        image[at[..., None] + np.arange(size)] = encoded(values, case.types[type_])
    return image


def on_device(values: np.ndarray) -> DeviceMemory:
    memory = DeviceMemory(values.nbytes, 0)
    memory.write(values.tobytes())
    return memory


@pytest.mark.parametrize("name", CASES)
def test_products_are_exact(name: str) -> None:
    case = CASES[name]
    m, n, k = case.shape
    rng = np.random.default_rng(1)
    a = rng.integers(0 if case.types[0].name == "u8" else -4, 5, (m, k))
    b = rng.integers(0 if case.types[1].name == "u8" else -4, 5, (k, n))
    image = image_of(case, a, b)
    registers = np.zeros(16, np.uint8)
    if case.a_dim is None:
        at = thread_coordinates(operand_layout(case.fragment, case.result, "a", k), case.warps)
        registers = encoded(a[at[..., 0], at[..., 1]], case.types[0])
    sums = {"f32": np.float32, "f16": np.float16, "i32": np.int32}[case.types[2].name]
    out = on_device(np.full(m * n, 99, sums))
    metadata = {"name": "k", "num_warps": case.warps, "shared": len(image), "num_ctas": 1}
    cubin = assembled(kernel(case, len(image))).cubin
    parameters = ["ptr<u8>", "ptr<u8>", "ptr<u8>"]
    launcher = NvidiaLauncher(cubin, metadata, parameters, blocking=True)
    launcher.launch((1, 1, 1), (on_device(registers), out, on_device(image)))
    at = thread_coordinates(case.result, case.warps)
    wanted = (a @ b)[at[..., 0], at[..., 1]].reshape(-1)
    np.testing.assert_array_equal(np.frombuffer(out.read(), sums), wanted)
