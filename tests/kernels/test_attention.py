"""Attention forward and backward in all variants, beside float64."""

import importlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from tests.kernels.devices import Device, EmulatedNvidia
from tilewright.kernels import attention_blocks as blocks

forward = importlib.import_module("tilewright.kernels.attention")
backward = importlib.import_module("tilewright.kernels.attention_backward")
plan = importlib.import_module("tilewright.kernels.attention_plan")
values = importlib.import_module("tilewright.kernels.attention_values")
"""The modules; the package has functions of these names."""

Array = Any


@dataclass(frozen=True)
class Case:
    """heads: of queries and of keys; lengths, sizes: of queries' and keys' rows, and of values'."""

    heads: tuple[int, int] = (2, 2)
    lengths: tuple[int, int] = (37, 37)
    sizes: tuple[int, int] = (16, 16)
    batch: int = 2
    words: dict[str, Any] = field(default_factory=dict[str, Any])


CAP, SLOPES = 1.5, np.array([0.25, 0.5], np.float32)

CASES = {
    "full": Case(),
    "one row": Case(lengths=(1, 1)),
    "causal": Case(words={"causal": True}),
    "shared keys": Case(heads=(4, 2), lengths=(20, 33), words={"causal": True}),
    "causal from the end": Case(lengths=(18, 40), words={"causal": True, "at_end": True}),
    "rows without keys": Case(lengths=(40, 18), words={"causal": True, "at_end": True}),
    "window": Case(lengths=(50, 50), words={"window": (7, 3)}),
    "window of the past": Case(lengths=(40, 50), words={"window": (9, -1), "causal": True}),
    "other values": Case(sizes=(32, 16)),
    "size 48": Case(lengths=(20, 20), sizes=(48, 48)),
    "soft cap": Case(words={"score": blocks.soft_cap, "slope": blocks.soft_cap_slope,
                            "score_args": (CAP,)}),
    "linear bias": Case(words={"score": blocks.linear_bias}),
    "other scale": Case(words={"scale": 0.5}),
    "negative scale": Case(words={"scale": -0.5}),
}  # fmt: skip


