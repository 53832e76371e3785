"""Kernels as objects: they pickle and copy as functions do, and have what functions have."""

# pyright: reportFunctionMemberAccess=false

from __future__ import annotations

import copy
import multiprocessing
import pickle
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.runtime import Config, autotune, heuristics, jit

STEP = 3


@jit
def plain(out, n, scale: tl.constexpr = 2):  # pyright: ignore[reportArgumentType]
    """Doubles."""
    tl.store(out, n * scale)


@heuristics({"SCALE": lambda args: args["n"] + 1})
@autotune([Config({"STEP": 2})], key=[])
@jit
def wrapped(out, n, SCALE: tl.constexpr, STEP: tl.constexpr):
    tl.store(out, n * SCALE * STEP)


@tl.constexpr_function
def three() -> int:
    return 3


class Holder:
    @staticmethod
    @jit
    def kernel(out, n):
        tl.store(out, n + STEP)


def local() -> Any:
    @jit
    def kernel(out, n):
        tl.store(out, n + 1)

    return kernel


def stored(kernel: Any, number: int = 5) -> float:
    out = np.zeros(1)
    kernel[(1,)](out, number)
    return float(out[0])


KERNELS = {
    "plain": (plain, 10),
    "in a class": (Holder.kernel, 8),
    "tuned and computed": (wrapped, 60),
    "local": (local(), 6),
    "in Triton-C": (
        tilewright.c.kernel("__global__ void twice(double *out, int n) { *out = 2 * n; }"), 10
    ),
    "of the library": (tl.cdiv, None),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("used", [False, True])
def test_copies_are_the_kernel_itself(name: str, used: bool) -> None:
    kernel, expected = KERNELS[name]
    if used and expected is not None:
        assert stored(kernel) == stored(kernel) == expected
    assert copy.deepcopy({"kernel": [kernel]})["kernel"][0] is kernel
    assert copy.copy(kernel) is kernel


@pytest.mark.parametrize(
    "kernel", [plain, wrapped, wrapped.fn, wrapped.base_fn, Holder.kernel, three, tl.cdiv]
)
def test_kernels_pickle_by_name(kernel: Any) -> None:
    assert pickle.loads(pickle.dumps(kernel)) is kernel
    assert pickle.loads(pickle.dumps({"a": (kernel,)}))["a"][0] is kernel


def test_local_kernels_pickle_as_local_functions_do() -> None:
    kernel = local()
    with pytest.raises((AttributeError, pickle.PicklingError), match="local"):
        pickle.dumps(kernel)
    rebuild, args = kernel.__reduce__()
    assert stored(rebuild(*args)) == 6


def test_a_kernel_without_its_function_keeps_what_describes_it() -> None:
    """`torch.compile` takes the function away before a worker sends a kernel back."""
    kernel: Any = tilewright.jit(plain.fn)
    kernel.fn = kernel.__globals__ = kernel.used_global_vals = kernel._hash_lock = None
    kernel.repr = str
    again: Any = pickle.loads(pickle.dumps(kernel))
    assert again.fn is again.__globals__ is again.used_global_vals is again._hash_lock is None
    assert (type(again), again.repr) == (tilewright.JITFunction, str)
    assert (again.__name__, again.arg_names) == (kernel.__name__, kernel.arg_names)
    assert again.constexprs == kernel.constexprs
    assert kernel.module == again.module == __name__


def test_kernels_in_c_pickle_by_their_source() -> None:
    source = "__global__ void shifted(double *out, int n) { *out = n + STEP; }"
    kernel = tilewright.c.kernel(source, {"STEP": [4]})
    assert stored(kernel) == 9
    again = pickle.loads(pickle.dumps(kernel))
    assert stored(again) == 9
    assert stored(pickle.loads(pickle.dumps(tilewright.c.kernel(source, {"STEP": 1})))) == 6
    assert pickle.loads(pickle.dumps(kernel.fn)).__name__ == "shifted"


def test_kernels_go_to_other_processes() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.starmap(stored, [(plain, 4), (wrapped, 1)]) == [8.0, 4.0]


def test_a_kernel_has_what_its_function_has() -> None:
    fn = plain.fn
    assert plain.__globals__ is globals()
    assert plain.__code__ is fn.__code__
    assert plain.__defaults__ == (2,)
    assert plain.__kwdefaults__ is None
    assert plain.__closure__ is None
    assert plain.__annotations__ == fn.__annotations__ == {"scale": "tl.constexpr"}
    assert (plain.__name__, plain.__qualname__, plain.__module__) == ("plain", "plain", __name__)
    assert plain.__doc__ == "Doubles."

    @jit
    def closed(out, *, n=STEP):
        tl.store(out, stored_value)

    stored_value = 1
    assert closed.__closure__ is not None
    assert closed.__closure__[0].cell_contents == 1
    assert closed.__kwdefaults__ == {"n": 3}
