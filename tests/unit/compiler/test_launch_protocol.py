"""`CompiledKernel.run`: launches as the code that `torch.compile` generates makes them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.compiler.kernels import ADD, add
from tilewright.backends.cpu.driver import cpu_launcher
from tilewright.compiler import ASTSource, CompiledKernel, compile
from tilewright.support import errors


class Tensor:
    """What of PyTorch's tensors a launch looks at."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def data_ptr(self) -> int:
        return self.array.ctypes.data


def compiled(kernel: Any = add, **values: int) -> CompiledKernel:
    return compile(ASTSource(kernel, ADD, values or {"BLOCK": 16}))


def run(kernel: CompiledKernel, *args: object, grid: tuple[int, int, int] = (3, 1, 1)) -> None:
    kernel.run(*grid, 0, kernel.function, kernel.packed_metadata, None, None, None, *args)


X, Y = np.arange(40, dtype="f"), np.full(40, 2, "f")


@pytest.mark.parametrize("wrap", [Tensor, np.asarray])
@pytest.mark.parametrize("constants", [(16,), ()])
def test_arguments_are_all_or_those_of_run_time(
    wrap: Callable[[Any], Any], constants: tuple[int, ...]
) -> None:
    out = np.zeros(40, "f")
    run(compiled(), wrap(X), wrap(Y), wrap(out), 37, *constants)
    np.testing.assert_array_equal(out[:37], X[:37] + 2)
    assert not out[37:].any()


@tilewright.jit
def constants_between(x, TIMES: tl.constexpr, out, MORE: tl.constexpr, scale):
    tl.store(out, tl.load(x) * TIMES * scale + MORE)


def test_constants_may_stand_between_the_arguments_of_run_time() -> None:
    types = {
        "x": "*fp32", "TIMES": "constexpr", "out": "*fp32", "MORE": "constexpr", "scale": "fp32"
    }  # fmt: skip
    kernel = compile(ASTSource(constants_between, types, {"TIMES": 3, "MORE": 1}))
    x, out = np.full(1, 5, "f"), np.zeros(1, "f")
    for args in [(x, 3, out, 1, 0.5), (x, out, 0.5)]:
        out[:] = 0
        wrapped = [Tensor(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        run(kernel, *wrapped, grid=(1, 1, 1))
        assert out[0] == 8.5


@pytest.mark.parametrize("grid", [(0, 1, 1), (3, 0, 1), (3, 1, 0)])
def test_an_empty_grid_launches_nothing(grid: tuple[int, int, int]) -> None:
    out = np.zeros(40, "f")
    run(compiled(), Tensor(X), Tensor(Y), Tensor(out), 37, 16, grid=grid)
    assert not out.any()


def test_hooks_see_the_metadata_of_the_launch() -> None:
    kernel, out, seen = compiled(), Tensor(np.zeros(40, "f")), []
    told = kernel.launch_metadata((3, 1, 1), 0, Tensor(X), Tensor(Y), out, 37, 16)

    def enter(metadata: Any) -> None:
        seen.append((metadata.get()["name"], out.array.any()))

    def leave(metadata: Any) -> None:
        seen.append((metadata.get()["grid"], out.array.any()))

    kernel.run(3, 1, 1, 0, None, None, told, enter, leave, Tensor(X), Tensor(Y), out, 37, 16)
    assert seen == [("add", False), ((3, 1, 1), True)]


def test_mistakes_are_the_designed_errors() -> None:
    kernel, out = compiled(), Tensor(np.zeros(40, "f"))
    with pytest.raises(errors.UnsupportedArgument, match="#0"):
        run(kernel, "text", Tensor(Y), out, 37, 16)
    with pytest.raises(errors.ArgumentCount):
        kernel[(1,)](Tensor(X))


def test_arguments_that_are_watched_are_looked_at() -> None:
    class Watch:
        seen: list[Any] = []

        def kernel_for(self, kernel: Any, grid: object, arrays: Any, values: object) -> Any:
            self.seen.append(arrays)
            return kernel

    kernel, args = compiled(), (Tensor(X), Tensor(Y), Tensor(np.zeros(40, "f")), 37)
    run(kernel, *args)
    kernel.watch = Watch()  # of a kernel that has run
    run(kernel, *args, 16)
    assert Watch.seen == []  # used element by element
    kernel[(3,)](*args, 16)
    assert Watch.seen == [[*args]]


@tilewright.jit
def assert_small(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.device_assert(tl.load(x + i, i < n, other=0) < 30, "too large")


def test_a_failed_assertion_is_raised() -> None:
    types = {"x": "*fp32", "n": "i32", "B": "constexpr"}
    kernel = compile(ASTSource(assert_small, types, {"B": 16}), options={"debug": True})
    run(kernel, Tensor(X), 20, 16)
    with pytest.raises(errors.DeviceAssertionFailure, match="too large"):
        run(kernel, Tensor(X), 40, 16)
    run(kernel, Tensor(X), 20, 16)


def test_launches_use_as_many_threads_as_torch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    class Torch:
        threads = 1

        def get_num_threads(self) -> int:
            return self.threads

    torch, asked = Torch(), []
    shared_pool = cpu_launcher.shared_pool
    kernel, out = compiled(BLOCK=1), np.zeros(40, "f")
    monkeypatch.setitem(cpu_launcher.sys.modules, "torch", torch)
    monkeypatch.setattr(
        cpu_launcher, "shared_pool", lambda count=0: asked.append(count) or shared_pool(count)
    )
    for threads in (1, 3, 3, 2):
        torch.threads = threads
        out[:] = 0
        run(kernel, Tensor(X), Tensor(Y), Tensor(out), 40, grid=(40, 1, 1))
        np.testing.assert_array_equal(out, X + 2)
    assert [count for count in asked if count] == [1, 3, 2]


def test_a_compiled_kernel_runs_after_pickling(tmp_path: os.PathLike[str]) -> None:
    kernel, out = compiled(), np.zeros(40, "f")
    run(kernel, Tensor(X), Tensor(Y), Tensor(out), 37, 16)
    with tilewright.settings().cache.scope(dir=tmp_path):  # where the disk cache has nothing
        again = pickle.loads(pickle.dumps(kernel))
        out[:] = 0
        run(again, Tensor(X), Tensor(Y), Tensor(out), 37, 16)
        np.testing.assert_array_equal(out[:37], X[:37] + 2)
        assert again.asm["llir"] == kernel.asm["llir"]
        assert (again.hash, again.metadata, again.backend) == (
            kernel.hash, kernel.metadata, kernel.backend
        )  # fmt: skip


def test_a_compiled_kernel_is_revived_from_its_dictionary() -> None:
    """As `torch.compile` does it, which sets what Triton makes anew when a kernel is loaded."""
    state = {**vars(compiled()), "module": None, "function": None, "run": None}
    kernel = CompiledKernel.__new__(CompiledKernel)
    vars(kernel).update(pickle.loads(pickle.dumps(state)))
    out = np.zeros(40, "f")
    kernel._init_handles()
    run(kernel, Tensor(X), Tensor(Y), Tensor(out), 37, 16)
    np.testing.assert_array_equal(out[:37], X[:37] + 2)
    assert kernel.function is not None
