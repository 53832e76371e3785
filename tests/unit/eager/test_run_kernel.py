"""Kernels that run as Python: results, Python's own functions, literals in loops, options."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

import numpy as np
import pytest

import tilewright.language as tl
from tilewright.eager import run_kernel
from tilewright.frontend.semantics import FrontendOptions
from tilewright.interp import run_function
from tilewright.ir.types import PointerType, f32, i32
from tilewright.language import device_function
from tilewright.support import errors, settings

GLOBAL = tl.constexpr(3)


@device_function
def twice(x, factor: tl.constexpr = 2):
    return x * factor.value


@device_function
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0)
    x += twice(y)
    tl.store(out_ptr + offsets, x, mask=mask)


def test_vector_add():
    x, y = np.random.default_rng(0).normal(size=(2, 100)).astype(np.float32)
    out = np.zeros_like(x)
    arguments = {"x_ptr": x, "y_ptr": y, "out_ptr": out, "n": 100, "BLOCK": tl.constexpr(32)}
    run_kernel(vector_add, (4,), arguments)
    assert np.array_equal(out, x + y * np.float32(2))


@device_function
def matmul(a, b, c, m, n, k, **META):
    rows = tl.program_id(0) * META["M"] + tl.arange(0, META["M"])
    columns = tl.program_id(1) * META["N"] + tl.arange(0, META["N"])
    inner = tl.arange(0, META["K"])
    pa = a + rows[:, None] * k + inner[None, :]
    pb = b + inner[:, None] * n + columns[None, :]
    acc = tl.zeros((META["M"], META["N"]), tl.float32)
    for _ in range(0, k, META["K"]):
        acc += tl.dot(tl.load(pa), tl.load(pb))
        pa += META["K"]
        pb += META["K"] * n
    tl.store(c + rows[:, None] * n + columns[None, :], acc)


def test_matmul_with_meta_parameters():
    rng = np.random.default_rng(1)
    a, b = (
        rng.normal(size=(32, 64)).astype(np.float16),
        rng.normal(size=(64, 32)).astype(np.float16),
    )
    c = np.zeros((32, 32), np.float32)
    arguments = {"a": a, "b": b, "c": c, "m": 32, "n": 32, "k": 64, "M": 16, "N": 16, "K": 32}
    run_kernel(matmul, (2, 2), arguments)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5)


@device_function
def early_return(out, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    tl.store(out + pid, pid + 1)


def test_early_return():
    out = np.zeros(8, np.int32)
    run_kernel(early_return, (8,), {"out": out, "n": 5})
    assert out.tolist() == [1, 2, 3, 4, 5, 0, 0, 0]


def test_one_program_by_argument_or_setting():
    out = np.zeros(8, np.int32)
    run_kernel(early_return, (8,), {"out": out, "n": 5}, pid=(2,))
    assert out.tolist() == [0, 0, 3, 0, 0, 0, 0, 0]
    with settings().interpreter.scope(program_id=(1, 0, 0)):
        run_kernel(early_return, (8,), {"out": out, "n": 5})
    assert out.tolist() == [0, 2, 3, 0, 0, 0, 0, 0]
    with pytest.raises(errors.InterpreterError, match="has no program"):
        run_kernel(early_return, (8,), {"out": out, "n": 5}, pid=(8,))


@device_function
def python_functions(x, out, n, seen: tl.constexpr):
    v = tl.load(x + tl.arange(0, 4))
    seen.value["min"] = min(n, 3)
    seen.value["max of tiles"] = max(v, 2.0, -v)
    seen.value["host"] = (min(1, 2), max([3, 4]), abs(-5), len((1, 2)), sum((1, 2)))
    seen.value["abs"] = abs(-v)
    seen.value["len"] = len(v)
    seen.value["float"] = float(tl.sum(v)) + float("inf")
    seen.value["int"] = int(n)
    seen.value["kinds"] = (isinstance(n, tl.tensor), isinstance(3, tl.constexpr))
    seen.value["chained"] = bool(0 < n < 100)
    seen.value["chosen"] = "many" if n > 3 and n < 100 else "few"
    seen.value["indexed"] = (10, 20, 30, 40, 50, 60, 70, 80)[n]
    seen.value["text"] = f"{n} {float(n):.1f}"
    seen.value["global"] = v * GLOBAL
    tl.store(out + tl.arange(0, 4), v)


def test_python_functions_on_tensors():
    x, out, seen = np.array([-1, 5, 2, -9], np.float32), np.zeros(4, np.float32), {}
    run_kernel(python_functions, (1,), {"x": x, "out": out, "n": 7, "seen": tl.constexpr(seen)})
    assert repr(seen["min"]) == "tensor(3, i32)"
    assert seen["max of tiles"].handle.data.tolist() == [2, 5, 2, 9]
    assert seen["host"] == (1, 4, 5, 2, 3)
    assert seen["abs"].handle.data.tolist() == [1, 5, 2, 9]
    assert seen["len"] == 4 and seen["int"] == 7 and seen["float"] == float("inf")
    assert seen["kinds"] == (True, True)
    assert seen["chained"] and seen["chosen"] == "many" and seen["indexed"] == 80
    assert seen["text"] == "tensor(7, i32) 7.0"
    assert seen["global"].handle.data.tolist() == [-3, 15, 6, -27]


@device_function
def loops(out, n, seen: tl.constexpr):
    for i in range(n):
        seen.value.append(i.to(tl.int64))
    for i in range(n, 0, -2):
        seen.value.append(i)
    for i in tl.range(2, n, 3, num_stages=2):
        seen.value.append(i)
    for i in tl.static_range(2):
        seen.value.append(i)
    k = 0
    while k < n:
        k += 2
    tl.store(out, k)


def test_loops():
    out, seen = np.zeros(1, np.int32), []
    run_kernel(loops, (1,), {"out": out, "n": 5, "seen": tl.constexpr(seen)})
    values = [int(i.value if isinstance(i, tl.constexpr) else i.handle.data) for i in seen]
    assert values == [0, 1, 2, 3, 4, 5, 3, 1, 2, 0, 1]
    assert [str(i.dtype) for i in seen[:6]] == ["int64"] * 5 + ["int32"]
    assert isinstance(seen[-1], tl.constexpr) and out[0] == 6


@device_function
def accumulate_from_literals(x, out, n):
    total = 0.0
    count = 0
    for i in range(n):
        total += tl.load(x + i)
        count += 1
    again = 0
    while again < n:
        again += 1000
    tl.store(out, total)
    tl.static_assert(total.dtype == tl.float32)
    tl.static_assert(count.dtype == tl.int32)
    tl.static_assert(again.dtype == tl.int32)


def test_literals_that_a_loop_changes_are_tensors_as_for_the_compiler():
    """Sums of float16 that start at 0.0 are float32; as weak literals they would be float16."""
    x = np.full(3000, 1.0, np.float16)
    out = np.zeros(1, np.float32)
    run_kernel(accumulate_from_literals, (1,), {"x": x, "out": out, "n": 3000})
    assert out[0] == 3000  # float16 stops at 2048


@device_function
def nested_literals(out, n):
    total = 0
    for _ in range(n):
        row = 0
        for j in range(n):
            row += j.to(tl.int8)
        total += row
    tl.store(out, total)


def test_literals_of_inner_loops():
    out = np.zeros(1, np.int32)
    run_kernel(nested_literals, (1,), {"out": out, "n": 30})
    assert out[0] == 30 * sum(range(30))  # as int8 it would wrap


@device_function
def larger(a, b):
    return a if a > b else b


@device_function
def added(a, b):
    return a + b


@device_function
def folds(x, out):
    v = tl.load(x + tl.arange(0, 8))
    tl.store(out, tl.reduce(v, 0, larger))
    tl.store(out + 1, tl.sum(v))
    tl.store(out + 2, tl.max(v, 0))
    tl.store(out + 8 + tl.arange(0, 8), tl.associative_scan(v, 0, added))


def test_combine_functions_may_branch():
    x, out = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.float32), np.zeros(16, np.float32)
    run_kernel(folds, (1,), {"x": x, "out": out})
    assert out[:3].tolist() == [9, 31, 9]
    assert out[8:].tolist() == np.cumsum(x).tolist()


@device_function
def with_optional(x, bias, out, HAS: tl.constexpr, pair):
    v = tl.load(x)
    if bias is not None:
        v += tl.load(bias)
    if HAS:
        v += 100
    tl.store(out, v + pair[0] + pair[1][0])


def test_none_constexprs_and_tuples():
    x, bias, out = np.ones(1, np.float32), np.full(1, 5, np.float32), np.zeros(1, np.float32)
    given = {"x": x, "bias": None, "out": out, "HAS": tl.constexpr(True), "pair": (1, (2.0,))}
    run_kernel(with_optional, (1,), given)
    assert out[0] == 104
    run_kernel(with_optional, (1,), given | {"bias": bias, "HAS": tl.constexpr(None)})
    assert out[0] == 9


@device_function
def says(x):
    tl.device_print("x", tl.load(x))
    tl.device_assert(tl.load(x) > 1, "x is small")


def test_device_print_and_assert():
    lines = []
    run_kernel(says, (1,), {"x": np.ones(1, np.float32)}, write=lines.append)
    assert lines == ["pid (0, 0, 0) idx () x: 1.000000\n"]
    with pytest.raises(errors.DeviceAssertionFailure, match="x is small") as caught:
        run_kernel(says, (1,), {"x": np.ones(1, np.float32)}, FrontendOptions(debug=True))
    assert caught.value.loc is not None
    assert caught.value.loc.function == "says"


@device_function
def closure_kernel_source(out):
    tl.store(out, 1)


def test_closures_are_seen():
    amount = tl.constexpr(41)

    @device_function
    def inner(out):
        tl.store(out, amount + 1)

    out = np.zeros(1, np.int32)
    run_kernel(inner, (1,), {"out": out})
    assert out[0] == 42


def test_tensors_show_their_elements():
    shown = []

    @device_function
    def show(x, n):
        shown.append(repr(x + tl.arange(0, 4)[:, None] * 2 + tl.arange(0, 2)))
        shown.append(repr(tl.load(x + tl.arange(0, 4))))
        shown.append(repr(n))
        shown.append(repr(n.to(tl.pointer_type(tl.int8))))

    run_kernel(show, (1,), {"x": np.array([1.5, 2, 3, 4], np.float32), "n": 2**40})
    assert shown[1] == "tensor([1.5 2.  3.  4. ], f32, shape=(4,))"
    assert shown[2] == "tensor(1099511627776, i64)"
    assert shown[3] == "tensor(0x10000000000, ptr<i8>)"
    first = shown[0].splitlines()
    assert (
        first[0] == "tensor(x + [[0 1]"
        and first[-1] == "            [6 7]], ptr<f32>, shape=(4, 2))"
    )


def test_long_loops_keep_no_old_values_alive():
    import gc
    import itertools

    from tilewright.interp import ConcreteValue

    steps, counts = itertools.count(), []

    def count_alive():
        if next(steps) in (5, 19):
            counts.append(sum(type(o) is ConcreteValue for o in gc.get_objects()))

    @device_function
    def walk(x, n):
        p = x + tl.arange(0, 4)
        for _ in range(n):
            p += 0
            tl.sum(tl.load(p))
            count_alive()

    run_kernel(walk, (1,), {"x": np.zeros(4, np.float32), "n": 20})
    # One value kept in each iteration would be 15; a collection in between frees a few at once.
    assert counts[1] - counts[0] < 10


def test_the_interpreter_agrees_with_the_compiled_function():
    from tilewright.frontend.python import ArgSpec, KernelSignature, lower_kernel

    pointer = PointerType(f32)
    names = ["x_ptr", "y_ptr", "out_ptr"]
    specs = [ArgSpec(name, "value", pointer) for name in names]
    specs += [ArgSpec("n", "value", i32), ArgSpec("BLOCK", "constexpr", value=32)]
    module = lower_kernel(vector_add, KernelSignature(tuple(specs)), FrontendOptions())
    x, y = np.random.default_rng(0).normal(size=(2, 50)).astype(np.float32)
    eager, lowered = np.zeros_like(x), np.zeros_like(x)
    arguments = {"x_ptr": x, "y_ptr": y, "out_ptr": eager, "n": 50, "BLOCK": tl.constexpr(32)}
    run_kernel(vector_add, (2,), arguments)
    run_function(module.kernel, [x, y, lowered, 50], (2,))
    assert np.array_equal(eager, lowered) and eager.any()
