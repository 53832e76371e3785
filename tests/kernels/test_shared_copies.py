"""Products by clusters of two blocks, each of which copies one half of what both read."""

from typing import Any

import numpy as np
import pytest

from tests.emulator import launch
from tests.kernels.devices import Array, Device, EmulatedNvidia
from tests.kernels.tutorial_matmul import tutorial_matmul
from tilewright import cdiv
from tilewright.kernels.attention import attention_kernel

TILES = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}


def assert_product(
    device: Device, kernel: Any, m: int, n: int, k: int, majors: str = "rows rows", **words: int
) -> Array:
    """Multiply random numbers; rows of 8, 24, 40 ... begin between sectors."""
    random, words = np.random.default_rng(m + n + k), {**TILES, "num_warps": 4, **words}
    left, right = (random.normal(size=s).astype(np.float16) for s in ((m, k), (k, n)))
    a, b = (
        device.array(x.T).T if major == "columns" else device.array(x)
        for x, major in zip((left, right), majors.split(), strict=True)
    )
    c = device.empty((m, n), np.float16)
    strides = [step // 2 for x in (a, b, c) for step in x.strides]
    grid = (cdiv(m, words["BLOCK_M"]) * cdiv(n, words["BLOCK_N"]),)
    device.run(kernel, grid, a, b, c, m, n, k, *strides, EVEN_K=False, **words)
    exact = left.astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_allclose(c.astype(np.float64), exact, rtol=2e-3, atol=3e-2)
    return c


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of each run of the emulator, how many blocks it was."""
    found, run = list[int](), launch.run_program

    def counted(*args: Any) -> Any:
        found.append(args[-1])
        return run(*args)

    monkeypatch.setattr(launch, "run_program", counted)
    return found


@pytest.mark.parametrize("majors", ["rows rows", "rows columns", "columns rows", "columns columns"])
@pytest.mark.parametrize("group", [1, 8], ids=["A is shared", "B is shared"])
def test_halves_of_the_shared_operand(device: Device, majors: str, group: int) -> None:
    """Of each operand one panel or two."""
    assert_product(device, tutorial_matmul, 104, 232, 200, majors, GROUP_M=group)
    assert_product(
        device, tutorial_matmul, 232, 104, 72, majors, GROUP_M=group, BLOCK_M=128, BLOCK_N=64
    )


@pytest.mark.parametrize(
    ("m", "n", "k"), [(104, 104, 8), (72, 8, 1000), (200, 264, 136), (72, 456, 264)]
)
def test_extents_that_are_no_multiples(device: Device, m: int, n: int, k: int) -> None:
    assert_product(device, tutorial_matmul, m, n, k, BLOCK_K=128)
    assert_product(device, tutorial_matmul, m, n, k, BLOCK_N=64, num_warps=8, BLOCK_M=128)


def test_nothing_is_copied_where_there_is_no_k(device: Device) -> None:
    assert not assert_product(device, tutorial_matmul, 104, 104, 0).any()


@pytest.mark.parametrize("seed", range(3))
def test_results_do_not_depend_on_the_order_of_warps(seed: int) -> None:
    expected = assert_product(EmulatedNvidia(), tutorial_matmul, 104, 232, 328)
    found = assert_product(EmulatedNvidia(seed), tutorial_matmul, 104, 232, 328)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("group", [1, 8], ids=["A is shared", "B is shared"])
@pytest.mark.parametrize(
    ("m", "n", "expected"),
    [(104, 104, [2]), (232, 232, [2] * 2), (168, 104, [2] * 2), (40, 104, [2]), (296, 232, [2] * 2),
     (296, 360, [2] * 2)],
    ids=["two", "eight", "three", "one", "ten", "fifteen"],
)  # fmt: skip
def test_two_pairs_of_blocks_run_any_number_of_programs(
    m: int, n: int, expected: list[int], group: int, clusters: list[int]
) -> None:
    """The last of an odd number has no neighbour."""
    assert_product(EmulatedNvidia(), tutorial_matmul, m, n, 72, GROUP_M=group)
    assert clusters == expected


@pytest.mark.parametrize(("n", "k"), [(96, 112), (112, 64)])
def test_rows_that_begin_at_sectors_are_not_shared(n: int, k: int, clusters: list[int]) -> None:
    assert_product(EmulatedNvidia(), tutorial_matmul, 112, n, k)
    assert set(clusters) == {1}


@pytest.mark.parametrize("causal", [False, True], ids=["equal", "of different lengths"])
def test_programs_with_rows_of_their_own_share_what_else_they_load(
    causal: bool, clusters: list[int]
) -> None:
    """Six programs of two blocks, which know their numbers from the program before: nothing is
    shared."""
    device, random, heads, length = EmulatedNvidia(), np.random.default_rng(0), 3, 256
    # rows of 144 bytes begin between sectors
    q, k, v = (
        device.array(random.normal(size=(heads, length, 72)).astype(np.float16)) for _ in "qkv"
    )
    out, steps = (
        device.empty((heads, length, 72), np.float16),
        (heads * length * 72, length * 72, 72),
    )
    rest = heads, length, length, 0.125, None, 0, ()
    device.run(
        attention_kernel, (heads, length // 128), q, k, v, out, None, None, None, *steps * 3, 1,
        *steps, 0, 0, *rest, BLOCK_M=128, BLOCK_N=64, HEAD=64, VALUE=64, SHARED=1, LEFT=-1,
        RIGHT=0 if causal else -1, AT_END=False, SCORE=None, DROPOUT=0.0, GROUP=heads, ROUND=1,
        num_warps=8, num_stages=2, persistent=True,
    )  # fmt: skip
    rows = [np.asarray(x)[:, :, :64].astype(np.float64) for x in (q, k, v)]
    scores = np.where(np.tri(length) > 0 if causal else True, rows[0] @ rows[1].mT / 8, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    exact = weights / weights.sum(axis=2, keepdims=True) @ rows[2]
    np.testing.assert_allclose(np.asarray(out)[:, :, :64].astype(np.float64), exact, atol=4e-3)
    assert set(clusters) == {1}
