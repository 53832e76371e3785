"""Tensor maps: which loads have one, and what it says."""

import json
import re
from typing import Any

import pytest

import tilewright.language as tl
from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import jit
from tilewright.backends.nvidia.tensor_map_sources import swizzle_of
from tilewright.backends.nvidia.tensor_maps import LaunchNumber, TensorMapSource
from tilewright.ir.types import BufferType, f8e4m3, f16
from tilewright.layout import shared_row_major, shared_swizzled

SOURCE = TensorMapSource(
    0, (LaunchNumber(3, 2, 4), LaunchNumber(None, 64)), (LaunchNumber(4),), (64, 32), "f16", 2, 64
)


def test_sources_are_read_again_from_the_metadata() -> None:
    assert TensorMapSource.from_plain(json.loads(json.dumps(SOURCE.plain()))) == SOURCE


def test_numbers_of_a_launch() -> None:
    assert [number.of([10, 11, 12, 13]) for number in SOURCE.dims] == [15 // 4, 64]
    assert LaunchNumber(1).of([7, 8]) == 8


@pytest.mark.parametrize("width", [32, 64, 128])
def test_swizzled_buffers_are_filled_by_boxes(width: int) -> None:
    layout = shared_swizzled((64, 64), 16, width)
    assert swizzle_of(BufferType((64, 64), f16, layout, 3)) == width


def test_other_buffers_are_not() -> None:
    assert swizzle_of(BufferType((64, 64), f16, shared_row_major((64, 64)))) is None
    across = shared_swizzled((64, 64), 16, 128, order=(0, 1))
    assert swizzle_of(BufferType((64, 64), f16, across)) is None
    assert swizzle_of(BufferType((8, 16), f8e4m3, shared_row_major((8, 16)))) is None


@jit
def product(
    x, y, c, M, N, K, stride, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    PADDING: tl.constexpr, SHIFT: tl.constexpr,
):  # fmt: skip
    a = tl.make_tensor_descriptor(x + SHIFT, [M, K], [stride, 1], [BM, BK], PADDING)
    b = tl.make_tensor_descriptor(y, [K, N], [N, 1], [BK, BN])
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([0, k]), b.load([k, 0]), acc)
    i, j = tl.arange(0, BM), tl.arange(0, BN)
    tl.store(c + i[:, None] * BN + j[None, :], acc)


def copies(types: str = "i32/16", capability: int = 90, **words: Any) -> tuple[int, int]:
    """Arrays that the copy engine copies, and copies by threads, in the code of a kernel."""
    options = {"BM": 64, "BN": 64, "BK": 64, "PADDING": "zero", "SHIFT": 0, **words}
    signature = f"*fp16/16 *fp16/16 *fp32/16 i32/16 i32/16 i32/16 {types}"
    ptx = str(compiled(product, signature, capability, **options).asm["ptx"])
    maps = len(re.findall(r"\.param \.align 64 \.b8 \w+\[128\]", ptx))
    assert (maps > 0) == ("cp.async.bulk.tensor" in ptx)
    return maps, ptx.count("cp.async.c")


@needs_ptxas
def test_described_arrays_are_copied_by_the_copy_engine() -> None:
    assert copies() == (2, 0)


@needs_ptxas
@pytest.mark.parametrize(
    "changed",
    [{"capability": 80}, {"num_stages": 1}, {"BM": 32}, {"BN": 128, "BK": 512}],
    ids=["sm_80", "1", "32 rows", "large"],
)
def test_others_are_loaded_through_pointers(changed: dict[str, Any]) -> None:
    """No copy engine; nothing is loaded ahead; warps multiply; blocks that do not fit twice."""
    assert copies(**changed)[0] == 0


@needs_ptxas
@pytest.mark.parametrize(
    "changed",
    [{"types": "i32"}, {"PADDING": "nan"}, {"SHIFT": 8}],
    ids=["rows start anywhere", "padding", "computed base"],
)
def test_one_of_two_is_loaded_through_pointers(changed: dict[str, Any]) -> None:
    arrays, by_threads = copies(**changed)
    assert arrays == 1
    # Copies by threads want aligned rows, too, and fill with zeros alone.
    assert (by_threads > 0) == ("SHIFT" in changed)


# ---- stores --------------------------------------------------------------------------------------


@jit
def stored(x, y, z, M, N, stride, BM: tl.constexpr, BN: tl.constexpr, KIND: tl.constexpr):
    c = tl.make_tensor_descriptor(z, [M, N], [stride, 1], [BM, BN])
    i, k, j = tl.arange(0, BM), tl.arange(0, 64), tl.arange(0, BN)
    left = tl.load(x + i[:, None] * 64 + k[None, :])
    block = tl.load(y + k[:, None] * BN + j[None, :])
    if KIND == "sum":
        c.atomic_add([0, 0], block)
    elif KIND == "loaded":
        c.store([0, 0], block)
    else:
        c.store([0, 0], tl.maximum(tl.dot(left, block), 0).to(tl.float16))


def bulk_stores(types: str = "i32/16", capability: int = 90, **words: Any) -> int:
    """Blocks that the copy engine stores."""
    options = {"BM": 64, "BN": 64, "KIND": "product", "num_warps": 4, **words}
    signature = f"*fp16/16 *fp16/16 *fp16/16 i32/16 i32/16 {types}"
    ptx = str(compiled(stored, signature, capability, **options).asm["ptx"])
    return len(re.findall(r"async\.bulk\.tensor\.2d\.global", ptx))


@needs_ptxas
def test_fragments_and_reductions_are_stored_by_the_copy_engine() -> None:
    assert [bulk_stores(), bulk_stores(KIND="sum"), bulk_stores(capability=120)] == [1, 1, 1]
    assert bulk_stores(BN=128) == 2


@needs_ptxas
@pytest.mark.parametrize(
    "changed",
    [{"types": "i32"}, {"KIND": "loaded"}, {"capability": 80}],
    ids=["rows start anywhere", "wide lines of threads", "sm_80"],
)
def test_other_blocks_are_stored_by_threads(changed: dict[str, Any]) -> None:
    assert bulk_stores(**changed) == 0
