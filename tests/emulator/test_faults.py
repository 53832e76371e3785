"""The emulator sees faults that are planted: barriers, waits and dependences that are left out."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.emulator import machine
from tests.emulator.machine import Kernel, run_program
from tests.emulator.memory import EmulationError
from tests.kernels.devices import EmulatedNvidia
from tilewright import jit, settings
from tilewright.backends.nvidia.buffer_ops import WaitOp
from tilewright.backends.nvidia.passes.insert_shared_barriers import InsertSharedBarriers
from tilewright.backends.nvidia.schedule import schedule_loop
from tilewright.ir import Function, Op, Rewriter
from tilewright.ops import BarrierOp

Array = np.ndarray[Any, Any]


@jit
def product(a, b, n, STAGES: tl.constexpr):
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    acc = tl.zeros((32, 32), tl.float32)
    for s in tl.range(0, n, num_stages=STAGES):
        acc = tl.dot(tl.load(a + s * 1024 + tile), tl.load(b + s * 1024 + tile), acc)
    return acc


@jit
def two_products(a, b, c, d, n):
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    tl.store(c + tile, product(a, b, n, 3))
    tl.store(d + tile, product(b, a, n, 2))


@jit
def exchanges(a, b, c, d, n):
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    x = tl.trans(tl.load(a + tile)).to(tl.float32)
    for _ in range(n):
        x = tl.trans(x) - tl.sum(tl.max(x, 0), 0)
        x = tl.cumsum(x, 0)
    tl.store(c + tile, x)


@jit
def gathered(a, b, c, d, n):
    i = tl.arange(0, 1024)
    x = tl.load(a + i).to(tl.float32)
    for s in range(n):
        x = tl.gather(x, i ^ s, 0)
    tl.store(c + i, x)


@jit
def shifted(a, b, c, d, n):
    """Threads meet in global memory only."""
    i = tl.arange(0, 1024)
    for _ in range(n):
        tl.store(c + i + 3, tl.load(c + i + 1))


@jit
def exact(a, b, c, d, n):
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    x, y = tl.load(a + tile).to(tl.float32), tl.load(b + tile).to(tl.float32)
    for _ in range(n):
        x = tl.dot(x, y, input_precision="ieee")
    tl.store(c + tile, x)


@jit
def ranked(a, b, c, d, n):
    i = tl.arange(0, 256)
    x = tl.load(a + i).to(tl.int32)
    for s in range(n):
        x = tl.sort(x ^ s)
        # relaxed: the emulator does not see what a release is ordered after
        added = tl.atomic_add(d, 1.0, sem="relaxed")
        x = tl.gather(x, x & 255, 0) + added.to(tl.int32)
        x += tl.sum(tl.histogram(x & 63, 64) * tl.arange(0, 64))
    tl.store(c + i, x)


@jit
def where_largest(a, b, c, d, n):
    """Two tiles are reduced together, in one exchange."""
    i = tl.arange(0, 512)
    x = tl.load(a + i).to(tl.float32)
    for s in range(n):
        place = tl.argmax(x, 0)
        x = tl.where(i == place, x - s, x) + tl.sum(x, 0)
    tl.store(c + i, x)


KERNELS = [two_products, exchanges, gathered, shifted, exact, ranked, where_largest]


def left_by(kernel: Any, seed: int | None = None) -> Array:
    """What a kernel leaves in c and d."""
    rng = np.random.default_rng(0)
    device = EmulatedNvidia(seed)
    a, b = (device.array(rng.integers(-2, 3, (5, 32, 32)), np.float16) for _ in range(2))
    c, d = (device.array(np.arange(2048), np.float32) for _ in range(2))
    with settings().cache.scope(always_compile=True):
        device.run(kernel, (1,), a, b, c, d, 5)
    return np.stack([c, d])


def run(kernel: Any, seed: int | None = None) -> Array:
    """What a new kernel leaves, which is compiled again."""
    return left_by(jit(kernel.fn), seed)


def barriers(function: Function) -> list[Op]:
    return [op for op in function.walk() if isinstance(op, BarrierOp)]


@contextmanager
def afterwards(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Function], None]
) -> Iterator[None]:
    """A block in which the last pass over tile IR is followed by a change."""
    insert = InsertSharedBarriers.run

    def changed(self: InsertSharedBarriers, function: Function) -> bool:
        insert(self, function)
        change(function)
        return True

    # The verifier would find the fault first: here the emulator is to.
    with monkeypatch.context() as patched, settings().compilation.scope(verify=False):
        patched.setattr(InsertSharedBarriers, "run", changed)
        yield


def number_of_barriers(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    counted: list[int] = []
    with afterwards(monkeypatch, lambda function: counted.append(len(barriers(function)))):
        run(kernel)
    return counted[0]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.fn.__name__)
def test_every_barrier_is_missed(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And so there is none too many."""
    total = number_of_barriers(kernel, monkeypatch)
    assert total >= 2
    for number in range(total):
        without = lambda f, n=number: Rewriter.erase(barriers(f)[n])  # noqa: E731
        with afterwards(monkeypatch, without), pytest.raises(EmulationError):
            run(kernel)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.fn.__name__)
