"""Launches with tensor descriptors by machine code do what those by Python do."""

import gc
import sys
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.runtime.launch.test_native_dispatch import settle
from tilewright.language import TensorDescriptor
from tilewright.runtime import JITFunction, jit
from tilewright.support import errors


def new_twice() -> JITFunction:
    @jit
    def twice(out, d, row, extra=3):
        """out: the block at a row of d, doubled, and its extents."""
        block = d.load([row, 0]) * 2
        i, j = tl.arange(0, block.shape[0]), tl.arange(0, block.shape[1])
        tl.store(out + i[:, None] * block.shape[1] + j[None, :], block + extra)

    return twice


def array(rows: int, columns: int, dtype: Any = np.float32) -> Any:
    return np.arange(rows * columns).reshape(rows, columns).astype(dtype)


def expected(d: TensorDescriptor, row: int, extra: int = 3) -> Any:
    found = np.zeros(d.block_shape, d.base.dtype)
    part = d.base[row : row + d.block_shape[0], : d.block_shape[1]]
    found[: part.shape[0], : part.shape[1]] = part
    return 2 * found + extra


def assert_doubles(kernel: JITFunction, d: TensorDescriptor, row: int) -> None:
    out = np.full(d.block_shape, -1, d.base.dtype)
    kernel[(1,)](out, d, row)
    np.testing.assert_array_equal(out, expected(d, row))


def test_fields_are_read_at_each_launch() -> None:
    twice, seen = new_twice(), list[str]()
    wide = array(64, 64)
    d = TensorDescriptor.from_tensor(wide[:32, :32], [4, 8])
    out = np.zeros((4, 8), np.float32)
    settle(twice, lambda: twice[(1,)](out, d, 30), seen)
    for part in (wide[:32, :32], wide[8:40, 32:], wide[:31, :28], wide[60:, :4], array(5, 40)):
        other = TensorDescriptor.from_tensor(part, (4, 8))
        for row in (2, 30):
            assert_doubles(twice, other, row)
    assert seen == ["python"] * 2  # other powers of two divide rows of 28 and of 40
    seen.clear()
    d.base, d.shape, d.strides = wide, [32, 32], (128, 1)
    twice[(1,)](out, d, 30)
    np.testing.assert_array_equal(out[:2], 2 * wide[60::2, :8] + 3)
    assert (out[2:] == 3).all()
    d.shape[0] = 31  # pyright: ignore[reportIndexIssue]
    twice[(1,)](out, d, 30)
    np.testing.assert_array_equal(out[0], 2 * wide[60, :8] + 3)
    assert (out[1:] == 3).all()
    assert seen == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("block_shape", (8, 4)),
        ("padding", "nan"),
        ("shape", (32, 31)),
        ("base", array(32, 32, np.float64)),
    ],
)
def test_what_chooses_another_variant(name: str, value: Any) -> None:
    twice, seen = new_twice(), list[str]()
    d = TensorDescriptor.from_tensor(array(32, 32), [4, 8])
    out = np.zeros(64, np.float64)
    settle(twice, lambda: twice[(1,)](out, d, 2), seen)
    before = len(twice.variant_cache.by_key)
    setattr(d, name, value)
    twice[(1,)](out, d, 2)
    assert (seen, len(twice.variant_cache.by_key)) == (["python"], before + 1)
    twice[(1,)](out, d, 2)
    assert seen == ["python"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("strides", (30, 1)),
        ("strides", (-32, 1)),
        ("strides", (1 << 40, 1)),
        ("strides", (32, 2)),
        ("strides", (32,)),
        ("shape", (-1, 32)),
        ("shape", (1 << 31, 32)),
        ("shape", (32, 32, 1)),
        ("block_shape", (4, 0)),
        ("padding", "one"),
        ("base", array(32, 33).reshape(-1)[1:]),
        ("base", None),
    ],
)
def test_mistakes_that_are_made_later(name: str, value: Any) -> None:
    twice = new_twice()
    d = TensorDescriptor.from_tensor(array(32, 32), [4, 8])
    out = np.zeros((4, 8), np.float32)
    settle(twice, lambda: twice[(1,)](out, d, 2), [])
    setattr(d, name, value)
    for _ in range(3):
        with pytest.raises((errors.InvalidDescriptor, errors.UnsupportedArgument)):
            twice[(1,)](out, d, 2)


