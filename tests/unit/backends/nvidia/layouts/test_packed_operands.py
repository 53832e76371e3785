"""Two chained products of fp8: what threads narrow is packed in the order of the second one."""

import re

import pytest

import tilewright.language as tl
from tests.unit.backends.nvidia.compiled import compiled, count
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import jit

pytestmark = needs_ptxas


@jit
def layers(x, a, b, out, n, SIZE: tl.constexpr, ROUNDS: tl.constexpr):
    """out = f(x @ a) @ b for n blocks of columns of a, in rounds of 16 whose order b has."""
    i, k = tl.arange(0, 64), tl.arange(0, SIZE)
    left = tl.load(x + i[:, None] * SIZE + k[None, :])
    acc = tl.zeros((64, SIZE), tl.float32)
    for start in range(0, n, 64):
        j = start + tl.arange(0, 64)
        first = tl.dot(left, tl.load(a + k[:, None] + j[None, :] * SIZE))
        hidden = tl.maximum(first, 0.0)
        if ROUNDS:
            hidden = hidden.reshape(64, 4, 2, 4, 2).permute(0, 1, 3, 2, 4).reshape(64, 64)
        acc = tl.dot(hidden.to(x.dtype.element_ty), tl.load(b + j[:, None] + k[None, :] * n), acc)
    tl.store(out + i[:, None] * SIZE + k[None, :], acc)


@pytest.mark.parametrize("rounds", [True, False])
@pytest.mark.parametrize("stages", [1, 3])
def test_bytes_are_packed_in_order(stages: int, rounds: bool) -> None:
    types = "*fp8e4nv/16 *fp8e4nv/16 *fp8e4nv/16 *fp32/16 i32/16"
    kernel = compiled(layers, types, SIZE=64, ROUNDS=rounds, num_stages=stages)
    text, ptx = str(kernel.asm["ttgir"]), str(kernel.asm["ptx"])
    assert count(kernel, "wgmma.mma_async") > 0 and "mma.sync" not in ptx
    # Bytes that threads exchange, where they must, are no longer words that are taken apart.
    renamed = re.findall(r"nvidia\.convert .*f8e4m3", text)
    assert not (rounds and renamed)
    assert rounds != ("prmt" in ptx)


@jit
def pointer_table(base, offsets, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    address = base.to(tl.int64) + tl.load(offsets + i) * 4
    tl.store(out + i, tl.load(address.to(tl.pointer_type(tl.float32))))


def test_numbers_become_pointers() -> None:
    assert count(compiled(pointer_table, "*fp32 *i64 *fp32", BLOCK=32), "ld.global") > 0
