"""Arguments that overlap though the kernel does not use them element by element: told once."""

import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright import OverlapWarning, TilewrightWarning
from tilewright.runtime.launch import variant_cache
from tilewright.runtime.launch.overlap_warning import OverlapWatch, overlap

pytestmark = pytest.mark.filterwarnings("default::tilewright.OverlapWarning")


def fresh(function: Any) -> Any:
    """A kernel that has not warned yet."""
    return tilewright.jit(function)


def backwards(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + (n - 1 - i), mask=i < n), mask=i < n)


def doubled(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def of_rows(x, y, x_stride, y_stride, n, B: tl.constexpr):
    i, row = tl.arange(0, B), tl.program_id(0)
    v = tl.load(x + row * x_stride + i, mask=i < n)
    tl.store(y + row * y_stride + i, v * 2, mask=i < n)


def in_tuples(arrays, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(arrays[1] + i, tl.load(arrays[0] + B - 1 - i))


def warned(launch: Any) -> list[str]:
    """The messages of a launch."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        launch()
    assert all(item.category is OverlapWarning for item in told)
    return [str(item.message) for item in told]


def floats(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.fixture(params=["numpy", pytest.param("torch", marks=pytest.mark.torch)])
def buffer(request: pytest.FixtureRequest) -> Iterator[Any]:
    """1024 floats of a library."""
    if request.param == "numpy":
        yield floats(1024)
    else:
        torch = pytest.importorskip("torch")
        yield torch.arange(1024, dtype=torch.float32)


def test_the_warning_names_kernel_and_arguments_and_points_to_the_launch(buffer: Any):
    kernel = fresh(backwards)
    with pytest.warns(OverlapWarning) as told:
        kernel[(1,)](buffer, buffer, 64, B=64)
    (warning,) = told
    assert str(warning.message).startswith(
        "arguments of 'backwards' overlap in memory: 'x' and 'y'."
    )
    assert "hint: pass a copy of one of them" in str(warning.message)
    assert warning.filename == __file__
    assert issubclass(OverlapWarning, TilewrightWarning)


@pytest.mark.parametrize("before", [0, 1, 2, 5])
def test_a_later_launch_is_noticed_and_told_once(buffer: Any, before: int):
    kernel = fresh(backwards)
    for _ in range(before):
        assert not warned(lambda: kernel[(1,)](buffer[:64], buffer[64:128], 64, B=64))
    assert len(warned(lambda: kernel[(1,)](buffer, buffer, 64, B=64))) == 1
    for _ in range(3):
        assert not warned(lambda: kernel[(1,)](buffer, buffer, 64, B=64))


@pytest.mark.parametrize("before", [0, 1, 4])
def test_arrays_that_overlap_partly(buffer: Any, before: int):
    kernel = fresh(backwards)
    for _ in range(before):
        assert not warned(lambda: kernel[(1,)](buffer[:64], buffer[512:], 64, B=64))
    assert warned(lambda: kernel[(1,)](buffer[:80], buffer[64:], 64, B=64))


@pytest.mark.parametrize("swap", [False, True])
def test_longer_views_of_the_same_places(buffer: Any, swap: bool):
    """The addresses are those of launches that were fine."""
    kernel = fresh(backwards)
    places = [buffer[:64], buffer[64:128]]
    longer = [buffer[:128], buffer[64:192]]
    for _ in range(5):
        assert not warned(lambda: kernel[(1,)](*places[:: -1 if swap else 1], 64, B=64))
    assert warned(lambda: kernel[(1,)](*longer[:: -1 if swap else 1], 112, B=128))
    kernel = fresh(backwards)
    for _ in range(5):
        kernel[(1,)](*places[:: -1 if swap else 1], 48, B=64)
    assert warned(lambda: kernel[(1,)](*longer[:: -1 if swap else 1], 64, B=64))


def test_disjoint_views_of_one_array(buffer: Any):
    kernel = fresh(backwards)
    table = buffer.reshape(8, 128)
    for _ in range(5):
        assert not warned(lambda: kernel[(1,)](buffer[:512], buffer[512:], 64, B=64))
        assert not warned(lambda: kernel[(1,)](buffer[512:], buffer[:512], 64, B=64))
        assert not warned(lambda: kernel[(1,)](table[:, :64], table[:, 64:], 64, B=64))
        assert not warned(lambda: kernel[(1,)](table[::2], table[1::2], 64, B=64))


def test_bytes_in_front_of_wider_numbers_are_told_apart_without_python(
    monkeypatch: pytest.MonkeyPatch,
):
    memory, kernel, asked = np.zeros(320, np.uint8), fresh(doubled), list[object]()
    x, y = memory[:64].view(np.int8), memory[64:].view(np.int32)
    for _ in range(5):
        kernel[(1,)](x, y, 64, B=64)
    monkeypatch.setattr(OverlapWatch, "kernel_for", lambda _, k, *given: asked.append(given) or k)
    for n in (48, 32, 16):
        kernel[(1,)](x, y, n, B=64)
    assert not asked
    kernel[(1,)](memory[:65].view(np.int8), y, 64, B=64)
    assert asked


def test_views_that_go_backwards():
    buffer = floats(256)
    kernel = fresh(backwards)
    for _ in range(5):
        assert not warned(lambda: kernel[(1,)](buffer[63::-1], buffer[64:], 1, B=64))
    assert warned(lambda: kernel[(1,)](buffer[128:192], buffer[255::-1], 1, B=64))


def test_empty_arrays_overlap_nothing():
    buffer = floats(64)
    assert not overlap(buffer[:0], buffer)
    assert not overlap(buffer[5:5], buffer[5:5])
    assert overlap(buffer[5:6], buffer[5:5 + 1])  # fmt: skip


def test_work_in_place_element_by_element(buffer: Any):
    kernel, rows = fresh(doubled), fresh(of_rows)
    for _ in range(5):
        assert not warned(lambda: kernel[(4,)](buffer, buffer, 256, B=64))
        assert not warned(lambda: rows[(4,)](buffer, buffer, 64, 64, 60, B=64))
    assert warned(lambda: rows[(4,)](buffer, buffer, 128, 64, 60, B=64))


@pytest.mark.parametrize("before", [0, 3])
def test_a_condition_that_no_longer_holds(buffer: Any, before: int):
    rows = fresh(of_rows)
    for _ in range(before):
        assert not warned(lambda: rows[(2,)](buffer, buffer, 96, 96, 60, B=64))
    assert warned(lambda: rows[(2,)](buffer, buffer, 96, 112, 60, B=64))


def test_arrays_in_tuples(buffer: Any):
    kernel = fresh(in_tuples)
    for _ in range(3):
        assert not warned(lambda: kernel[(1,)]((buffer[:64], buffer[64:]), 64, B=64))
    (message,) = warned(lambda: kernel[(1,)]((buffer, buffer), 64, B=64))
    assert "'arrays_0' and 'arrays_1'" in message


class Address:
    """An array of which only the address is known."""

    is_cpu = True
    device = "cpu"
    dtype: Any = np.dtype("float32")

    def __init__(self, array: Any) -> None:
        self.array = array

    def data_ptr(self) -> int:
        return self.array.__array_interface__["data"][0]


def test_arrays_that_tell_no_extent_overlap_where_they_begin_together():
    buffer, kernel = floats(256), fresh(backwards)
    first, second = Address(buffer), Address(buffer[1:])
    assert not overlap(first, second)
    assert not warned(lambda: kernel[(1,)](first, second, 1, B=64))
    assert warned(lambda: kernel[(1,)](first, first, 1, B=64))


class OnGpu:
    """What CuPy and others tell of an array."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: Any = None) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False), "shape": shape, "strides": strides, "typestr": "<f4",
            "version": 3,
        }  # fmt: skip


def test_arrays_of_other_libraries():
    """Their memory is not touched: none of this is mapped."""
    start = 1 << 40
    first = OnGpu(start, (4, 8))
    assert overlap(first, OnGpu(start + 124, (1,)))
    assert not overlap(first, OnGpu(start + 128, (1,)))
    left, right = OnGpu(start, (4, 4), (32, 4)), OnGpu(start + 16, (4, 4), (32, 4))
    assert not overlap(left, right)
    assert overlap(left, first) and overlap(right, first)


def test_keywords_and_callable_grids(buffer: Any):
    kernel, asked = fresh(backwards), list[int]()

    def grid(meta: Any) -> tuple[int]:
        asked.append(meta["B"])
        return (1,)

    for _ in range(4):
        assert not warned(lambda: kernel[grid](buffer[:64], buffer[64:], n=64, B=64))
    asked.clear()
    assert warned(lambda: kernel[grid](buffer, n=64, B=64, y=buffer))
    assert warned(lambda: fresh(backwards)[grid](y=buffer, x=buffer, n=64, B=64))
    for _ in range(2):
        kernel[grid](buffer, buffer, n=64, B=64)
    assert asked == [64] * 4


def test_warnings_that_are_errors_stop_the_launch():
    buffer, kernel = floats(64), fresh(backwards)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OverlapWarning):
            kernel[(1,)](buffer, buffer, 64, B=64)
    np.testing.assert_array_equal(buffer, floats(64))