def test_descriptors_by_keyword_and_callable_grids() -> None:
    twice, seen, grids = new_twice(), list[str](), list[Any]()
    d = TensorDescriptor.from_tensor(array(32, 32), [4, 8])
    out = np.zeros((4, 8), np.float32)

    def grid(meta: dict[str, Any]) -> tuple[int]:
        grids.append((meta["d"] is d, meta["row"], meta["extra"]))
        return (1,)

    settle(twice, lambda: twice[grid](d=d, row=2, out=out), seen)
    assert set(grids) == {(True, 2, 3)}
    np.testing.assert_array_equal(out, expected(d, 2))
    out[:] = 0
    twice[(1,)](out, d, extra=5, row=2)
    np.testing.assert_array_equal(out, expected(d, 2, 5))


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_descriptors_of_any_rank(rank: int) -> None:
    @jit
    def copy(x, y, N: tl.constexpr):
        zero = [0] * N
        y.store(zero, x.load(zero) + 1)

    shape = (2, 3, 3, 2, 8)[-rank:]
    x, y = np.ones(shape, np.float32), np.zeros(shape, np.float32)
    block = [2] * (rank - 1) + [4]
    arguments = [TensorDescriptor.from_tensor(a, block) for a in (x, y)]
    seen = list[str]()
    settle(copy, lambda: copy[(1,)](*arguments, rank), seen)
    assert y[tuple(slice(n) for n in block)].sum() == 2 * np.prod(block) == y.sum()


def test_more_than_machine_code_describes() -> None:
    @jit
    def first(out, a, b, c, d):
        zero = [0, 0, 0, 0, 0]
        tl.store(out, tl.max(a.load(zero) + b.load(zero) + c.load(zero) + d.load(zero)))

    out, x = np.zeros(1, np.float32), np.ones((1, 1, 1, 1, 4), np.float32)
    described = [TensorDescriptor.from_tensor(x, [1, 1, 1, 1, 4]) for _ in range(4)]
    for _ in range(4):
        first[(1,)](out, *described)
    assert out[0] == 4


def test_references_are_balanced() -> None:
    twice = new_twice()
    base, out = array(32, 32), np.zeros((4, 8), np.float32)
    rows, padding = 70_000, "".join(["ze", "ro"])
    d = TensorDescriptor(base, [rows, 32], [32, 1], [4, 8], padding)
    settle(twice, lambda: twice[(1,)](out, d, 2), [])
    watched = (base, d, d.shape, d.strides, d.block_shape, rows, padding, out)
    gc.collect()
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(100):
        twice[(1,)](out, d, 2)
    d.strides = [32, 2]
    for _ in range(100):
        with pytest.raises(errors.InvalidDescriptor):
            twice[(1,)](out, d, 2)
    d.strides = watched[3]
    gc.collect()
    after = [sys.getrefcount(item) for item in watched]
    assert all(abs(a - b) < 20 for a, b in zip(after, before, strict=True))


@pytest.mark.torch
def test_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    twice, seen = new_twice(), list[str]()
    x, out = torch.arange(1024.0).reshape(32, 32), torch.zeros(4, 8)
    d = TensorDescriptor.from_tensor(x, [4, 8])
    settle(twice, lambda: twice[(1,)](out, d, 2), seen)
    d.base = x + 1
    twice[(1,)](out, d, 2)
    assert torch.equal(out, 2 * (x + 1)[2:6, :8] + 3)
    assert seen == []