@dataclass
class Exact:
    """Attention and its gradients in float64. shape of weights: (batch, heads, queries, keys)."""

    case: Case
    kept: Array = None

    def weights(self, q: Array, k: Array) -> tuple[Array, Array, Array]:
        """Weights before dropout, logarithms of their sums, and how raw scores change scores."""
        words = self.case.words
        scale = words.get("scale") or q.shape[-1] ** -0.5
        raw = scores = q @ k.swapaxes(-1, -2) * scale
        queries, keys = scores.shape[-2:]
        places = np.arange(queries)[:, None] + (keys - queries if words.get("at_end") else 0)
        slope = np.float64(scale)
        if words.get("score") is blocks.soft_cap:
            scores, slope = CAP * np.tanh(raw / CAP), scale * (1 - np.tanh(raw / CAP) ** 2)
        if words.get("score") is blocks.linear_bias:
            scores = raw - SLOPES[:, None, None] * np.abs(places - np.arange(keys))
        left, right = words.get("window", (-1, -1))
        right = 0 if words.get("causal") else right
        ahead = np.arange(keys) - places
        hidden = (ahead > right) & (right >= 0) | (-ahead > left) & (left >= 0)
        scores = np.where(hidden, -np.inf, scores)
        top = scores.max(-1, keepdims=True, initial=-1e30)
        exps = np.exp(scores - top)
        total = exps.sum(-1, keepdims=True)
        with np.errstate(divide="ignore"):
            lse = np.log(total) + top
        return exps / np.where(total == 0, 1, total), lse[..., 0], slope

    def shared(self, x: Array) -> Array:
        """Keys or values for each head of queries."""
        heads, of_keys = self.case.heads
        return np.repeat(x.astype(np.float64), heads // of_keys, 1)

    def forward(self, q: Array, k: Array, v: Array) -> tuple[Array, Array]:
        weights, lse, _ = self.weights(q.astype(np.float64), self.shared(k))
        used = weights if self.kept is None else weights * self.kept
        return used @ self.shared(v), lse

    def backward(self, grad: Array, q: Array, k: Array, v: Array) -> tuple[Array, Array, Array]:
        wide, k, v = q.astype(np.float64), self.shared(k), self.shared(v)
        weights, _, slope = self.weights(wide, k)
        kept = 1 if self.kept is None else self.kept
        change = grad @ v.swapaxes(-1, -2) * kept
        change = weights * (change - (weights * change).sum(-1, keepdims=True)) * slope
        dv = (weights * kept).swapaxes(-1, -2) @ grad
        return change @ k, self._summed(change.swapaxes(-1, -2) @ wide), self._summed(dv)

    def _summed(self, x: Array) -> Array:
        heads, of_keys = self.case.heads
        return x.reshape(x.shape[0], of_keys, heads // of_keys, *x.shape[2:]).sum(2)


@dataclass(frozen=True)
class Launched:
    """A kernel that runs on a device; small: in blocks of 16."""

    device: Device
    kernel: Any
    small: bool = True

    def __getitem__(self, grid: Any) -> Any:
        def launch(*args: Any, **words: Any) -> Any:
            if not self.small:
                return self.device.run(self.kernel, grid, *args, **words)
            small = {name: 16 for name in words if name.startswith("BLOCK")}
            return self.device.run(self.kernel, _of_16(grid, words), *args, **(words | small))

        return launch


@pytest.fixture
def on(device: Device, monkeypatch: pytest.MonkeyPatch) -> Device:
    """The device, on which the functions of the modules run."""
    for module in (forward, backward):
        for name in [name for name in vars(module) if name.endswith("_kernel")]:
            monkeypatch.setattr(module, name, Launched(device, getattr(module, name)))
        monkeypatch.setattr(module, "empty", lambda *args: empty_on(device, *args))
    return device


def _of_16(grid: Any, words: dict[str, Any]) -> Any:
    """The grid for blocks of 16 instead of 64."""
    if words.get("GROUP", 1) == 1:
        return 4 * grid[0], *grid[1:]
    return grid[0], 4 * grid[1], *grid[2:]


def empty_on(device: Device, like: Array, shape: Any, dtype: str | None = None) -> Array:
    return device.empty(shape, like.dtype if dtype is None else np.dtype(dtype))


def operands(case: Case, rng: np.random.Generator, dtype: str) -> list[Array]:
    """Queries, keys, values, and a gradient of the result."""
    (heads, of_keys), (queries, keys), (size, value) = case.heads, case.lengths, case.sizes
    shapes = (heads, queries, size), (of_keys, keys, size), (of_keys, keys, value)
    return [
        rng.normal(size=(case.batch, *shape)).astype(dtype)
        for shape in (*shapes, (heads, queries, value))
    ]


def words_of(case: Case, device: Device) -> dict[str, Any]:
    if case.words.get("score") is blocks.linear_bias:
        return case.words | {"score_args": (device.array(SLOPES),)}
    return case.words


@pytest.mark.parametrize("name", CASES)
def test_attention_and_its_gradients(on: Device, rng: np.random.Generator, name: str):
    case = CASES[name]
    if on.is_slow:
        case = replace(case, batch=1)
    exact, words = Exact(case), words_of(case, on)
    q, k, v, grad = operands(case, rng, "float32")
    expected, logs = exact.forward(q, k, v)
    q, k, v, grad = map(on.array, (q, k, v, grad))
    lse = on.empty(q.shape[:-1], np.float32)
    out = forward.attention(q, k, v, lse=lse, **words)
    assert_close(on, out, expected)
    assert_close(on, lse, logs)
    found = backward.attention_backward(grad, q, k, v, out, lse, **words)
    for one, gradient in zip(found, exact.backward(grad, q, k, v), strict=True):
        assert_close(on, one, gradient)


def test_rows_of_keys_and_values_in_parts(rng: np.random.Generator):
    """On Hopper products of 192 and 96 columns are those of 128 and 64, and of 64 and 32."""
    on, (size, value), length = EmulatedNvidia(seed=9), (192, 96), 140
    case = Case(heads=(1, 1), lengths=(length, length), sizes=(size, value), batch=1)
    case = replace(case, words={"causal": True})
    q, k, v, grad = operands(case, rng, "float16")
    exact = Exact(case)
    expected, lse = exact.forward(q, k, v)
    shared = {"HEAD": size, "VALUE": value, "SHARED": 1, "LEFT": -1, "RIGHT": 0, "AT_END": False,
              "SCORE": None, "DROPOUT": 0.0}  # fmt: skip
    of_q, of_v = ((length * n, length * n, n) for n in (size, value))
    rest = 1, length, length, size**-0.5
    arrays, out = [on.array(x) for x in (q, k, v)], on.empty(grad.shape, np.float16)
    compiled = on.run(
        forward.attention_kernel, (2, 1), *arrays, out, None, None, None, *of_q * 2, *of_v, 1,
        *of_v, 0, 0, *rest, None, 0, (), BLOCK_M=128, BLOCK_N=128, num_warps=8, num_stages=2,
        GROUP=1, ROUND=1, **shared,
    )  # fmt: skip
    consumers, _, producer = str(compiled.asm["ttgir"]).partition("nvidia.bulk_copy")
    # two products of queries and keys, two of values, and those of the last iteration
    assert consumers.count("nvidia.wgmma ") == 6 and "128x32xf32" in consumers and producer
    assert "256x" not in consumers and "x256x" not in consumers
    assert_close(on, out, expected, "float16")
    products = (expected * grad).sum(-1).astype(np.float32)
    arrays += [on.array(x) for x in (grad, lse.astype(np.float32), products)]
    gradients = exact.backward(grad.astype(np.float64), q, k, v)
    dq, dk, dv = (on.array(np.zeros_like(x)) for x in (q, k, v))
    steps = *of_q * 2, *of_v * 2
    last = 0, 0, *rest, 0, ()
    words = {**shared, "SLOPE": None, "GROUP": 1, "num_warps": 8, "num_stages": 2}
    on.run(backward.keys_gradient_kernel, (2, 1), *arrays, dk, dv, None, None, *steps, *of_q, *of_v,
           *last, None, 0, 0, 0, **words, BLOCK_M=32, BLOCK_N=128, ROUND=32)  # fmt: skip
    on.run(backward.queries_gradient_kernel, (2, 1), *arrays, dq, None, None, *steps, *of_q,
           *last, **words, BLOCK_M=128, BLOCK_N=64)  # fmt: skip
    for found, gradient in zip((dq, dk, dv), gradients, strict=True):
        assert_close(on, found, gradient, "float16")


def test_gradients_by_warpgroups(rng: np.random.Generator):
    """Tiles of Hopper, with a producer; the last one of each kind is not whole."""
    on, size, length = EmulatedNvidia(seed=3), 64, 200
    exact = Exact(Case(heads=(1, 1), words={"causal": True}))
    q, k, v, grad = rng.normal(size=(4, 1, 1, length, size)).astype("float16")
    _, *expected = exact.backward(grad.astype(np.float64), q, k, v)
    out, lse = exact.forward(q, k, v)
    products = (out * grad).sum(-1).astype(np.float32)
    arrays = [on.array(x) for x in (q, k, v, grad, lse.astype(np.float32), products)]
    gradients = [on.array(np.zeros_like(q)) for _ in "kv"]
    rows = (length * size, length * size, size)
    compiled = on.run(
        backward.keys_gradient_kernel, (2, 1), *arrays, *gradients, None, None, *rows * 6, length,
        length, 1, length, length, size**-0.5, 0, (), None, 0, 0, 0, BLOCK_M=64, BLOCK_N=128,
        num_warps=8, num_stages=2, HEAD=size, VALUE=size, SHARED=1, LEFT=-1, RIGHT=0, AT_END=False,
        SCORE=None, SLOPE=None, DROPOUT=0.0, GROUP=1, ROUND=64, persistent=False,
    )  # fmt: skip
    consumers, _, _ = str(compiled.asm["ttgir"]).partition("nvidia.bulk_copy")
    loop = consumers[consumers.index("nvidia.mbarrier_wait") :]
    # Sums of rows are loaded by each warp: nothing stops all of them.
    assert loop.count("nvidia.wgmma ") == 4 and "mem.barrier" not in loop[: loop.index("cf.yield")]
    assert "mem.barrier" not in loop[: loop.rindex("nvidia.mbarrier_arrive")]
    # What is added is added in one order: the same gradients in each run.
    assert "atomic" not in consumers
    for found, gradient in zip(gradients, expected, strict=True):
        assert_close(on, found, gradient, "float16")


def test_causal_programs_in_one_block(rng: np.random.Generator):
    """Each with loops as long as its place says; by warpgroups, with a producer. Those of the
    second head come in the other order."""
    on, size, length = EmulatedNvidia(seed=5), 64, 150
    q, k, v = rng.normal(size=(3, 1, 2, length, size)).astype("float16")
    expected, _ = Exact(Case(words={"causal": True})).forward(q, k, v)
    arrays, out = [on.array(x) for x in (q, k, v)], on.array(np.zeros_like(q))
    rows = (2 * length * size, length * size, size)
    compiled = on.run(
        forward.attention_kernel, (3, 2), *arrays, out, None, None, None, *rows * 3, 1, *rows,
        0, 0, 2, length, length, size**-0.5, None, 0, (), BLOCK_M=64, BLOCK_N=128, num_warps=4,
        num_stages=2, HEAD=size, VALUE=size, SHARED=1, LEFT=-1, RIGHT=0, AT_END=False, SCORE=None,
        DROPOUT=0.0, GROUP=1, ROUND=1, persistent=True,
    )  # fmt: skip
    code = str(compiled.asm["ttgir"])
    assert "nvidia.blocks" in code
    # What divisions tell of the next program is known when it begins.
    consumers = code[code.index("nvidia.roles") :]
    begin = consumers[consumers.index("cf.for") : consumers.index("nvidia.mbarrier_wait")]
    assert "arith.div" not in begin and "arith.rem" not in begin
    assert_close(on, out, expected, "float16")


def test_one_group_of_heads_after_the_other(
    on: Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
):
    """Six pairs of batch and head, two in a group."""
    case = Case(heads=(3, 3), lengths=(40, 40), words={"causal": True})
    q, k, v = operands(case, rng, "float32")[:3]
    expected, _ = Exact(case).forward(q, k, v)
    q, k, v = map(on.array, (q, k, v))
    options = {"BLOCK_M": 16, "BLOCK_N": 16, "GROUP": 2}
    monkeypatch.setattr(plan, "launch_options", lambda *_: options)
    monkeypatch.setattr(importlib.import_module(__name__), "_of_16", lambda grid, _: grid)
    assert_close(on, forward.attention(q, k, v, causal=True), expected)


def test_more_pairs_of_batch_and_head_than_a_grid_has_in_a_dim(
    on: Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
):
    """70,000; where these take long, 10 of which a dim has room for 6."""
    batch = 5 if on.is_slow else 35_000
    if on.is_slow:
        monkeypatch.setattr(importlib.import_module("tilewright.kernels.attention_plan"),
                            "MOST_PROGRAMS", 6)  # fmt: skip
    case = Case(heads=(2, 2), lengths=(3, 2), batch=batch, words={"causal": True})
    q, k, v, grad = operands(case, rng, "float32")
    expected, _ = Exact(case).forward(q, k, v)
    gradients = Exact(case).backward(grad, q, k, v)
    q, k, v, grad = map(on.array, (q, k, v, grad))
    lse = on.empty(q.shape[:-1], np.float32)
    out = forward.attention(q, k, v, lse=lse, causal=True)
    assert_close(on, out, expected)
    found = backward.attention_backward(grad, q, k, v, out, lse, causal=True)
    for one, gradient in zip(found, gradients, strict=True):
        assert_close(on, one, gradient)


def test_offsets_beyond_32_bits(rng: np.random.Generator):
    """Three sequences, a gigabyte from each to the next; nothing lies between."""
    length, size, step = 5, 16, 2**30
    memory = np.zeros(2 * step + 4096, np.uint8).view("float8_e4m3fn")
    far = np.lib.stride_tricks.as_strided(memory, (3, 1, length, size), (step, 0, size, 1))
    far[...] = rng.normal(size=far.shape).astype(memory.dtype)
    wide = far.astype(np.float32)
    expected, _ = Exact(Case(heads=(1, 1))).forward(wide, wide, wide)
    found = forward.attention(far, far, far)
    assert np.abs(found - expected).max() < 0.04 * np.abs(expected).max()


def assert_close(device: Device, found: Array, expected: Array, dtype: str = "float32") -> None:
    tolerance = 2e-2 if dtype != "float32" else 2e-3 if device.is_approximate else 2e-5
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("name", ["full", "causal", "shared keys", "rows without keys", "soft cap"])
def test_fp8_with_scales(on: Device, rng: np.random.Generator, name: str, dtype: str):
    """Scales are numbers, or one for each pair of batch and head of keys."""
    case = replace(CASES[name], batch=1, sizes=(32, 32))
    q, k, v, _ = operands(case, rng, "float32")
    q, k, v = (x.astype(dtype) for x in (q, k, v))
    of_v = np.array([0.5, 3.0], np.float32)
    scaled = [x.astype(np.float32) * by for x, by in ((q, 0.5), (k, 1.5))]
    expected, logs = Exact(case).forward(
        scaled[0], scaled[1], v.astype(np.float32) * of_v[:, None, None]
    )
    lse = on.empty(q.shape[:-1], np.float32)
    words = words_of(case, on) | {"scales": (0.5, 1.5, on.array(of_v)), "lse": lse}
    out = forward.attention(*map(on.array, (q, k, v)), **words)
    assert out.dtype == np.float16
    assert_close(on, lse, logs)
    # weights have four bits, or three
    error = np.abs(out - expected).max() / np.abs(expected).max()
    assert error < (0.04 if dtype == "float8_e4m3fn" else 0.08), error


@pytest.fixture
def turning(on: Device, monkeypatch: pytest.MonkeyPatch) -> Device:
    """The device, which multiplies fp8 along columns alone; copies are NaN before."""

    def of_nan(*args: Any) -> Array:
        made = empty_on(on, *args)
        made.view(np.uint8)[...] = 0x7F
        return made

    launched = Launched(on, values.transpose_values_kernel, small=False)
    monkeypatch.setattr(values, "transpose_values_kernel", launched)
    monkeypatch.setattr(values, "empty", of_nan)
    monkeypatch.setattr(values, "reads_columns", lambda: True)
    monkeypatch.setattr(values, "BLOCK_BYTES", 1024)
    monkeypatch.setattr(forward, "is_on_cpu", lambda _: False)
    monkeypatch.setattr(plan, "launch_options", lambda *_: {"BLOCK_M": 16, "BLOCK_N": 16})
    return on


@pytest.mark.parametrize("copied", [True, False], ids=["copied", "as they come"])
def test_values_of_fp8_with_their_columns_turned(
    turning: Device, rng: np.random.Generator, copied: bool
):
    """By the copy that Hopper takes, in an order of its own; or as the user has them."""
    on, batch = turning, 1 if turning.is_slow else 2
    case = Case(heads=(4, 2), lengths=(40, 50), sizes=(32, 48), batch=batch)
    q, k, v = (x.astype("float8_e4m3fn") for x in operands(case, rng, "float32")[:3])
    wide = [x.astype(np.float32) for x in (q, k, v)]
    expected, _ = Exact(case).forward(wide[0], wide[1], wide[2])
    q, k, v = map(on.array, (q, k, v))
    if not copied:
        v = on.array(np.ascontiguousarray(v.swapaxes(-1, -2))).swapaxes(-1, -2)
    found = forward.attention(q, k, v)
    assert np.abs(found - expected).max() < 0.04 * np.abs(expected).max()


def test_turned_values_of_several_sequences(turning: Device, rng: np.random.Generator):
    """Each begins with a round of its own, behind which another's are not read, nor NaN."""
    on, lengths = turning, [(5, 9), (0, 4), (20, 33), (1, 0), (12, 12)]
    starts = [np.cumsum([0, *column]).astype(np.int32) for column in zip(*lengths, strict=True)]
    q, k, v = (
        rng.normal(size=(rows, heads, 16)).astype("float8_e4m3fn")
        for rows, heads in ((38, 2), (58, 1), (58, 1))
    )
    v[9] = np.nan  # of the sequence without queries
    out = forward.attention(*map(on.array, (q, k, v)), starts=(*map(on.array, starts), 20, 33))
    case = Case(heads=(2, 1))
    for (q0, q1), (k0, k1) in zip(*(zip(s, s[1:], strict=False) for s in starts), strict=True):
        one = [x.swapaxes(0, 1)[None].astype(np.float32) for x in (q[q0:q1], k[k0:k1], v[k0:k1])]
        expected, _ = Exact(case).forward(one[0], one[1], one[2])
        error = np.abs(out[q0:q1].swapaxes(0, 1)[None] - expected).max(initial=0)
        assert error <= 0.04 * np.abs(expected).max(initial=0)


TWO_GROUPS = {"BLOCK_M": 128, "BLOCK_N": 128, "num_warps": 8, "num_stages": 2}


@pytest.mark.parametrize(("rounds", "products", "options"), [
    (1, 4, TWO_GROUPS), (values.ROUND, 4, TWO_GROUPS),
    (values.ROUND, 2, plan.gpu_launch_options(64, 1, plan.HOPPER)),
])  # fmt: skip
def test_fp8_by_warpgroups(
    rng: np.random.Generator, rounds: int, products: int, options: dict[str, int]
):
    """Weights go from the sums of a product to the operand of the next one: between lanes, or, in
    the order of values, in the registers where they are."""
    on, size, length, padded = EmulatedNvidia(seed=7), 64, 150, 160
    q, k, v = rng.normal(size=(3, 1, 2, length, size)).astype("float8_e4m3fn")
    wide = [x.astype(np.float32) for x in (q, k, v)]
    expected, _ = Exact(Case(words={"causal": True})).forward(wide[0], wide[1], wide[2])
    rows = np.zeros((1, 2, padded, size), v.dtype)
    rows[:, :, :length] = v
    if rounds > 1:
        rows = rows.reshape(1, 2, -1, 2, 4, 2, size).swapaxes(3, 4).reshape(rows.shape)
    turned = np.ascontiguousarray(rows.swapaxes(-1, -2))
    arrays, out = [on.array(x) for x in (q, k, turned)], on.empty(q.shape, np.float16)
    rows = (2 * length * size, length * size, size)
    grid = -(-length // options["BLOCK_M"]), 2
    compiled = on.run(
        forward.attention_kernel, grid, *arrays, out, None, None, None, *rows * 2,
        2 * padded * size, padded * size, 1, padded, *rows, 0, 0, 2, length, length, size**-0.5,
        None, 0, (), **options, HEAD=size, VALUE=size, SHARED=1, LEFT=-1, RIGHT=0, AT_END=False,
        SCORE=None, DROPOUT=0.0, GROUP=1, ROUND=rounds,
    )  # fmt: skip
    ttgir, llvm = str(compiled.asm["ttgir"]), str(compiled.asm["llir"])
    # behind the loop's products stands that of its last iteration, where two groups are
    assert ttgir.count("nvidia.wgmma ") == products and "nvidia.bulk_copy" in ttgir
    assert ("llvm.nvvm.prmt" in llvm and "shfl.sync.idx" in llvm) == (rounds == 1)
    assert np.abs(out - expected).max() < 0.04 * np.abs(expected).max()


@pytest.mark.parametrize("causal", [False, True])
def test_half_precision(on: Device, rng: np.random.Generator, causal: bool):
    case = Case(batch=1, sizes=(32, 32), words={"causal": causal})
    exact = Exact(case)
    q, k, v, grad = operands(case, rng, "float16")
    expected, _ = exact.forward(q, k, v)
    gradients = exact.backward(grad.astype(np.float64), q, k, v)
    q, k, v, grad = map(on.array, (q, k, v, grad))
    lse = on.empty(q.shape[:-1], np.float32)
    out = forward.attention(q, k, v, lse=lse, causal=causal)
    assert_close(on, out, expected, "float16")
    found = backward.attention_backward(grad, q, k, v, out, lse, causal=causal)
    for one, gradient in zip(found, gradients, strict=True):
        assert_close(on, one, gradient, "float16")


def test_dropout_is_the_same_backward(on: Device, rng: np.random.Generator):
    share, case = 0.3, Case(batch=1, lengths=(24, 40))
    words = {"dropout": share, "seed": 7}
    q, k, v, grad = operands(case, rng, "float32")
    kept = kept_weights(on, case, share)
    assert abs(kept.mean() - (1 - share)) < 0.05
    exact = Exact(case, kept / (1 - share))
    expected, _ = exact.forward(q, k, v)
    gradients = exact.backward(grad, q, k, v)
    q, k, v, grad = map(on.array, (q, k, v, grad))
    lse = on.empty(q.shape[:-1], np.float32)
    out = forward.attention(q, k, v, lse=lse, **words)
    assert_close(on, out, expected)
    found = backward.attention_backward(grad, q, k, v, out, lse, **words)
    for one, gradient in zip(found, gradients, strict=True):
        assert_close(on, one, gradient)


def kept_weights(on: Device, case: Case, share: float) -> Array:
    """Which are kept, seen in what each key alone adds: values are rows of the identity."""
    (heads, _), (queries, keys), size = case.heads, case.lengths, 16
    q = np.zeros((heads, queries, size), np.float32)
    k, v = np.zeros((heads, keys, size), np.float32), np.zeros((heads, keys, 64), np.float32)
    v[:, np.arange(keys), np.arange(keys)] = 1
    out = forward.attention(*map(on.array, (q, k, v)), dropout=share, seed=7)
    return out[None, :, :, :keys] > 0


def test_sequences_of_several_lengths(on: Device, rng: np.random.Generator):
    lengths = [(5, 9), (0, 4), (33, 20), (1, 0), (12, 12)]
    starts = [np.cumsum([0, *column]).astype(np.int32) for column in zip(*lengths, strict=True)]
    q, grad = rng.normal(size=(2, starts[0][-1], 2, 16)).astype(np.float32)
    k, v = rng.normal(size=(2, starts[1][-1], 1, 16)).astype(np.float32)
    case = Case(heads=(2, 1), words={"causal": True, "at_end": True})
    words = case.words | {"starts": (*map(on.array, starts), 33, 20)}
    gq, gk, gv, ggrad = map(on.array, (q, k, v, grad))
    lse = on.empty((2, len(q)), np.float32)
    out = forward.attention(gq, gk, gv, lse=lse, **words)
    found = backward.attention_backward(ggrad, gq, gk, gv, out, lse, **words)
    for (q0, q1), (k0, k1) in zip(*(zip(s, s[1:], strict=False) for s in starts), strict=True):
        one = [x.swapaxes(0, 1)[None] for x in (q[q0:q1], k[k0:k1], v[k0:k1], grad[q0:q1])]
        expected, _ = Exact(case).forward(*one[:3])
        assert_close(on, out[q0:q1].swapaxes(0, 1)[None], expected)
        gradients = Exact(case).backward(one[3], *one[:3])
        for gradient, x, (a, b) in zip(gradients, found, ((q0, q1), *[(k0, k1)] * 2), strict=True):
            assert_close(on, x[a:b].swapaxes(0, 1)[None], gradient)


@pytest.mark.parametrize("lengths", [(0, 5), (5, 0), (0, 0)])
def test_no_queries_or_no_keys(on: Device, rng: np.random.Generator, lengths: tuple[int, int]):
    case = Case(batch=1, lengths=lengths)
    q, k, v, grad = map(on.array, operands(case, rng, "float32"))
    lse = on.empty(q.shape[:-1], np.float32)
    out = forward.attention(q, k, v, lse=lse)
    assert out.shape == q.shape and not np.asarray(out).any()
    assert np.all(np.asarray(lse) == -np.inf)
    found = backward.attention_backward(grad, q, k, v, out, lse)
    for one, x in zip(found, (q, k, v), strict=True):
        assert one.shape == x.shape and not np.asarray(one).any()


def test_infinite_scores(on: Device, rng: np.random.Generator):
    """A score of -inf hides a key, also all of a row; one of inf leaves NaN in its row alone."""
    q, k, v, _ = operands(Case(batch=1, heads=(1, 1), lengths=(5, 40)), rng, "float32")
    bias = np.zeros((5, 40), np.float32)
    bias[1, ::2], bias[2], bias[3, 7] = -np.inf, -np.inf, np.inf
    args = (on.array(bias), 0, 0, 40, 1, 5, 40)
    words = {"score": blocks.add_mask, "score_args": args}
    out = np.asarray(forward.attention(*map(on.array, (q, k, v)), **words))[0, 0]
    scores = q[0, 0].astype(np.float64) @ k[0, 0].T / 4 + bias
    weights = np.exp(np.minimum(scores, 80))
    assert np.isnan(out[3]).all() and not out[2].any()
    for row in (0, 1, 4):
        assert_close(on, out[row], weights[row] @ v[0, 0] / weights[row].sum())


def test_strided_operands(on: Device, rng: np.random.Generator):
    """Heads within rows, as projections give them."""
    case = Case(words={"causal": True})
    rows = rng.normal(size=(2, 37, 3, 2, 16)).astype(np.float32)
    q, k, v = on.array(rows).transpose(2, 0, 3, 1, 4)
    expected, _ = Exact(case).forward(*rows.transpose(2, 0, 3, 1, 4))
    assert_close(on, forward.attention(q, k, v, **case.words), expected)


@pytest.mark.parametrize(
    ("shapes", "words", "message"),
    [
        (((2, 8, 16), (2, 8, 32), (2, 8, 16)), {}, "mismatched shapes"),
        (((2, 8, 16), (2, 8, 16), (2, 9, 16)), {}, "mismatched shapes"),
        (((3, 8, 16), (2, 8, 16), (2, 8, 16)), {}, "3 heads of queries are not a multiple of 2"),
        (((8, 16), (8, 16), (8, 16)), {}, "3 or 4 dims"),
        (((2, 8, 16),) * 3, {"window": (-2, 0)}, "cannot be negative"),
        (((2, 8, 16),) * 3, {"dropout": 1.0}, r"in \[0, 1\)"),
        (((2, 8, 16),) * 3, {"scales": (1.0, 2.0)}, "three scales, of q, k and v, found 2"),
        (((2, 8, 16),) * 3, {"window": 4}, r"two numbers, \(left, right\), not 4"),
    ],
)
def test_operands_that_do_not_fit(shapes: Any, words: dict[str, Any], message: str):
    operands = [np.zeros(shape, np.float32) for shape in shapes]
    with pytest.raises(ValueError, match=message):
        forward.attention(*operands, **words)


def test_operands_of_several_types():
    x = np.zeros((2, 8, 16), np.float32)
    with pytest.raises(ValueError, match="float16"):
        forward.attention(x, x.astype(np.float16), x)
    with pytest.raises(ValueError, match="must be contiguous"):
        forward.attention(*[x.swapaxes(-1, -2)] * 3)


def test_fp8_has_no_gradients():
    x, lse = np.zeros((2, 8, 16), "float8_e5m2"), np.zeros((2, 8), np.float32)
    with pytest.raises(ValueError, match="no gradients for fp8"):
        backward.attention_backward(x, x, x, x, x, lse)


def test_a_misspelt_word_is_told():
    x = np.zeros((2, 8, 16), np.float32)
    with pytest.raises(TypeError, match=r"attention\(\) has no argument 'windw'; .*'window'"):
        forward.attention(x, x, x, windw=(1, 1))
