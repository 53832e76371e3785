"""What stores by the copy engine need is missed by the emulator wherever it is left out."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.emulator import machine
from tests.emulator.memory import EmulationError
from tests.kernels.devices import EmulatedNvidia
from tests.kernels.test_bulk_stores import product_in_place
from tilewright import jit, settings

Array = np.ndarray[Any, Any]


@jit
def sums_of_a_loop(x, z, n, N: tl.constexpr):
    """Four passes, of which the third waits for the first."""
    c = tl.make_tensor_descriptor(z, [n, N], [N, 1], [16, N])
    i, j = tl.arange(0, 16), tl.arange(0, N)
    block = tl.load(x + i[:, None] * N + j[None, :])
    for k in range(2):
        c.atomic_add([k, 0], block + k)


def stores_in_place(seed: int | None = None) -> list[Array]:
    device = EmulatedNvidia(seed)
    x, y = device.array(np.ones((64, 64)), np.float16), device.array(np.ones((64, 32)), np.float16)
    z, out = (device.empty((64, 32), np.float32) for _ in range(2))
    kernel = jit(product_in_place.fn)
    device.run(kernel, (1,), x, y, z, out, 64, 32, 64, 32, num_warps=4)
    return [z, out]


def sums(seed: int | None = None) -> list[Array]:
    device = EmulatedNvidia(seed)
    x, z = device.array(np.ones((16, 1024)), np.float32), device.array(np.zeros((17, 1024)), "f")
    device.run(jit(sums_of_a_loop.fn), (1,), x, z, 17, 1024, num_warps=4)
    return [z]


RUNS = [stores_in_place, sums]


def without(pattern: str, number: int) -> Callable[[str], Any]:
    """How to parse a text without the assembly that matches, or the occurrence of that number."""
    parse = machine.parse

    def changed(text: str) -> Any:
        lines = text.splitlines()
        found = [i for i, line in enumerate(lines) if re.search(pattern, line)]
        del lines[found[number]]
        return parse("\n".join(lines))

    return changed


def occurrences(run: Callable[[], Any], pattern: str, monkeypatch: pytest.MonkeyPatch) -> int:
    texts: list[str] = []
    parse = machine.parse
    with monkeypatch.context() as patched, settings().cache.scope(always_compile=True):
        patched.setattr(machine, "parse", lambda text: texts.append(text) or parse(text))
        run()
    return len(re.findall(pattern, texts[-1]))


@pytest.mark.parametrize(
    "pattern", [r"bulk\.wait_group(\.read)? \d", r"fence\.proxy\.async\.global"]
)
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.__name__)
def test_every_wait_and_fence_is_missed(
    run: Callable[[], Any], pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = occurrences(run, pattern, monkeypatch)
    assert count or (run is sums and "fence" in pattern)
    for number in range(count):
        with monkeypatch.context() as patched, settings().cache.scope(always_compile=True):
            patched.setattr(machine, "parse", without(pattern, number))
            with pytest.raises(EmulationError):
                run()


def test_every_fence_of_shared_memory_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = r"fence\.proxy\.async\.shared::cta"
    count = occurrences(sums, pattern, monkeypatch)
    assert count == 4
    for number in range(count):
        with monkeypatch.context() as patched, settings().cache.scope(always_compile=True):
            patched.setattr(machine, "parse", without(pattern, number))
            with pytest.raises(EmulationError, match="without a proxy fence"):
                sums()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.__name__)
def test_results_do_not_depend_on_the_order_of_warps(run: Callable[..., Any], seed: int) -> None:
    for found, expected in zip(run(seed), run(), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_stores_that_are_read_before_they_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine has read its source: that says nothing of what it writes."""
    parse = machine.parse
    changed = lambda text: parse(text.replace("wait_group 0", "wait_group.read 0"))  # noqa: E731
    monkeypatch.setattr(machine, "parse", changed)
    with settings().cache.scope(always_compile=True):
        with pytest.raises(EmulationError, match="where a bulk copy may yet write"):
            stores_in_place()
