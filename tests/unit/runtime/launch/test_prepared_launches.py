"""Prepared launches do what the launches do that they were made of, for arrays of their layouts."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tilewright.kernels import matmul
from tilewright.kernels.matmul import _prepared  # pyright: ignore[reportPrivateUsage]
from tilewright.runtime import JITFunction, jit
from tilewright.runtime.launch import native_dispatch, prepared_launches
from tilewright.runtime.launch.prepared_launches import PreparedLaunches
from tilewright.runtime.launch_hooks import launch_enter
from tilewright.support import OverlapWarning, errors, settings

FACTOR = tl.constexpr(2)


class Scaling:
    """out = FACTOR * x + n, by prepared launches; slow: how many were made otherwise."""

    def __init__(self) -> None:
        @jit(debug=True)
        def scale(out_ptr, x_ptr, n, addend, B: tl.constexpr):
            i = tl.arange(0, B)
            x = tl.load(x_ptr + i, i < n)
            tl.device_assert(x >= 0)
            tl.store(out_ptr + i, x * FACTOR + addend, i < n)

        self.kernel: JITFunction = scale
        self.prepared = scale.prepared_launches("x_ptr", "out_ptr", "")
        self.slow = 0

    def __call__(self, x: Any, out: Any, addend: float = 0.5, checks: Any = ()) -> None:
        layouts = self.prepared.launch(x, out, addend)
        if layouts is None:
            return
        self.slow += 1
        grid, args = (1,), (out, x, len(x), addend, 16)
        self.kernel[grid](*args)
        self.prepared.add(layouts, (x, out, addend), grid, args, checks)


@pytest.fixture
def scaling() -> Scaling:
    """Launches of 8 numbers of fp32 are prepared."""
    made, x, out = Scaling(), np.arange(8, dtype="f"), np.zeros(8, "f")
    for _ in range(4):
        made(x, out)
    assert made.slow == 3
    return made


def numbers(count: int, start: int = 0) -> Any:
    """An aligned array."""
    memory = np.zeros(count + start + 4, "f")
    first = (-memory.ctypes.data % 16) // 4 + start
    memory[first : first + count] = np.arange(count)
    return memory[first : first + count]


def layouts_of(prepared: PreparedLaunches, *objects: Any) -> bytes:
    """Those of objects for which no launch is prepared."""
    layouts = prepared.launch(*objects)
    assert layouts is not None
    return layouts


def test_arrays_are_those_of_the_call(scaling: Scaling) -> None:
    scaling.slow = 0
    for _ in range(5):
        x, out = numbers(8) + np.float32(3), numbers(8)
        scaling(x, out)
        assert (out == 2 * x + 0.5).all()
    assert scaling.slow == 0


@pytest.mark.parametrize(
    "x",
    [
        numbers(7),
        numbers(8, 1),
        numbers(16)[::2],
        np.arange(8.0),
        np.arange(8),
        numbers(8)[None][0],
    ],
    ids=["shorter", "unaligned", "strided", "fp64", "int64", "same"],
)
def test_other_layouts_are_other_launches(scaling: Scaling, x: Any) -> None:
    expected = 2.0 * x + 0.5 if x.strides == (x.itemsize,) else None
    for _ in range(4):
        out = numbers(8)
        scaling(x, out)
        if expected is not None:
            assert (out[: len(x)] == expected).all()
    assert scaling.prepared.launch(x, numbers(8), 0.5) is None
    assert scaling.prepared.launch(x, numbers(9), 0.5) is not None


def test_other_numbers_texts_and_objects(scaling: Scaling) -> None:
    x, out = numbers(8), numbers(8)
    for addend in (1.5, -0.0, float("nan")):
        for _ in range(3):
            scaling(x, out, addend)
            np.testing.assert_array_equal(out, 2 * x + np.float32(addend))
    for other in (None, "text", True, 3, [], numbers(8)):
        assert scaling.prepared.launch(x, out, other) is not None
    assert scaling.prepared.launch(x, out) is not None
    assert scaling.prepared.launch(x, out, 0.5, 0.5) is not None
    frozen = numbers(8)
    frozen.flags.writeable = False
    with pytest.raises(errors.ReadOnlyArray):
        scaling(x, frozen)


def test_one_array_as_two(scaling: Scaling) -> None:
    """A launch that was prepared of one array given twice is right for two."""

    @jit
    def add(out_ptr, x_ptr, y_ptr, B: tl.constexpr):
        i = tl.arange(0, B)
        tl.store(out_ptr + i, tl.load(x_ptr + i) + tl.load(y_ptr + i))

    prepared, x, out = add.prepared_launches("x_ptr", "y_ptr", "out_ptr"), numbers(8), numbers(8)
    for _ in range(3):
        add[(1,)](out, x, x, 8)
        prepared.add(layouts_of(prepared, x, x, out), (x, x, out), (1,), (out, x, x, 8))
    y = numbers(8) + np.float32(2)
    assert prepared.launch(x, y, out) is None
    assert (out == x + y).all()


def test_hooks_and_settings(scaling: Scaling) -> None:
    x, out, calls = numbers(8), numbers(8), list[str]()

    def hook(*_: Any, **__: Any) -> None:
        calls.append("hook")

    for hooks in (launch_enter, scaling.kernel.pre_run_hooks):
        hooks.add(hook)
        scaling(x, out)
        hooks.remove(hook)
    assert calls == ["hook", "hook"]
    with settings().compilation.scope(fp_fusion=False):
        assert scaling.prepared.launch(x, out, 0.5) is not None
    assert scaling.prepared.launch(x, out, 0.5) is None


def test_globals_and_further_checks(scaling: Scaling, monkeypatch: pytest.MonkeyPatch) -> None:
    x, out, state = numbers(8), numbers(8), {"threads": 1}
    check: tuple[Callable[[Any], Any], str, int] = (state.get, "threads", 1)
    layouts = layouts_of(scaling.prepared, x, out, 7.5)
    for _ in range(2):
        scaling.prepared.add(layouts, (x, out, 7.5), (1,), (out, x, 8, 7.5, 16), [check])
    assert scaling.prepared.launch(x, out, 7.5) is None
    state["threads"] = 2
    assert scaling.prepared.launch(x, out, 7.5) is not None
    now: tuple[Callable[[Any], Any], str, int] = (state.get, "threads", 2)
    scaling.prepared.add(layouts, (x, out, 7.5), (1,), (out, x, 8, 7.5, 16), [now])
    assert scaling.prepared.launch(x, out, 7.5) is None
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(3))
    with pytest.raises(errors.ChangedGlobal):
        scaling(x, out)


def test_what_a_launch_raises_reaches_the_caller(scaling: Scaling) -> None:
    x, out = numbers(8), numbers(8)
    x[3] = -1
    scaling.slow = 0
    with pytest.raises(errors.DeviceAssertionFailure):
        scaling(x, out)
    assert scaling.slow == 0


def test_overlaps_are_told_of() -> None:
    @jit
    def reverse(out_ptr, x_ptr, B: tl.constexpr):
        i = tl.arange(0, B)
        tl.store(out_ptr + i, tl.load(x_ptr + (B - 1) - i))

    prepared, x = reverse.prepared_launches("x_ptr", "out_ptr"), numbers(32)
    apart, near = (x[:8], x[16:24]), (x[:8], x[4:12])
    for _ in range(3):
        reverse[(1,)](apart[1], apart[0], 8)
        prepared.add(layouts_of(prepared, *apart), apart, (1,), (apart[1], apart[0], 8))
    assert prepared.launch(*apart) is None
    assert prepared.launch(*near) is not None
    with pytest.warns(OverlapWarning):
        reverse[(1,)](near[1], near[0], 8)
    assert prepared.launch(*near) is not None  # another kernel is right for them
    assert prepared.launch(*apart) is None


def test_more_launches_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared_launches, "_MAX_SEEN", 5)
    monkeypatch.setattr(native_dispatch, "_MAX_ENTRIES", 5)
    scaling, x, out = Scaling(), numbers(8), numbers(8)
    for addend in (0.5 + np.arange(40) // 4).tolist() * 3:
        scaling(x, out, addend)
        assert (out == 2 * x + addend).all()
    assert scaling.slow < 120


def test_arrays_that_no_object_is(scaling: Scaling) -> None:
    other = numbers(8)
    x, out = numbers(8), numbers(8)
    for _ in range(3):
        layouts = layouts_of(scaling.prepared, x, out, 3.5)
        scaling.prepared.add(layouts, (x, out, 3.5), (1,), (out, other, 8, 3.5, 16))
    assert scaling.prepared.launch(x, out, 3.5) is not None


def test_products() -> None:
    """Of many layouts in turns, with and without what follows the product."""
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((48, 48), "f") for _ in range(2))
    bias = generator.standard_normal(24, "f")
    layouts = [(a[:32, :40], b[:40, :24]), (a[8:40, 8:], b.T[:40, 1:25])]
    cases = [{}, {"slope": 0.25, "bias": bias}]
    for x, y in layouts * 4:
        for words in cases:
            out = np.full((32, 24), np.nan, "f")
            assert matmul(x, y, out=out, **words) is out
            exact = x.astype("d") @ y + words.get("bias", 0)
            if "slope" in words:
                exact = np.where(exact < 0, exact * words["slope"], exact)
            np.testing.assert_allclose(out, exact, rtol=1e-4, atol=1e-4)
    out = np.zeros((32, 24), "f")
    assert _prepared.launch(*layouts[0], out, None, "", None) is None
    with pytest.raises(ValueError, match="expected one of"):
        matmul(*layouts[0], out=out, activation="tan")


def test_large_products_are_planned_for_the_threads_there_are() -> None:
    a = np.ones((104, 104), "f")
    out = np.zeros_like(a)
    with warnings.catch_warnings(), settings().cpu.scope(threads=1):
        for _ in range(4):
            matmul(a, a, out=out)
        assert _prepared.launch(a, a, out, None, "", None) is None
        settings().cpu.threads = 2
        assert _prepared.launch(a, a, out, None, "", None) is not None
        matmul(a, a, out=out)
        assert _prepared.launch(a, a, out, None, "", None) is None
    assert (out == 104).all()


@pytest.mark.torch
def test_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    scaling = Scaling()
    for offset in (0, 1, 0, 1, 0, 1, 0):
        x, out = torch.arange(9.0)[offset : offset + 8], torch.zeros(8)
        scaling(x, out)
        assert torch.equal(out, 2 * x + 0.5)
    slow = scaling.slow
    scaling(torch.arange(8.0), torch.zeros(8))
    assert scaling.slow == slow
    for other in (
        torch.arange(8.0).double(), torch.arange(16.0)[::2], torch._neg_view(torch.zeros(8)),
        torch.nn.Parameter(torch.zeros(8)), torch.zeros(8, device="meta"), torch.zeros(1, 8),
        torch.zeros(8).to_sparse(), torch.zeros(0),
    ):  # fmt: skip
        assert scaling.prepared.launch(other, torch.zeros(8), 0.5) is not None
