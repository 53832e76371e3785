"""Launches by machine code do what those by Python do, and leave to it what they must."""

import ctypes
import functools
import gc
import itertools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tilewright.backends import DirectLaunch
from tilewright.runtime import JITFunction, jit
from tilewright.runtime.launch.native_dispatch_structures import PROBES, SLOTS
from tilewright.runtime.launch_hooks import launch_enter
from tilewright.support import errors

FACTOR = 3


def new_scale() -> JITFunction:
    @jit
    def scale(out, x, n, factor=2, BLOCK: tl.constexpr = 4):  # pyright: ignore[reportArgumentType]
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, i < n) * factor, i < n)

    return scale


def new_sizes() -> JITFunction:
    """Writes its arguments' effects where a test can see which variant ran."""

    @jit
    def sizes(out, n, x):
        tl.store(out, n)
        tl.store(out + 1, tl.num_programs(0) * 100 + tl.num_programs(1) * 10 + tl.num_programs(2))

    return sizes


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Launches that Python makes: `settle` wraps the launches of a kernel from Python."""
    seen: list[str] = []
    yield seen


def settle(kernel: JITFunction, launch: Callable[[], Any], seen: list[str]) -> None:
    """Launch until machine code does it; further launches by Python go to `seen`."""
    python = kernel.launch_compiled

    def counted(*args: Any, **words: Any) -> Any:
        seen.append("python")
        return python(*args, **words)

    kernel.launch_compiled = counted
    for _ in range(4):
        launch()
    seen.clear()
    launch()
    assert seen == [], "machine code does not make this launch"


def test_launches_like_earlier_ones_are_made_without_python(slow: list[str]) -> None:
    scale = new_scale()
    x, out = np.arange(8, dtype="f"), np.zeros(8, "f")
    settle(scale, lambda: scale[(2,)](out, x, 8), slow)
    for n, grid in itertools.product((8, 8), ((2,), 2, (2, 1), (2, 1, 1))):
        out[:] = -1
        kernel = scale[grid](out, x, n)
        assert (out == 2 * x).all()
        assert kernel is next(iter(scale.variant_cache.by_key.values())).kernel
    assert slow == []


def test_keywords_and_options(slow: list[str]) -> None:
    scale = new_scale()
    x, out = np.arange(8, dtype="f"), np.zeros(8, "f")

    def launch() -> None:
        scale[(1,)](out, n=8, x=x, BLOCK=8, factor=3.5, num_warps=2)

    settle(scale, launch, slow)
    out[:] = 0
    launch()
    assert (out == 3.5 * x).all()
    out[:] = 0
    scale[(1,)](out, n=8, x=x, BLOCK=8, factor=4.5, num_warps=2)
    assert (out == 4.5 * x).all()
    assert slow == []
    scale[(1,)](out, n=8, x=x, BLOCK=8, factor=4.5, num_warps=4)
    assert slow == ["python"]


NUMBERS = (
    *(0, 1, 2, 4, 8, 12, 16, 24, 1000, -1, -4, -8, -16, -24),
    *(2**31 - 1, 2**31 - 8, 2**31, 2**31 + 8, -(2**31), -(2**31) + 8, -(2**31) - 8),
    *(2**40, 2**40 + 1, 2**40 + 8, -(2**62), -(2**62) - 8, -(2**63) + 8, 2**63 - 8),
)


def test_defaults_are_passed_as_words(slow: list[str]) -> None:
    @jit
    def write(out, n=-3, small=0.1, huge=1e300, yes=True, wide=1 << 40):  # pyright: ignore[reportArgumentType]
        tl.store(out, n)
        tl.store(out + 1, small)
        tl.store(out + 2, huge)
        tl.store(out + 3, yes)
        tl.store(out + 4, wide)

    out = np.zeros(5)
    settle(write, lambda: write[(1,)](out), slow)
    assert out.tolist() == [-3, np.float32(0.1), np.inf, 1, 1 << 40]
    out[:] = 0
    settle(write, lambda: write[(1,)](out, small=7.5), slow)
    assert out.tolist() == [-3, 7.5, np.inf, 1, 1 << 40]
    assert slow == []


def test_integers_choose_the_variant_that_python_chooses() -> None:
    """Each number is launched often enough to be learnt, then all are launched again."""
    sizes, x = new_sizes(), np.zeros(4, "f")
    kernels: dict[int, Any] = {}
    for _, n in itertools.product(range(3), NUMBERS):
        out = np.zeros(2, "i8")
        kernel = sizes[(1,)](out, n, x)
        assert out[0] == n
        assert kernels.setdefault(n, kernel) is kernel
    python = new_sizes()
    for n in NUMBERS:
        made = python.launch_compiled((1,), np.zeros(2, "i8"), n, x)
        assert made is not None
        assert made.asm["ttir"] == kernels[n].asm["ttir"]


def test_alignment_dtype_and_writability_choose_the_variant() -> None:
    scale = new_scale()
    base = np.zeros(64, "f")
    out = np.zeros(64, "f")
    start = (-base.ctypes.data % 16) // 4
    aligned, odd = base[start : start + 8], base[start + 1 : start + 9]
    double, frozen = np.zeros(8), np.zeros(8, "f")
    frozen.flags.writeable = False
    found = [
        [scale[(2,)](out, x, 8).asm["ttir"] for x in (aligned, odd, double, frozen)]
        for _ in range(5)
    ]
    assert all(row == found[0] for row in found)
    assert len(set(found[0][:3])) == 3
    for _ in range(3):
        with pytest.raises(errors.ReadOnlyArray):
            scale[(2,)](frozen, aligned, 8)


@pytest.mark.torch
def test_torch_tensors(slow: list[str]) -> None:
    torch = pytest.importorskip("torch")
    scale = new_scale()
    x, out = torch.arange(8.0), torch.zeros(8)
    settle(scale, lambda: scale[(2,)](out, x, 8), slow)
    for other in (x.double(), x.half(), torch.arange(9.0)[1:], torch.nn.Parameter(x)):
        for _ in range(3):
            out.zero_()
            scale[(2,)](out, other.detach(), 8)
            assert (out == 2 * other).all()
    slow.clear()
    parameter = torch.nn.Parameter(x)
    for _ in range(4):
        scale[(2,)](out, parameter, 8)
    slow.clear()
    scale[(2,)](out, parameter, 8)
    assert slow == []
    with pytest.raises(errors.DeviceMismatch):
        scale[(2,)](out, torch.empty(8, device="meta"), 8)
    scale[(2,)](out, torch.empty(0), 0)


def test_a_callable_grid_sees_all_arguments(slow: list[str]) -> None:
    scale = new_scale()
    x, out = np.arange(8, dtype="f"), np.zeros(8, "f")
    seen: list[dict[str, Any]] = []

    def grid(meta: dict[str, Any]) -> tuple[int, ...]:
        seen.append(meta)
        return (meta["n"] // meta["BLOCK"],)

    def launch() -> None:
        scale[grid](out, x, n=8, num_warps=2)

    settle(scale, launch, slow)
    out[:] = 0
    launch()
    assert (out == 2 * x).all()
    meta = seen[-1]
    assert meta.pop("out") is out and meta.pop("x") is x
    assert meta == {"n": 8, "factor": 2, "BLOCK": 4, "num_warps": 2}


def test_what_a_callable_grid_raises_reaches_the_caller(slow: list[str]) -> None:
    scale = new_scale()
    x, out = np.arange(8, dtype="f"), np.zeros(8, "f")

    def grid(meta: dict[str, Any]) -> Any:
        if bad:
            raise ZeroDivisionError("mine")
        return (2,)

    bad = False
    settle(scale, lambda: scale[grid](out, x, 8), slow)
    bad = True
    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        scale[grid](out, x, 8)
    assert [entry.name for entry in caught.traceback][-1] == "grid"


@pytest.mark.parametrize(
    "grid", [(-1,), (1, 2, 3, 4), (), "x", (1.5,), (2**31,), (2**70,), [2, -1], (0, -1)]
)
def test_bad_grids(slow: list[str], grid: object) -> None:
    sizes, out, x = new_sizes(), np.zeros(2, "i8"), np.zeros(4, "f")
    settle(sizes, lambda: sizes[(1,)](out, 5, x), slow)
    for given in (grid, lambda meta: grid):
        with pytest.raises(errors.BadGrid) as caught:
            sizes[given](out, 5, x)
        assert [entry.name for entry in caught.traceback] == ["test_bad_grids"]


@pytest.mark.parametrize("grid", [0, (0,), (2, 0), (0, 3, 1), (1, 1, 0), [0], np.int64(0)])
def test_empty_grids_launch_nothing(slow: list[str], grid: Any) -> None:
    sizes, out, x = new_sizes(), np.zeros(2, "i8"), np.zeros(4, "f")
    settle(sizes, lambda: sizes[(1,)](out, 5, x), slow)
    out[:] = 0
    for given in (grid, lambda meta: grid):
        assert sizes[given](out, 5, x) is not None
    assert out.tolist() == [0, 0]
    assert bool(slow) == (type(grid) not in (int, tuple))


def test_grid_functions_that_cannot_be_called(slow: list[str]) -> None:
    sizes, out, x = new_sizes(), np.zeros(2, "i8"), np.zeros(4, "f")
    settle(sizes, lambda: sizes[(1,)](out, 5, x), slow)
    for grid in (lambda: (1,), lambda meta, n: (1,), functools.partial(lambda: (1,))):
        with pytest.raises(errors.BadCallback, match="the grid function cannot be called"):
            sizes[grid](out, 5, x)


@pytest.mark.parametrize("grid", [[2, 3], (np.int64(2), 3), [2, 3, 1]])
def test_unusual_grids(slow: list[str], grid: object) -> None:
    sizes, out, x = new_sizes(), np.zeros(2, "i8"), np.zeros(4, "f")
    settle(sizes, lambda: sizes[(1,)](out, 5, x), slow)
    for given in (grid, lambda meta: grid):
        out[:] = 0
        sizes[given](out, 5, x)
        assert out.tolist() == [5, 231]


def test_grids_of_three_axes(slow: list[str]) -> None:
    sizes, out, x = new_sizes(), np.zeros(2, "i8"), np.zeros(4, "f")
    settle(sizes, lambda: sizes[(1, 1, 2)](out, 5, x), slow)
    sizes[(2, 3, 4)](out, 5, x)
    assert out[1] == 234
    sizes[3](out, 5, x)
    assert out[1] == 311
    assert slow == []


def test_a_changed_global_is_refused(slow: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    @jit
    def constant(out):
        tl.store(out, FACTOR)

    out = np.zeros(1, "i8")
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(3))
    settle(constant, lambda: constant[(1,)](out), slow)
    assert out[0] == 3
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(4))
    with pytest.raises(errors.ChangedGlobal):
        constant[(1,)](out)


def test_hooks_and_settings_are_seen(slow: list[str]) -> None:
    scale = new_scale()
    x, out = np.arange(8, dtype="f"), np.zeros(8, "f")
    settle(scale, lambda: scale[(2,)](out, x, 8), slow)
    calls: list[str] = []

    def hook(metadata: Any) -> None:
        calls.append(metadata.get()["name"])

    launch_enter.add(hook)
    try:
        scale[(2,)](out, x, 8)
    finally:
        launch_enter.remove(hook)
    assert calls == ["scale"]
    scale.add_pre_run_hook(lambda *args, **words: calls.append("before"))
    scale[(2,)](out, x, 8)
    assert calls == ["scale", "before"]


def test_a_kept_launch_calls_hooks_that_were_added_later(slow: list[str]) -> None:
    scale, x, out = new_scale(), np.arange(4, dtype="f"), np.zeros(4, "f")
    early = scale[(1,)]
    settle(scale, lambda: scale[(1,)](out, x, 4), slow)
    late, calls = scale[(1,)], list[str]()
    scale.add_pre_run_hook(lambda *_, **__: calls.append("hook"))
    for launch in (early, late, scale[(1,)]):
        launch(out, x, 4)
    assert calls == ["hook"] * 3
    scale.pre_run_hooks = [lambda *_, **__: calls.append("assigned")]
    late(out, x, 4)
    assert calls.pop() == "assigned"
    scale.pre_run_hooks.clear()
    slow.clear()
    late(out, x, 4)
    assert (calls, slow) == (["hook"] * 3, [])


def test_compile_time_arguments(slow: list[str]) -> None:
    """By value for numbers, by identity for what cannot change, by Python for the rest."""

    @jit
    def constant(out, VALUE: tl.constexpr):
        tl.store(out, VALUE)

    @jit
    def first(out, LIST: tl.constexpr):
        tl.store(out, LIST[0])

    out = np.zeros(1)
    for value in [0.5, 1, 1.0, True, 7, -3, 1e300, 0.25, int("7"), float("0.5")] * 4:
        constant[(1,)](out, value)
        assert out[0] == value
    changing = [1, 2]
    for number in range(40):
        changing[0] = number % 3
        first[(1,)](out, changing)
        assert out[0] == number % 3


def test_text_made_anew_for_each_launch() -> None:
    @jit
    def named(out, KIND: tl.constexpr):
        if KIND == "one":
            tl.store(out, 1)
        else:
            tl.store(out, 2)

    out = np.zeros(1)
    for number in range(60):
        named[(1,)](out, "".join(["o", "ne"] if number % 2 else ["t", "wo"]))
        assert out[0] == 2 - number % 2
    assert len(named.variant_cache.by_key) == 2


def test_parameters_that_are_not_specialized(slow: list[str]) -> None:
    @jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["m"])
    def numbers(out, n, m):
        tl.store(out, n)
        tl.store(out + 1, m)

    out = np.zeros(2, "i8")
    settle(numbers, lambda: numbers[(1,)](out, 1, 16), slow)
    for n, m in itertools.product((1, 16, 8, 5), (16, 8, 17)):
        numbers[(1,)](out, n, m)
        assert out.tolist() == [n, m]
    assert slow == []
    numbers[(1,)](out, 5, 1)
    assert out.tolist() == [5, 1]
    assert slow == ["python"]


def test_missing_surplus_and_unknown_arguments(slow: list[str]) -> None:
    scale = new_scale()
    x, out = np.arange(8, dtype="f"), np.zeros(8, "f")
    settle(scale, lambda: scale[(2,)](out, x, 8), slow)
    with pytest.raises(errors.MissingArgument):
        scale[(2,)](out, x)
    with pytest.raises(errors.ArgumentCount):
        scale[(2,)](out, x, 8, 2, 4, 5)
    with pytest.raises(errors.UnknownArgument):
        scale[(2,)](out, x, 8, wrong=5)
    with pytest.raises(errors.UnsupportedArgument):
        scale[(2,)](out, {}, 8)
    with pytest.raises(TypeError, match="multiple values"):
        scale[(2,)](out, x, 8, n=8)


def test_errors_of_the_launch_have_no_frames_of_the_library(slow: list[str]) -> None:
    @jit(debug=True)
    def checks(out, n):
        tl.device_assert(n < 5, "n is small")
        tl.store(out, n)

    out = np.zeros(1, "i8")
    settle(checks, lambda: checks[(1,)](out, 3), slow)
    with pytest.raises(errors.DeviceAssertionFailure) as caught:
        checks[(1,)](out, 7)
    assert slow == []
    assert len(caught.traceback) == 1


def test_more_variants_than_places() -> None:
    @jit
    def constant(out, VALUE: tl.constexpr):
        tl.store(out, 1)

    out = np.zeros(1)
    words = [f"word {i}" for i in range(SLOTS // 8 + PROBES)]
    for word in words * 3:
        out[0] = 0
        constant[(1,)](out, word)
        assert out[0] == 1


def test_nothing_is_kept(slow: list[str]) -> None:
    scale = new_scale()
    x, out = np.arange(8, dtype="f"), np.zeros(8, "f")
    settle(scale, lambda: scale[(2,)](out, x, 2**40), slow)
    grid, number = (2,), 2**40
    kernel = scale[grid](out, x, number)
    objects = (x, out, grid, number, kernel, x.dtype, None)
    gc.collect()
    before = [sys.getrefcount(item) for item in objects]
    for _ in range(1000):
        scale[grid](out, x, number)
        scale[lambda meta: grid](out, x, number)
        with pytest.raises(errors.UnsupportedArgument):
            scale[grid](out, {}, number)
    gc.collect()
    after = [sys.getrefcount(item) for item in objects]
    assert all(abs(b - a) < 50 for a, b in zip(before, after, strict=True))


def test_threads_launch_at_once() -> None:
    scale = new_scale()
    wrong: list[int] = []

    def work(index: int) -> None:
        x = np.full(8, index, "f")
        for count in range(200):
            out = np.zeros(8, "f")
            scale[(2,)](out, x, 8 if count % 2 else 7)
            if (out[:7] != 2 * index).any():
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


CONTEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_uint64))


class DirectLauncher:
    """A launcher of a backend with machine code of its own; writes down what it is asked."""

    n_regs = n_spills = 0

    def __init__(self) -> None:
        self.seen: list[tuple[object, ...]] = []
        self.current = 5
        self.error: Exception | None = None
        self._context_of = CONTEXT(self._find_context)

    def _find_context(self, place: Any) -> int:
        place[0] = self.current
        return 0

    def launch(self, grid: tuple[int, int, int], values: Sequence[object]) -> None:
        self.seen.append(("python", *grid, *values))

    def call(self, *args: object) -> None:
        if self.error is not None:
            raise self.error
        self.seen.append(args)

    def direct(self) -> DirectLaunch:
        address = ctypes.cast(self._context_of, ctypes.c_void_p).value
        return DirectLaunch(self.call, 3, self.stream_of, address or 0, 5)

    def stream_of(self, device: int) -> int:
        return 0x5000 + device


@pytest.fixture
def direct() -> tuple[JITFunction, DirectLauncher]:
    """A kernel whose launches go to a DirectLauncher."""
    scale, launcher = new_scale(), DirectLauncher()
    x, out = np.arange(8, dtype="f"), np.zeros(8, "f")
    kernel = scale[(2,)](out, x, 8)
    kernel._here.launcher = launcher
    next(iter(scale.variant_cache.by_key.values())).launch = launcher.launch
    for _ in range(3):
        scale[(2,)](out, x, 8)
    launcher.seen.clear()
    return scale, launcher


def test_direct_launches_get_device_and_stream(
    direct: tuple[JITFunction, DirectLauncher],
) -> None:
    scale, launcher = direct
    x, out = np.arange(8, dtype="f"), np.zeros(8, "f")
    scale[2, 3](out, x, 8)
    passed = (out.ctypes.data, x.ctypes.data, 8, 2)
    assert launcher.seen == [(2, 3, 1, 0x5003, *passed)]
    launcher.current = 6
    scale[2, 3](out, x, 8)
    assert launcher.seen[1:] == [("python", 2, 3, 1, *passed)]


def test_errors_of_direct_launches(direct: tuple[JITFunction, DirectLauncher]) -> None:
    scale, launcher = direct
    x, out = np.arange(8, dtype="f"), np.zeros(8, "f")
    launcher.error = errors.DeviceMismatch("x", "the moon", "the earth")
    with pytest.raises(errors.DeviceMismatch, match="moon") as caught:
        scale[(2,)](out, x, 8)
    assert len(caught.traceback) == 1
    launcher.error = ZeroDivisionError("mine")
    with pytest.raises(ZeroDivisionError) as other:
        scale[(2,)](out, x, 8)
    assert [entry.name for entry in other.traceback][1:] == ["call"]