def test_what_the_disk_cache_holds_is_watched_too(tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    buffer = floats(64)
    with tilewright.settings().cache.scope(dir=tmp_path):
        assert warned(lambda: fresh(backwards)[(1,)](buffer, buffer, 64, B=64))
        monkeypatch.setattr("tilewright.compiler.run_stages.Run", None)  # nothing is compiled
        assert warned(lambda: fresh(backwards)[(1,)](buffer, buffer, 64, B=64))


def test_threads_that_launch_first_share_one_watch(monkeypatch: pytest.MonkeyPatch):
    class Slow(OverlapWatch):
        def __init__(self, kernel: str) -> None:
            time.sleep(0.05)
            super().__init__(kernel)

    monkeypatch.setattr(variant_cache, "OverlapWatch", Slow)
    kernel, start = fresh(backwards), threading.Barrier(4)

    def watch(_: int) -> OverlapWatch:
        start.wait()
        return kernel.variant_cache.overlaps

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(watch, range(4)))) == 1


def test_compiled_kernels_are_watched_with_their_function(buffer: Any):
    kernel = fresh(backwards)
    compiled = kernel.warmup(buffer, buffer, 64, B=64)
    halves = buffer[:64], buffer[64:128]
    assert not warned(lambda: compiled[(1,)](*halves, 64, 64))
    with pytest.warns(OverlapWarning, match="'x' and 'y'") as warnings_given:
        compiled[(1,)](buffer, buffer, 64, 64)
    assert warnings_given[0].filename == __file__
    assert not warned(lambda: kernel[(1,)](buffer, buffer, 64, B=64))
    kernel = fresh(backwards)
    compiled = kernel[(1,)](*halves, 64, B=64)
    assert len(warned(lambda: compiled[(1,)](buffer, buffer, 64))) == 1
    assert not warned(lambda: compiled.launch(1, 1, 1, buffer, buffer, 64))


