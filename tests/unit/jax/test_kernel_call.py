"""Kernels called from JAX on the CPU: equal to NumPy under jit, vmap and on two devices; inputs
stay as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.jax
import tilewright.language as tl
from tilewright.jax.launch_plan import LaunchPlan
from tilewright.runtime import Config, launch_enter
from tilewright.support import errors

jax: Any = pytest.importorskip("jax")
jnp: Any = pytest.importorskip("jax.numpy")

N = 1000
X = np.arange(N, dtype=np.float32)


@tilewright.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@tilewright.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, i < n), i < n)


@tilewright.jit
def split(x, low, high, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, i < n)
    tl.store(low + i, tl.minimum(value, 1), i < n)
    tl.store(high + i, tl.maximum(value, 1), i < n)


def shape_of(x: Any) -> Any:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def added(x: Any, y: Any) -> Any:
    grid = (tilewright.cdiv(x.size, 128),)
    return tilewright.jax.call(add, grid, shape_of(x), x, y, n=x.size, BLOCK=128)


def by_function(x: Any, y: Any) -> Any:
    def grid(named: dict[str, Any]) -> tuple[int]:
        return (tilewright.cdiv(named["n"], named["BLOCK"]),)

    return tilewright.jax.call(add, grid, shape_of(x), x=x, y=y, n=x.size, BLOCK=64)


@pytest.mark.parametrize("function", [added, by_function])
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_call_equals_numpy(function: Any, transform: Any) -> None:
    x, y = jnp.asarray(X), jnp.ones(N, jnp.float32)
    assert np.array_equal(transform(function)(x, y), X + 1)
    assert np.array_equal(x, X)


def test_a_call_is_a_part_of_a_compiled_function() -> None:
    @jax.jit
    def chain(x: Any, y: Any) -> Any:
        for _ in range(3):
            x = added(x, y) * 2
        return x.sum()

    expected = X
    for _ in range(3):
        expected = (expected + 1) * 2
    assert chain(jnp.asarray(X), jnp.ones(N, jnp.float32)) == expected.sum()


def test_compiled_calls_search_for_no_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(self: object, *words: object) -> None:
        raise AssertionError("searched for a variant")

    monkeypatch.setattr(LaunchPlan, "_launch_one", search)
    x, y = jnp.asarray(X), jnp.ones(N, jnp.float32)
    assert np.array_equal(jax.jit(added)(x, y), X + 1)
    assert np.array_equal(jax.vmap(added)(jnp.stack([x, y]), jnp.stack([y, y]))[0], X + 1)


def test_hooks_see_launches() -> None:
    seen: list[str] = []

    def note(metadata: Any) -> None:
        seen.append(metadata.get()["name"])

    x, y = jnp.asarray(X), jnp.ones(N, jnp.float32)
    compiled = jax.jit(added)
    compiled(x, y).block_until_ready()
    launch_enter.add(note)
    try:
        assert np.array_equal(compiled(x, y), X + 1)
    finally:
        launch_enter.remove(note)
    assert seen == ["add"]


def test_defaults_of_parameters() -> None:
    @tilewright.jit
    def scaled(x, out, factor=3.0, BLOCK: tl.constexpr = 4):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i) * factor)

    x = jnp.arange(4.0)
    assert np.array_equal(tilewright.jax.call(scaled, 1, shape_of(x), x), 3 * np.arange(4.0))
    assert np.array_equal(
        tilewright.jax.call(scaled, 1, shape_of(x), x, factor=2), 2 * np.arange(4.0)
    )


@pytest.mark.parametrize("dtype", ["int8", "int64", "bool", "float16", "bfloat16", "float8_e5m2"])
def test_dtypes(dtype: str) -> None:
    @tilewright.jit
    def copy(x, out, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i))

    with jax.enable_x64(True):
        x = (jnp.arange(64) % 7).astype(dtype)
        out = jax.jit(lambda x: tilewright.jax.call(copy, 1, shape_of(x), x, BLOCK=64))(x)
        assert out.dtype == x.dtype and np.array_equal(out, x)


@pytest.mark.parametrize("size", [0, 1, 33, 1024])
def test_vmap(size: int) -> None:
    """33 elements are not aligned as a whole array is: their calls are one by one."""
    x = jnp.arange(6.0 * size).reshape(2, 3, size)
    y = jnp.ones(size)
    assert np.array_equal(jax.vmap(added)(x[0], 2 * x[0]), 3 * np.asarray(x[0]))
    assert np.array_equal(jax.jit(jax.vmap(added, (0, None)))(x[0], y), np.asarray(x[0]) + 1)
    assert np.array_equal(jax.vmap(added, (None, 1), 1)(y, x[0].T), np.asarray(x[0]).T + 1)
    nested = jax.vmap(jax.vmap(added, (0, None)), (0, None))
    assert np.array_equal(nested(x, y), np.asarray(x) + 1)
    crossed = jax.vmap(jax.vmap(added, (None, 0)), (0, None))(x[0], x[1])
    assert np.array_equal(crossed, np.asarray(x)[0][:, None] + np.asarray(x)[1][None])
    assert jax.vmap(added)(x[:, :0][0], x[:, :0][1]).shape == (0, size)


def test_two_devices() -> None:
    assert len(jax.devices()) == 2
    for device in (*jax.devices(), *reversed(jax.devices())):
        x, y = (jax.device_put(a, device) for a in (X, np.ones(N, np.float32)))
        out = jax.jit(added)(x, y)
        assert out.devices() == {device} and np.array_equal(out, X + 1)
    both = np.stack([X, 2 * X])
    out = jax.pmap(added)(both, both)
    assert len(out.devices()) == 2 and np.array_equal(out, 2 * both)


def test_sharded_arrays() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
    spec = jax.sharding.PartitionSpec("i")
    both = jax.device_put(np.stack([X, 2 * X]), jax.sharding.NamedSharding(mesh, spec))
    mapped = jax.shard_map(added, mesh=mesh, in_specs=(spec, spec), out_specs=spec)
    assert np.array_equal(jax.jit(mapped)(both, both), 2 * np.stack([X, 2 * X]))


def test_several_outputs_are_a_tuple_or_a_dictionary() -> None:
    x = jnp.asarray(X)
    words = {"n": N, "BLOCK": 1024}
    low, high = tilewright.jax.call(split, 1, [shape_of(x)] * 2, x, **words)
    assert np.array_equal(low, np.minimum(X, 1)) and np.array_equal(high, np.maximum(X, 1))
    named = tilewright.jax.call(split, 1, {"high": shape_of(x), "low": shape_of(x)}, x, **words)
    assert np.array_equal(named["low"], low) and np.array_equal(named["high"], high)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_an_updated_argument_is_a_new_array(transform: Any) -> None:
    @transform
    def doubled(x: Any) -> Any:
        out = tilewright.jax.call(double, 8, {"x": shape_of(x)}, x, n=N, BLOCK=128)["x"]
        return out, x + 1

    x = jnp.asarray(X)
    out, more = doubled(x)
    assert np.array_equal(out, 2 * X) and np.array_equal(more, X + 1)
    assert np.array_equal(x, X)


def test_vmap_of_an_update() -> None:
    def doubled(x: Any) -> Any:
        return tilewright.jax.call(double, 8, {"x": shape_of(x)}, x, n=1000, BLOCK=128)["x"]

    x = jnp.stack([X, 3 * X])
    assert np.array_equal(jax.vmap(doubled)(x), 2 * np.stack([X, 3 * X]))
    assert np.array_equal(x, np.stack([X, 3 * X]))


def test_storing_to_an_input_is_an_error_where_it_is_traced() -> None:
    x = jnp.asarray(X)
    with pytest.raises(errors.ReadOnlyArray, match="immutable") as raised:
        jax.jit(lambda x: tilewright.jax.call(double, 8, [], x, n=N, BLOCK=128))(x)
    assert "out_shape={'x': ...}" in str(raised.value)
    assert np.array_equal(x, X)


def test_storing_to_an_input_is_an_error_for_tuned_kernels_at_the_launch() -> None:
    @tilewright.autotune([Config({"BLOCK": 128}), Config({"BLOCK": 256})], key=["n"])
    @tilewright.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, 1.0, i < n)
        tl.store(out + i, 1.0, i < n)

    x = jnp.asarray(X)
    with pytest.raises(Exception, match="ReadOnlyArray.*is a read-only array"):
        jax.block_until_ready(tilewright.jax.call(kernel, 8, shape_of(x), x, n=N))
    assert np.array_equal(x, X)


def test_tuned_kernels_are_tuned_at_their_first_call() -> None:
    tuned = tilewright.autotune([Config({"BLOCK": 128}), Config({"BLOCK": 1024})], key=["n"])(add)

    @jax.jit
    def f(x: Any, y: Any) -> Any:
        return tilewright.jax.call(tuned, lambda m: (-(-N // m["BLOCK"]),), shape_of(x), x, y, n=N)

    assert np.array_equal(f(jnp.asarray(X), jnp.ones(N, jnp.float32)), X + 1)
    assert tuned.best_config in tuned.configs


def test_mistakes_are_reported_where_the_call_is() -> None:
    x = jnp.asarray(X)
    with pytest.raises(errors.MissingArgument, match="missing required"):
        tilewright.jax.call(add, 1, shape_of(x), x, BLOCK=128)
    with pytest.raises(errors.InvalidOption, match="out_shape"):
        tilewright.jax.call(add, 1, [shape_of(x)] * 2, x, x, n=N, BLOCK=128)
    with pytest.raises(errors.UnknownArgument, match="no parameter 'z'"):
        tilewright.jax.call(add, 1, {"z": shape_of(x)}, x, x, n=N, BLOCK=128)
    with pytest.raises(errors.MissingArgument, match="'out'"):
        tilewright.jax.call(add, 1, [], x, x, n=N, BLOCK=128)
    with pytest.raises(errors.ArgumentCount):
        tilewright.jax.call(add, 1, shape_of(x), x, x, x, N, 128, 1)

    @tilewright.jit
    def reads(x):
        tl.load(x)

    with pytest.raises(errors.InvalidOption, match="at least one shape"):
        tilewright.jax.call(reads, 1, [], x)


def test_an_error_of_a_launch_arrives() -> None:
    @tilewright.jit
    def fails(x, out, BLOCK: tl.constexpr):
        tl.device_assert(tl.load(x) < 0, "too large")
        tl.store(out, 1.0)

    x = jnp.ones(4)
    with pytest.raises(Exception, match="too large"):
        jax.block_until_ready(tilewright.jax.call(fails, 1, shape_of(x), x, BLOCK=1, debug=True))


PERSISTENT = """
import sys
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
import tilewright, tilewright.jax
from tilewright.kernels.elementwise import add_kernel
def f(x):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return tilewright.jax.call(add_kernel, 8, shape, x, x, n=x.size, BLOCK=128)
x = jnp.arange(1000.0)
assert np.array_equal(jax.jit(f)(x), 2 * np.arange(1000.0))
"""


def test_a_compiled_program_of_another_process_works(tmp_path: Path) -> None:
    for _ in range(2):
        subprocess.run([sys.executable, "-c", PERSISTENT, str(tmp_path)], check=True)
    assert list(tmp_path.iterdir())