def test_every_barrier_of_the_code_is_an_op(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    parse = machine.parse
    monkeypatch.setattr(machine, "parse", lambda text: texts.append(text) or parse(text))
    assert number_of_barriers(kernel, monkeypatch) == texts[0].count("bar.sync") >= 2


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.fn.__name__)
def test_results_do_not_depend_on_the_order_of_warps(kernel: Any) -> None:
    compiled = jit(kernel.fn)
    expected = left_by(compiled)
    for seed in range(3):
        np.testing.assert_array_equal(left_by(compiled, seed), expected)


def test_copies_that_nobody_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def later(function: Function) -> None:
        for op in function.walk():
            if isinstance(op, WaitOp):
                op.attrs["pending"] += 1

    for seed in (None, 0):
        with afterwards(monkeypatch, later), pytest.raises(EmulationError):
            run(two_products, seed)


@jit
def chain(a, b, c, d, n):
    """Each iteration loads what the one before has stored: all the same, so nothing shows."""
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    y = tl.load(b + tile)
    for s in range(n - 1):
        x = tl.load(a + s * 1024 + tile)
        tl.store(a + (s + 1) * 1024 + tile, tl.dot(x, y).to(tl.float16))


def test_loads_that_go_ahead_of_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    run(chain)

    monkeypatch.setattr(schedule_loop, "memory_dependences", lambda loop, horizon: [])
    with pytest.raises(EmulationError, match="changed while it was on its way"):
        run(chain)


@jit
def counted(a, b, c, d, n):
    last = n
    for k in tl.range(2**31 - 5 + (n >> 20), 2**31 - 1, 3):
        last = k
    tl.store(c, (last - 2**30).to(tl.float32))


def test_counters_that_are_said_not_to_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    run(counted)
    parse = machine.parse
    monkeypatch.setattr(
        machine, "parse", lambda text: parse(text.replace("= add i32", "= add nsw i32"))
    )
    with pytest.raises(EmulationError, match="promised not to"):
        run(counted)


# --- without a compiler ---------------------------------------------------------------------------

_TEXT = """define ptx_kernel void @k(ptr %x) {
start:
%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
%far = xor i32 %tid, 127
%i = zext i32 %tid to i64
%j = zext i32 %far to i64
%p = getelementptr i32, ptr %x, i64 %i
%q = getelementptr i32, ptr %x, i64 %j
store i32 %tid, ptr %p
BARRIER
%v = load i32, ptr %q
%r = getelementptr i32, ptr %p, i64 128
store i32 %v, ptr %r
ret void
}"""
_BARRIER = 'call void asm sideeffect "bar.sync 0;", "~{memory}"() #1'


def reversed_numbers(text: str, seed: int) -> Array:
    """x[i] = i; y[i] = x[127 - i], without checks for races."""
    x = np.zeros((2, 128), np.int32)
    run_program(Kernel(text, 4, 0), [x.ctypes.data], order=Random(seed))
    return x[1]


def test_warps_go_in_different_orders() -> None:
    right = _TEXT.replace("BARRIER", _BARRIER)
    results = {reversed_numbers(right, seed).tobytes() for seed in range(10)}
    assert results == {np.arange(127, -1, -1, dtype=np.int32).tobytes()}
    wrong = _TEXT.replace("BARRIER\n", "")
    assert len({reversed_numbers(wrong, seed).tobytes() for seed in range(10)}) > 1


def test_barriers_that_some_warps_do_not_reach() -> None:
    text = _TEXT.replace(
        "BARRIER", f"%go = icmp ult i32 %tid, 64\nbr i1 %go, label %a, label %b\na:\n{_BARRIER}\n"
        "br label %b\nb:"
    )  # fmt: skip
    with pytest.raises(EmulationError, match="not all threads reach"):
        reversed_numbers(text, 0)