def test_the_interpreter_is_right_and_says_nothing():
    buffer, kernel = floats(64), tilewright.jit(interpret=True)(backwards)
    assert not warned(lambda: kernel[(1,)](buffer, buffer, 64, B=64))
    np.testing.assert_array_equal(buffer, floats(64)[::-1])


def sum_of_two(x, y, z, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(z + i, tl.load(x + i, i < n, 0) + tl.load(y + i, i < n, 0), i < n)


def softmax(x, y, x_stride, y_stride, n, B: tl.constexpr):
    i, row = tl.arange(0, B), tl.program_id(0)
    v = tl.load(x + row * x_stride + i, i < n, -float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * y_stride + i, e / tl.sum(e, 0), i < n)


def two_stores(x, y, z, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, i < n, 0)
    tl.store(y + i, v + 1, i < n)
    tl.store(z + i, v * 2, i < n)


def in_steps(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for start in range(0, n, B):
        tl.store(y + start + i, tl.load(x + start + i, start + i < n, 0) + 1, start + i < n)


def transposed(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at, swapped = i[:, None] * B + i[None, :], i[None, :] * B + i[:, None]
    tl.store(y + at, tl.load(x + swapped))


SHIFTED = {
    "sum_of_two": (sum_of_two, lambda b, s: (b, b[s:], b), 63, 64),
    "sum_downwards": (sum_of_two, lambda b, s: (b, b, b[s:]), 63, 64),
    "softmax": (softmax, lambda b, s: (b, b[s:], 64, 64), 300, 512),
    "softmax_downwards": (softmax, lambda b, s: (b[s:], b, 64, 64), 300, 512),
    "two_stores": (two_stores, lambda b, s: (b[512:], b, b[s:]), 200, 256),
    "in_steps": (in_steps, lambda b, s: (b, b[s:]), 200, 64),
    "transposed": (transposed, lambda b, s: (b, b[s:]), 0, 16),
    "backwards": (backwards, lambda b, s: (b, b[s:]), 200, 256),
}


@pytest.mark.parametrize("shift", [1, 4, 16, 32])
@pytest.mark.parametrize("case", SHIFTED)
def test_one_program_loads_before_it_stores(buffer: Any, case: str, shift: int):
    function, arguments, n, block = SHIFTED[case]
    expected = floats(1024) % 31
    tilewright.jit(interpret=True)(function)[(1,)](*arguments(expected, shift), n, B=block)
    kernel = fresh(function)
    for _ in range(4):  # Python launches, then machine code
        np.asarray(buffer)[:] = floats(1024) % 31
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel[(1,)](*arguments(buffer, shift), n, B=block)
        np.testing.assert_allclose(np.asarray(buffer), expected, rtol=1e-6)


def test_programs_warn_of_shifted_views(buffer: Any):
    views = buffer, buffer, buffer[16:]
    assert not warned(lambda: fresh(sum_of_two)[(1,)](*views, 63, B=64))
    kernel = fresh(sum_of_two)
    with pytest.warns(
        OverlapWarning, match="'x' and 'z', 'y' and 'z'. Their equal elements are"
    ) as told:
        kernel[(4,)](*views, 255, B=64)
    assert told[0].filename == __file__
    assert not warned(lambda: kernel[(4,)](*views, 255, B=64))
    assert warned(lambda: fresh(softmax)[(4,)](buffer, buffer[1:], 64, 64, 60, B=64))


def test_views_that_are_apart_or_one_array_are_launched_by_machine_code(
    buffer: Any, monkeypatch: pytest.MonkeyPatch
):
    kernel, table, asked = fresh(sum_of_two), buffer.reshape(8, 128), list[object]()
    places = (
        (buffer[:256], buffer[256:512], buffer[512:]), (buffer[:256],) * 3,
        (table[:, :64], table[:, :64], table[:, 64:]),
    )  # fmt: skip
    for _ in range(4):
        for views in places:
            assert not warned(lambda views=views: kernel[(2,)](*views, 60, B=32))
    unwatched = OverlapWatch.kernel_for
    monkeypatch.setattr(
        OverlapWatch, "kernel_for", lambda *given: asked.append(given) or unwatched(*given)
    )
    for views in places:  # the last one is known not to overlap
        kernel[(2,)](*views, 60, B=32)
    assert not asked


def test_a_compiled_kernel_is_in_order_too(buffer: Any):
    compiled = fresh(sum_of_two).warmup(buffer, buffer, buffer, 63, B=64)
    expected = floats(1024)
    expected[1:64] = 2 * floats(63)
    for _ in range(2):
        np.asarray(buffer)[:] = floats(1024)
        compiled[(1,)](buffer, buffer, buffer[1:], 63, 64)
        np.testing.assert_array_equal(np.asarray(buffer), expected)


def test_tuned_kernels_are_watched(buffer: Any):
    configs = [tilewright.Config({"B": 64}), tilewright.Config({"B": 128})]
    kernel = tilewright.autotune(configs, key=["n"])(fresh(backwards))
    for _ in range(4):
        assert not warned(lambda: kernel[(1,)](buffer[:64], buffer[64:128], 64))
    assert len(warned(lambda: kernel[(1,)](buffer, buffer, 64))) == 1


@pytest.mark.parametrize("block, stride", [(64, 64), (32, 70)])
@pytest.mark.parametrize("shift", [0, 64, 128, 256, 300])
def test_arrays_may_overlap_where_the_launch_does_not_use_them(
    buffer: Any, shift: int, block: int, stride: int
):
    """Of the buffer and a part of it, 4 programs use a row each, of 256 elements at most."""
    view, kernel, expected = buffer[shift:], fresh(of_rows), floats(1024)
    for row in range(4):
        first = row * stride
        expected[shift + first : shift + first + block] = 2 * floats(1024)[first : first + block]
    told = warned(lambda: kernel[(4,)](buffer, view, stride, stride, block, B=block))
    assert bool(told) == (0 < shift < 256)
    if not told:
        np.testing.assert_array_equal(np.asarray(buffer), expected)
        assert not warned(lambda: kernel[(4,)](buffer, view, stride, stride, block, B=block))


def gathered_rows(x, y, index, n, B: tl.constexpr):
    row = tl.load(index + tl.program_id(0))
    i = row * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i) * 2)


def test_addresses_that_are_loaded_may_be_anywhere(buffer: Any):
    index = np.zeros(2, np.int32)
    table = index if isinstance(buffer, np.ndarray) else buffer.new_zeros(2).int()
    assert warned(lambda: fresh(gathered_rows)[(2,)](buffer, buffer[512:], table, 0, B=64))
